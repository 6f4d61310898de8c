//! Which driver a load gets: the one that is asked for, or the one that costs less, as far as the load and the kernel allow it.

use super::Uring;
use crate::spec::{DriverKind, Socket, Spec, Wire};

const OTHERS: &str = "TLS, HTTP/2, pipelines and Unix sockets go by epoll";

/// How the workers of a run reach the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// By io_uring; else by epoll.
    pub is_uring: bool,
    /// Why not by io_uring, where it was wanted.
    pub fallback: Option<String>,
}

impl Choice {
    /// For a load by so many workers. Asks the kernel, if io_uring is wanted.
    pub fn of(spec: &Spec, workers: usize) -> Self {
        if !is_wanted(spec.driver) {
            return Self::default();
        }
        if !is_plain(spec) {
            return Self::fallen_back(OTHERS.to_owned());
        }
        match Uring::probe(workers) {
            Ok(()) => Self {
                is_uring: true,
                fallback: None,
            },
            Err(error) => Self::fallen_back(format!("no io_uring here: {error}")),
        }
    }

    fn fallen_back(why: String) -> Self {
        Self {
            is_uring: false,
            fallback: Some(why),
        }
    }
}

/// One request at a time on a connection of TCP, as it is. Some kernels lose the end of a Unix stream that comes close behind its bytes
/// (io_uring/poll, multishot receive).
fn is_plain(spec: &Spec) -> bool {
    let target = &spec.target;
    let is_shared = matches!(target.wire, Wire::Http2 { .. }) || target.wire.streams() > 1;
    target.tls.is_none() && !is_shared && target.socket == Socket::Tcp
}

/// It was not shown to cost less than epoll in any loop (docs/performance.md), so it is taken where it is asked for.
fn is_wanted(driver: DriverKind) -> bool {
    match driver {
        DriverKind::Auto | DriverKind::Epoll => false,
        DriverKind::IoUring => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{json, Value};

    fn spec(driver: &str, target: Value) -> Spec {
        let spec = json!({
            "target": target,
            "workload": {
                "loop": {"kind": "closed", "connections": 1}, "stop": {"kind": "requests", "requests": 1},
                "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "precise", "driver": driver
        });
        Spec::from_json(&spec.to_string()).unwrap()
    }

    #[test]
    fn what_io_uring_does_not_carry_goes_by_epoll_and_says_so() {
        let plain = json!({"host": "127.0.0.1", "port": 1});
        let others = [
            json!({"host": "127.0.0.1", "port": 1, "tls": {"verify": false}}),
            json!({"host": "127.0.0.1", "port": 1, "wire": {"kind": "http2", "streams": 1}}),
            json!({"host": "127.0.0.1", "port": 1, "wire": {"kind": "http", "pipeline": 2}}),
            json!({"host": "/run/app.sock", "port": 0, "socket": "unix"}),
        ];
        for target in others {
            let choice = Choice::of(&spec("io_uring", target.clone()), 1);
            assert!(!choice.is_uring && choice.fallback.is_some(), "{target}");
            assert_eq!(Choice::of(&spec("epoll", target), 1), Choice::default());
        }
        assert_eq!(Choice::of(&spec("epoll", plain.clone()), 1), Choice::default());
        let choice = Choice::of(&spec("io_uring", plain), 1);
        assert_eq!(choice.is_uring, choice.fallback.is_none());
    }
}

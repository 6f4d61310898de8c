//! A load as a few words, and a server that does what a closure says.

#![allow(dead_code, clippy::unwrap_used)]

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use prony_engine::record::recording::check_paths;
use prony_engine::{Control, Recording, Spec};
use prony_reference::{Config, Counts, Server};
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

pub const MS: u64 = 1_000_000;

pub fn start(config: &str) -> Server {
    Server::start(Config::from_json(config).unwrap()).unwrap()
}

/// A specification in the making. Without more: GET / until 300 ms have passed, 5 s time-out and grace.
#[derive(Clone, Debug)]
pub struct Load(Value);

impl Load {
    pub fn closed(port: u16, connections: usize) -> Self {
        Self::of(port, json!({"kind": "closed", "connections": connections}))
    }

    pub fn open(port: u16, rate_per_s: f64, connections: usize) -> Self {
        Self::of(
            port,
            json!({"kind": "open", "rate_per_s": rate_per_s, "arrivals": "constant", "seed": 0, "connections": connections}),
        )
    }

    /// With as many connections as can be outstanding.
    pub fn open_without_limit(port: u16, rate_per_s: f64) -> Self {
        Self::open(port, rate_per_s, 1).with("/workload/loop/connections", Value::Null)
    }

    fn of(port: u16, shape: Value) -> Self {
        Self(json!({
            "target": {"host": "127.0.0.1", "port": port, "socket": "tcp", "wire": {"kind": "http"}},
            "workload": {
                "loop": shape, "stop": {"kind": "duration", "duration_ns": 300 * MS},
                "warmup_ns": 0, "timeout_ns": 5_000 * MS, "connect_timeout_ns": null, "grace_ns": 5_000 * MS,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "economical"
        }))
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        *self.0.pointer_mut(pointer).unwrap() = value;
        self
    }

    pub fn poisson(self, seed: u64) -> Self {
        self.with("/workload/loop/arrivals", json!("poisson"))
            .with("/workload/loop/seed", json!(seed))
    }

    pub fn requests(self, count: u64) -> Self {
        self.with("/workload/stop", json!({"kind": "requests", "requests": count}))
    }

    pub fn duration_ms(self, ms: u64) -> Self {
        self.with(
            "/workload/stop",
            json!({"kind": "duration", "duration_ns": ms * MS}),
        )
    }

    pub fn warmup_ms(self, ms: u64) -> Self {
        self.with("/workload/warmup_ns", json!(ms * MS))
    }

    pub fn timeout_ms(self, ms: u64) -> Self {
        self.with("/workload/timeout_ns", json!(ms * MS))
    }

    pub fn connect_timeout_ms(self, ms: u64) -> Self {
        self.with("/workload/connect_timeout_ns", json!(ms * MS))
    }

    pub fn grace_ms(self, ms: u64) -> Self {
        self.with("/workload/grace_ns", json!(ms * MS))
    }

    pub fn threads(self, threads: usize) -> Self {
        self.with("/threads", json!(threads))
    }

    pub fn precise(self) -> Self {
        self.with("/pacing", json!("precise"))
    }

    pub fn method(self, method: &str) -> Self {
        self.with("/workload/request/method", json!(method))
    }

    pub fn path(self, path: &str) -> Self {
        self.with("/workload/request/path", json!(path))
    }

    /// Of these paths, by their weights; the first of them is that of the request.
    pub fn mix(mut self, paths: &[(&str, f64)]) -> Self {
        let path = |&(path, weight): &(&str, f64)| json!({"path": path, "weight": weight});
        let paths: Vec<Value> = paths.iter().map(path).collect();
        let first = paths[0]["path"].clone();
        self.0["workload"]["mix"] = json!({"seed": 5, "paths": paths});
        self.with("/workload/request/path", first)
    }

    pub fn groups(mut self, groups: Value) -> Self {
        self.0["workload"]["groups"] = groups;
        self
    }

    pub fn follow(mut self, hops: u32) -> Self {
        self.0["workload"]["follow"] = json!(hops);
        self
    }

    pub fn wire(self, wire: Value) -> Self {
        self.with("/target/wire", wire)
    }

    pub fn unix(self, path: &str) -> Self {
        self.with("/target/host", json!(path))
            .with("/target/port", json!(0))
            .with("/target/socket", json!("unix"))
    }

    pub fn port(self, port: u16) -> Self {
        self.with("/target/port", json!(port))
    }

    /// With TLS, asked for so.
    pub fn secure(mut self, tls: Value) -> Self {
        self.0["target"]["tls"] = tls;
        self
    }

    pub fn body(self, body: &[u8]) -> Self {
        self.with("/workload/request/body", json!(STANDARD.encode(body)))
    }

    pub fn without_keep_alive(self) -> Self {
        self.with("/workload/request/keep_alive", json!(false))
    }

    pub fn expect_body(self, body: &[u8]) -> Self {
        self.with("/workload/expect/body", json!(STANDARD.encode(body)))
    }

    pub fn spec(&self) -> Spec {
        Spec::from_json(&self.0.to_string()).unwrap()
    }

    pub fn run(&self) -> Recording {
        self.run_with(&Control::new())
    }

    pub fn run_with(&self, control: &Control) -> Recording {
        let recording = prony_engine::run(&self.spec(), control, &mut |_| {}).unwrap();
        check(&recording);
        recording
    }
}

/// The same count of requests in both loops, each with one worker and with two.
pub fn in_both_loops(port: u16, count: u64) -> Vec<Load> {
    let (closed, open) = (Load::closed(port, 4), Load::open(port, 1000.0, 8));
    [closed.clone(), closed.threads(2), open.clone(), open.threads(2)]
        .map(|load| load.requests(count))
        .to_vec()
}

/// What holds of every Recording.
fn check(recording: &Recording) {
    let account = &recording.account;
    account.check().unwrap();
    let latencies = &recording.distributions;
    assert_eq!(latencies.ok_service.count(), account.ok);
    let carried = &account.carried_in;
    assert_eq!(latencies.carried_in_service.count(), carried.answered);
    let censored = carried.unanswered.values().sum::<u64>()
        + account.connect_timed_out
        + account.timed_out
        + account.not_sent_queue
        + account.not_sent_end
        + account.in_flight_at_end;
    if let (Some(ok), Some(unanswered)) = (&latencies.ok_response, &latencies.censored_response) {
        assert_eq!((ok.count(), unanswered.count()), (account.ok, censored));
    }
    let paths = &recording.paths;
    check_paths(paths, account, &recording.bytes, latencies).unwrap();
    assert_eq!(
        paths.len(),
        recording
            .spec
            .workload
            .mix
            .as_ref()
            .map_or(0, |mix| mix.paths.len())
    );
    let sums = recording.series.iter().fold((0, 0, 0), |sums, second| {
        (
            sums.0 + second.scheduled,
            sums.1 + second.ok,
            sums.2 + second.failed,
        )
    });
    let ok = account.ok + carried.answered;
    let all = account.scheduled + carried.requests;
    assert_eq!(sums, (account.scheduled, ok, all - ok));
    let residual = recording.little.residual.unwrap_or(0.0);
    // Requests that time out in one step share its stamp, which is older where others had the CPU meanwhile.
    assert!(residual.abs() < 0.01, "Little's law is off by {residual}");
}

/// All answered well, and both ends saw the same bytes.
pub fn assert_all_ok(recording: &Recording, counts: &Counts) {
    let account = &recording.account;
    assert_eq!(
        account.ok, account.scheduled,
        "{account:?} {:?}",
        recording.error_samples
    );
    assert_eq!(
        (counts.requests, counts.responses_complete),
        (account.ok, account.ok)
    );
    assert_same_bytes(recording, counts);
}

pub fn assert_same_bytes(recording: &Recording, counts: &Counts) {
    let bytes = &recording.bytes;
    assert_eq!(
        (bytes.sent, bytes.received, bytes.body_received),
        (counts.bytes_received, counts.bytes_sent, counts.body_bytes_sent)
    );
}

/// What `after` has more than `before`, for a server that several runs use.
pub fn since(after: &Counts, before: &Counts) -> Counts {
    Counts {
        requests: after.requests - before.requests,
        responses_complete: after.responses_complete - before.responses_complete,
        bytes_received: after.bytes_received - before.bytes_received,
        bytes_sent: after.bytes_sent - before.bytes_sent,
        body_bytes_sent: after.body_bytes_sent - before.body_bytes_sent,
        body_bytes_received: after.body_bytes_received - before.body_bytes_received,
        ..Counts::default()
    }
}

/// A server that hands its n-th connection (from 0) to a closure, each in its own thread.
pub struct Scripted {
    pub port: u16,
    /// For the closure to count what it likes.
    pub count: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    pub fn start(serve: impl Fn(usize, &mut TcpStream, &AtomicU64) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let serve = Arc::new(serve);
        let (shared_count, shared_stopped) = (Arc::clone(&count), Arc::clone(&stopped));
        let accept = move || {
            for (number, stream) in listener.incoming().enumerate() {
                if shared_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (serve, count) = (Arc::clone(&serve), Arc::clone(&shared_count));
                std::thread::spawn(move || serve(number, &mut stream.unwrap(), &count));
            }
        };
        Self {
            port,
            count,
            stopped,
            thread: Some(std::thread::spawn(accept)),
        }
    }

    pub fn counted(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Reads one request without a body; false at the end of the stream.
pub fn read_request(stream: &mut TcpStream) -> bool {
    read_request_from(stream)
}

pub fn read_request_from(stream: &mut impl Read) -> bool {
    read_head(stream).is_some()
}

/// The head of a request; null at the end of the stream.
pub fn read_head(stream: &mut impl Read) -> Option<String> {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return None,
        }
    }
    String::from_utf8(seen).ok()
}

pub fn reply(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
}

/// What begins a reply, and what follows for ever.
pub type Flood = (&'static str, &'static str);

pub const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
/// What takes a client the most work for each byte.
pub const ONE_BYTE_CHUNKS: Flood = (CHUNKED, "1\r\nx\r\n");

/// Sends without end at full speed, until the client closes.
pub fn flood(stream: &mut TcpStream, (head, piece): Flood) {
    let block = piece.repeat(256 * 1024 / piece.len());
    let mut result = stream.write_all(head.as_bytes());
    while result.is_ok() {
        result = stream.write_all(block.as_bytes());
    }
}

/// A port that nothing listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A listener whose queue is full: the kernel drops every further SYN.
pub fn deaf() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: no pointers are passed; the descriptor is open.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
    let address = listener.local_addr().unwrap();
    let waiting = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    (listener, waiting)
}

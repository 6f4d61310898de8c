//! More connections than one table of descriptors holds; in a process of its own, for the limit holds for all of it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{start, Client, GET};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::Duration;

const LIMIT: u64 = 120;
const CLIENTS: usize = 3;
const EACH: usize = 60;
const CONFIG: &str = r#"{"threads": 3, "own_descriptors": true}"#;

fn limit_descriptors() {
    let limit = libc::rlimit {
        rlim_cur: LIMIT,
        rlim_max: LIMIT,
    };
    // SAFETY: `limit` is valid for reads.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// The sum of connections that are open at once is more than the limit, on both sides.
#[test]
fn each_thread_holds_as_many_connections_as_one_table_has_descriptors() {
    limit_descriptors();
    let (mut server, all_open) = (start(CONFIG), Barrier::new(CLIENTS));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                // SAFETY: no pointers are passed.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
                let mut clients: Vec<_> = (0..EACH).map(|_| Client::connect(&server)).collect();
                let served = clients.iter_mut().all(|client| client.ask(GET).status == 200);
                all_open.wait();
                assert!(served);
            });
        }
    });
    let counts = server.counts();
    let all = (CLIENTS * EACH) as u64;
    assert_eq!((counts.connections_accepted, counts.requests), (all, all));
    assert_eq!(counts.accept_failures, 0);
    let port = server.port();
    server.stop();
    // No listener is left in any table.
    let again = std::net::TcpListener::bind(("127.0.0.1", port));
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn a_thread_keeps_nothing_open_that_its_owner_closes() {
    let (mut one, other) = UnixStream::pair().unwrap();
    let _server = start(CONFIG);
    one.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    drop(other);
    assert_eq!(one.read(&mut [0]).unwrap(), 0);
}

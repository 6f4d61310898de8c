//! A process without descriptors to spare; in a process of its own, for the limit holds for all of it.

#![allow(clippy::unwrap_used)]

mod common;

use common::Load;
use std::net::TcpListener;
use std::time::{Duration, Instant};

#[test]
fn t41_descriptors_that_are_missing_here_are_no_failure_of_the_server() {
    // It accepts nothing; the kernel completes the handshakes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // So many that the connections would find room, were it not for what the process has open beside them.
    let limit = libc::rlimit {
        rlim_cur: 200,
        rlim_max: 200,
    };
    // SAFETY: `limit` is valid for reads.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(result, 0);
    let _others: Vec<TcpListener> = (0..140).map(|_| listener.try_clone().unwrap()).collect();
    let load = Load::closed(listener.local_addr().unwrap().port(), 90);
    let account = load.clone().requests(90).timeout_ms(100).run().account;
    assert!((30..60).contains(&account.timed_out), "{account:?}");
    assert!(account.client_no_descriptor >= 30, "{account:?}");
    assert_eq!(
        account.timed_out + account.client_no_descriptor,
        account.scheduled
    );
    // Waiting would open no more of them: the window opens at once, and they are in its account.
    let began = Instant::now();
    let account = load.duration_ms(100).grace_ms(0).run().account;
    assert!(account.client_no_descriptor >= 30, "{account:?}");
    assert!(began.elapsed() < Duration::from_secs(4));
}

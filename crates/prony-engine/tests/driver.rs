//! What any driver has to do, whatever it hands to the kernel when: large pieces arrive whole, and what is given up or closed is so in
//! the kernel too.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, read_request, reply, start, Load, Scripted, MS};
use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::Instant;

#[test]
fn many_large_replies_at_once_arrive_whole() {
    let server = start(r#"{"body_bytes": 65536}"#);
    let recording = Load::closed(server.port(), 400).requests(4_000).run();
    assert_eq!(recording.account.ok, 4_000);
    assert_all_ok(&recording, &server.counts());
}

#[test]
fn an_upload_of_more_than_the_kernel_takes_at_once_arrives_whole() {
    for bytes in [4_000, 4_096, 5_000, 3_000_000] {
        let server = start("{}");
        let body = vec![b'x'; bytes];
        let load = Load::closed(server.port(), 3)
            .method("POST")
            .body(&body)
            .requests(30);
        let recording = load.run();
        assert_eq!(recording.account.ok, 30);
        assert_all_ok(&recording, &server.counts());
    }
}

#[test]
fn a_request_that_is_given_up_is_given_up_in_the_kernel_too() {
    let server = Scripted::start(|_, stream, longest_ms| {
        assert!(read_request(stream));
        let began = Instant::now();
        let _ = stream.read(&mut [0]);
        let ms = began.elapsed().as_millis() as u64;
        longest_ms.fetch_max(ms, Ordering::Relaxed);
    });
    let load = Load::closed(server.port, 1).timeout_ms(50).grace_ms(50);
    let recording = load.duration_ms(1_500).run();
    let account = &recording.account;
    assert!(account.timed_out > 10 && account.ok == 0, "{account:?}");
    // Its connection was closed then, and not with all others at the end.
    let longest_ms = server.counted();
    assert!((1..500).contains(&longest_ms), "{longest_ms} ms");
}

#[test]
fn a_server_that_closes_an_idle_connection_costs_no_request() {
    let server = Scripted::start(|_, stream, _| {
        if read_request(stream) {
            reply(stream);
        }
    });
    let recording = Load::open(server.port, 50.0, 4).duration_ms(1_000).run();
    let account = &recording.account;
    assert_eq!((account.ok, account.scheduled), (50, 50), "{account:?}");
    assert!(recording.connections.reconnects > 40);
    assert!(recording.window.close_ns - recording.window.open_ns == 1_000 * MS);
}

//! The driver by io_uring. Where the kernel has none, the same holds of the one that stands in for it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, read_request, reply, start, Load, Scripted, MS};
use serde_json::json;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::Instant;

fn by_uring(load: Load) -> Load {
    load.driver("io_uring")
}

#[test]
fn a_run_names_its_driver_and_says_why_it_is_not_the_one_that_was_asked_for() {
    let server = start("{}");
    let load = Load::closed(server.port(), 2).requests(20);
    let plain = by_uring(load.clone()).run().engine;
    assert_eq!(plain.driver == "io_uring", plain.fallback.is_none());
    let several = by_uring(load.clone().wire(json!({"kind": "http", "pipeline": 2})))
        .run()
        .engine;
    assert_eq!(several.driver, "epoll");
    assert_eq!(
        several.fallback.as_deref(),
        Some("TLS, HTTP/2, pipelines and Unix sockets go by epoll")
    );
    let asked = load.driver("epoll").run().engine;
    assert_eq!((asked.driver.as_str(), asked.fallback), ("epoll", None));
}

#[test]
fn many_large_replies_at_once_arrive_whole() {
    // Each fills 33 of 4,096 buffers.
    let server = start(r#"{"body_bytes": 65536}"#);
    let recording = by_uring(Load::closed(server.port(), 400).requests(4_000)).run();
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
        let recording = by_uring(load).run();
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
    let recording = by_uring(load.duration_ms(1_500)).run();
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
    let load = Load::open(server.port, 50.0, 4).duration_ms(1_000);
    let recording = by_uring(load).run();
    let account = &recording.account;
    assert_eq!((account.ok, account.scheduled), (50, 50), "{account:?}");
    assert!(recording.connections.reconnects > 40);
    assert!(recording.window.close_ns - recording.window.open_ns == 1_000 * MS);
}

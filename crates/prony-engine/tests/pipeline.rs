//! Pipelines over real sockets, with and without TLS.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, in_both_loops, read_request, reply, start, Load, Scripted, MS};
use serde_json::{json, Value};
use std::io::Write;
use std::sync::atomic::Ordering;

fn pipeline(count: usize) -> Value {
    json!({"kind": "http", "pipeline": count})
}

fn for_any_method(count: usize) -> Value {
    json!({"kind": "http", "pipeline": count, "any_method": true})
}

#[test]
fn requests_are_counted_in_both_loops_whatever_frames_their_replies() {
    for config in [
        r#"{"body": "hello"}"#,
        r#"{"framing": "chunked", "body_bytes": 5000, "chunk_bytes": 700, "trailers": true}"#,
        r#"{"informational": true, "write_bytes": 50}"#,
    ] {
        let server = start(config);
        for load in in_both_loops(server.port(), 203) {
            let before = server.counts();
            let recording = load.wire(pipeline(5)).run();
            assert_all_ok(&recording, &common::since(&server.counts(), &before));
            assert_eq!(recording.account.ok, 203, "{config}");
            assert!(recording.connections.opened <= 8);
        }
    }
}

#[test]
fn t14_each_of_a_pipeline_has_a_time_of_its_own() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 10000000}}"#);
    let recording = Load::closed(server.port(), 1)
        .requests(16)
        .wire(pipeline(16))
        .run();
    assert_all_ok(&recording, &server.counts());
    let times = &recording.distributions.ok_service;
    assert_eq!(times.count(), 16);
    // The server works on one after the other: each waits for those before it.
    for number in 1..=16 {
        let took_ns = times.quantile_ns(f64::from(number) / 16.0 - 0.01).unwrap();
        let least_ns = u64::from(number as u32) * 10 * MS;
        assert!(took_ns >= least_ns / 100 * 99, "{number}: {took_ns} ns");
    }
    assert!(times.min_ns().unwrap() < 80 * MS);
}

#[test]
fn heads_and_bodies_of_requests_go_through_a_pipeline() {
    let server = start(r#"{"body": "hello"}"#);
    let heads = Load::closed(server.port(), 2).requests(60).method("HEAD");
    assert_all_ok(&heads.wire(pipeline(4)).run(), &server.counts());
    let before = server.counts();
    let posts = Load::closed(server.port(), 2).requests(60).method("POST");
    let recording = posts.body(&[b'x'; 90_000]).wire(for_any_method(4)).run();
    let counts = common::since(&server.counts(), &before);
    assert_all_ok(&recording, &counts);
    assert_eq!(counts.body_bytes_received, 60 * 90_000);
}

#[test]
fn a_mix_goes_through_a_pipeline() {
    let server = start("{}");
    let load = Load::closed(server.port(), 2)
        .requests(300)
        .mix(&[("/", 2.0), ("/cart", 1.0)]);
    let recording = load.wire(pipeline(3)).run();
    assert_all_ok(&recording, &server.counts());
    let asked: Vec<u64> = recording.paths.iter().map(|one| one.account.ok).collect();
    assert!(asked[0] > asked[1] && asked[1] > 80, "{asked:?}");
}

#[test]
fn a_server_that_closes_after_some_replies_and_says_so_is_asked_again() {
    let server = start(r#"{"close_after": 7, "close_header": true}"#);
    for (method, wire) in [("GET", pipeline(16)), ("POST", for_any_method(16))] {
        let load = Load::closed(server.port(), 2).requests(200).method(method);
        let recording = load.wire(wire).run();
        let account = &recording.account;
        assert_eq!(account.ok, 200, "{account:?} {:?}", recording.error_samples);
        assert!(recording.connections.retried > 0);
    }
    // It has read none that it did not answer.
    assert_eq!(server.counts().responses_complete, 400);
}

#[test]
fn what_is_cut_fails_once_and_those_behind_it_are_sent_again() {
    for config in [r#"{"short_after": 9}"#, r#"{"reset_after": 9}"#] {
        let server = start(config);
        let recording = Load::closed(server.port(), 2)
            .requests(200)
            .wire(pipeline(8))
            .run();
        let account = &recording.account;
        let failed = account.short_body + account.reset + account.eof;
        assert_eq!(account.ok + failed, 200, "{config} {account:?}");
        assert!(account.ok >= 100 && failed > 10, "{config} {account:?}");
    }
}

#[test]
fn what_is_not_safe_to_repeat_is_never_sent_twice() {
    let server = Scripted::start(|_, stream, count| {
        for _ in 0..3 {
            if read_request(stream) {
                count.fetch_add(1, Ordering::Relaxed);
                reply(stream);
            }
        }
    });
    let load = Load::closed(server.port, 1).requests(60).method("POST");
    let recording = load.wire(for_any_method(6)).run();
    let account = &recording.account;
    assert_eq!(account.ok + account.eof + account.reset, 60, "{account:?}");
    assert!(server.counted() <= 60);
    assert_eq!(recording.connections.retried, 0);
}

#[test]
fn a_pipeline_goes_over_tls() {
    let file = |name| format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = |name| std::fs::read_to_string(file(name)).unwrap();
    let tls = json!({"certificate": text("server.pem"), "key": text("server.key")});
    let server = start(&json!({ "tls": tls }).to_string());
    let load = Load::closed(server.port(), 2).requests(200).wire(pipeline(8));
    let recording = load.secure(json!({"ca_file": file("ca.pem")})).run();
    assert_eq!(recording.account.ok, 200, "{:?}", recording.error_samples);
    assert_eq!((recording.connections.opened, server.counts().requests), (2, 200));
}

#[test]
fn a_server_that_answers_all_it_has_read_at_once_is_read_at_once() {
    let server = Scripted::start(|_, stream, _| {
        let mut waiting = 0;
        while read_request(stream) {
            waiting += 1;
            if waiting == 10 {
                let all = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".repeat(10);
                let _ = stream.write_all(&all);
                waiting = 0;
            }
        }
    });
    let recording = Load::closed(server.port, 1)
        .requests(100)
        .wire(pipeline(10))
        .run();
    assert_eq!((recording.account.ok, recording.connections.opened), (100, 1));
}

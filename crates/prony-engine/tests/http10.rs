//! HTTP/1.0 over real sockets: a connection for each request, unless both sides say that it goes on.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, in_both_loops, start, Load, Scripted};
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

fn old() -> Value {
    json!({"kind": "http", "version": "1.0"})
}

/// The head of the next request; none at the end of the connection.
fn head(stream: &mut TcpStream) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        seen.push(byte[0]);
    }
    String::from_utf8(seen).unwrap()
}

/// Answers each request with the same, for as long as the client stays.
fn answering(reply: &'static [u8]) -> Scripted {
    Scripted::start(move |_, stream, count| {
        while head(stream).contains(" HTTP/1.0\r\n") {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(reply);
        }
    })
}

#[test]
fn each_request_has_a_connection_whatever_frames_its_body() {
    for config in [
        "{}",
        r#"{"framing": "close_delimited"}"#,
        r#"{"framing": "chunked"}"#,
        r#"{"keep_alive": false}"#,
    ] {
        let server = start(config);
        for load in in_both_loops(server.port(), 60) {
            let before = server.counts();
            let recording = load.wire(old()).without_keep_alive().run();
            assert_all_ok(&recording, &common::since(&server.counts(), &before));
            assert_eq!(recording.account.ok, 60, "{config}");
            assert_eq!(recording.connections.opened, 60, "{config}");
        }
    }
}

#[test]
fn a_connection_is_kept_where_the_server_says_so() {
    let server = start("{}");
    let recording = Load::closed(server.port(), 3).requests(90).wire(old()).run();
    assert_all_ok(&recording, &server.counts());
    assert_eq!((recording.account.ok, recording.connections.opened), (90, 3));
}

#[test]
fn a_connection_that_the_reply_does_not_keep_is_left_though_the_server_would_go_on() {
    for reply in [
        &b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        let server = answering(reply);
        let recording = Load::closed(server.port, 2).requests(40).wire(old()).run();
        assert_eq!((recording.account.ok, server.counted()), (40, 40));
        assert_eq!(recording.connections.opened, 40);
        assert_eq!(recording.connections.retried, 0);
    }
}

#[test]
fn nothing_is_kept_that_was_not_asked_for() {
    let server = answering(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi");
    let load = Load::closed(server.port, 2).requests(40).wire(old());
    let recording = load.without_keep_alive().run();
    assert_eq!((recording.account.ok, recording.connections.opened), (40, 40));
}

#[test]
fn keep_alive_is_asked_for_only_where_connections_are_to_be_kept() {
    for (load, expected) in [
        (Load::closed(0, 1), true),
        (Load::closed(0, 1).without_keep_alive(), false),
    ] {
        let server = Scripted::start(move |_, stream, count| {
            let asks = head(stream).contains("\r\nConnection: keep-alive\r\n");
            count.fetch_add(u64::from(asks), Ordering::Relaxed);
            let _ = stream.write_all(b"HTTP/1.0 204 No Content\r\n\r\n");
        });
        let recording = load.port(server.port).requests(5).wire(old()).run();
        assert_eq!(recording.account.ok, 5);
        assert_eq!(server.counted(), if expected { 5 } else { 0 });
    }
}

#[test]
fn a_body_is_cut_where_its_connection_ends_before_its_length() {
    let server = Scripted::start(|_, stream, _| {
        head(stream);
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhi");
    });
    let load = Load::closed(server.port, 1).requests(5).wire(old());
    let recording = load.without_keep_alive().run();
    assert_eq!(recording.account.short_body, 5, "{:?}", recording.account);
}

#[test]
fn a_reply_to_head_ends_with_its_head_and_a_request_has_its_body() {
    let server = start(r#"{"body": "hello"}"#);
    let heads = Load::closed(server.port(), 2)
        .requests(20)
        .method("HEAD")
        .wire(old());
    assert_all_ok(&heads.run(), &server.counts());
    let before = server.counts();
    let posts = Load::closed(server.port(), 2).requests(20).method("POST");
    let recording = posts.body(&[b'x'; 3_000]).wire(old()).run();
    let counts = common::since(&server.counts(), &before);
    assert_all_ok(&recording, &counts);
    assert_eq!(counts.body_bytes_received, 20 * 3_000);
}

#[test]
fn chunks_are_no_reply_to_http_1_0() {
    let server = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    let recording = Load::closed(server.port, 1).requests(5).wire(old()).run();
    assert_eq!(recording.account.parse, 5, "{:?}", recording.account);
    let said = &recording.error_samples[0].detail;
    assert_eq!(said, "the reply to HTTP/1.0 has a Transfer-Encoding");
}

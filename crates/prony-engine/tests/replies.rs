//! What servers answer, and how their connections end: the engine's account against what the server did, exactly.

#![allow(clippy::unwrap_used)]

mod common;

use common::{
    assert_all_ok, assert_same_bytes, in_both_loops, read_request, reply, since, start, Load, Scripted,
};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering;

/// Runs both loops against one server; everything must be answered well.
fn all_is_well(config: &str, change: impl Fn(Load) -> Load) {
    let server = start(config);
    for load in in_both_loops(server.port(), 200) {
        let before = server.counts();
        let recording = change(load).run();
        assert_eq!(recording.account.scheduled, 200);
        assert_all_ok(&recording, &since(&server.counts(), &before));
    }
}

#[test]
fn plain_replies_are_counted_to_the_byte() {
    all_is_well("{}", |load| load);
    all_is_well(r#"{"threads": 2, "informational": true}"#, |load| load);
}

#[test]
fn t29_every_twentieth_503_is_a_bad_status() {
    let server = start(r#"{"error_every": 20}"#);
    for load in in_both_loops(server.port(), 400) {
        let before = server.counts();
        let recording = load.run();
        assert_eq!(
            (recording.account.ok, recording.account.bad_status[&503]),
            (380, 20)
        );
        assert_same_bytes(&recording, &since(&server.counts(), &before));
    }
}

#[test]
fn t31_each_reset_within_a_body_is_counted_as_one() {
    let server = start(r#"{"reset_after": 7}"#);
    let loads = in_both_loops(server.port(), 300);
    let runs: Vec<_> = loads.iter().map(Load::run).collect();
    let counts = server.counts();
    let sum =
        |of: fn(&prony_engine::account::Account) -> u64| runs.iter().map(|run| of(&run.account)).sum::<u64>();
    assert_eq!(
        (sum(|a| a.ok), sum(|a| a.reset)),
        (counts.responses_complete, counts.resets)
    );
    assert_eq!(counts.responses_complete + counts.resets, 1200);
    assert!(counts.resets > 100, "{}", counts.resets);
    assert_eq!(runs[0].error_samples[0].class, "reset");
}

#[test]
fn t31_each_short_body_is_counted_as_one() {
    for framing in ["content_length", "chunked"] {
        let server = start(&format!(r#"{{"short_after": 5, "framing": "{framing}"}}"#));
        for load in in_both_loops(server.port(), 100) {
            let before = server.counts();
            let account = load.run().account;
            let (after, lost) = (server.counts(), account.short_body);
            assert_eq!(account.ok + lost, 100);
            assert_eq!(
                (
                    after.responses_complete - before.responses_complete,
                    after.short - before.short
                ),
                (account.ok, lost)
            );
        }
    }
}

#[test]
fn t32_a_close_after_each_reply_is_a_reconnect_and_no_error() {
    for config in [
        r#"{"close_after": 1}"#,
        r#"{"close_after": 1, "close_header": false}"#,
        r#"{"close_after": 3, "close_header": false}"#,
        r#"{"framing": "close_delimited"}"#,
    ] {
        let server = start(config);
        for load in in_both_loops(server.port(), 150) {
            let before = server.counts();
            let recording = load.run();
            let (after, connections) = (server.counts(), &recording.connections);
            assert_eq!(
                recording.account.ok, 150,
                "{config} {:?}",
                recording.error_samples
            );
            assert_eq!(
                after.responses_complete - before.responses_complete,
                150,
                "{config}"
            );
            assert_eq!(
                after.connections_accepted - before.connections_accepted,
                connections.opened,
                "{config}"
            );
            assert!(connections.reconnects >= 150 / 3 - 8, "{config}: {connections:?}");
            assert_eq!(connections.connect_failures, 0);
        }
    }
}

/// Every connection answers once, and ends at its second request without a word: then all that are idle are stale at once, and a
/// request that is sent again must not meet the next of them.
#[test]
fn t32_a_request_that_meets_a_close_is_sent_again_on_a_new_connection() {
    let server = Scripted::start(|_, stream, count| {
        if read_request(stream) {
            reply(stream);
            count.fetch_add(u64::from(read_request(stream)), Ordering::Relaxed);
        }
    });
    for load in in_both_loops(server.port, 100) {
        let before = server.counted();
        let recording = load.run();
        assert_eq!(recording.account.ok, 100, "{:?}", recording.error_samples);
        assert!(recording.connections.retried > 0);
        assert_eq!(recording.connections.retried, server.counted() - before);
    }
}

#[test]
fn t32_a_post_that_meets_a_close_is_not_sent_again() {
    let server = Scripted::start(|_, stream, _| {
        if read_request(stream) {
            reply(stream);
            read_request(stream);
        }
    });
    let account = Load::closed(server.port, 1)
        .method("POST")
        .requests(10)
        .run()
        .account;
    assert_eq!((account.ok, account.eof), (5, 5));
}

#[test]
fn t32_a_request_is_sent_again_once_and_no_more() {
    let server = Scripted::start(|number, stream, count| {
        count.fetch_add(u64::from(read_request(stream)), Ordering::Relaxed);
        if number == 0 {
            reply(stream);
            count.fetch_add(u64::from(read_request(stream)), Ordering::Relaxed);
        }
    });
    let recording = Load::closed(server.port, 1).requests(10).run();
    assert_eq!((recording.account.ok, recording.account.eof), (1, 9));
    assert_eq!((recording.connections.retried, server.counted()), (1, 11));
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let server = start("{}");
    for load in in_both_loops(server.port(), 100) {
        let before = server.counts();
        let recording = load.without_keep_alive().run();
        let after = server.counts();
        assert_all_ok(&recording, &since(&after, &before));
        assert_eq!(recording.connections.opened, 100);
        assert_eq!(after.connections_accepted - before.connections_accepted, 100);
    }
}

#[test]
fn t35_chunks_with_trailers_and_replies_byte_by_byte_are_read() {
    all_is_well(
        r#"{"framing": "chunked", "trailers": true, "body_bytes": 5000}"#,
        |load| load,
    );
    all_is_well(r#"{"write_bytes": 1, "body": "hello"}"#, |load| {
        load.expect_body(b"hello")
    });
    all_is_well(
        r#"{"write_bytes": 1, "framing": "chunked", "trailers": true, "body": "hello"}"#,
        |load| load.expect_body(b"hello"),
    );
}

#[test]
fn t35_replies_without_a_body_end_with_their_head() {
    all_is_well("{}", |load| load.method("HEAD"));
    all_is_well(r#"{"status": 204}"#, |load| load);
    all_is_well(r#"{"status": 304}"#, |load| load);
}

#[test]
fn large_bodies_are_received_and_compared_whole() {
    let body = prony_reference::deterministic_body(1 << 20);
    let server = start(r#"{"body_bytes": 1048576}"#);
    for load in in_both_loops(server.port(), 20) {
        let before = server.counts();
        let recording = load.expect_body(&body).run();
        assert_all_ok(&recording, &since(&server.counts(), &before));
        assert_eq!(recording.bytes.body_received, 20 << 20);
    }
}

#[test]
fn large_requests_are_sent_in_parts() {
    let body = vec![b'x'; 300 * 1024];
    let server = start("{}");
    for load in in_both_loops(server.port(), 30) {
        let before = server.counts();
        let recording = load.method("POST").body(&body).run();
        let counts = since(&server.counts(), &before);
        assert_all_ok(&recording, &counts);
        assert_eq!(counts.body_bytes_received, 30 * 300 * 1024);
    }
}

#[test]
fn another_body_than_expected_is_failed_validation() {
    let server = start(r#"{"body": "hello"}"#);
    for load in in_both_loops(server.port(), 50) {
        let account = load.expect_body(b"hallo").run().account;
        assert_eq!((account.ok, account.failed_validation), (0, 50));
    }
}

/// The rest of a request that was refused early would be taken for the next request.
#[test]
fn an_answer_before_the_request_is_sent_in_full_ends_the_connection() {
    let server = Scripted::start(|_, stream, count| {
        count.fetch_add(1, Ordering::Relaxed);
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        let mut rest = Vec::new();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _ = stream.read_to_end(&mut rest);
    });
    let load = Load::closed(server.port, 2).requests(8);
    let recording = load.method("POST").body(&vec![b'x'; 12 << 20]).run();
    assert_eq!(
        recording.account.bad_status[&413], 8,
        "{:?}",
        recording.error_samples
    );
    assert_eq!(server.counted(), 8);
}

#[test]
fn a_server_that_closes_its_side_at_once_is_not_waited_for() {
    let server = Scripted::start(|_, stream, _| {
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    for load in in_both_loops(server.port, 20) {
        let account = load.run().account;
        assert_eq!((account.eof, account.timed_out), (20, 0));
    }
}

#[test]
fn bytes_behind_a_reply_close_the_connection() {
    let server = Scripted::start(|_, stream, count| {
        count.fetch_add(1, Ordering::Relaxed);
        while read_request(stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!");
        }
    });
    for load in in_both_loops(server.port, 20) {
        let before = server.counted();
        let account = load.run().account;
        assert_eq!((account.ok, server.counted() - before), (20, 20));
    }
}

#[test]
fn what_is_not_http_is_a_parse_error() {
    let server = Scripted::start(|_, stream, _| {
        read_request(stream);
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n");
    });
    for load in in_both_loops(server.port, 20) {
        let recording = load.run();
        assert_eq!(recording.account.parse, 20, "{:?}", recording.error_samples);
    }
}

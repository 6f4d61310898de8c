//! Servers that send without end, at full speed: requests still end in their time, and the others hardly notice.

#![allow(clippy::unwrap_used)]

mod common;

use common::{flood, read_request, Flood, Load, Scripted, CHUNKED, MS, ONE_BYTE_CHUNKS};
use prony_engine::Control;
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const HUGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n";

/// Floods take all CPUs: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// These never come to an end that could be wrong.
const ENDLESS: [Flood; 4] = [
    ONE_BYTE_CHUNKS,
    (CHUNKED, "1;name=value\r\nx\r\n"),
    (HUGE, "0123456789abcdef"),
    ("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef"),
];

/// These pass a limit.
const LIMITED: [(&str, Flood); 4] = [
    (
        "the interim replies are longer than 64 KiB",
        ("", "HTTP/1.1 102 Processing\r\n\r\n"),
    ),
    (
        "the head is longer than 64 KiB",
        ("HTTP/1.1 200 OK\r\n", "X-Name: value\r\n"),
    ),
    (
        "a chunk's size line or the trailers are longer than 64 KiB",
        (CHUNKED, "1;name=value;"),
    ),
    (
        "a chunk's size line or the trailers are longer than 64 KiB",
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "X-Name: value\r\n",
        ),
    ),
];

/// Of the other wires: one byte a record, a log without end, a body until the end of the connection.
const ENDLESS_ON: [(&str, Flood); 4] = [
    (
        "fastcgi",
        (
            "\x01\x06\x00\x01\x00\x12\x00\x00Status: 200 OK\r\n\r\n",
            "\x01\x06\x00\x01\x00\x01\x00\x00x",
        ),
    ),
    ("fastcgi", ("", "\x01\x07\x00\x01\x00\x01\x00\x00x")),
    ("uwsgi", ("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef")),
    ("scgi", ("Status: 200 OK\r\n\r\n", "0123456789abcdef")),
];

/// A head without end on each of them.
const HEADS_ON: [(&str, Flood); 3] = [
    (
        "fastcgi",
        (
            "\x01\x06\x00\x01\x00\x10\x00\x00Status: 200 OK\r\n",
            "\x01\x06\x00\x01\x00\x0f\x00\x00X-Name: value\r\n",
        ),
    ),
    ("uwsgi", ("HTTP/1.1 200 OK\r\n", "X-Name: value\r\n")),
    ("scgi", ("Status: 200 OK\r\n", "X-Name: value\r\n")),
];

fn flooding(with: Flood) -> Scripted {
    Scripted::start(move |_, stream, _| {
        // The begin of a request, on any wire.
        let _ = stream.read(&mut [0; 4096]);
        flood(stream, with);
    })
}

fn wire(kind: &str) -> serde_json::Value {
    serde_json::json!({"kind": kind})
}

fn silent() -> Scripted {
    Scripted::start(|_, stream, _| while read_request(stream) {})
}

/// The ages of what timed out, the oldest, of a load of two connections with a time-out of 200 ms.
fn oldest_ns(server: &Scripted, what: &str) -> u64 {
    oldest_on("http", server, what)
}

fn oldest_on(kind: &str, server: &Scripted, what: &str) -> u64 {
    let recording = Load::closed(server.port, 2)
        .wire(wire(kind))
        .duration_ms(150)
        .timeout_ms(200)
        .run();
    let (account, carried) = (&recording.account, &recording.account.carried_in);
    let timed_out = account.timed_out + carried.unanswered.get("timed_out").copied().unwrap_or(0);
    assert_eq!(timed_out, account.scheduled + carried.requests, "{what}");
    assert!(timed_out >= 2, "{what}");
    recording.distributions.censored_service.max_ns().unwrap()
}

#[test]
fn a_flood_ends_at_the_time_out() {
    let _alone = ALONE.lock();
    let silent = silent();
    for with in ENDLESS {
        let what = format!("{with:?}");
        // However busy the machine is: as one that sends nothing.
        let (control, flooded) = (oldest_ns(&silent, "silent"), oldest_ns(&flooding(with), &what));
        assert!(
            flooded <= control + 100 * MS,
            "{what}: {flooded} ns, silent {control} ns"
        );
    }
}

#[test]
fn a_flood_on_another_wire_ends_at_the_time_out_too() {
    let _alone = ALONE.lock();
    let silent = silent();
    for (kind, with) in ENDLESS_ON {
        let what = format!("{kind} {with:?}");
        let control = oldest_ns(&silent, "silent");
        let flooded = oldest_on(kind, &flooding(with), &what);
        assert!(
            flooded <= control + 100 * MS,
            "{what}: {flooded} ns, silent {control} ns"
        );
    }
}

#[test]
fn a_head_without_end_is_no_reply_on_any_wire() {
    let _alone = ALONE.lock();
    for (kind, with) in HEADS_ON {
        let server = flooding(with);
        let account = Load::closed(server.port, 1)
            .wire(wire(kind))
            .requests(3)
            .run()
            .account;
        assert_eq!(account.parse, 3, "{kind} {with:?}: {account:?}");
    }
}

#[test]
fn a_flood_of_what_has_a_limit_is_no_reply() {
    let _alone = ALONE.lock();
    for (reason, with) in LIMITED {
        let server = flooding(with);
        let recording = Load::closed(server.port, 1).requests(3).run();
        assert_eq!(recording.account.parse, 3, "{with:?}: {:?}", recording.account);
        assert_eq!(recording.error_samples[0].detail, reason);
    }
}

#[test]
fn a_cancelled_run_ends_in_half_a_second_under_a_flood() {
    let _alone = ALONE.lock();
    let silent = silent();
    for with in ENDLESS {
        // However busy the machine is: as one that sends nothing.
        let (control, flooded) = (end_after_cancel(&silent), end_after_cancel(&flooding(with)));
        let most = control + Duration::from_millis(400);
        assert!(flooded < most, "{with:?}: {flooded:?}, silent {control:?}");
    }
}

/// How long a load of two connections goes on after it was cancelled.
fn end_after_cancel(server: &Scripted) -> Duration {
    let control = Control::new();
    let remote = control.clone();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        remote.cancel();
        Instant::now()
    });
    let load = Load::closed(server.port, 2)
        .duration_ms(60_000)
        .timeout_ms(60_000);
    load.run_with(&control);
    canceller.join().unwrap().elapsed()
}

//! Mixes of paths: shares, and the account by path, against what a server saw.

#![allow(clippy::unwrap_used)]

mod common;

use common::{in_both_loops, Load, Scripted};
use prony_engine::Recording;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

const PATHS: [(&str, f64); 3] = [("/", 6.0), ("/cart?n=1", 3.0), ("/slow", 1.0)];

/// The path of the next request; null at the end of the stream.
fn asked(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).ok()? == 1).then(|| head.push(byte[0]))?;
    }
    let line = String::from_utf8(head).unwrap();
    line.split(' ').nth(1).map(str::to_owned)
}

/// Answers each path in its own way; counts those of the cart.
fn shop() -> Scripted {
    Scripted::start(|_, stream, count| {
        while let Some(path) = asked(stream) {
            let reply = match path.as_str() {
                "/" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                "/cart?n=1" => {
                    count.fetch_add(1, Ordering::Relaxed);
                    "HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad"
                }
                _ => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"
                }
            };
            let _ = stream.write_all(reply.as_bytes());
        }
    })
}

fn scheduled(recording: &Recording) -> Vec<u64> {
    recording.paths.iter().map(|one| one.account.scheduled).collect()
}

#[test]
fn each_path_has_its_share_and_an_account_of_its_own() {
    let server = shop();
    for load in in_both_loops(server.port, 1000) {
        let before = server.counted();
        let recording = load.mix(&PATHS).run();
        let scheduled = scheduled(&recording);
        for (count, (_, weight)) in scheduled.iter().zip(PATHS) {
            // At most a block of each of two workers is not whole; then some at the ends of parts.
            assert!(count.abs_diff((100.0 * weight) as u64) < 60, "{scheduled:?}");
        }
        let [home, cart, slow] = &recording.paths[..] else {
            panic!("{scheduled:?}")
        };
        assert_eq!(home.account.ok, home.account.scheduled);
        assert_eq!(cart.account.bad_status[&500], cart.account.scheduled);
        // A closed loop sends some before its window opens.
        assert!(server.counted() - before >= cart.account.scheduled);
        let times = |one: &prony_engine::record::recording::PathRecord| {
            let times = one.ok_response.as_ref().or(one.ok_service.as_ref());
            times.unwrap().min_ns()
        };
        assert!(times(slow).unwrap() >= 20_000_000 && times(cart).is_none());
        assert_eq!(home.bytes.body_received, 2 * home.account.ok);
    }
}

/// Equal loads ask equal requests, whatever the server answers and however many threads there are.
#[test]
fn an_open_loop_asks_the_same_paths_with_any_number_of_threads() {
    let server = shop();
    let load = Load::open(server.port, 2000.0, 64).duration_ms(250).mix(&PATHS);
    let first = scheduled(&load.run());
    for threads in [2, 3] {
        assert_eq!(scheduled(&load.clone().threads(threads).run()), first);
    }
    let refused = load.port(common::free_port());
    assert_eq!(scheduled(&refused.run()), first);
}

#[test]
fn a_mix_goes_over_every_wire() {
    for wire in ["fastcgi", "uwsgi", "scgi"] {
        // Whoever closes at once has seen the request; that no path is malformed is what is looked for.
        let server = Scripted::start(move |_, stream, count| {
            let mut first = [0; 4096];
            let taken = stream.read(&mut first).unwrap_or(0);
            let is_cart = first[..taken].windows(5).any(|window| window == b"/cart");
            count.fetch_add(u64::from(is_cart), Ordering::Relaxed);
            let output = b"Status: 200 OK\r\nContent-Length: 2\r\n\r\nhi";
            if wire == "fastcgi" {
                let _ = stream.write_all(&[1, 6, 0, 1, 0, output.len() as u8, 0, 0]);
            }
            let _ = stream.write_all(output);
            if wire == "fastcgi" {
                let _ = stream.write_all(b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0");
            }
        });
        let load = Load::open(server.port, 1000.0, 8).requests(256);
        let load = load.wire(json!({"kind": wire})).without_keep_alive();
        let recording = load.mix(&[("/", 1.0), ("/cart", 3.0)]).run();
        assert_eq!(recording.account.ok, 256, "{:?}", recording.error_samples);
        assert_eq!(recording.paths[1].account.scheduled, 192, "{wire}");
        assert_eq!(server.counted(), 192, "{wire}");
    }
}

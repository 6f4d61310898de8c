//! Replies that are complete before their requests are sent in full.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request, Load, Scripted};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
// More than the kernel keeps for both sides.
const BODY_BYTES: usize = 12 << 20;

fn upload(server: &Scripted) -> Load {
    let load = Load::closed(server.port, 2).requests(6).method("POST");
    load.body(&vec![b'x'; BODY_BYTES])
}

/// Answers each request as soon as its head is there, and does `more` then.
fn at_once(reply: &'static [u8], more: fn(&mut TcpStream) -> bool) -> Scripted {
    Scripted::start(move |_, stream, count| {
        while read_request(stream) {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(reply);
            if !more(stream) {
                return;
            }
        }
    })
}

fn read_body(stream: &mut TcpStream) -> bool {
    // Until then the kernel has no room for all of it: long enough for a client that waits for a CPU.
    std::thread::sleep(Duration::from_millis(300));
    let copied = std::io::copy(&mut stream.take(BODY_BYTES as u64), &mut std::io::sink());
    copied.unwrap_or(0) == BODY_BYTES as u64
}

fn until_closed(stream: &mut TcpStream) -> bool {
    std::thread::sleep(Duration::from_secs(3));
    // What it had is thrown away.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    false
}

#[test]
fn the_rest_is_sent_and_the_connection_is_used_again() {
    let server = at_once(REPLY, read_body);
    let recording = upload(&server).run();
    let (account, connections) = (&recording.account, &recording.connections);
    assert_eq!((account.ok, account.answered_early), (6, 6));
    assert_eq!(
        (server.counted(), connections.opened, connections.reconnects),
        (6, 2, 0)
    );
    assert!(recording.bytes.sent >= 6 * BODY_BYTES as u64);
}

#[test]
fn a_server_that_says_that_it_closes_gets_no_more() {
    let server = at_once(LAST, until_closed);
    let recording = upload(&server).run();
    let (account, connections) = (&recording.account, &recording.connections);
    assert_eq!((account.ok, account.answered_early), (6, 6));
    assert_eq!(connections.opened, 6);
    assert!(recording.distributions.ok_service.max_ns() < Some(1_000_000_000));
}

#[test]
fn a_server_that_closes_without_a_word_has_answered() {
    let server = at_once(REPLY, |_| false);
    let recording = upload(&server).run();
    assert_eq!((recording.account.ok, recording.connections.opened), (6, 6));
}

#[test]
fn a_server_that_takes_no_more_is_left_after_a_second() {
    let server = at_once(REPLY, until_closed);
    let recording = upload(&server).requests(2).run();
    assert_eq!((recording.account.ok, recording.account.timed_out), (2, 0));
    let longest_ns = recording.distributions.ok_service.max_ns().unwrap();
    assert!((900_000_000..2_500_000_000).contains(&longest_ns), "{longest_ns}");
}

#[test]
fn a_refusal_ends_its_request_at_once() {
    const REFUSAL: &[u8] = b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno";
    let server = at_once(REFUSAL, until_closed);
    let recording = upload(&server).run();
    let account = &recording.account;
    assert_eq!(
        (account.bad_status.get(&413), account.answered_early),
        (Some(&6), 0)
    );
    assert_eq!(recording.connections.opened, 6);
}

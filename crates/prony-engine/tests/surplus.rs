//! Bytes that no request has asked for: never the reply to the next one.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request, Load, Scripted, MS};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const LATE: Duration = Duration::from_millis(20);

/// Answers each request after 20 ms with `reply`, and then does `more`.
fn answering(reply: &'static [u8], more: fn(&mut TcpStream)) -> Scripted {
    Scripted::start(move |_, stream, count| {
        while read_request(stream) {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::thread::sleep(LATE);
            let _ = stream.write_all(reply);
            more(stream);
        }
    })
}

fn twice(stream: &mut TcpStream) {
    std::thread::sleep(Duration::from_millis(5));
    let _ = stream.write_all(REPLY);
}

#[test]
fn a_reply_on_an_idle_connection_closes_it_and_answers_nothing() {
    let server = answering(REPLY, twice);
    let recording = Load::open(server.port, 5.0, 1).requests(5).run();
    assert_eq!((recording.account.ok, server.counted()), (5, 5));
    assert!(recording.distributions.ok_service.min_ns() >= Some(20 * MS));
    // The last one comes when the run is over.
    assert!(recording.connections.surplus >= 4);
}

#[test]
fn of_each_failure_the_first_bytes_are_kept() {
    let server = Scripted::start(|number, stream, _| {
        read_request(stream);
        let _ = match number % 3 {
            0 => stream.write_all(b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy"),
            1 => stream.write_all(b"SSH-2.0-x\r\n\x00\xff"),
            _ => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n");
                std::thread::sleep(LATE);
                stream.write_all(&[b'x'; 300])
            }
        };
    });
    let recording = Load::closed(server.port, 1).requests(9).run();
    let samples: Vec<_> = recording
        .error_samples
        .iter()
        .map(|sample| (sample.class.as_str(), sample.received.clone().unwrap()))
        .collect();
    use base64::Engine as _;
    let bytes = |of: &str| {
        let (_, text) = samples.iter().find(|(class, _)| *class == of).unwrap();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    };
    assert_eq!(samples.len(), 3, "{samples:?}");
    assert!(bytes("bad_status").ends_with(b"\r\n\r\nbusy"));
    assert_eq!(bytes("parse"), b"SSH-2.0-x\r\n\x00\xff");
    let short = bytes("short_body");
    assert!(short.starts_with(b"HTTP/1.1 200 OK") && short.ends_with(b"xxx"));
    assert_eq!(short.len(), 256);
}

//! Loads over every wire and over Unix sockets: the engine's account against what a small server did.

#![allow(clippy::unwrap_used)]

mod common;

use common::{free_port, in_both_loops, Load, Scripted};
use prony_engine::Recording;
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering;

const END: &[u8] = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";

/// Reads exactly so many bytes; null at the end of the stream.
fn take(stream: &mut impl Read, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).ok().map(|()| bytes)
}

/// What a server of a wire found in a request.
struct Asked {
    variables: Vec<u8>,
    body: Vec<u8>,
    /// The first byte of a uwsgi packet; the flags of FastCGI.
    mark: u8,
}

fn read_fastcgi(stream: &mut impl Read) -> Option<Asked> {
    let mut asked = Asked {
        variables: vec![],
        body: vec![],
        mark: 0,
    };
    loop {
        let header = take(stream, 8)?;
        let content = take(stream, usize::from(u16::from_be_bytes([header[4], header[5]])))?;
        match header[1] {
            1 => asked.mark = content[2],
            4 => asked.variables.extend(content),
            5 if content.is_empty() => return Some(asked),
            5 => asked.body.extend(content),
            _ => return None,
        }
    }
}

fn read_uwsgi(stream: &mut impl Read, body_bytes: usize) -> Option<Asked> {
    let header = take(stream, 4)?;
    let variables = take(stream, usize::from(u16::from_le_bytes([header[1], header[2]])))?;
    let body = take(stream, body_bytes)?;
    Some(Asked {
        variables,
        body,
        mark: header[0],
    })
}

fn read_scgi(stream: &mut impl Read, body_bytes: usize) -> Option<Asked> {
    let mut length = 0;
    while let digit @ b'0'..=b'9' = take(stream, 1)?[0] {
        length = length * 10 + usize::from(digit - b'0');
    }
    let variables = take(stream, length + 1)?;
    let body = take(stream, body_bytes)?;
    Some(Asked {
        variables,
        body,
        mark: 0,
    })
}

fn has(asked: &Asked, text: &str) -> bool {
    asked
        .variables
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Output in records of FastCGI.
fn records(output: &[u8]) -> Vec<u8> {
    let header = [1, 6, 0, 1, 0, output.len() as u8, 0, 0];
    [&header[..], output, END].concat()
}

const OUTPUT: &[u8] = b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nhello";

fn assert_all_ok(recording: &Recording, count: u64) {
    assert_eq!(
        recording.account.ok, count,
        "{:?} {:?}",
        recording.account, recording.error_samples
    );
    assert_eq!(recording.bytes.body_received, 5 * count);
}

#[test]
fn fastcgi_keeps_its_connections() {
    let server = Scripted::start(|_, stream, count| {
        count.fetch_add(1, Ordering::Relaxed);
        while let Some(asked) = read_fastcgi(stream) {
            assert!(asked.mark == 1 && has(&asked, "\x0e\x03REQUEST_METHODGET"));
            stream.write_all(&records(OUTPUT)).unwrap();
        }
    });
    for load in in_both_loops(server.port, 200) {
        let before = server.counted();
        let recording = load.wire(json!({"kind": "fastcgi"})).expect_body(b"hello").run();
        assert_all_ok(&recording, 200);
        assert_eq!(server.counted() - before, recording.connections.opened);
        assert!(recording.connections.opened <= 8);
    }
}

#[test]
fn fastcgi_without_keep_alive_has_a_connection_for_each_request() {
    let server = Scripted::start(|_, stream, count| {
        count.fetch_add(1, Ordering::Relaxed);
        let asked = read_fastcgi(stream).unwrap();
        assert!(asked.mark == 0 && asked.body == vec![b'x'; 100_000]);
        stream.write_all(&records(OUTPUT)).unwrap();
    });
    let load = Load::closed(server.port, 2)
        .requests(20)
        .wire(json!({"kind": "fastcgi"}));
    let recording = load
        .without_keep_alive()
        .method("POST")
        .body(&vec![b'x'; 100_000])
        .run();
    assert_all_ok(&recording, 20);
    assert_eq!((server.counted(), recording.connections.reconnects), (20, 18));
}

/// A server may close after each reply, whatever was asked of it.
#[test]
fn a_fastcgi_server_that_closes_nevertheless_is_reconnected_to() {
    let server = Scripted::start(|_, stream, _| {
        let _ = read_fastcgi(stream);
        let _ = stream.write_all(&records(OUTPUT));
    });
    for load in in_both_loops(server.port, 100) {
        let recording = load.wire(json!({"kind": "fastcgi"})).run();
        assert_all_ok(&recording, 100);
        assert!(recording.connections.reconnects >= 90);
    }
}

#[test]
fn fastcgi_refusals_short_bodies_and_garbage_have_their_classes() {
    let server = Scripted::start(|number, stream, _| {
        let _ = read_fastcgi(stream);
        let overloaded = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x02\0\0\0";
        let _ = match number % 5 {
            0 => stream.write_all(overloaded),
            1 => stream.write_all(&records(b"Content-Length: 9\r\n\r\nhello")),
            2 => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            3 => stream.write_all(&records(b"")),
            _ => stream.write_all(&records(b"Status: 500 No\r\n\r\nhello")),
        };
    });
    let load = Load::closed(server.port, 1)
        .requests(50)
        .wire(json!({"kind": "fastcgi"}));
    let account = load.without_keep_alive().run().account;
    assert_eq!(
        (account.stream_refused, account.short_body, account.parse),
        (10, 10, 20)
    );
    // Nothing was closed.
    assert_eq!((account.eof, account.bad_status[&500]), (0, 10));
}

#[test]
fn uwsgi_asks_the_plugin_that_is_named() {
    let server = Scripted::start(|_, stream, _| {
        let asked = read_uwsgi(stream, 4).unwrap();
        assert!(asked.mark == 5 && asked.body == b"body" && has(&asked, "CONTENT_LENGTH\x01\x004"));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            .unwrap();
    });
    for load in in_both_loops(server.port, 100) {
        let load = load.wire(json!({"kind": "uwsgi", "modifier1": 5}));
        let recording = load.method("POST").body(b"body").run();
        assert_all_ok(&recording, 100);
        assert_eq!(recording.connections.opened, 100);
    }
}

#[test]
fn scgi_replies_end_with_the_connection_or_their_length() {
    let server = Scripted::start(|number, stream, _| {
        let asked = read_scgi(stream, 4).unwrap();
        assert!(asked.variables.starts_with(b"CONTENT_LENGTH\x004\0SCGI\x001\0") && asked.body == b"body");
        let length = ["", "Content-Length: 5\r\n"][number % 2];
        stream
            .write_all(format!("Status: 200 OK\r\n{length}\r\nhello").as_bytes())
            .unwrap();
    });
    for load in in_both_loops(server.port, 100) {
        let recording = load
            .wire(json!({"kind": "scgi"}))
            .method("POST")
            .body(b"body")
            .run();
        assert_all_ok(&recording, 100);
        assert_eq!(recording.connections.opened, 100);
    }
}

#[test]
fn scgi_and_uwsgi_replies_that_are_cut_are_counted_as_such() {
    let server = Scripted::start(|number, stream, _| {
        let _ = stream.read(&mut [0; 65536]);
        let reply = [
            "",
            "Status: 200 OK\r\n",
            "Content-Length: 9\r\n\r\nhello",
            "nonsense\r\n\r\n",
        ];
        let _ = stream.write_all(reply[number % 4].as_bytes());
    });
    for wire in ["scgi", "uwsgi"] {
        let load = Load::closed(server.port, 1)
            .requests(40)
            .wire(json!({"kind": wire}));
        let account = load.run().account;
        assert_eq!(
            (account.eof, account.short_body, account.parse),
            (20, 10, 10),
            "{account:?}"
        );
    }
}

/// A Unix socket in a folder of its own.
struct UnixServer {
    folder: std::path::PathBuf,
    listener: UnixListener,
}

impl UnixServer {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("prony-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        Self { folder, listener }
    }

    fn path(&self) -> String {
        self.folder.join("socket").to_str().unwrap().to_owned()
    }

    fn serve(&self, answer: fn(&mut UnixStream)) {
        let listener = self.listener.try_clone().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(&mut { stream }));
            }
        });
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_unix_socket_carries_every_wire() {
    let server = UnixServer::start("wires");
    server.serve(|stream| {
        // A request begins with its wire's own first byte.
        let begun = take(stream, 1).unwrap();
        let mut asked = begun.as_slice().chain(&mut *stream);
        match begun[0] {
            b'G' => common::read_request_from(&mut asked).then_some(()).unwrap(),
            1 => drop(read_fastcgi(&mut asked).unwrap()),
            0 => drop(read_uwsgi(&mut asked, 0).unwrap()),
            _ => drop(read_scgi(&mut asked, 0).unwrap()),
        }
        let reply = match begun[0] {
            b'G' => b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
            1 => records(OUTPUT),
            _ => OUTPUT.to_vec(),
        };
        let _ = stream.write_all(&reply);
    });
    for wire in ["http", "fastcgi", "uwsgi", "scgi"] {
        for load in in_both_loops(0, 100) {
            let load = load.unix(&server.path()).wire(json!({"kind": wire}));
            assert_all_ok(&load.without_keep_alive().run(), 100);
        }
    }
}

/// A full listen queue answers at once (EAGAIN), where that of TCP would be silent.
#[test]
fn a_unix_socket_that_is_full_or_not_there_refuses() {
    let server = UnixServer::start("full");
    let full = UnixListener::bind(server.folder.join("full")).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&full);
    // SAFETY: the descriptor is open; to listen again only sets the queue's length.
    assert_eq!(unsafe { libc::listen(descriptor, 0) }, 0);
    let _waiting = UnixStream::connect(server.folder.join("full")).unwrap();
    for name in ["full", "absent"] {
        let path = format!("{}/{name}", server.folder.display());
        let load = Load::closed(0, 1).unix(&path).requests(5);
        let recording = load.run();
        assert_eq!(
            recording.account.connect_refused, 5,
            "{:?}",
            recording.error_samples
        );
    }
    drop(server);
}

#[test]
fn nothing_listens_on_a_wire_as_on_http() {
    let load = Load::closed(free_port(), 1)
        .requests(3)
        .wire(json!({"kind": "fastcgi"}));
    assert_eq!(load.run().account.connect_refused, 3);
}

#[test]
fn what_a_wire_cannot_say_is_refused_before_the_run() {
    let load = Load::closed(free_port(), 1)
        .wire(json!({"kind": "scgi"}))
        .path("/%00");
    let error = prony_engine::run(&load.spec(), &prony_engine::Control::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, prony_engine::Error::InvalidSpec(_)), "{error}");
}

//! Replies of strangers: what must hold of the engine's readers for any bytes at all.
//!
//! An input is a byte whose lowest bit says whether the request was HEAD, two bytes that cut the reply into pieces,
//! and what the peer sends. [`check`] panics where a rule is broken; the rules are its functions.

mod connection;
mod mutation;
mod outcome;

pub use mutation::Mutator;
pub use outcome::{outcome, Outcome};

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use prony_engine::spec::{HttpVersion, Request, Socket, Target};
use prony_engine::wire::{fastcgi, http1, scgi, uwsgi, Protocol, Reader};

/// What the engine speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP/1.1.
    Http1,
    /// HTTP/1.0.
    Http10,
    /// FastCGI.
    FastCgi,
    /// uWSGI's own.
    Uwsgi,
    /// SCGI.
    Scgi,
    /// HTTP/2: a connection with several requests, in place of a single reply.
    Http2,
}

impl Wire {
    /// All of them.
    pub const ALL: [Wire; 6] = [
        Wire::Http1,
        Wire::Http10,
        Wire::FastCgi,
        Wire::Uwsgi,
        Wire::Scgi,
        Wire::Http2,
    ];

    /// Its name, also of its corpus.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Http1 => "http1",
            Wire::Http10 => "http10",
            Wire::FastCgi => "fastcgi",
            Wire::Uwsgi => "uwsgi",
            Wire::Scgi => "scgi",
            Wire::Http2 => "http2",
        }
    }

    /// The wire of this name.
    pub fn named(name: &str) -> Option<Wire> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// A reply that every reader takes.
    fn sound(self) -> &'static [u8] {
        match self {
            Wire::Http1 => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            Wire::Http10 => b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi",
            Wire::FastCgi => {
                b"\x01\x06\x00\x01\x00\x15\x00\x00Status: 200 OK\r\n\r\n\nhi\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\0\0\0\0\0"
            }
            Wire::Uwsgi | Wire::Scgi => b"Status: 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            // Settings, and the head of a reply to the first request.
            Wire::Http2 => b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88",
        }
    }
}

/// The inputs that are kept for a wire, one a line of base64.
///
/// # Panics
/// Where a line is none.
pub fn kept(lines: &str) -> Vec<Vec<u8>> {
    let decoded = lines.lines().map(|line| STANDARD.decode(line));
    decoded
        .map(|input| input.unwrap_or_else(|error| panic!("a line of the corpus is no base64: {error}")))
        .collect()
}

/// Checks every rule for one input.
///
/// # Panics
/// Where a rule is broken.
pub fn check(wire: Wire, input: &[u8]) {
    let [flags, first, second, data @ ..] = input else {
        return;
    };
    let (is_head, seed) = (
        flags & 1 == 1,
        u64::from_le_bytes([*first, *second, 1, 0, 0, 0, 0, 0]),
    );
    match wire {
        Wire::Http1 => check_http1(wire, HttpVersion::V1_1, is_head, data, seed),
        Wire::Http10 => check_http1(wire, HttpVersion::V1_0, is_head, data, seed),
        Wire::FastCgi => check_reader(wire, || fastcgi::ReplyReader::new(is_head), data, seed),
        Wire::Uwsgi => {
            let protocol = uwsgi::Uwsgi::new(&request(is_head), None, &target(), 0);
            check_of(wire, &protocol, data, seed);
        }
        Wire::Scgi => check_of(
            wire,
            &scgi::Scgi::new(&request(is_head), None, &target()),
            data,
            seed,
        ),
        Wire::Http2 => connection::check(is_head, data, seed),
    }
}

fn check_http1(wire: Wire, version: HttpVersion, is_head: bool, data: &[u8], seed: u64) {
    check_reader(wire, || http1::ReplyReader::new(version, is_head), data, seed);
}

fn check_of<P: Protocol, E: std::fmt::Debug>(wire: Wire, protocol: &Result<P, E>, data: &[u8], seed: u64) {
    match protocol {
        Ok(protocol) => check_reader(wire, || protocol.reader(), data, seed),
        Err(error) => panic!("a plain request is refused: {error:?}"),
    }
}

fn request(is_head: bool) -> Request {
    Request {
        method: if is_head { "HEAD" } else { "GET" }.to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: None,
        keep_alive: true,
    }
}

fn target() -> Target {
    Target {
        host: "127.0.0.1".to_owned(),
        others: Vec::new(),
        port: 80,
        socket: Socket::Tcp,
        wire: prony_engine::spec::Wire::default(),
        tls: None,
        proxy: None,
    }
}

fn check_reader<R: Reader>(wire: Wire, new: impl Fn() -> R, data: &[u8], seed: u64) {
    let whole = outcome(&mut new(), [data]);
    let mut used = new();
    is_the_same_in_any_pieces(&new, &mut used, data, seed, &whole);
    a_reader_that_was_reset_knows_nothing(wire, &new, &mut used);
    replies_in_a_row_are_read_as_single_ones(&new, data);
}

/// However the network cuts a reply, and whatever the reader has read before.
fn is_the_same_in_any_pieces<R: Reader>(
    new: &impl Fn() -> R,
    used: &mut R,
    data: &[u8],
    seed: u64,
    whole: &Outcome,
) {
    let pieces = mutation::cut(data, seed);
    assert_eq!(outcome(&mut new(), pieces.iter().copied()), *whole, "in pieces");
    outcome(used, [data]);
    assert_eq!(
        outcome(used, pieces.iter().copied()),
        *whole,
        "in pieces, by a reader that knows its head"
    );
    // One byte at a time is quadratic in nothing, but slow.
    if data.len() <= 2048 {
        assert_eq!(outcome(&mut new(), data.chunks(1)), *whole, "byte by byte");
    }
}

/// Whatever came before: the next reply is read as by a new reader.
fn a_reader_that_was_reset_knows_nothing<R: Reader>(wire: Wire, new: &impl Fn() -> R, used: &mut R) {
    let expected = outcome(&mut new(), [wire.sound()]);
    assert!(
        matches!(expected, Outcome::Reply { status: 200, .. }),
        "{expected:?}"
    );
    assert_eq!(outcome(used, [wire.sound()]), expected, "after a reset");
}

/// What lies behind a reply is the next one, where there is one.
fn replies_in_a_row_are_read_as_single_ones<R: Reader>(new: &impl Fn() -> R, data: &[u8]) {
    let (mut kept, mut rest) = (new(), data);
    for _ in 0..16 {
        let found = outcome(&mut kept, [rest]);
        assert_eq!(found, outcome(&mut new(), [rest]), "by a reader that is kept");
        match found {
            Outcome::Reply { surplus, .. } if surplus > 0 && surplus < rest.len() => {
                rest = &rest[rest.len() - surplus..];
            }
            _ => break,
        }
    }
}

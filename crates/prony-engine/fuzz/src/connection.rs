//! What must hold of a connection of HTTP/2, whatever its server sends.

use crate::mutation;
use prony_engine::wire::http2::{Connection, News};

/// `http2::Http2` renders such: GET / of a host that is not said.
const GET: &[u8] = &[0x82, 0x84, 0x86];
const REQUESTS: usize = 4;
const BODY: &[u8] = &[b'x'; 200_000];
// What stands ready of bodies, what is owed to the server, and heads that were begun.
const MOST_PENDING: usize = 600 * 1024;

/// What a connection said, and what came of it.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    news: Vec<(usize, Kept)>,
    ends: [usize; REQUESTS],
    failure: Option<&'static str>,
    pending: Vec<u8>,
    active: usize,
}

/// News that can be kept; pieces of a body are joined.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Head(Vec<u8>),
    Body(Vec<u8>),
    End(String),
}

/// Checks every rule for one conversation.
pub fn check(is_head: bool, data: &[u8], seed: u64) {
    let whole = trace(is_head, [data]);
    let pieces = mutation::cut(data, seed);
    assert_eq!(trace(is_head, pieces.iter().copied()), whole, "in pieces");
    if data.len() <= 2048 {
        assert_eq!(trace(is_head, data.chunks(1)), whole, "byte by byte");
    }
    bodies_stay_within_their_bounds(&pieces);
}

fn begun(is_head: bool) -> Connection {
    let mut connection = Connection::new();
    for key in 0..REQUESTS {
        assert!(connection.begin(key, GET, is_head, true).is_some());
    }
    connection
}

/// Feeds the pieces, and checks that each request has one end at most and nothing behind it.
fn trace<'d>(is_head: bool, pieces: impl IntoIterator<Item = &'d [u8]>) -> Trace {
    let mut connection = begun(is_head);
    let mut trace = Trace {
        news: Vec::new(),
        ends: [0; REQUESTS],
        failure: None,
        pending: Vec::new(),
        active: 0,
    };
    let (mut fed, mut given) = (0, 0);
    for piece in pieces {
        fed += piece.len();
        let result = connection.take(piece, &mut |key, bytes, news| {
            given += bytes;
            trace.note(key, news);
        });
        assert!(given <= fed, "{given} of {fed} bytes");
        assert!(trace.failure.is_none() || result.is_err(), "it stays so");
        trace.failure = result.err();
    }
    let ended: usize = trace.ends.iter().sum();
    trace.active = connection.active();
    assert!(trace.failure.is_some() || ended + trace.active == REQUESTS);
    assert!(trace.failure.is_none() || !connection.is_usable());
    assert_eq!(
        connection.room() > 0,
        connection.begin(9, GET, is_head, true).is_some()
    );
    trace.pending = connection.pending().to_vec();
    trace
}

impl Trace {
    fn note(&mut self, key: usize, news: News<'_>) {
        assert!(self.ends[key] == 0, "{news:?} behind the end");
        assert!(self.failure.is_none(), "{news:?} of a connection that failed");
        match news {
            News::Bytes => {}
            News::Room => panic!("room for a body that there is none of"),
            News::Head(text) => {
                assert!(text.starts_with(b"HTTP/2 ") && text.ends_with(b"\r\n\r\n"));
                self.news.push((key, Kept::Head(text.to_vec())));
            }
            News::Body(piece) => {
                assert!(!piece.is_empty(), "an empty piece of body");
                let last = self.news.iter_mut().rev().find(|(other, _)| *other == key);
                match last {
                    Some((_, Kept::Body(body))) => body.extend_from_slice(piece),
                    Some(_) => self.news.push((key, Kept::Body(piece.to_vec()))),
                    None => panic!("a body without a head"),
                }
            }
            end => {
                self.ends[key] += 1;
                self.news.push((key, Kept::End(format!("{end:?}"))));
            }
        }
    }
}

/// Requests with bodies: what is sent is bounded, and each of them is sent from its beginning to its end, once.
fn bodies_stay_within_their_bounds(pieces: &[&[u8]]) {
    let mut connection = Connection::new();
    let mut ids = [0; REQUESTS];
    let mut sent = [0; REQUESTS];
    for key in 0..REQUESTS {
        ids[key] = connection.begin(key, GET, false, false).unwrap_or_default();
        sent[key] = connection.send(ids[key], BODY);
    }
    for (number, piece) in pieces.iter().enumerate() {
        let mut room = [false; REQUESTS];
        let mut on_news = |key: usize, _: usize, news: News<'_>| room[key] |= news == News::Room;
        let result = connection.take(piece, &mut on_news);
        // Half of what is there is taken by the kernel.
        connection.advance(connection.pending().len() / 2);
        if number % 5 == 4 {
            connection.cancel(ids[number % REQUESTS]);
        }
        if result.is_err() {
            return;
        }
        connection.find_room(&mut on_news);
        for key in (0..REQUESTS).filter(|&key| room[key]) {
            assert!(sent[key] < BODY.len(), "room for a body that is sent");
            sent[key] += connection.send(ids[key], &BODY[sent[key]..]);
        }
        assert!(connection.pending().len() < MOST_PENDING + data_bytes(pieces) * 2);
    }
}

fn data_bytes(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

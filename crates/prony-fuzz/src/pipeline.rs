//! What must hold of several requests in order on a connection of HTTP/1.1, whatever its server sends.

use crate::mutation;
use prony_engine::protocol::http1::{Pipeline, ReplyReader};
use prony_engine::protocol::{News, Progress, Session};
use prony_engine::spec::HttpVersion;

const REQUESTS: usize = 4;
const ASK: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// What became of the requests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// How each ended; the last ones by the end of the connection.
    ends: [Option<String>; REQUESTS],
    bytes: [usize; REQUESTS],
    complete: usize,
}

/// Checks every rule for one conversation.
pub fn check(is_head: bool, data: &[u8], seed: u64) {
    let whole = trace(is_head, [data]);
    assert_eq!(whole.complete, replies(is_head, data), "as one after the other");
    is_alike(&trace(is_head, mutation::cut(data, seed)), &whole, "in pieces");
    if data.len() <= 2048 {
        is_alike(&trace(is_head, data.chunks(1)), &whole, "byte by byte");
    }
}

/// How many replies a reader of single ones finds, of connections that go on.
fn replies(is_head: bool, data: &[u8]) -> usize {
    let mut reader = ReplyReader::new(HttpVersion::V1_1, is_head);
    let mut rest = data;
    for number in 0..REQUESTS {
        let Progress::Complete { surplus } = reader.feed(rest, &mut |_| {}) else {
            return number;
        };
        if !reader.keeps_alive() {
            return number + 1;
        }
        rest = &rest[rest.len() - surplus..];
        reader.reset();
    }
    REQUESTS
}

/// What lies behind the last reply goes to who got that, to who waits, or to nobody, by how it was cut. All else is the same.
fn is_alike(found: &Trace, whole: &Trace, how: &str) {
    assert_eq!(found.ends, whole.ends, "{how}");
    let followed = whole.complete.saturating_sub(1);
    assert_eq!(found.bytes[..followed], whole.bytes[..followed], "{how}");
}

/// Feeds the pieces and ends the connection: each request has one end, in their order where there are replies.
fn trace<'d>(is_head: bool, pieces: impl IntoIterator<Item = &'d [u8]>) -> Trace {
    let mut pipeline = Pipeline::open(is_head, false);
    for key in 0..REQUESTS {
        let (id, taken) = pipeline.begin(key, ASK, is_head);
        assert!(id.is_some() && taken == ASK.len());
    }
    pipeline.advance(pipeline.pending().len());
    let mut trace = Trace::default();
    let (mut fed, mut failed) = (0, false);
    for piece in pieces {
        fed += piece.len();
        let result = pipeline.take(piece, &mut |key, bytes, news| trace.note(key, bytes, &news));
        failed |= result.is_err();
        assert!(
            !failed || trace.complete == REQUESTS,
            "bytes that nothing asked for"
        );
        assert!(trace.bytes.iter().sum::<usize>() <= fed);
        assert!(pipeline.pending().is_empty(), "nothing was left to be sent");
        if failed {
            break;
        }
    }
    pipeline.abandon(&mut |key, bytes, news| trace.note(key, bytes, &news));
    assert!(pipeline.room() == 0 && !pipeline.is_usable());
    trace
}

impl Trace {
    fn note(&mut self, key: usize, bytes: usize, news: &News<'_>) {
        assert!(self.ends[key].is_none(), "{news:?} behind the end");
        match news {
            News::Body(piece) => {
                assert!(!piece.is_empty() && piece.len() == bytes);
                self.bytes[key] += bytes;
            }
            News::Complete => {
                assert_eq!(key, self.complete, "replies in the order of requests");
                self.complete += 1;
                self.ends[key] = Some("Complete".to_owned());
            }
            News::Skipped | News::Behind | News::Lost => {
                assert_eq!(bytes, 0);
                self.ends[key] = Some(format!("{news:?}"));
            }
            other => panic!("{other:?} of a request that was sent whole"),
        }
    }
}

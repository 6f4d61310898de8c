//! HTTP/1.1 and HTTP/1.0 as a client speaks it, without I/O: a request as bytes, and a reader of replies that is fed bytes.
//! The reader also knows CGI heads: the body after a head is framed in the same way.
//!
//! The framing is that of RFC 9112 section 6.3. The result does not depend on how the reply was split into pieces, and
//! bytes that are not HTTP/1 end in [`Progress::Malformed`], never in waiting for more than 64 KiB.
//! Once its buffers have grown to the heads of a server, a reader does not allocate.
//!
//! ```
//! use prony_engine::wire::http1::{Progress, ReplyReader};
//! use prony_engine::spec::HttpVersion;
//!
//! let mut body = Vec::new();
//! let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
//! let mut keep = |piece: &[u8]| body.extend_from_slice(piece);
//! assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Le", &mut keep), Progress::More);
//! assert_eq!(reader.feed(b"ngth: 2\r\n\r\nhi", &mut keep), Progress::Complete { surplus: 0 });
//! assert_eq!((reader.status(), reader.keeps_alive(), body.as_slice()), (200, true, b"hi".as_slice()));
//! ```

mod chunked;
mod fields;
mod head;
mod request;

pub use super::{EndOfStream, Progress};
pub use request::render_request;

pub(super) use head::Grammar;
pub(super) use request::{whole_headers, USER_AGENT};

use super::field_in;
use chunked::ChunkedBody;
use fields::{Framing, Head};
use head::HeadReader;

use crate::expect::ExpectedHeader;
use crate::spec::HttpVersion;
use std::sync::Arc;

#[derive(Debug)]
enum Stage {
    Head,
    Fixed { remaining: u64 },
    Chunked(ChunkedBody),
    UntilClose,
    Complete,
    Malformed(&'static str),
}

/// Reads the replies of one connection, one after the other.
#[derive(Debug)]
pub struct ReplyReader {
    heads: HeadReader,
    stage: Stage,
    head: Option<Head>,
    has_begun: bool,
    head_bytes: usize,
    body_bytes: u64,
}

/// The longest interim replies (1xx) before a reply, together.
const INTERIM_LIMIT_BYTES: usize = 64 * 1024;

impl ReplyReader {
    /// A reader for a connection whose requests have this version, and on which every one is HEAD (a reply then ends with its head), or
    /// none is.
    pub fn new(asked: HttpVersion, is_head_request: bool) -> Self {
        Self::of(Grammar::Http(asked), is_head_request)
    }

    /// A reader of replies whose heads are of this grammar.
    pub(super) fn of(grammar: Grammar, is_head_request: bool) -> Self {
        ReplyReader {
            heads: HeadReader::new(grammar, is_head_request),
            stage: Stage::Head,
            head: None,
            has_begun: false,
            head_bytes: 0,
            body_bytes: 0,
        }
    }

    /// Forgets the last reply and awaits the next. Nothing that was fed carries over: the surplus of
    /// [`Progress::Complete`] is an error of the peer, and a reader that is to go on behind it has to be fed it again.
    pub fn reset(&mut self) {
        self.heads.reset();
        self.stage = Stage::Head;
        self.head = None;
        self.has_begun = false;
        self.head_bytes = 0;
        self.body_bytes = 0;
    }

    /// Takes what was received. Body bytes are handed to `on_body` piecewise, in order, without the chunking.
    pub fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        self.has_begun |= !data.is_empty();
        let mut rest = data;
        let progress = match self.take_heads(&mut rest) {
            Ok(()) => self.take_body(rest, on_body),
            Err(reason) => Progress::Malformed(reason),
        };
        match progress {
            Progress::More => (),
            Progress::Complete { .. } | Progress::Ended(_) => self.stage = Stage::Complete,
            Progress::Malformed(reason) => self.stage = Stage::Malformed(reason),
        }
        progress
    }

    /// The peer closed: this completes a close-delimited reply; any other unfinished reply never will be complete.
    pub fn end_of_stream(&mut self) -> EndOfStream {
        match self.stage {
            Stage::UntilClose | Stage::Complete => {
                self.stage = Stage::Complete;
                EndOfStream::Complete
            }
            _ if !self.has_begun => EndOfStream::NoReply,
            _ if self.head.is_none() => EndOfStream::WithinHead,
            _ => EndOfStream::WithinBody,
        }
    }

    /// The status code of the final head, 0 before it is complete.
    pub fn status(&self) -> u16 {
        self.head.map_or(0, |head| head.status)
    }

    /// Whether the peer lets the connection be used again after this reply: by the HTTP version, the tokens of
    /// `Connection`, and the framing. False before the final head is complete.
    pub fn keeps_alive(&self) -> bool {
        self.head.is_some_and(|head| head.keeps_alive)
    }

    /// Whether any byte of this reply was seen.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Bytes of the body so far, without the chunking.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The value of a field of the final head, the first of that name; null also beyond its first 4 KiB.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.head.and_then(|_| field_in(self.heads.kept(), name))
    }

    /// Whether the next request is HEAD.
    pub fn answers_head(&mut self, is_head: bool) {
        self.heads.answers_head(is_head);
    }

    /// Sets the fields that final heads must have.
    pub fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.heads.expect(expected);
    }

    /// The number of the first of them that the final head does not have; null also before it is complete.
    pub fn unmet_header(&self) -> Option<u16> {
        self.head.and_then(|head| head.unmet)
    }

    /// Takes interim heads and the final one off `rest`, as far as they are there.
    fn take_heads(&mut self, rest: &mut &[u8]) -> Result<(), &'static str> {
        while let Stage::Head = self.stage {
            let before = rest.len();
            let head = self.heads.take(rest)?;
            self.head_bytes += before - rest.len();
            let Some(head) = head else { break };
            match head.status {
                101 => return Err("the status 101 was not requested"),
                100..=199 if self.head_bytes > INTERIM_LIMIT_BYTES => {
                    return Err("the interim replies are longer than 64 KiB")
                }
                100..=199 => (),
                _ => self.begin_body(head),
            }
        }
        Ok(())
    }

    fn begin_body(&mut self, head: Head) {
        self.head = Some(head);
        self.stage = match head.framing {
            Framing::Fixed(length) => Stage::Fixed { remaining: length },
            Framing::Chunked => Stage::Chunked(ChunkedBody::default()),
            Framing::UntilClose => Stage::UntilClose,
        };
    }

    fn take_body(&mut self, rest: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        let body_bytes = &mut self.body_bytes;
        let mut deliver = |piece: &[u8]| {
            *body_bytes += piece.len() as u64;
            on_body(piece);
        };
        match &mut self.stage {
            Stage::Head => Progress::More,
            Stage::Fixed { remaining } => take_fixed(remaining, rest, &mut deliver),
            Stage::Chunked(body) => match body.take(rest, &mut deliver) {
                Ok(None) => Progress::More,
                Ok(Some(surplus)) => Progress::Complete { surplus },
                Err(reason) => Progress::Malformed(reason),
            },
            Stage::UntilClose => {
                take_piece(u64::MAX, rest, &mut deliver);
                Progress::More
            }
            Stage::Complete => Progress::Complete { surplus: rest.len() },
            Stage::Malformed(reason) => Progress::Malformed(reason),
        }
    }
}

fn take_fixed(remaining: &mut u64, data: &[u8], deliver: &mut impl FnMut(&[u8])) -> Progress {
    let rest = take_piece(*remaining, data, deliver);
    *remaining -= (data.len() - rest.len()) as u64;
    match *remaining {
        0 => Progress::Complete { surplus: rest.len() },
        _ => Progress::More,
    }
}

/// Delivers at most `limit` bytes of `data` and returns the others.
fn take_piece<'d>(limit: u64, data: &'d [u8], deliver: &mut impl FnMut(&[u8])) -> &'d [u8] {
    let length = usize::try_from(limit).map_or(data.len(), |limit| limit.min(data.len()));
    let (piece, rest) = data.split_at(length);
    if !piece.is_empty() {
        deliver(piece);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::KEPT_HEAD_BYTES;
    use super::*;

    fn ignore(_: &[u8]) {}

    #[test]
    fn a_fresh_reader_knows_no_reply() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        assert_eq!(reader.feed(b"", &mut ignore), Progress::More);
        assert!(!reader.has_begun() && !reader.keeps_alive());
        assert_eq!((reader.status(), reader.body_bytes()), (0, 0));
        assert_eq!(reader.end_of_stream(), EndOfStream::NoReply);
    }

    #[test]
    fn an_interim_reply_alone_is_no_reply() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        assert_eq!(
            reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n", &mut ignore),
            Progress::More
        );
        assert_eq!((reader.status(), reader.has_begun()), (0, true));
        assert_eq!(reader.end_of_stream(), EndOfStream::WithinHead);
    }

    #[test]
    fn a_field_is_one_of_the_final_head_however_that_comes() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        let interim = "HTTP/1.1 103 X\r\nLocation: /x\r\n\r\n";
        let head =
            "HTTP/1.1 302 Found\r\nSet-Cookie: location: y\r\nLOCATION: /login \r\nContent-Length: 0\r\n";
        for byte in [interim, head].concat().bytes() {
            reader.feed(&[byte], &mut ignore);
            assert_eq!(reader.field("location"), None);
        }
        reader.feed(b"\r\n", &mut ignore);
        assert_eq!(reader.field("Location"), Some(&b"/login"[..]));
        reader.reset();
        let long = format!("{head}X: {}\r\nEtag: z\r\n\r\n", "x".repeat(KEPT_HEAD_BYTES));
        reader.feed(long.as_bytes(), &mut ignore);
        assert_eq!(reader.field("location"), Some(&b"/login"[..]));
        assert_eq!((reader.field("x"), reader.field("etag")), (None, None));
    }

    #[test]
    fn what_follows_a_complete_reply_is_surplus() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        reader.feed(b"HTTP/1.1 204 No Content\r\n\r\n", &mut ignore);
        assert_eq!(
            reader.feed(b"HTTP", &mut ignore),
            Progress::Complete { surplus: 4 }
        );
        assert_eq!(reader.end_of_stream(), EndOfStream::Complete);
    }

    #[test]
    fn a_malformed_reply_stays_so_until_reset() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        let failure = reader.feed(b"SSH-2.0", &mut ignore);
        assert!(matches!(failure, Progress::Malformed(_)));
        assert_eq!(reader.feed(b"HTTP/1.1 204 \r\n\r\n", &mut ignore), failure);
        assert_eq!(reader.end_of_stream(), EndOfStream::WithinHead);
        reader.reset();
        let next = reader.feed(b"HTTP/1.1 204 \r\n\r\n", &mut ignore);
        assert_eq!(next, Progress::Complete { surplus: 0 });
    }

    #[test]
    fn a_reset_reader_has_forgotten_half_a_head_and_half_a_body() {
        let mut reader = ReplyReader::new(HttpVersion::V1_1, false);
        for half in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        ] {
            assert_eq!(reader.feed(half.as_bytes(), &mut ignore), Progress::More);
            reader.reset();
            assert!(!reader.has_begun());
            assert_eq!((reader.status(), reader.body_bytes()), (0, 0));
            let whole = reader.feed(b"HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", &mut ignore);
            assert_eq!(whole, Progress::Complete { surplus: 0 });
            assert_eq!((reader.status(), reader.body_bytes()), (404, 1));
            reader.reset();
        }
    }
}

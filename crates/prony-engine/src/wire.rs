//! How requests are written and replies are read, without I/O.

pub(crate) mod cgi;
pub mod exchange;
pub mod fastcgi;
pub mod http1;
pub mod http2;
pub(crate) mod redirect;
pub mod scgi;
mod sessions;
pub mod uwsgi;

pub use fastcgi::FastCgi;
pub use http2::Http2;
pub use scgi::Scgi;
pub use sessions::{Session, Sessions};
pub use uwsgi::Uwsgi;

use crate::error::Error;
use crate::expect::ExpectedHeader;
use crate::spec::requests::{length_mark, Kind, Piece, Template};
use crate::spec::Share;
use crate::spec::{typed, HttpVersion, Request, Target, Wire};
use std::sync::Arc;

/// Where a reply is after [`Reader::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply goes on.
    More,
    /// The reply is complete.
    Complete {
        /// How many of the bytes that were fed lie behind the reply: nothing was asked for that could answer
        /// with them.
        surplus: usize,
    },
    /// The peer said that the reply is over, and it is not complete (FastCGI's END_REQUEST).
    Ended(EndOfStream),
    /// The bytes are not of this protocol, for this reason. It stays so until [`Reader::reset`].
    Malformed(&'static str),
}

/// What the end of a reply, by the peer's close or its word, means for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfStream {
    /// The reply is complete: it was already, or it is delimited by its end.
    Complete,
    /// Not one byte of a reply was received.
    NoReply,
    /// The final head is not complete. An interim (1xx) reply alone is no reply.
    WithinHead,
    /// The head is complete, the body or what must follow it is not.
    WithinBody,
    /// The peer refused the request, for this reason.
    Refused(&'static str),
}

/// Reads the replies of one connection, one after the other.
pub trait Reader {
    /// Forgets the last reply.
    fn reset(&mut self);
    /// Takes what was received; hands on the body.
    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress;
    /// The peer closed.
    fn end_of_stream(&mut self) -> EndOfStream;
    /// The peer said that the reply is over, beside its bytes.
    fn finish(&mut self) -> EndOfStream {
        self.end_of_stream()
    }
    /// The reply's status.
    fn status(&self) -> u16;
    /// Whether another request may follow on the connection.
    fn keeps_alive(&self) -> bool;
    /// Whether any byte of this reply has been seen.
    fn has_begun(&self) -> bool;
    /// Bytes of the body so far.
    fn body_bytes(&self) -> u64;
    /// The value of a field of this reply's final head, the first of that name; null also beyond its first 4 KiB.
    fn field(&self, name: &str) -> Option<&[u8]>;
    /// Whether the next request is HEAD: its reply then ends with its head.
    fn answers_head(&mut self, is_head: bool);
    /// Sets the fields that final heads must have.
    fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>);
    /// The first of them that this reply's head does not have; null before the head is complete.
    fn unmet_header(&self) -> Option<u16>;
}

/// Of a head so much is kept: a cap on memory per connection, far above the heads that repeat.
const KEPT_HEAD_BYTES: usize = 4 * 1024;

/// The value of a field, the first of that name, in the beginning of a head.
fn field_in<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    // What is cut has no line end.
    let lines = head.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| line.ends_with(b"\n")).find_map(|line| {
        let (given, value) = line.split_at_checked(name.len())?;
        let is_named = given.eq_ignore_ascii_case(name.as_bytes());
        let value = value.strip_prefix(b":").filter(|_| is_named)?;
        Some(value.trim_ascii())
    })
}

/// A protocol: what is sent, one value a request, and a reader for each connection.
///
/// A request is known by its value alone. The worker asks for the next one when a request is begun, keeps it with the request until
/// that has ended, and asks for its bytes as often as it sends some.
pub trait Protocol {
    /// Reads its replies.
    type Reader: Reader;
    /// What makes a request differ from the others: nothing where all are the same.
    type Request: Asks;
    /// Begins this worker's share of the one sequence of requests, where they differ.
    fn take_share(&mut self, _: Share) {}
    /// The next request that is begun.
    fn next(&mut self) -> Self::Request;
    /// Makes a slot ready for a request that is begun on it. True: the request is in the slot's buffer now; false: it is one of those that
    /// [`Protocol::bytes`] has.
    fn begin(&self, _: Self::Request, _: &mut Self::Reader, _: &mut Vec<u8>) -> bool {
        false
    }
    /// The bytes of a request that is in no buffer: the same for the same value.
    fn bytes(&self, request: Self::Request) -> &[u8];
    /// Whether it may be sent a second time when a connection ends before its reply began (RFC 9110 section 9.2.2).
    fn is_idempotent(&self, request: Self::Request) -> bool;
    /// A reader for a new connection.
    fn reader(&self) -> Self::Reader;
    /// Whether its connection may be used for another request.
    fn keeps_alive(&self, request: Self::Request) -> bool;
}

/// A protocol of one request, which can be rendered from a specification's: with holes too, where it has templates.
pub trait Rendered: Protocol<Request = Same> + Sized {
    /// Whether it renders requests with holes.
    const HAS_TEMPLATES: bool = false;
    /// The request as it is sent there.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for what the protocol does not have.
    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error>;
    /// The request of a kind, whose holes are marked, as far as it can be rendered.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for what the protocol does not have.
    fn template(_: &Request, _: &Kind, _: &Target) -> Result<Template, Error> {
        Err(Error::InvalidSpec("`target.wire` has no templates".to_owned()))
    }
    /// A reader for a new connection, of no request yet.
    fn new_reader(target: &Target) -> Self::Reader;
}

/// A request, as it is kept while it is in progress.
pub trait Asks: Copy + std::fmt::Debug {
    /// The number of its path in the mix; without a mix there is one.
    fn path(self) -> usize;
    /// The number of its row in the file of requests, and of the row's kind; without a file there is none.
    fn row(self) -> (usize, usize) {
        (0, 0)
    }
    /// The number of the statuses that are a success of it.
    fn expectation(self) -> usize {
        0
    }
}

/// A request that is the same as all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Same;

impl Asks for Same {
    fn path(self) -> usize {
        0
    }
}

/// HTTP/1 with one request.
#[derive(Debug, Clone)]
pub struct Http1 {
    version: HttpVersion,
    request: Vec<u8>,
    is_head: bool,
    is_idempotent: bool,
    keep_alive: bool,
}

impl Http1 {
    /// Renders the request; `default_host` is the `Host` where the request has none.
    pub fn new(version: HttpVersion, request: &Request, body: Option<&[u8]>, default_host: &str) -> Self {
        let method = request.method.as_str();
        Self {
            version,
            request: http1::render_request(version, request, body, default_host),
            is_head: method == "HEAD",
            is_idempotent: is_idempotent(method),
            keep_alive: typed::keeps_alive(request, Wire::Http { version }),
        }
    }
}

/// RFC 9110 section 9.2.2.
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

impl Protocol for Http1 {
    type Reader = http1::ReplyReader;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&self, _: Same) -> &[u8] {
        &self.request
    }

    fn reader(&self) -> Self::Reader {
        http1::ReplyReader::new(self.version, self.is_head)
    }

    fn is_idempotent(&self, _: Same) -> bool {
        self.is_idempotent
    }

    fn keeps_alive(&self, _: Same) -> bool {
        self.keep_alive
    }
}

impl Rendered for Http1 {
    const HAS_TEMPLATES: bool = true;

    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        let asked = target.asked(request);
        Ok(Self::new(
            target.wire.version(),
            &asked,
            body,
            &target.authority(),
        ))
    }

    fn template(request: &Request, kind: &Kind, target: &Target) -> Result<Template, Error> {
        let (whole, open) = (kind.whole_body(), kind.open_body());
        let mut asked = target.asked(request);
        if open.is_some() {
            asked.headers.push(("Content-Length".to_owned(), length_mark()));
        }
        let (version, authority) = (target.wire.version(), target.authority());
        let bytes = http1::render_request(version, &asked, whole.as_deref(), &authority);
        // Only the head has marks: a body may have any byte.
        let end = memchr::memmem::find(&bytes, b"\r\n\r\n").map_or(bytes.len(), |end| end + 4);
        let (head, rest) = bytes.split_at(end);
        let body = open.unwrap_or_else(|| vec![Piece::Bytes(rest.to_vec())]);
        Ok(Template::of(head, body))
    }

    fn new_reader(target: &Target) -> Self::Reader {
        http1::ReplyReader::new(target.wire.version(), false)
    }
}

impl Reader for http1::ReplyReader {
    fn reset(&mut self) {
        self.reset();
    }

    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        self.feed(data, on_body)
    }

    fn end_of_stream(&mut self) -> EndOfStream {
        self.end_of_stream()
    }

    fn status(&self) -> u16 {
        self.status()
    }

    fn keeps_alive(&self) -> bool {
        self.keeps_alive()
    }

    fn has_begun(&self) -> bool {
        self.has_begun()
    }

    fn body_bytes(&self) -> u64 {
        self.body_bytes()
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        self.field(name)
    }

    fn answers_head(&mut self, is_head: bool) {
        self.answers_head(is_head);
    }

    fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.expect_headers(expected);
    }

    fn unmet_header(&self) -> Option<u16> {
        self.unmet_header()
    }
}

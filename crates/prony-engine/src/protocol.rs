//! How requests are written and replies are read, without I/O.

pub mod http1;

pub use http1::{EndOfStream, Progress};

/// Reads the replies of one connection, one after the other.
pub trait Reader {
    /// Forgets the last reply.
    fn reset(&mut self);
    /// Takes what was received; hands on the body.
    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress;
    /// The peer closed.
    fn end_of_stream(&mut self) -> EndOfStream;
    /// The reply's status.
    fn status(&self) -> u16;
    /// Whether another request may follow on the connection.
    fn keeps_alive(&self) -> bool;
    /// Whether any byte of this reply has been seen.
    fn has_begun(&self) -> bool;
    /// Bytes of the body so far.
    fn body_bytes(&self) -> u64;
}

/// A protocol: the request, rendered once, and a reader for each connection.
pub trait Protocol {
    /// Reads its replies.
    type Reader: Reader;
    /// The bytes of the request.
    fn request(&self) -> &[u8];
    /// A reader for a new connection.
    fn reader(&self) -> Self::Reader;
    /// Whether the request may be sent a second time when a connection ends before its reply began (RFC 9110 section 9.2.2).
    fn is_idempotent(&self) -> bool;
    /// Whether a connection may be used for another request.
    fn keeps_alive(&self) -> bool;
}

/// HTTP/1.1 with one request.
#[derive(Debug, Clone)]
pub struct Http1 {
    request: Vec<u8>,
    is_head: bool,
    is_idempotent: bool,
    keep_alive: bool,
}

impl Http1 {
    /// Renders the request; `default_host` is the `Host` where the request has none.
    pub fn new(request: &crate::spec::Request, body: Option<&[u8]>, default_host: &str) -> Self {
        let method = request.method.as_str();
        Self {
            request: http1::render_request(
                method,
                &request.path,
                &request.headers,
                body,
                request.keep_alive,
                default_host,
            ),
            is_head: method == "HEAD",
            is_idempotent: matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"),
            keep_alive: request.keep_alive,
        }
    }
}

impl Protocol for Http1 {
    type Reader = http1::ReplyReader;

    fn request(&self) -> &[u8] {
        &self.request
    }

    fn reader(&self) -> Self::Reader {
        http1::ReplyReader::new(self.is_head)
    }

    fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    fn keeps_alive(&self) -> bool {
        self.keep_alive
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
}

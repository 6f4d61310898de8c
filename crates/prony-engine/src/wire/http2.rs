//! HTTP/2 as a client speaks it, without I/O: requests as coded heads, a connection that is fed bytes, and a reader of single replies.
//!
//! The framing is that of RFC 9113, the coding of heads that of RFC 7541. Whatever a server sends ends in a reply, in a stream that
//! failed, or in a connection that did, and takes bounded memory; the result does not depend on how the bytes were split into pieces.
//!
//! ```
//! use prony_engine::wire::http2::{Connection, News};
//!
//! let mut connection = Connection::new();
//! assert!(connection.pending().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
//! let stream = connection.begin(7, &[0x82, 0x84, 0x86], false, true);
//! assert_eq!(stream, Some(1));
//! let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
//! let not_found = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x8d];
//! let mut heads = Vec::new();
//! let mut keep = |key, _, news: News<'_>| {
//!     if let News::Head(text) = news {
//!         heads.push((key, String::from_utf8_lossy(text).into_owned()));
//!     }
//! };
//! connection.take(&[&settings[..], &not_found].concat(), &mut keep).unwrap();
//! assert_eq!(heads, [(7, "HTTP/2 404\r\n\r\n".to_owned())]);
//! ```

mod connection;
mod frame;
mod head;
mod hpack;
mod huffman;
mod reply;

pub use connection::{Connection, News};
pub use frame::Code;
pub use reply::ReplyReader;

use super::http1::whole_headers;
use super::{is_idempotent, Protocol, Rendered, Same};
use crate::error::Error;
use crate::spec::requests::{has_marks, length_mark, split, Kind, Piece, Template, Text};
use crate::spec::{Request, Target};

/// HTTP/2 with one request.
#[derive(Debug, Clone)]
pub struct Http2 {
    request: Vec<u8>,
    is_idempotent: bool,
}

impl Http2 {
    /// Renders the request.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for fields that HTTP/2 does not have.
    pub fn new(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        Ok(Self {
            request: render(request, body, target)?,
            is_idempotent: is_idempotent(&request.method),
        })
    }
}

impl Protocol for Http2 {
    type Reader = ReplyReader;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&self, _: Same) -> &[u8] {
        &self.request
    }

    fn is_idempotent(&self, _: Same) -> bool {
        self.is_idempotent
    }

    fn reader(&self) -> ReplyReader {
        ReplyReader::default()
    }

    fn keeps_alive(&self, _: Same) -> bool {
        true
    }
}

impl Rendered for Http2 {
    const HAS_TEMPLATES: bool = true;

    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        Self::new(request, body, target)
    }

    fn template(request: &Request, kind: &Kind, target: &Target) -> Result<Template, Error> {
        let (whole, open) = (kind.whole_body(), kind.open_body());
        let mut asked = request.clone();
        if open.is_some() {
            asked.headers.push(("Content-Length".to_owned(), length_mark()));
        }
        let mut template = Template {
            counted: Some(if request.method == "HEAD" { HEAD_BIT } else { 0 }),
            head: Vec::new(),
            body: open.unwrap_or_else(|| vec![Piece::Bytes(whole.clone().unwrap_or_default())]),
        };
        each_field(&asked, whole.as_deref(), target, &mut |name, value| {
            let mut block = Vec::new();
            if has_marks(value) {
                hpack::encode_name(name, &mut block);
                template.head.push(Text::Plain(Piece::Bytes(block)));
                template.head.push(Text::Counted(split(value.as_bytes())));
            } else {
                hpack::encode(name, value, &mut block);
                template.head.push(Text::Plain(Piece::Bytes(block)));
            }
        })?;
        Ok(template)
    }

    fn new_reader(_: &Target) -> ReplyReader {
        ReplyReader::default()
    }
}

/// A buffer that is used again has at most this much.
const KEPT_BYTES: usize = 16 * 1024;

/// Frees a buffer that something large has made large.
fn free_if_large(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

const LENGTH_BYTES: usize = 4;

/// In the length of a coded head: its request is HEAD. No head is so long.
const HEAD_BIT: u32 = 1 << 31;

/// A request as it is kept: the length of its coded head, that head, and the body. No stream of it is known yet, and what fits into a
/// frame the server says.
fn render(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Vec<u8>, Error> {
    let mut block = Vec::new();
    each_field(request, body, target, &mut |name, value| {
        hpack::encode(name, value, &mut block);
    })?;
    let bit = if request.method == "HEAD" { HEAD_BIT } else { 0 };
    let length = (block.len() as u32 | bit).to_be_bytes();
    Ok([&length[..], &block, body.unwrap_or_default()].concat())
}

/// The coded head of a rendered request, and its body.
pub fn parts(rendered: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = rendered.split_at(LENGTH_BYTES.min(rendered.len()));
    rest.split_at(((frame::number_at(length, 0) & !HEAD_BIT) as usize).min(rest.len()))
}

/// Whether it is HEAD, and its fields.
#[cfg(test)]
pub(super) fn fields_of(rendered: &[u8]) -> (bool, Vec<(String, String)>) {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let taken = hpack::Decoder::new(0).decode(parts(rendered).0, &mut |name, value| {
        fields.push((text(name), text(value)));
    });
    assert!(taken.is_ok());
    (is_head(rendered), fields)
}

/// Whether a rendered request is HEAD.
fn is_head(rendered: &[u8]) -> bool {
    rendered.len() >= LENGTH_BYTES && frame::number_at(rendered, 0) & HEAD_BIT != 0
}

/// The fields of a head, in order.
fn each_field(
    request: &Request,
    body: Option<&[u8]>,
    target: &Target,
    take: &mut impl FnMut(&str, &str),
) -> Result<(), Error> {
    let default_host = target.authority();
    let fields = whole_headers(&request.method, &request.headers, body, None, &default_host);
    let host = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or(default_host.as_str(), |(_, value)| value);
    let scheme = if target.tls.is_some() { "https" } else { "http" };
    for (name, value) in [
        (":method", request.method.as_str()),
        (":scheme", scheme),
        (":path", &request.path),
        (":authority", authority),
    ] {
        take(name, value);
    }
    for (name, value) in &fields {
        let name = name.to_ascii_lowercase();
        if head::OF_A_CONNECTION.contains(&name.as_bytes()) {
            return Err(Error::InvalidSpec(format!(
                "`workload.request.headers` has `{name}`; expected none: HTTP/2 does not have it"
            )));
        }
        if name != "host" {
            take(&name, value.trim());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::cgi::tests::{request, target};
    use super::*;

    fn fields(request: &Request, body: Option<&[u8]>) -> Vec<(String, String)> {
        let rendered = Http2::new(request, body, &target()).unwrap();
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (head, rest) = parts(&rendered.request);
        assert_eq!(rest, body.unwrap_or_default());
        hpack::Decoder::new(0)
            .decode(head, &mut |name, value| fields.push((text(name), text(value))))
            .unwrap();
        fields
    }

    fn value(fields: &[(String, String)], name: &str) -> Option<String> {
        let found: Vec<_> = fields.iter().filter(|(known, _)| known == name).collect();
        assert!(found.len() <= 1, "{name} is there twice");
        found.first().map(|(_, value)| value.clone())
    }

    #[test]
    fn a_request_begins_with_what_http_1_has_in_its_first_line() {
        let fields = fields(&request("GET", "/p?q", &[("X-One", "1")]), None);
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            ":method",
            ":scheme",
            ":path",
            ":authority",
            "user-agent",
            "accept",
            "x-one",
        ];
        assert_eq!(names, expected);
        for (name, expected) in [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/p?q"),
            (":authority", "[::1]:8000"),
            ("x-one", "1"),
        ] {
            assert_eq!(value(&fields, name).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_host_is_the_authority_and_a_body_has_its_length() {
        let fields = fields(&request("POST", "/", &[("host", "h")]), Some(b"12345"));
        assert_eq!(value(&fields, ":authority").as_deref(), Some("h"));
        assert_eq!(value(&fields, "host"), None);
        assert_eq!(value(&fields, "content-length").as_deref(), Some("5"));
    }

    #[test]
    fn fields_of_a_connection_are_refused() {
        for (name, text) in [("Connection", "close"), ("transfer-encoding", "chunked")] {
            let error = Http2::new(&request("GET", "/", &[(name, text)]), None, &target()).unwrap_err();
            assert!(error.to_string().contains("HTTP/2 does not have it"), "{error}");
        }
    }
}

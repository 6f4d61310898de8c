//! FastCGI, the responder's role: one request at a time on a connection, which the server keeps if it likes.
//!
//! *Source*: Mark R. Brown, FastCGI Specification, version 1.0, 1996.

use super::cgi::{self, Variables};
use super::http1::{self, Grammar};
use super::{is_idempotent, EndOfStream, Progress, Protocol, Reader, Rendered, Same};
use crate::error::Error;
use crate::expect::ExpectedHeader;
use crate::spec::{Request, Target};
use std::sync::Arc;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const RESPONDER: u8 = 1;
const KEEP_CONNECTION: u8 = 1;
const REQUEST_ID: u16 = 1;
const HEADER_BYTES: usize = 8;
// A record's length has 16 bits (section 3.3).
const LARGEST_CONTENT_BYTES: usize = 0xffff;

/// FastCGI with one request.
#[derive(Debug, Clone)]
pub struct FastCgi {
    request: Vec<u8>,
    is_head: bool,
    is_idempotent: bool,
    keep_alive: bool,
}

impl FastCgi {
    /// Renders the request.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for what CGI cannot express.
    pub fn new(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        let variables = cgi::variables(request, body, target)?;
        Ok(Self {
            request: render(&variables, body.unwrap_or_default(), request.keep_alive),
            is_head: request.method == "HEAD",
            is_idempotent: is_idempotent(&request.method),
            keep_alive: request.keep_alive,
        })
    }
}

impl Protocol for FastCgi {
    type Reader = ReplyReader;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&self, _: Same) -> &[u8] {
        &self.request
    }

    fn reader(&self) -> ReplyReader {
        ReplyReader::new(self.is_head)
    }

    fn is_idempotent(&self, _: Same) -> bool {
        self.is_idempotent
    }

    fn keeps_alive(&self, _: Same) -> bool {
        self.keep_alive
    }
}

impl Rendered for FastCgi {
    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        Self::new(request, body, target)
    }

    fn new_reader(_: &Target) -> ReplyReader {
        ReplyReader::new(false)
    }
}

fn render(variables: &Variables, body: &[u8], keep_alive: bool) -> Vec<u8> {
    let flags = if keep_alive { KEEP_CONNECTION } else { 0 };
    let mut bytes = Vec::new();
    push_record(&mut bytes, BEGIN_REQUEST, &[0, RESPONDER, flags, 0, 0, 0, 0, 0]);
    push_stream(&mut bytes, PARAMS, &pairs(variables));
    push_stream(&mut bytes, STDIN, body);
    bytes
}

/// Name-value pairs (section 3.4).
fn pairs(variables: &Variables) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in variables {
        push_length(&mut bytes, name.len());
        push_length(&mut bytes, value.len());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => bytes.push(short),
        // Nothing that a specification holds comes near to 2 GiB.
        _ => bytes.extend_from_slice(&(length as u32 | (1 << 31)).to_be_bytes()),
    }
}

/// A stream: its data in records, and an empty one that ends it.
fn push_stream(bytes: &mut Vec<u8>, kind: u8, data: &[u8]) {
    for content in data.chunks(LARGEST_CONTENT_BYTES) {
        push_record(bytes, kind, content);
    }
    push_record(bytes, kind, &[]);
}

fn push_record(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let ([id_high, id_low], [high, low]) = (REQUEST_ID.to_be_bytes(), (content.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&[VERSION, kind, id_high, id_low, high, low, 0, 0]);
    bytes.extend_from_slice(content);
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Output,
    End,
    /// Standard error, and management records.
    Ignored,
}

/// A record, as far as it is still to come.
#[derive(Clone, Copy, Debug)]
struct Record {
    kind: Kind,
    content_bytes: usize,
    padding_bytes: usize,
}

impl Record {
    fn parse(header: [u8; HEADER_BYTES]) -> Result<Record, &'static str> {
        let [version, kind, id_high, id_low, high, low, padding, _] = header;
        let id = u16::from_be_bytes([id_high, id_low]);
        let content_bytes = usize::from(u16::from_be_bytes([high, low]));
        let kind = match kind {
            _ if version != VERSION => return Err("a record is not of version 1 of FastCGI"),
            // Management: of the connection, not of a request.
            _ if id == 0 => Kind::Ignored,
            _ if id != REQUEST_ID => return Err("a record belongs to another request"),
            STDOUT => Kind::Output,
            STDERR => Kind::Ignored,
            END_REQUEST if content_bytes == HEADER_BYTES => Kind::End,
            END_REQUEST => return Err("the record that ends the request does not have 8 bytes"),
            _ => return Err("a record is of a kind that no application sends"),
        };
        Ok(Record {
            kind,
            content_bytes,
            padding_bytes: usize::from(padding),
        })
    }

    fn is_over(self) -> bool {
        (self.content_bytes, self.padding_bytes) == (0, 0)
    }
}

/// Bytes that are only understood when all eight are there.
#[derive(Clone, Copy, Debug, Default)]
struct Eight {
    bytes: [u8; HEADER_BYTES],
    filled: usize,
}

impl Eight {
    /// Takes the missing bytes off `rest`; returns the bytes when they are complete, and starts again.
    fn fill(&mut self, rest: &mut &[u8]) -> Option<[u8; HEADER_BYTES]> {
        let piece = split_off(rest, HEADER_BYTES - self.filled);
        self.bytes[self.filled..self.filled + piece.len()].copy_from_slice(piece);
        self.filled += piece.len();
        (self.filled == HEADER_BYTES).then(|| {
            self.filled = 0;
            self.bytes
        })
    }
}

/// Reads the replies of one connection, one after the other. Standard error is dropped.
#[derive(Debug)]
pub struct ReplyReader {
    /// Of the stream of standard output: a reply of CGI.
    reply: http1::ReplyReader,
    is_head_request: bool,
    header: Eight,
    record: Option<Record>,
    end: Eight,
    has_begun: bool,
    /// More output came than the reply's length allows.
    overruns: bool,
    over: Option<Progress>,
}

impl ReplyReader {
    /// A reader for a connection on which every request is HEAD, or none is.
    pub fn new(is_head_request: bool) -> Self {
        Self {
            reply: http1::ReplyReader::of(Grammar::Cgi, is_head_request),
            is_head_request,
            header: Eight::default(),
            record: None,
            end: Eight::default(),
            has_begun: false,
            overruns: false,
            over: None,
        }
    }

    fn step(&mut self, rest: &mut &[u8], on_body: &mut impl FnMut(&[u8])) -> Result<(), &'static str> {
        let Some(mut record) = self.record else {
            if let Some(header) = self.header.fill(rest) {
                self.record = Some(Record::parse(header)?).filter(|record| !record.is_over());
            }
            return Ok(());
        };
        let content = split_off(rest, record.content_bytes);
        record.content_bytes -= content.len();
        record.padding_bytes -= split_off(rest, record.padding_bytes).len();
        self.record = Some(record).filter(|record| !record.is_over());
        match record.kind {
            Kind::Output => self.take_output(content, on_body),
            Kind::End => {
                self.take_end(content, record.is_over());
                Ok(())
            }
            Kind::Ignored => Ok(()),
        }
    }

    fn take_output(&mut self, content: &[u8], on_body: &mut impl FnMut(&[u8])) -> Result<(), &'static str> {
        match self.reply.feed(content, on_body) {
            // An application need not know that the reply to HEAD has no body: the gateway drops it (RFC 3875 section 4.3.3).
            Progress::Complete { surplus } => self.overruns |= surplus > 0 && !self.is_head_request,
            Progress::Malformed(reason) => return Err(reason),
            Progress::More | Progress::Ended(_) => (),
        }
        Ok(())
    }

    /// The reply is over with the last byte of its last record; the padding belongs to it.
    fn take_end(&mut self, mut content: &[u8], is_over: bool) {
        self.end.fill(&mut content);
        if is_over {
            self.over = Some(match (self.end.bytes[4], self.reply.end_of_stream()) {
                (0, EndOfStream::Complete) => Progress::Complete { surplus: 0 },
                (0, unfinished) => Progress::Ended(unfinished),
                (1, _) => Progress::Ended(EndOfStream::Refused(
                    "refused: the server accepts one request per connection",
                )),
                (2, _) => Progress::Ended(EndOfStream::Refused("refused: the server is overloaded")),
                (3, _) => Progress::Ended(EndOfStream::Refused("refused: the server is not a responder")),
                _ => Progress::Malformed("the end of the request has an unknown protocol status"),
            });
        }
    }
}

impl Reader for ReplyReader {
    fn reset(&mut self) {
        self.reply.reset();
        (self.header, self.end) = (Eight::default(), Eight::default());
        (self.record, self.over) = (None, None);
        (self.has_begun, self.overruns) = (false, false);
    }

    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        self.has_begun |= !data.is_empty();
        let mut rest = data;
        while self.over.is_none() && !rest.is_empty() {
            if let Err(reason) = self.step(&mut rest, on_body) {
                self.over = Some(Progress::Malformed(reason));
            }
        }
        match self.over {
            None => Progress::More,
            Some(Progress::Complete { .. }) => Progress::Complete { surplus: rest.len() },
            Some(other) => other,
        }
    }

    fn end_of_stream(&mut self) -> EndOfStream {
        match self.over {
            Some(Progress::Complete { .. }) => EndOfStream::Complete,
            Some(Progress::Ended(end)) => end,
            _ if !self.has_begun => EndOfStream::NoReply,
            _ if self.reply.status() == 0 => EndOfStream::WithinHead,
            _ => EndOfStream::WithinBody,
        }
    }

    fn status(&self) -> u16 {
        self.reply.status()
    }

    fn keeps_alive(&self) -> bool {
        matches!(self.over, Some(Progress::Complete { .. })) && !self.overruns
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        self.reply.field(name)
    }

    fn answers_head(&mut self, is_head: bool) {
        self.is_head_request = is_head;
        self.reply.answers_head(is_head);
    }

    fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.reply.expect_headers(expected);
    }

    fn unmet_header(&self) -> Option<u16> {
        self.reply.unmet_header()
    }

    fn body_bytes(&self) -> u64 {
        self.reply.body_bytes()
    }
}

/// Takes at most `limit` bytes off `rest`.
fn split_off<'d>(rest: &mut &'d [u8], limit: usize) -> &'d [u8] {
    let (piece, after) = rest.split_at(limit.min(rest.len()));
    *rest = after;
    piece
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::cgi::tests::{request, target};
    use super::*;

    /// Appendix B of the specification, its first example with two of its parameters; lengths in octal as there.
    #[test]
    fn a_request_is_written_as_the_specification_shows_it() {
        let variables = [("SERVER_PORT", "80"), ("SERVER_ADDR", "199.170.183.42")]
            .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
            .to_vec();
        let expected = [
            &b"\x01\x01\x00\x01\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"[..],
            b"\x01\x04\x00\x01\x00\x2a\x00\x00\x0b\x02SERVER_PORT80\x0b\x0eSERVER_ADDR199.170.183.42",
            b"\x01\x04\x00\x01\x00\x00\x00\x00",
            b"\x01\x05\x00\x01\x00\x00\x00\x00",
        ];
        let expected = expected.concat();
        assert_eq!(render(&variables, b"", false), expected);
        let mut kept = expected;
        kept[10] = 1;
        assert_eq!(render(&variables, b"", true), kept);
    }

    /// Its second example: a body.
    #[test]
    fn a_body_is_a_stream_of_its_own() {
        let expected = [
            &b"\x01\x05\x00\x01\x00\x19\x00\x00quantity=100&item=3047936"[..],
            b"\x01\x05\x00\x01\x00\x00\x00\x00",
        ];
        assert!(render(&vec![], b"quantity=100&item=3047936", false).ends_with(&expected.concat()));
    }

    #[test]
    fn lengths_from_128_on_have_four_bytes_and_streams_from_64_kib_on_two_records() {
        let lengths = |length| {
            let mut bytes = Vec::new();
            push_length(&mut bytes, length);
            bytes
        };
        assert_eq!((lengths(127), lengths(128)), (vec![127], vec![0x80, 0, 0, 128]));
        let mut bytes = Vec::new();
        push_stream(&mut bytes, STDIN, &[7; LARGEST_CONTENT_BYTES + 1]);
        assert_eq!(bytes.len(), 3 * HEADER_BYTES + LARGEST_CONTENT_BYTES + 1);
        assert_eq!(bytes[4..6], [0xff, 0xff]);
        assert_eq!(bytes[8 + 0xffff..][..9], [1, 5, 0, 1, 0, 1, 0, 0, 7]);
    }

    #[test]
    fn the_request_holds_the_variables_and_knows_whether_the_connection_is_kept() {
        let kept = FastCgi::new(&request("GET", "/p?q", &[]), None, &target()).unwrap();
        assert_eq!(
            (kept.request[10], kept.keeps_alive(Same), kept.is_idempotent(Same)),
            (1, true, true)
        );
        let text = String::from_utf8_lossy(&kept.request).into_owned();
        assert!(
            text.contains("\x0e\x03REQUEST_METHODGET\x0b\x00SCRIPT_NAME\x09\x02PATH_INFO/p"),
            "{text:?}"
        );
        let closing = Request {
            keep_alive: false,
            ..request("POST", "/", &[])
        };
        let closing = FastCgi::new(&closing, Some(b"x"), &target()).unwrap();
        assert_eq!(
            (
                closing.request[10],
                closing.keeps_alive(Same),
                closing.is_idempotent(Same)
            ),
            (0, false, false)
        );
    }
}

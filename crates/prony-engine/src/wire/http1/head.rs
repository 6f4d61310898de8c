//! The head of a reply: found, parsed once, and remembered, because the next one is usually the same.
//!
//! Lines may end in a bare LF (RFC 9112 section 2.2).

use memchr::memchr;

use super::fields::{parse_cgi_head, parse_head, Head};
use crate::expect::{unmet_header, ExpectedHeader};
use crate::spec::HttpVersion;
use crate::wire::KEPT_HEAD_BYTES;
use std::sync::Arc;

/// The longest head. Servers' own limits for what they accept are 8 to 64 KiB.
const HEAD_LIMIT_BYTES: usize = 64 * 1024;
const STATUS_LINE_START: &[u8] = b"HTTP/1.";

/// What a head begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Grammar {
    /// The status line of HTTP/1, in reply to a request of this version.
    Http(HttpVersion),
    /// Header fields at once, the status among them (RFC 3875 section 6).
    Cgi,
    /// Either: by its first bytes. uWSGI writes the one, other servers the other, and gateways take both.
    HttpOrCgi,
}

impl Grammar {
    fn parse(self, bytes: &[u8], is_head_request: bool) -> Result<Head, &'static str> {
        match self {
            Grammar::HttpOrCgi if bytes.starts_with(STATUS_LINE_START) => {
                parse_head(bytes, HttpVersion::V1_1, is_head_request)
            }
            Grammar::Http(asked) => parse_head(bytes, asked, is_head_request),
            Grammar::Cgi | Grammar::HttpOrCgi => parse_cgi_head(bytes, is_head_request),
        }
    }
}

/// Collects heads.
#[derive(Debug)]
pub(super) struct HeadReader {
    grammar: Grammar,
    is_head_request: bool,
    /// The beginning of a head that came in pieces.
    partial: Vec<u8>,
    line: Line,
    /// The last final head, or its beginning.
    remembered: Vec<u8>,
    /// Of a head that is remembered whole. A head is a function of its bytes and none is the beginning of another, so input that
    /// begins with these bytes begins with this head.
    meaning: Option<Head>,
    expected: Option<Arc<[ExpectedHeader]>>,
}

impl HeadReader {
    pub(super) fn new(grammar: Grammar, is_head_request: bool) -> Self {
        HeadReader {
            grammar,
            is_head_request,
            partial: Vec::new(),
            line: Line::Empty,
            remembered: Vec::new(),
            meaning: None,
            expected: None,
        }
    }

    /// The beginning of the last final head.
    pub(super) fn kept(&self) -> &[u8] {
        &self.remembered
    }

    pub(super) fn answers_head(&mut self, is_head: bool) {
        // The same head means another body then.
        if std::mem::replace(&mut self.is_head_request, is_head) != is_head {
            self.meaning = None;
        }
    }

    pub(super) fn expect(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.expected = expected;
        self.meaning = None;
    }

    pub(super) fn reset(&mut self) {
        self.partial.clear();
        self.line = Line::Empty;
    }

    /// Takes a head off `rest`; if it is not complete, all of `rest`.
    pub(super) fn take(&mut self, rest: &mut &[u8]) -> Result<Option<Head>, &'static str> {
        if let Some(head) = self.take_remembered(rest) {
            return Ok(Some(head));
        }
        if matches!(self.grammar, Grammar::Http(_)) {
            check_start(self.partial.len(), rest)?;
        }
        let room = HEAD_LIMIT_BYTES - self.partial.len();
        let window = &rest[..rest.len().min(room)];
        match self.line.find_empty(window) {
            Some(length) => {
                let (bytes, after) = rest.split_at(length);
                *rest = after;
                self.finish(bytes).map(Some)
            }
            None if window.len() == room => Err("the head is longer than 64 KiB"),
            None => {
                self.partial.extend_from_slice(window);
                *rest = &[];
                Ok(None)
            }
        }
    }

    fn take_remembered(&self, rest: &mut &[u8]) -> Option<Head> {
        let head = self.meaning.filter(|_| self.partial.is_empty())?;
        *rest = rest.strip_prefix(self.remembered.as_slice())?;
        Some(head)
    }

    /// Parses the head whose last piece is `bytes`: in place if it is the only one.
    fn finish(&mut self, bytes: &[u8]) -> Result<Head, &'static str> {
        if self.partial.is_empty() {
            return self.parse(bytes);
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let head = self.parse(&whole);
        whole.clear();
        self.partial = whole;
        head
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Head, &'static str> {
        let mut head = self.grammar.parse(bytes, self.is_head_request)?;
        head.unmet = self
            .expected
            .as_ref()
            .and_then(|expected| unmet_header(expected, bytes));
        if head.status >= 200 {
            let kept = &bytes[..bytes.len().min(KEPT_HEAD_BYTES)];
            self.remembered.clear();
            self.remembered.extend_from_slice(kept);
            self.meaning = (kept.len() == bytes.len()).then_some(head);
        }
        Ok(head)
    }
}

/// Refuses at its first bytes what cannot become a status line: another protocol need not end its lines.
fn check_start(seen: usize, data: &[u8]) -> Result<(), &'static str> {
    let expected = STATUS_LINE_START.get(seen..).unwrap_or_default();
    match expected.iter().zip(data).all(|(expected, byte)| expected == byte) {
        true => Ok(()),
        false => Err("the reply does not begin with HTTP/1."),
    }
}

/// The line that is being received, as far as it matters for the end of a head.
#[derive(Clone, Copy, Debug)]
enum Line {
    Empty,
    Cr,
    Content,
}

impl Line {
    /// Looks for the empty line that ends a head, from where it stopped. Returns the length up to and with it.
    fn find_empty(&mut self, data: &[u8]) -> Option<usize> {
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &data[start..]) {
            let line = self.extended_by(&data[start..start + length]);
            *self = Line::Empty;
            start += length + 1;
            if !matches!(line, Line::Content) {
                return Some(start);
            }
        }
        *self = self.extended_by(&data[start..]);
        None
    }

    fn extended_by(self, bytes: &[u8]) -> Line {
        match (self, bytes) {
            (line, []) => line,
            (Line::Empty, b"\r") => Line::Cr,
            _ => Line::Content,
        }
    }
}

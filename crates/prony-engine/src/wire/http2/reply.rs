//! Reads one reply after the other, as the connection hands them on: heads as text, then the body.

use super::super::{field_in, EndOfStream, Progress, Reader, KEPT_HEAD_BYTES};
use crate::expect::{unmet_header, ExpectedHeader};
use memchr::memmem;
use std::sync::Arc;

/// The replies of one stream after another. A head comes whole; only the server's word ends a reply ([`Reader::finish`]).
#[derive(Debug, Default)]
pub struct ReplyReader {
    expected: Option<Arc<[ExpectedHeader]>>,
    status: u16,
    /// The beginning of the final head.
    head: Vec<u8>,
    unmet: Option<u16>,
    body_bytes: u64,
    has_begun: bool,
    is_over: bool,
}

const BLANK_LINE: &[u8] = b"\r\n\r\n";
// Behind `HTTP/2 `.
const STATUS: std::ops::Range<usize> = 7..10;

impl ReplyReader {
    /// Takes heads off `rest`, interim ones too, until the final one is there.
    fn take_heads(&mut self, rest: &mut &[u8]) -> Result<(), &'static str> {
        while self.status < 200 && !rest.is_empty() {
            let end = memmem::find(rest, BLANK_LINE).ok_or("a head that is not whole")?;
            let (head, after) = rest.split_at(end + BLANK_LINE.len());
            *rest = after;
            let digits = head
                .get(STATUS)
                .and_then(|digits| std::str::from_utf8(digits).ok());
            let status = digits.and_then(|digits| digits.parse().ok());
            self.status = status.ok_or("a head without a status")?;
            if self.status >= 200 {
                self.head
                    .extend_from_slice(&head[..head.len().min(KEPT_HEAD_BYTES)]);
                let expected = self.expected.as_deref();
                self.unmet = expected.and_then(|expected| unmet_header(expected, head));
            }
        }
        Ok(())
    }
}

impl Reader for ReplyReader {
    fn reset(&mut self) {
        (self.status, self.unmet, self.body_bytes) = (0, None, 0);
        (self.has_begun, self.is_over) = (false, false);
        self.head.clear();
    }

    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        self.has_begun |= !data.is_empty();
        let mut rest = data;
        if let Err(why) = self.take_heads(&mut rest) {
            return Progress::Malformed(why);
        }
        if !rest.is_empty() {
            self.body_bytes += rest.len() as u64;
            on_body(rest);
        }
        Progress::More
    }

    fn end_of_stream(&mut self) -> EndOfStream {
        match self.status {
            _ if self.is_over => EndOfStream::Complete,
            _ if !self.has_begun => EndOfStream::NoReply,
            0..=199 => EndOfStream::WithinHead,
            _ => EndOfStream::WithinBody,
        }
    }

    fn finish(&mut self) -> EndOfStream {
        self.is_over = self.status >= 200;
        self.end_of_stream()
    }

    fn status(&self) -> u16 {
        if self.status < 200 {
            0
        } else {
            self.status
        }
    }

    fn keeps_alive(&self) -> bool {
        self.is_over
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        field_in(&self.head, name)
    }

    /// The driver knows it: it has framed the reply.
    fn answers_head(&mut self, _: bool) {}

    fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.expected = expected;
    }

    fn unmet_header(&self) -> Option<u16> {
        self.unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignore(_: &[u8]) {}

    #[test]
    fn only_the_servers_word_ends_a_reply() {
        let mut reader = ReplyReader::default();
        let mut body = Vec::new();
        let head = b"HTTP/2 103\r\nlink: x\r\n\r\nHTTP/2 404\r\n\r\n";
        assert_eq!(reader.feed(head, &mut ignore), Progress::More);
        let mut keep = |piece: &[u8]| body.extend_from_slice(piece);
        assert_eq!(reader.feed(b"a\r\n\r\n", &mut keep), Progress::More);
        assert_eq!(reader.end_of_stream(), EndOfStream::WithinBody);
        assert_eq!(reader.finish(), EndOfStream::Complete);
        assert_eq!((reader.status(), reader.body_bytes()), (404, 5));
        assert_eq!(reader.field("link"), None);
        assert_eq!(body, b"a\r\n\r\n");
    }

    #[test]
    fn an_interim_reply_alone_is_no_reply() {
        let mut reader = ReplyReader::default();
        assert_eq!(reader.end_of_stream(), EndOfStream::NoReply);
        reader.feed(b"HTTP/2 103\r\n\r\n", &mut ignore);
        assert_eq!(reader.end_of_stream(), EndOfStream::WithinHead);
        assert_eq!((reader.status(), reader.keeps_alive()), (0, false));
        reader.reset();
        assert_eq!(reader.end_of_stream(), EndOfStream::NoReply);
    }

    #[test]
    fn a_field_is_one_of_the_final_head() {
        let mut reader = ReplyReader::default();
        let heads = b"HTTP/2 103\r\nlocation: /x\r\n\r\nHTTP/2 302\r\nlocation: /login\r\n\r\n";
        reader.feed(heads, &mut ignore);
        assert_eq!(reader.field("Location"), Some(&b"/login"[..]));
        reader.reset();
        assert_eq!(reader.field("location"), None);
    }
}

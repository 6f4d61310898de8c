//! What the fields of a complete head say about its reply: the framing, and whether the connection goes on.

use crate::spec::HttpVersion;
use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

/// How many headers are parsed at the first attempt, and at the second.
const USUAL_HEADERS: usize = 64;
const MOST_HEADERS: usize = 1024;
const LATEST: &[u8] = b"HTTP/1.1";

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Fixed(u64),
    Chunked,
    UntilClose,
}

/// What a head says about its reply and the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) keeps_alive: bool,
    pub(super) framing: Framing,
    /// The first expected field that it does not have, by number.
    pub(super) unmet: Option<u16>,
}

/// The meaning of a complete head, in reply to a request of version `asked`.
pub(super) fn parse_head(
    bytes: &[u8],
    asked: HttpVersion,
    is_head_request: bool,
) -> Result<Head, &'static str> {
    let head = match parse_with::<USUAL_HEADERS>(bytes, asked, is_head_request) {
        Err(httparse::Error::TooManyHeaders) => parse_with::<MOST_HEADERS>(bytes, asked, is_head_request),
        // A later minor version is read as the one that is known (RFC 9110 section 2.5).
        Err(httparse::Error::Version) if is_later(bytes) => {
            let known = [LATEST, &bytes[LATEST.len()..]].concat();
            return parse_head(&known, asked, is_head_request);
        }
        other => other,
    };
    head.unwrap_or_else(|error| Err(describe(error)))
}

fn is_later(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', b' ', ..]
    )
}

type Meaning = Result<Head, &'static str>;

/// The outer error is that of the bytes, the inner one that of their meaning.
fn parse_with<const N: usize>(
    bytes: &[u8],
    asked: HttpVersion,
    is_head_request: bool,
) -> Result<Meaning, httparse::Error> {
    let mut response = Response::new(&mut []);
    let mut headers = [const { MaybeUninit::uninit() }; N];
    let mut config = ParserConfig::default();
    // RFC 9112 section 5.2: a server must not fold lines, a user agent must understand it.
    config.allow_obsolete_multiline_headers_in_responses(true);
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers)?;
    Ok(match (parsed, response.code, response.version) {
        (Status::Complete(length), Some(status), Some(version)) if length == bytes.len() => {
            interpret_reply(asked, status, version, response.headers, is_head_request)
        }
        _ => Err("the end of the head cannot be found"),
    })
}

/// A reply to HTTP/1.0 has no transfer coding (RFC 9112 section 6.1), and goes on only if it says so, whatever its own version: its server
/// knows that of the request.
fn interpret_reply(
    asked: HttpVersion,
    status: u16,
    version: u8,
    headers: &[Header<'_>],
    is_head_request: bool,
) -> Meaning {
    let is_coded = |header: &Header<'_>| header.name.eq_ignore_ascii_case("transfer-encoding");
    match asked {
        HttpVersion::V1_1 => interpret(status, version, headers, is_head_request),
        HttpVersion::V1_0 if headers.iter().any(is_coded) => {
            Err("the reply to HTTP/1.0 has a Transfer-Encoding")
        }
        HttpVersion::V1_0 => interpret(status, 0, headers, is_head_request),
    }
}

/// The meaning of the complete head of a CGI reply (RFC 3875 section 6): `Status`, else 302 with a `Location`, else 200.
pub(super) fn parse_cgi_head(bytes: &[u8], is_head_request: bool) -> Result<Head, &'static str> {
    let head = match parse_cgi_with::<USUAL_HEADERS>(bytes, is_head_request) {
        Err(httparse::Error::TooManyHeaders) => parse_cgi_with::<MOST_HEADERS>(bytes, is_head_request),
        other => other,
    };
    head.unwrap_or_else(|error| Err(describe(error)))
}

fn parse_cgi_with<const N: usize>(bytes: &[u8], is_head_request: bool) -> Result<Meaning, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; N];
    Ok(match httparse::parse_headers(bytes, &mut headers)? {
        Status::Complete((_, [])) => Err("the head of a CGI reply has no header"),
        Status::Complete((length, fields)) if length == bytes.len() => interpret_cgi(fields, is_head_request),
        _ => Err("the end of the head cannot be found"),
    })
}

fn interpret_cgi(headers: &[Header<'_>], is_head_request: bool) -> Meaning {
    let find = |name: &str| {
        headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
    };
    let status = match (find("Status"), find("Location")) {
        (Some(status), _) => parse_status(status.value)?,
        (None, Some(_)) => 302,
        (None, None) => 200,
    };
    match find("Transfer-Encoding") {
        // The transfer is the gateway's (RFC 3875 section 6.3.5): it would encode the body once more.
        Some(_) => Err("a CGI reply has a Transfer-Encoding"),
        None => interpret(status, 1, headers, is_head_request),
    }
}

/// `200` or `200 OK`; an interim status ends nothing.
fn parse_status(value: &[u8]) -> Result<u16, &'static str> {
    let digits = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    match digits {
        [b'2'..=b'9', b'0'..=b'9', b'0'..=b'9'] => Ok(digits
            .iter()
            .fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))),
        _ => Err("the Status of a CGI reply is not 200 to 999"),
    }
}

fn interpret(status: u16, version: u8, headers: &[Header<'_>], is_head_request: bool) -> Meaning {
    if status < 100 {
        return Err("the status code is below 100");
    }
    let fields = Fields::read(headers);
    let framing = match is_head_request || matches!(status, 100..=199 | 204 | 304) {
        true => Framing::Fixed(0),
        false => fields.framing()?,
    };
    Ok(Head {
        status,
        keeps_alive: fields.persists(version) && framing != Framing::UntilClose,
        framing,
        unmet: None,
    })
}

/// The transfer codings, of which `chunked` alone, and once, can be decoded: no other is asked for (RFC 9112 section 7).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    Other,
}

/// The fields that delimit a reply.
struct Fields {
    length: Result<Option<u64>, &'static str>,
    coding: Coding,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[Header<'_>]) -> Fields {
        let mut fields = Fields {
            length: Ok(None),
            coding: Coding::None,
            close: false,
            keep_alive: false,
        };
        for header in headers {
            fields.add(header.name, header.value);
        }
        fields
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        // The lengths come first: nearly all names differ in it.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => elements(value).for_each(|e| self.add_option(e)),
            14 if name.eq_ignore_ascii_case("content-length") => self.add_length(value),
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                elements(value).for_each(|e| self.add_coding(e));
            }
            _ => (),
        }
    }

    fn add_option(&mut self, option: &[u8]) {
        self.close |= option.eq_ignore_ascii_case(b"close");
        self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }

    fn add_coding(&mut self, coding: &[u8]) {
        // `identity` was a name for no coding until RFC 2616 was corrected; it still comes with a Content-Length.
        if coding.eq_ignore_ascii_case(b"chunked") && self.coding == Coding::None {
            self.coding = Coding::Chunked;
        } else if !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity") {
            self.coding = Coding::Other;
        }
    }

    /// A field may be repeated, and be a list, if all its values are the same number (RFC 9110 section 8.6).
    fn add_length(&mut self, value: &[u8]) {
        for element in elements(value) {
            self.length = match (self.length, parse_length(element)) {
                (Ok(Some(known)), Ok(length)) if known != length => Err("two Content-Lengths differ"),
                (Ok(_), Ok(length)) => Ok(Some(length)),
                (Err(reason), _) | (_, Err(reason)) => Err(reason),
            };
        }
    }

    /// The framing of a reply that has a body. Beside a transfer coding, lengths do not count, right or wrong.
    fn framing(&self) -> Result<Framing, &'static str> {
        Ok(match self.coding {
            Coding::Chunked => Framing::Chunked,
            Coding::Other => return Err("the Transfer-Encoding is not `chunked` alone"),
            Coding::None => self.length?.map_or(Framing::UntilClose, Framing::Fixed),
        })
    }

    /// RFC 9112 section 9.3, and 6.1: transfer codings are not of HTTP/1.0, so its end may not be where it seems.
    fn persists(&self, version: u8) -> bool {
        match version {
            0 => self.keep_alive && !self.close && self.coding == Coding::None,
            _ => !self.close,
        }
    }
}

fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn parse_length(digits: &[u8]) -> Result<u64, &'static str> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err("the Content-Length is not a number");
    }
    let append = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits
        .iter()
        .try_fold(0, append)
        .ok_or("the Content-Length is larger than 64 bits")
}

fn describe(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a header's name has a forbidden character",
        httparse::Error::HeaderValue => "a header's value has a forbidden character",
        httparse::Error::NewLine => "a line of the head does not end in CRLF",
        httparse::Error::Status => "the status line cannot be parsed",
        httparse::Error::TooManyHeaders => "the head has more than 1024 headers",
        httparse::Error::Version => "the version is not HTTP/1.0 or HTTP/1.1",
        httparse::Error::Token => "the head has a forbidden character",
    }
}

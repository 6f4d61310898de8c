//! A request with holes, rendered as far as it goes: what is left for each request is to copy bytes into its slot's buffer.

use super::{Fields, Kind, Part};
use crate::error::Error;
use crate::spec::Request;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;

/// What a request is written from, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As they stand.
    Bytes(Vec<u8>),
    /// What the row has.
    Field(usize),
    /// The length of the body, in digits.
    BodyLength,
}

/// A piece, or several with their length before them, as HPACK has it (RFC 7541 section 5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// One.
    Plain(Piece),
    /// A string literal.
    Counted(Vec<Piece>),
}

/// A request with holes on one wire.
#[derive(Debug, Clone)]
pub struct Template {
    /// The length of the head stands before it, with this bit; null: it does not.
    pub counted: Option<u32>,
    /// The head.
    pub head: Vec<Text>,
    /// The body.
    pub body: Vec<Piece>,
}

// No method, path or header holds one.
const MARK: char = '\0';
const LENGTH: &str = "L";

/// The `Content-Length` of a body with holes.
pub fn length_mark() -> String {
    format!("{MARK}{LENGTH}{MARK}")
}

/// Whether a text has holes.
pub fn has_marks(text: &str) -> bool {
    text.contains(MARK)
}

/// The pieces of a rendered text.
pub fn split(text: &[u8]) -> Vec<Piece> {
    let parts = text.split(|&byte| byte == MARK as u8).enumerate();
    let piece = |(place, part): (usize, &[u8])| match (place % 2, std::str::from_utf8(part)) {
        (1, Ok(LENGTH)) => Piece::BodyLength,
        (1, Ok(digits)) => digits.parse().map_or(Piece::Bytes(Vec::new()), Piece::Field),
        _ => Piece::Bytes(part.to_vec()),
    };
    let is_empty = |piece: &Piece| matches!(piece, Piece::Bytes(bytes) if bytes.is_empty());
    parts.map(piece).filter(|piece| !is_empty(piece)).collect()
}

impl Kind {
    /// The request with marks in place of its holes, which renders as one without.
    pub fn marked(&self, keep_alive: bool) -> Request {
        let text = |parts: &[Part]| -> String {
            let part = |part: &Part| match part {
                Part::Text(text) => text.clone(),
                Part::Field(field) => format!("{MARK}{field}{MARK}"),
            };
            parts.iter().map(part).collect()
        };
        let headers = self.headers.iter();
        Request {
            method: self.method.clone(),
            path: text(&self.path),
            headers: headers.map(|(name, value)| (name.clone(), text(value))).collect(),
            body: None,
            keep_alive,
        }
    }

    /// Its body without holes; null also of one with holes.
    pub fn whole_body(&self) -> Option<Vec<u8>> {
        let parts = self.body.as_deref()?;
        let mut body = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => body.extend(STANDARD.decode(text).ok()?),
                Part::Field(_) => return None,
            }
        }
        Some(body)
    }

    /// Its body, where it has holes.
    pub fn open_body(&self) -> Option<Vec<Piece>> {
        let parts = self.body.as_deref()?;
        let piece = |part: &Part| match part {
            Part::Text(text) => Piece::Bytes(STANDARD.decode(text).unwrap_or_default()),
            Part::Field(field) => Piece::Field(*field),
        };
        let is_open = parts.iter().any(|part| matches!(part, Part::Field(_)));
        is_open.then(|| parts.iter().map(piece).collect())
    }

    /// Whether nothing of it is of a row.
    pub fn is_whole(&self) -> bool {
        self.fields == 0
    }

    /// Refuses holes where the engine reads a header itself, and a length beside a body that has none yet.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] with the header.
    pub fn check_headers(&self) -> Result<(), Error> {
        let has_open_body = self.open_body().is_some();
        for (name, value) in &self.headers {
            let name = name.to_ascii_lowercase();
            let is_read = matches!(
                name.as_str(),
                "connection" | "content-length" | "transfer-encoding" | "te" | "expect" | "upgrade"
            );
            let is_open = value.iter().any(|part| matches!(part, Part::Field(_)));
            let is_length = matches!(name.as_str(), "content-length" | "transfer-encoding");
            if (is_read && is_open) || (is_length && has_open_body) {
                return Err(super::wrong(format!(
                    "has the header `{name}`; expected none of that name beside values of a file"
                )));
            }
        }
        Ok(())
    }
}

const COUNT_BYTES: usize = 4;

impl Template {
    /// Of a request that was rendered with marks.
    pub fn of(head: &[u8], body: Vec<Piece>) -> Self {
        Self {
            counted: None,
            head: split(head).into_iter().map(Text::Plain).collect(),
            body,
        }
    }

    /// Writes the request of a row. What the buffer has is kept as memory only.
    pub fn write(&self, fields: Fields<'_>, out: &mut Vec<u8>) {
        out.clear();
        let body_bytes = length(&self.body, fields, 0);
        if self.counted.is_some() {
            out.extend_from_slice(&[0; COUNT_BYTES]);
        }
        for text in &self.head {
            match text {
                Text::Plain(piece) => push(piece, fields, body_bytes, out),
                Text::Counted(pieces) => {
                    push_count(length(pieces, fields, body_bytes), out);
                    pieces
                        .iter()
                        .for_each(|piece| push(piece, fields, body_bytes, out));
                }
            }
        }
        if let Some(bit) = self.counted {
            let count = (out.len() - COUNT_BYTES) as u32 | bit;
            out[..COUNT_BYTES].copy_from_slice(&count.to_be_bytes());
        }
        self.body
            .iter()
            .for_each(|piece| push(piece, fields, body_bytes, out));
    }
}

fn length(pieces: &[Piece], fields: Fields<'_>, body_bytes: usize) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.len(),
        Piece::Field(field) => fields.get(*field).len(),
        Piece::BodyLength => digits(body_bytes),
    };
    pieces.iter().map(of).sum()
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

fn push(piece: &Piece, fields: Fields<'_>, body_bytes: usize, out: &mut Vec<u8>) {
    match piece {
        Piece::Bytes(bytes) => out.extend_from_slice(bytes),
        Piece::Field(field) => out.extend_from_slice(fields.get(*field)),
        Piece::BodyLength => {
            let start = out.len();
            out.resize(start + digits(body_bytes), 0);
            let mut rest = body_bytes;
            for place in out[start..].iter_mut().rev() {
                *place = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
    }
}

/// The length of a string that is not coded: seven bits, then seven a byte (RFC 7541 section 5.1).
fn push_count(count: usize, out: &mut Vec<u8>) {
    const MOST: usize = 127;
    if count < MOST {
        return out.push(count as u8);
    }
    out.push(MOST as u8);
    let mut rest = count - MOST;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

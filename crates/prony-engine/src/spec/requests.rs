//! Requests from a file: compiled once, beside the specification, which knows the file by its digest. `docs/reference/engine-wire.md`
//! defines its bytes.
//!
//! A *kind* is a request with holes; a *row* has what fills the holes of its kind, escaped by who wrote the file. Rows are checked once,
//! and nothing of them is copied before they are sent.

mod template;

pub use template::{has_marks, length_mark, split, Piece, Template, Text};

use crate::error::Error;
use crate::spec::{check_method, check_path, is_on_one_line, is_token, Group, Request, RequestFile};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

const MAGIC: &[u8] = b"PRONYRQ1";
// Where the rows end, how many there are, and how long the head is.
const TRAILER_BYTES: usize = 24;
const END_BYTES: usize = 4;
const OFFSET_BYTES: usize = 8;
const KIND_BYTES: usize = 4;
const WEIGHT_BYTES: usize = 8;
// The path of a row is in the low bits of its number, its kind above them.
const PATH_BITS: u32 = 8;

/// A file of requests, read and checked.
#[derive(Debug)]
pub struct Book {
    bytes: Vec<u8>,
    rows: usize,
    offsets_at: usize,
    kinds: Vec<Kind>,
    is_weighted: bool,
    /// Whether each request takes its kind by the weights of the kinds, and the next row: all of them have the same holes.
    pub is_drawn: bool,
}

/// A request with holes. A text is of pieces, each of them text or the number of a field.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Such as `GET`.
    pub method: String,
    /// Begins with `/`.
    pub path: Vec<Part>,
    /// Names, and values with holes.
    pub headers: Vec<(String, Vec<Part>)>,
    /// Its texts are base64; null: none.
    pub body: Option<Vec<Part>>,
    /// Ranges of statuses that are a success; none: those of the load.
    pub statuses: Vec<(u16, u16)>,
    /// How many fields its rows have.
    pub fields: usize,
}

/// A piece of a text, as the file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Literally.
    Text(String),
    /// The number of a field.
    Field(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    kinds: Vec<Kind>,
    is_weighted: bool,
    is_drawn: bool,
}

/// What a row has, by the number of the field.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'b> {
    ends: &'b [u8],
    bytes: &'b [u8],
}

impl<'b> Fields<'b> {
    /// A field; it is there in each row that was checked.
    pub fn get(&self, field: usize) -> &'b [u8] {
        let end = |place: usize| number::<END_BYTES>(self.ends, place * END_BYTES) as usize;
        let start = if field == 0 { 0 } else { end(field - 1) };
        &self.bytes[start..end(field)]
    }
}

/// The little-endian number at a place that is there.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(whole)
}

impl Book {
    /// Reads a file of this digest, from its beginning.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read; [`Error::InvalidSpec`] when it is another file, or not as it must be.
    pub fn read(file: &mut File, asked: &RequestFile) -> Result<Self, Error> {
        let reading = Error::io("reading the file of requests");
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(reading)?;
        let digest: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if digest != asked.sha256 {
            return Err(wrong(format!(
                "has the SHA-256 {digest}; expected {}",
                asked.sha256
            )));
        }
        let book = Self::of(bytes).ok_or_else(|| wrong("is cut, or no such file".to_owned()))?;
        book.check()?;
        if book.rows as u64 != asked.requests {
            let (found, expected) = (book.rows, asked.requests);
            return Err(wrong(format!("has {found} rows; expected {expected}")));
        }
        Ok(book)
    }

    /// Null: its parts do not fit together.
    fn of(bytes: Vec<u8>) -> Option<Self> {
        let trailer_at = bytes.len().checked_sub(TRAILER_BYTES)?;
        let [offsets_at, rows, head_bytes] =
            [0, 8, 16].map(|place| number::<8>(&bytes, trailer_at + place) as usize);
        let head_at = trailer_at.checked_sub(head_bytes)?;
        let head: Head = serde_json::from_slice(&bytes[head_at..trailer_at]).ok()?;
        let weight_bytes = if head.is_weighted { WEIGHT_BYTES } else { 0 };
        let index_bytes = rows.checked_mul(OFFSET_BYTES + KIND_BYTES + weight_bytes)?;
        let fits = bytes.starts_with(MAGIC)
            && offsets_at.checked_add(index_bytes) == Some(head_at)
            && (1..=u32::MAX as usize).contains(&rows)
            && !head.kinds.is_empty();
        fits.then_some(Self {
            bytes,
            rows,
            offsets_at,
            kinds: head.kinds,
            is_weighted: head.is_weighted,
            is_drawn: head.is_drawn,
        })
    }

    /// How many rows there are, at least one.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The requests with holes, as the users of a group send them.
    pub fn kinds_of(&self, group: Option<&Group>) -> Vec<Kind> {
        let own = |kind: &Kind| group.map_or_else(|| kind.clone(), |group| group.asking_kind(kind));
        self.kinds.iter().map(own).collect()
    }

    /// The statuses that are a success of each kind.
    pub fn statuses(&self) -> impl Iterator<Item = &[(u16, u16)]> {
        self.kinds.iter().map(|kind| kind.statuses.as_slice())
    }

    /// The number of a row's kind, and of its path in the mix.
    pub fn kind_of(&self, row: usize) -> (usize, usize) {
        let at = self.offsets_at + self.rows * OFFSET_BYTES + row * KIND_BYTES;
        let both = number::<KIND_BYTES>(&self.bytes, at) as usize;
        (both >> PATH_BITS, both & ((1 << PATH_BITS) - 1))
    }

    /// The weights of the rows; null: they have none.
    pub fn weights(&self) -> Option<impl Iterator<Item = f64> + Clone + '_> {
        let at = self.offsets_at + self.rows * (OFFSET_BYTES + KIND_BYTES);
        let weight = move |row| f64::from_bits(number::<WEIGHT_BYTES>(&self.bytes, at + row * WEIGHT_BYTES));
        self.is_weighted.then(|| (0..self.rows).map(weight))
    }

    /// What a row has, of a kind with so many fields.
    pub fn fields(&self, row: usize, count: usize) -> Fields<'_> {
        let at = number::<OFFSET_BYTES>(&self.bytes, self.offsets_at + row * OFFSET_BYTES) as usize;
        let (ends, bytes) = self.bytes[at..self.offsets_at].split_at(count * END_BYTES);
        Fields { ends, bytes }
    }

    /// The request of a row, and its body.
    pub fn request(&self, kind: &Kind, row: usize, keep_alive: bool) -> (Request, Option<Vec<u8>>) {
        let fields = self.fields(row, kind.fields);
        let text = |parts: &[Part]| -> String { parts.iter().map(|part| part.filled(fields)).collect() };
        let request = Request {
            method: kind.method.clone(),
            path: text(&kind.path),
            headers: kind
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            body: None,
            keep_alive,
        };
        let body = kind.body.as_deref().map(|parts| {
            let mut body = Vec::new();
            for part in parts {
                match part {
                    Part::Text(text) => body.extend(STANDARD.decode(text).unwrap_or_default()),
                    Part::Field(field) => body.extend_from_slice(fields.get(*field)),
                }
            }
            body
        });
        (request, body)
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the row and what is wrong with it.
    fn check(&self) -> Result<(), Error> {
        let uses: Result<Vec<_>, Error> = self.kinds.iter().map(Kind::check).collect();
        let uses = uses?;
        for row in 0..self.rows {
            let (kind, _) = self.kind_of(row);
            let kind = if self.is_drawn { 0 } else { kind };
            let why = match uses.get(kind) {
                None => Some("a kind that there is not"),
                Some(uses) => self.fault_of(row, uses),
            };
            if let Some(why) = why {
                return Err(wrong(format!("has in row {row} {why}")));
            }
        }
        for weight in self.weights().into_iter().flatten() {
            if !(weight.is_finite() && weight > 0.0) {
                return Err(wrong(format!("has the weight {weight}; expected more than 0")));
            }
        }
        let holes = self.kinds[0].fields;
        if self.is_drawn && self.kinds.iter().any(|kind| kind.fields != holes) {
            return Err(wrong("has kinds of different holes".to_owned()));
        }
        Ok(())
    }

    fn fault_of(&self, row: usize, uses: &[Use]) -> Option<&'static str> {
        let at = number::<OFFSET_BYTES>(&self.bytes, self.offsets_at + row * OFFSET_BYTES) as usize;
        let table = uses.len() * END_BYTES;
        let rest = self.bytes[MAGIC.len()..self.offsets_at].len() + MAGIC.len();
        if at < MAGIC.len() || at.checked_add(table).is_none_or(|end| end > rest) {
            return Some("a place outside the file");
        }
        let (ends, bytes) = self.bytes[at..self.offsets_at].split_at(table);
        let mut start = 0;
        for (field, known) in uses.iter().enumerate() {
            let end = number::<END_BYTES>(ends, field * END_BYTES) as usize;
            if end < start || end > bytes.len() {
                return Some("a field outside the file");
            }
            let value = &bytes[start..end];
            start = end;
            let text = std::str::from_utf8(value).ok();
            let fits = match known {
                Use::Body => true,
                Use::Header => text.is_some_and(is_on_one_line),
                Use::Path => text.is_some_and(|text| text.bytes().all(|byte| byte > b' ' && byte != 0x7f)),
                Use::WholePath => text.is_some_and(|text| check_path("", text).is_ok()),
            };
            if !fits {
                return Some("a value that does not fit its place");
            }
        }
        None
    }
}

/// The strictest use of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Body,
    Header,
    Path,
    /// A path begins with it.
    WholePath,
}

impl Part {
    fn filled<'p>(&'p self, fields: Fields<'p>) -> &'p str {
        match self {
            Self::Text(text) => text,
            // Paths and headers were checked to be text.
            Self::Field(field) => std::str::from_utf8(fields.get(*field)).unwrap_or_default(),
        }
    }
}

// More than a line of any file needs, and a number in the marks of a template.
const MOST_FIELDS: usize = 1000;

impl Kind {
    /// How its fields are used.
    fn check(&self) -> Result<Vec<Use>, Error> {
        if self.fields > MOST_FIELDS {
            return Err(wrong(format!(
                "has {} fields; expected at most {MOST_FIELDS}",
                self.fields
            )));
        }
        let mut uses = vec![Use::Body; self.fields];
        let mut note = |parts: &[Part], known: Use| -> Result<(), Error> {
            for part in parts {
                if let Part::Field(field) = part {
                    let own = uses.get_mut(*field);
                    let own = own.ok_or_else(|| wrong(format!("has no field {field}")))?;
                    *own = (*own).max(known);
                }
            }
            Ok(())
        };
        check_method(&self.method)?;
        let (first, rest) = self
            .path
            .split_first()
            .ok_or_else(|| wrong("has no path".to_owned()))?;
        note(std::slice::from_ref(first), Use::WholePath)?;
        note(rest, Use::Path)?;
        for part in &self.path {
            if let Part::Text(text) = part {
                let is_first = std::ptr::eq(part, first);
                let slash = if is_first { "" } else { "/" };
                check_path("path", &format!("{slash}{text}"))?;
            }
        }
        for (name, value) in &self.headers {
            note(value, Use::Header)?;
            let fits = value
                .iter()
                .all(|part| !matches!(part, Part::Text(text) if !is_on_one_line(text)));
            if !is_token(name) || !fits {
                return Err(wrong(format!("has the header `{name}`, which is none")));
            }
        }
        for part in self.body.iter().flatten() {
            note(std::slice::from_ref(part), Use::Body)?;
            if let Part::Text(text) = part {
                STANDARD
                    .decode(text)
                    .map_err(|_| wrong("has a body that is not base64".to_owned()))?;
            }
        }
        Ok(uses)
    }
}

fn wrong(why: String) -> Error {
    Error::InvalidSpec(format!("the file of requests {why}"))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::spec::Order;
    use proptest::prelude::*;
    use serde_json::{json, Value};

    /// The bytes of a file: of each row its kind, its path, and its fields.
    pub fn compiled(kinds: &Value, rows: &[(u32, u32, Vec<&[u8]>)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let (mut offsets, mut numbers) = (Vec::new(), Vec::new());
        for (kind, path, fields) in rows {
            offsets.extend((bytes.len() as u64).to_le_bytes());
            numbers.extend((kind << PATH_BITS | path).to_le_bytes());
            let mut end = 0;
            for field in fields {
                end += field.len() as u32;
                bytes.extend(end.to_le_bytes());
            }
            bytes.extend(fields.concat());
        }
        let end = bytes.len() as u64;
        let head = json!({"kinds": kinds, "is_weighted": false, "is_drawn": false}).to_string();
        bytes.extend([offsets, numbers, head.clone().into_bytes()].concat());
        for number in [end, rows.len() as u64, head.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    pub fn book(bytes: Vec<u8>, rows: u64) -> Result<Book, Error> {
        let sha256 = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let path =
            std::env::temp_dir().join(format!("prony-book-{}-{rows}-{:p}", std::process::id(), &bytes));
        std::fs::write(&path, bytes).unwrap();
        let mut file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let (name, order) = ("x".to_owned(), Order::InOrder);
        Book::read(
            &mut file,
            &RequestFile {
                name,
                sha256,
                requests: rows,
                order,
            },
        )
    }

    pub fn kind(method: &str) -> Value {
        json!({"method": method, "path": ["/a/", 0], "headers": [["x", ["<", 1, ">"]]], "body": [2, "IQ=="],
               "statuses": [], "fields": 3})
    }

    fn whole() -> Vec<u8> {
        compiled(
            &json!([kind("POST")]),
            &[(0, 0, vec![b"1", b"v", b"b"]), (0, 0, vec![b"", b"", b""])],
        )
    }

    #[test]
    fn a_row_fills_the_holes_of_its_kind() {
        let book = book(whole(), 2).unwrap();
        let (request, body) = book.request(&book.kinds[0], 0, true);
        assert_eq!(
            (request.path.as_str(), body.as_deref()),
            ("/a/1", Some(&b"b!"[..]))
        );
        assert_eq!(request.headers, [("x".to_owned(), "<v>".to_owned())]);
    }

    #[test]
    fn what_would_end_a_line_or_a_path_is_refused() {
        for fields in [
            [&b"a b"[..], b"", b""],
            [b"a", b"x\r\ny", b""],
            [b"a", b"\xff", b""],
        ] {
            let bytes = compiled(&json!([kind("POST")]), &[(0, 0, fields.to_vec())]);
            let error = book(bytes, 1).unwrap_err().to_string();
            assert!(
                error.contains("in row 0 a value that does not fit its place"),
                "{error}"
            );
        }
        let bytes = compiled(&json!([kind("POST")]), &[(1, 0, vec![b"", b"", b""])]);
        assert!(book(bytes, 1)
            .unwrap_err()
            .to_string()
            .contains("a kind that there is not"));
    }

    #[test]
    fn another_file_is_refused() {
        assert!(book(whole(), 3)
            .unwrap_err()
            .to_string()
            .contains("has 2 rows; expected 3"));
        let mut file = File::open("/dev/null").unwrap();
        let (name, sha256) = ("x".to_owned(), "0".repeat(64));
        let asked = RequestFile {
            name,
            sha256,
            requests: 1,
            order: Order::InOrder,
        };
        assert!(Book::read(&mut file, &asked)
            .unwrap_err()
            .to_string()
            .contains("has the SHA-256"));
    }

    proptest! {
        /// A file that was written by another program, or by a fault of ours.
        #[test]
        fn any_bytes_are_a_file_or_an_error(at in 0usize..300, byte: u8, cut in 0usize..300) {
            let mut bytes = whole();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(if cut < bytes.len() / 2 { bytes.len() - cut } else { bytes.len() });
            if let Ok(book) = book(bytes, 2) {
                for row in 0..2 {
                    let kind = &book.kinds[book.kind_of(row).0];
                    let _ = book.request(kind, row, true);
                }
            }
        }
    }
}

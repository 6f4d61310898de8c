//! Which replies are valid: status, header fields, body.
//!
//! A body is checked piece by piece as it arrives, however it was split, and nothing is kept of it.
//!
//! ```
//! use prony_engine::{account::Class, expect::Expect, spec::Expectation};
//!
//! let asked = Expectation { statuses: vec![(200, 204)], ..Expectation::default() };
//! let expect = Expect::new(&asked).unwrap();
//! assert_eq!(expect.judge(0, 404, None, &mut expect.seen()).class, Class::BadStatus(404));
//! ```

mod needle;

use crate::account::Class;
use crate::error::Error;
use crate::spec::Expectation;
use needle::{Needle, Search};
use sha2::{Digest, Sha256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a run expects of each reply.
#[derive(Debug, Clone)]
pub struct Expect {
    /// Those of the load, then those of each kind of a file.
    statuses: Vec<Vec<RangeInclusive<u16>>>,
    headers: Option<Arc<[ExpectedHeader]>>,
    body: Option<Vec<u8>>,
    needles: Vec<Needle>,
    sha256: Option<[u8; 32]>,
    whys: Whys,
}

/// A field that the head of a reply must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedHeader {
    name: String,
    /// Null: any.
    value: Option<String>,
}

/// What samples of failures say, made once: a failing reply allocates nothing.
#[derive(Debug, Clone)]
struct Whys {
    headers: Vec<Arc<str>>,
    body: Arc<str>,
    needles: Vec<Arc<str>>,
    sha256: Arc<str>,
}

/// What has been seen of a reply's body. One for each connection.
#[derive(Debug, Clone)]
pub struct Seen {
    bytes: usize,
    differs: bool,
    searches: Vec<Search>,
    hash: Option<Box<Sha256>>,
}

/// The class of a complete reply, and which check it failed; null where the class says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its end.
    pub class: Class,
    /// For a sample.
    pub why: Option<Arc<str>>,
}

impl ExpectedHeader {
    /// Whether a field is this one. Parameters may follow the value: `text/html` is `text/html; charset=utf-8` too.
    fn is(&self, name: &[u8], value: &[u8]) -> bool {
        let fits = |wanted: &String| match value.strip_prefix(wanted.as_bytes()) {
            Some(rest) => rest.is_empty() || rest.trim_ascii_start().starts_with(b";"),
            None => false,
        };
        name.eq_ignore_ascii_case(self.name.as_bytes()) && self.value.as_ref().is_none_or(fits)
    }
}

/// The number of the first expected field that a head does not have; null: it has all. A field may be repeated.
pub fn unmet_header(expected: &[ExpectedHeader], head: &[u8]) -> Option<u16> {
    let fields = || {
        head.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    };
    let unmet = |wanted: &ExpectedHeader| !fields().any(|(name, value)| wanted.is(name, value));
    expected.iter().position(unmet).map(|place| place as u16)
}

impl Expect {
    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub fn new(asked: &Expectation) -> Result<Self, Error> {
        let headers: Vec<ExpectedHeader> = asked
            .headers
            .iter()
            .map(|(name, value)| ExpectedHeader {
                name: name.clone(),
                value: value.clone(),
            })
            .collect();
        let needles = asked.decoded_needles()?;
        let own_status = asked.status.map(|status| status..=status);
        let ranges = asked.statuses.iter().map(|&(low, high)| low..=high);
        let mut statuses: Vec<_> = own_status.into_iter().chain(ranges).collect();
        if statuses.is_empty() {
            statuses.push(200..=399);
        }
        Ok(Self {
            statuses: vec![statuses],
            whys: Whys::of(&headers, &needles),
            headers: (!headers.is_empty()).then(|| headers.into()),
            body: asked.decoded_body()?,
            needles: needles.iter().map(|needle| Needle::new(needle)).collect(),
            sha256: asked.decoded_sha256()?,
        })
    }

    /// Beside the statuses of the load, further sets that requests name by number, from 1; one that is empty is that of the load.
    pub fn with_statuses<'s>(mut self, sets: impl Iterator<Item = &'s [(u16, u16)]>) -> Self {
        for set in sets {
            let own: Vec<_> = set.iter().map(|&(low, high)| low..=high).collect();
            let usual = &self.statuses[0];
            let next = if own.is_empty() { usual.clone() } else { own };
            self.statuses.push(next);
        }
        self
    }

    /// The fields that heads must have; null: any head will do.
    pub fn headers(&self) -> Option<Arc<[ExpectedHeader]>> {
        self.headers.clone()
    }

    /// Whether bodies are checked.
    pub fn looks_at_body(&self) -> bool {
        self.body.is_some() || self.sha256.is_some() || !self.needles.is_empty()
    }

    /// For a new connection.
    pub fn seen(&self) -> Seen {
        Seen {
            bytes: 0,
            differs: false,
            searches: vec![Search::default(); self.needles.len()],
            hash: self.sha256.map(|_| Box::default()),
        }
    }

    /// Takes a piece of the body.
    pub fn see(&self, seen: &mut Seen, piece: &[u8]) {
        if let Some(body) = &self.body {
            let place = body.get(seen.bytes..seen.bytes + piece.len());
            seen.differs |= place != Some(piece);
            seen.bytes += piece.len();
        }
        for (needle, search) in self.needles.iter().zip(&mut seen.searches) {
            needle.search(search, piece);
        }
        if let Some(hash) = &mut seen.hash {
            hash.update(piece);
        }
    }

    /// The verdict on a complete reply; `asked`: which set of statuses its request has; `unmet`: the expected field that its head does not have.
    pub fn judge(&self, asked: usize, status: u16, unmet: Option<u16>, seen: &mut Seen) -> Verdict {
        if !self.statuses[asked].iter().any(|range| range.contains(&status)) {
            return Verdict {
                class: Class::BadStatus(status),
                why: None,
            };
        }
        match self.failed_check(unmet, seen) {
            Some(why) => Verdict {
                class: Class::FailedValidation,
                why: Some(Arc::clone(why)),
            },
            None => Verdict {
                class: Class::Ok,
                why: None,
            },
        }
    }

    fn failed_check(&self, unmet: Option<u16>, seen: &mut Seen) -> Option<&Arc<str>> {
        if let Some(place) = unmet {
            return self.whys.headers.get(usize::from(place));
        }
        if let Some(body) = &self.body {
            if seen.differs || seen.bytes != body.len() {
                return Some(&self.whys.body);
            }
        }
        if let Some(place) = seen.searches.iter().position(|search| !search.is_found()) {
            return self.whys.needles.get(place);
        }
        let hash = seen.hash.as_mut().map(|hash| hash.finalize_reset());
        let differs = hash.is_some_and(|hash| self.sha256.is_some_and(|wanted| hash.as_slice() != wanted));
        differs.then_some(&self.whys.sha256)
    }
}

impl Seen {
    /// Forgets the last reply; allocates nothing.
    pub fn reset(&mut self) {
        self.bytes = 0;
        self.differs = false;
        self.searches.fill(Search::default());
        if let Some(hash) = &mut self.hash {
            Digest::reset(hash.as_mut());
        }
    }
}

// Long enough to be recognised; a sample is one line.
const SHOWN_BYTES: usize = 60;

impl Whys {
    fn of(headers: &[ExpectedHeader], needles: &[Vec<u8>]) -> Self {
        let header = |one: &ExpectedHeader| match &one.value {
            Some(value) => format!("no header `{}: {value}`", one.name).into(),
            None => format!("no header `{}`", one.name).into(),
        };
        let needle = |one: &Vec<u8>| {
            let shown = one[..one.len().min(SHOWN_BYTES)].escape_ascii();
            format!("a body without `{shown}`").into()
        };
        Self {
            headers: headers.iter().map(header).collect(),
            body: "another body than expected".into(),
            needles: needles.iter().map(needle).collect(),
            sha256: "a body with another SHA-256".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use base64::Engine as _;
    use proptest::prelude::*;

    fn of_body(body: &str) -> Expect {
        expecting(Expectation {
            body: Some(STANDARD.encode(body)),
            ..Expectation::default()
        })
    }

    fn of_needles(needles: &[&[u8]]) -> Expect {
        expecting(Expectation {
            body_contains: needles.iter().map(|needle| STANDARD.encode(needle)).collect(),
            ..Expectation::default()
        })
    }

    fn expecting(asked: Expectation) -> Expect {
        Expect::new(&asked).unwrap()
    }

    fn of_statuses(statuses: &[(u16, u16)]) -> Expect {
        expecting(Expectation {
            statuses: statuses.to_vec(),
            ..Expectation::default()
        })
    }

    fn verdict(expect: &Expect, status: u16, pieces: &[&str]) -> Verdict {
        let mut seen = expect.seen();
        pieces
            .iter()
            .for_each(|piece| expect.see(&mut seen, piece.as_bytes()));
        expect.judge(0, status, None, &mut seen)
    }

    fn judged(expect: &Expect, status: u16, pieces: &[&str]) -> Class {
        verdict(expect, status, pieces).class
    }

    fn why(expect: &Expect, pieces: &[&str]) -> String {
        verdict(expect, 200, pieces).why.unwrap().to_string()
    }

    #[test]
    fn t29_an_error_status_is_no_success() {
        let any = expecting(Expectation::default());
        assert_eq!(judged(&any, 500, &[]), Class::BadStatus(500));
        assert_eq!(judged(&any, 302, &["x"]), Class::Ok);
        let own = expecting(Expectation {
            status: Some(404),
            ..Expectation::default()
        });
        assert_eq!(judged(&own, 404, &[]), Class::Ok);
        assert_eq!(judged(&own, 200, &[]), Class::BadStatus(200));
    }

    #[test]
    fn a_set_of_statuses_takes_each_of_its_ranges_and_no_other() {
        let set = of_statuses(&[(200, 200), (300, 399)]);
        for (status, fits) in [(200, true), (201, false), (304, true), (399, true), (400, false)] {
            assert_eq!(judged(&set, status, &[]) == Class::Ok, fits, "{status}");
        }
    }

    #[test]
    fn a_body_counts_only_when_it_is_the_same_to_the_byte() {
        let expect = of_body("hello");
        assert_eq!(judged(&expect, 200, &["he", "llo"]), Class::Ok);
        for wrong in [&["hell"][..], &["hello", "!"], &["jello"], &[]] {
            assert_eq!(judged(&expect, 200, wrong), Class::FailedValidation, "{wrong:?}");
        }
        assert_eq!(why(&expect, &["jello"]), "another body than expected");
    }

    #[test]
    fn each_of_several_texts_must_be_there_and_the_sample_names_the_missing_one() {
        let expect = of_needles(&[b"order", b"total\n"]);
        assert_eq!(judged(&expect, 200, &["an or", "der: tot", "al\n"]), Class::Ok);
        assert_eq!(why(&expect, &["an order"]), "a body without `total\\n`");
        assert_eq!(why(&expect, &[]), "a body without `order`");
    }

    #[test]
    fn a_hash_is_of_the_whole_body_however_it_came() {
        let expect = expecting(Expectation {
            body_sha256: Some("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".to_owned()),
            ..Expectation::default()
        });
        assert_eq!(judged(&expect, 200, &["he", "llo"]), Class::Ok);
        assert_eq!(why(&expect, &["hello!"]), "a body with another SHA-256");
    }

    #[test]
    fn what_one_reply_had_is_not_taken_for_the_next() {
        let asked = Expectation {
            body_contains: vec![STANDARD.encode("hello")],
            body_sha256: Some("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".to_owned()),
            body: Some(STANDARD.encode("hello")),
            ..Expectation::default()
        };
        let expect = expecting(asked);
        let mut seen = expect.seen();
        for body in ["hello", "hell", "hello", "o", "hello"] {
            seen.reset();
            expect.see(&mut seen, body.as_bytes());
            let class = expect.judge(0, 200, None, &mut seen).class;
            assert_eq!(class == Class::Ok, body == "hello", "{body}");
        }
    }

    #[test]
    fn a_head_must_have_each_expected_field() {
        let asked = Expectation {
            headers: vec![
                ("content-type".to_owned(), Some("text/html".to_owned())),
                ("ETag".to_owned(), None),
            ],
            ..Expectation::default()
        };
        let expect = expecting(asked);
        let headers = expect.headers().unwrap();
        let cases = [
            ("Content-Type: text/html\r\nETag: 1\r\n", None),
            ("etag:\r\nCONTENT-TYPE:text/html ; charset=utf-8\r\n", None),
            (
                "X: y\r\nContent-Type: a\r\nContent-Type: text/html\nETag: 1\r\n",
                None,
            ),
            ("Content-Type: text/html5\r\nETag: 1\r\n", Some(0)),
            ("Content-Type: Text/HTML\r\nETag: 1\r\n", Some(0)),
            ("X-Content-Type: text/html\r\n", Some(0)),
            ("Content-Type: text/html\r\n", Some(1)),
        ];
        for (fields, unmet) in cases {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            assert_eq!(unmet_header(&headers, head.as_bytes()), unmet, "{fields}");
        }
        let sample = |place| expect.judge(0, 200, Some(place), &mut expect.seen()).why.unwrap();
        assert_eq!(&*sample(0), "no header `content-type: text/html`");
        assert_eq!(&*sample(1), "no header `ETag`");
    }

    proptest! {
        /// Few letters, so that beginnings of the text abound.
        #[test]
        fn a_text_is_found_exactly_when_it_is_there_however_the_body_is_split(
            needle in "[ab]{1,6}", body in "[ab]{0,40}", cuts in proptest::collection::vec(0usize..41, 0..8)
        ) {
            let expect = of_needles(&[needle.as_bytes()]);
            let mut places: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            places.extend([0, body.len()]);
            places.sort_unstable();
            let pieces: Vec<&str> = places.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
            prop_assert_eq!(judged(&expect, 200, &pieces) == Class::Ok, body.contains(&needle));
        }
    }
}

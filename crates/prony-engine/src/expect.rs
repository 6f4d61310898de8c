//! Which replies are valid.

use crate::account::Class;

/// The expectation of a run: a status, and perhaps a body.
#[derive(Debug, Clone)]
pub struct Expect {
    status: Option<u16>,
    body: Option<Vec<u8>>,
}

/// How much of the expected body has been seen in a reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    bytes: usize,
    differs: bool,
}

impl Expect {
    /// Null status: 200 to 399. Null body: any.
    pub fn new(status: Option<u16>, body: Option<Vec<u8>>) -> Self {
        Self { status, body }
    }

    /// Compares a piece of the body with what is expected at its place.
    pub fn see(&self, seen: &mut Seen, piece: &[u8]) {
        if let Some(body) = &self.body {
            let place = body.get(seen.bytes..seen.bytes + piece.len());
            seen.differs |= place != Some(piece);
            seen.bytes += piece.len();
        }
    }

    /// The class of a complete reply.
    pub fn judge(&self, status: u16, seen: Seen) -> Class {
        let fits = self
            .status
            .map_or((200..400).contains(&status), |wanted| wanted == status);
        let whole = self
            .body
            .as_ref()
            .is_none_or(|body| !seen.differs && seen.bytes == body.len());
        match (fits, whole) {
            (false, _) => Class::BadStatus(status),
            (true, false) => Class::FailedValidation,
            (true, true) => Class::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(expect: &Expect, status: u16, pieces: &[&str]) -> Class {
        let mut seen = Seen::default();
        pieces
            .iter()
            .for_each(|piece| expect.see(&mut seen, piece.as_bytes()));
        expect.judge(status, seen)
    }

    #[test]
    fn t29_an_error_status_is_no_success() {
        let any = Expect::new(None, None);
        assert_eq!(judged(&any, 500, &[]), Class::BadStatus(500));
        assert_eq!(judged(&any, 302, &["x"]), Class::Ok);
        assert_eq!(judged(&Expect::new(Some(404), None), 404, &[]), Class::Ok);
        assert_eq!(
            judged(&Expect::new(Some(404), None), 200, &[]),
            Class::BadStatus(200)
        );
    }

    #[test]
    fn a_body_counts_only_when_it_is_the_same_to_the_byte() {
        let expect = Expect::new(None, Some(b"hello".to_vec()));
        assert_eq!(judged(&expect, 200, &["he", "llo"]), Class::Ok);
        for wrong in [&["hell"][..], &["hello", "!"], &["jello"], &[]] {
            assert_eq!(judged(&expect, 200, wrong), Class::FailedValidation, "{wrong:?}");
        }
    }
}

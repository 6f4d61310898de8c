//! uwsgi, the protocol of the server uWSGI: the variables in one packet, the body behind it, a connection for each request.
//!
//! *Source*: The uwsgi Protocol, in uWSGI's documentation.

use super::cgi::{self, Variables};
use super::http1::ReplyReader;
use super::{is_idempotent, scgi, Protocol, Rendered, Same};
use crate::error::Error;
use crate::spec::{Request, Target, Wire};

/// uwsgi with one request.
#[derive(Debug, Clone)]
pub struct Uwsgi {
    request: Vec<u8>,
    is_head: bool,
    is_idempotent: bool,
}

impl Uwsgi {
    /// Renders the request. `modifier1` names the plugin that is asked: 0 for WSGI, 5 for PSGI.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for what CGI cannot express, and for variables of 64 KiB or more.
    pub fn new(
        request: &Request,
        body: Option<&[u8]>,
        target: &Target,
        modifier1: u8,
    ) -> Result<Self, Error> {
        let variables = cgi::variables(request, body, target)?;
        Ok(Self {
            request: render(&variables, body.unwrap_or_default(), modifier1)?,
            is_head: request.method == "HEAD",
            is_idempotent: is_idempotent(&request.method),
        })
    }
}

impl Protocol for Uwsgi {
    type Reader = ReplyReader;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&self, _: Same) -> &[u8] {
        &self.request
    }

    fn reader(&self) -> ReplyReader {
        scgi::reader(self.is_head)
    }

    fn is_idempotent(&self, _: Same) -> bool {
        self.is_idempotent
    }

    fn keeps_alive(&self, _: Same) -> bool {
        false
    }
}

impl Rendered for Uwsgi {
    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        let modifier1 = match target.wire {
            Wire::Uwsgi { modifier1 } => modifier1,
            _ => 0,
        };
        Self::new(request, body, target, modifier1)
    }

    fn new_reader(_: &Target) -> ReplyReader {
        scgi::reader(false)
    }
}

fn render(variables: &Variables, body: &[u8], modifier1: u8) -> Result<Vec<u8>, Error> {
    let mut block = Vec::new();
    for text in variables
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), value])
    {
        block.extend_from_slice(&length(text)?);
        block.extend_from_slice(text);
    }
    let [low, high] = length(&block)?;
    Ok([&[modifier1, low, high, 0], block.as_slice(), body].concat())
}

fn length(text: &[u8]) -> Result<[u8; 2], Error> {
    let too_long = |_| {
        Error::InvalidSpec(format!(
            "`workload.request` has {} bytes of path and headers; expected less than 64 KiB with uwsgi",
            text.len()
        ))
    };
    u16::try_from(text.len()).map(u16::to_le_bytes).map_err(too_long)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::cgi::tests::{request, target};
    use super::*;

    #[test]
    fn lengths_are_little_endian_and_the_body_follows_the_packet() {
        let variables = vec![
            ("REQUEST_METHOD".to_owned(), b"GET".to_vec()),
            ("SCRIPT_NAME".to_owned(), vec![]),
            ("X".to_owned(), vec![b'x'; 300]),
        ];
        let expected = [
            &b"\x05\x55\x01\x00"[..],
            b"\x0e\x00REQUEST_METHOD\x03\x00GET\x0b\x00SCRIPT_NAME\x00\x00\x01\x00X\x2c\x01",
            &[b'x'; 300],
            b"body",
        ];
        assert_eq!(render(&variables, b"body", 5).unwrap(), expected.concat());
    }

    #[test]
    fn variables_of_64_kib_are_refused() {
        // Each of a length that fits, not so both; and one that does not.
        let (half, whole) = ("x".repeat(40_000), "x".repeat(70_000));
        for headers in [&[("a", half.as_str()), ("b", &half)][..], &[("a", &whole)]] {
            let error = Uwsgi::new(&request("GET", "/", headers), None, &target(), 0).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("expected less than 64 KiB with uwsgi"), "{said}");
        }
    }

    #[test]
    fn a_request_is_of_one_connection() {
        let uwsgi = Uwsgi::new(&request("GET", "/", &[]), None, &target(), 0).unwrap();
        assert_eq!(uwsgi.request[0], 0);
        assert!(!uwsgi.keeps_alive(Same) && uwsgi.is_idempotent(Same));
    }
}

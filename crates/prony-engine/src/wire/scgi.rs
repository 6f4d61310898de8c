//! SCGI: the variables in one netstring, the body behind it, a connection for each request.
//!
//! *Source*: Neil Schemenauer, SCGI: A Simple Common Gateway Interface alternative, 2008.

use super::cgi::{self, Variables};
use super::http1::{Grammar, ReplyReader};
use super::{is_idempotent, Protocol, Rendered, Same};
use crate::error::Error;
use crate::spec::{Request, Target};

/// SCGI with one request.
#[derive(Debug, Clone)]
pub struct Scgi {
    request: Vec<u8>,
    is_head: bool,
    is_idempotent: bool,
}

impl Scgi {
    /// Renders the request.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for what CGI cannot express.
    pub fn new(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        let variables = cgi::variables(request, body, target)?;
        Ok(Self {
            request: render(variables, body.unwrap_or_default()),
            is_head: request.method == "HEAD",
            is_idempotent: is_idempotent(&request.method),
        })
    }
}

impl Protocol for Scgi {
    type Reader = ReplyReader;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&self, _: Same) -> &[u8] {
        &self.request
    }

    fn reader(&self) -> ReplyReader {
        reader(self.is_head)
    }

    fn is_idempotent(&self, _: Same) -> bool {
        self.is_idempotent
    }

    fn keeps_alive(&self, _: Same) -> bool {
        false
    }
}

impl Rendered for Scgi {
    fn rendered(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Self, Error> {
        Self::new(request, body, target)
    }

    fn new_reader(_: &Target) -> ReplyReader {
        reader(false)
    }
}

/// A reply is complete with its `Content-Length`, as gateways see it, or else with the close.
pub fn reader(is_head_request: bool) -> ReplyReader {
    ReplyReader::of(Grammar::HttpOrCgi, is_head_request)
}

/// The length comes first, whether there is a body or not.
fn render(mut variables: Variables, body: &[u8]) -> Vec<u8> {
    let given = variables.iter().position(|(name, _)| name == "CONTENT_LENGTH");
    let length = given.map_or_else(|| b"0".to_vec(), |place| variables.remove(place).1);
    let first = [
        ("CONTENT_LENGTH".to_owned(), length),
        ("SCGI".to_owned(), b"1".to_vec()),
    ];
    let mut headers = Vec::new();
    for (name, value) in first.into_iter().chain(variables) {
        for part in [name.as_bytes(), b"\0", &value, b"\0"] {
            headers.extend_from_slice(part);
        }
    }
    [format!("{}:", headers.len()).as_bytes(), &headers, b",", body].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::cgi::tests::{request, target};
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_request_is_written_as_the_specification_shows_it() {
        let variables = [
            ("REQUEST_METHOD", "POST"),
            ("CONTENT_LENGTH", "27"),
            ("REQUEST_URI", "/deepthought"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let expected =
            b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0REQUEST_METHOD\0POST\0REQUEST_URI\0/deepthought\0,\
            What is the answer to life?";
        assert_eq!(
            render(variables.to_vec(), b"What is the answer to life?"),
            expected
        );
    }

    #[test]
    fn a_request_without_a_body_has_the_length_0_and_is_of_one_connection() {
        let scgi = Scgi::new(&request("GET", "/", &[]), None, &target()).unwrap();
        let (length, headers) = scgi.request.split_at(4);
        assert_eq!(length, format!("{}:", headers.len() - 1).as_bytes());
        assert!(headers.starts_with(b"CONTENT_LENGTH\x000\0SCGI\x001\0REQUEST_METHOD\0GET\0SCRIPT_NAME\0\0"));
        assert!(!scgi.keeps_alive(Same));
    }
}

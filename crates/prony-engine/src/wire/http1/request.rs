//! The request, rendered once and sent many times.

use crate::spec::typed;
use crate::spec::{HttpVersion, Request};
use std::borrow::Cow;

pub(in crate::wire) const USER_AGENT: &str = concat!("prony/", env!("CARGO_PKG_VERSION"));

/// The bytes of a request. The headers are sent as they stand; where absent (case-insensitively) are added
/// `Host: default_host`, `User-Agent`, `Accept: */*`, `Connection` where the version alone would mean the opposite of
/// `keep_alive` (RFC 9112 section 9.3), and `Content-Length`.
///
/// The length is that of the body. Without a body it is 0 for POST, PUT and PATCH (RFC 9110 section 8.6: there a
/// length is expected) and not sent for other methods; beside a `Transfer-Encoding` it must not be sent
/// (RFC 9112 section 6.2), whose last coding is `chunked`: so the body is sent.
///
/// Assumptions: neither the method, the path nor a header holds a line end; that is for the reader of the
/// specification to refuse.
pub fn render_request(
    version: HttpVersion,
    request: &Request,
    body: Option<&[u8]>,
    default_host: &str,
) -> Vec<u8> {
    let (method, path) = (&request.method, &request.path);
    let has_te = typed::has_te(&request.headers);
    let connection = match (version, request.keep_alive) {
        (HttpVersion::V1_1, false) if has_te => Some("close, TE"),
        (HttpVersion::V1_1, false) => Some("close"),
        (HttpVersion::V1_0, true) => Some("keep-alive"),
        _ => has_te.then_some("TE"),
    };
    let mut bytes = format!("{method} {path} {}\r\n", version.name()).into_bytes();
    for (name, value) in whole_headers(method, &request.headers, body, connection, default_host) {
        for part in [name, ": ", &value, "\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    bytes.extend_from_slice(b"\r\n");
    let body = body.unwrap_or_default();
    if typed::is_chunked(&request.headers) {
        bytes.extend(in_chunks(body));
    } else {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// One chunk, and the last, which is empty (RFC 9112 section 7.1).
fn in_chunks(body: &[u8]) -> Vec<u8> {
    const LAST: &[u8] = b"0\r\n\r\n";
    match body.len() {
        0 => LAST.to_vec(),
        length => [format!("{length:x}\r\n").as_bytes(), body, b"\r\n", LAST].concat(),
    }
}

/// The defaults that are absent, then the given headers.
pub(in crate::wire) fn whole_headers<'r>(
    method: &str,
    headers: &'r [(String, String)],
    body: Option<&[u8]>,
    connection: Option<&'r str>,
    default_host: &'r str,
) -> Vec<(&'r str, Cow<'r, str>)> {
    let length = content_length(method, headers, body).map(|length| Cow::Owned(length.to_string()));
    let defaults = [
        ("Host", Some(Cow::Borrowed(default_host))),
        ("User-Agent", Some(Cow::Borrowed(USER_AGENT))),
        ("Accept", Some(Cow::Borrowed("*/*"))),
        ("Connection", connection.map(Cow::Borrowed)),
        ("Content-Length", length),
    ];
    let absent = defaults.into_iter().filter(|(name, _)| !contains(headers, name));
    let given = headers
        .iter()
        .map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())));
    absent
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .chain(given)
        .collect()
}

fn content_length(method: &str, headers: &[(String, String)], body: Option<&[u8]>) -> Option<usize> {
    if contains(headers, "Transfer-Encoding") {
        return None;
    }
    match body {
        Some(body) => Some(body.len()),
        None => matches!(method, "POST" | "PUT" | "PATCH").then_some(0),
    }
}

fn contains(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::cgi::tests::request;
    use super::*;

    fn render(method: &str, headers: &[(&str, &str)], body: Option<&[u8]>, keep_alive: bool) -> String {
        render_as(HttpVersion::V1_1, method, headers, body, keep_alive)
    }

    fn render_as(
        version: HttpVersion,
        method: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        keep_alive: bool,
    ) -> String {
        let plain = request(method, "/p?q", headers);
        let request = Request { keep_alive, ..plain };
        String::from_utf8(render_request(version, &request, body, "h:80")).unwrap()
    }

    #[test]
    fn a_plain_get_has_the_defaults_and_no_length() {
        let agent = env!("CARGO_PKG_VERSION");
        let expected =
            format!("GET /p?q HTTP/1.1\r\nHost: h:80\r\nUser-Agent: prony/{agent}\r\nAccept: */*\r\n\r\n");
        assert_eq!(render("GET", &[], None, true), expected);
    }

    #[test]
    fn given_headers_stand_whatever_their_case() {
        let given = [
            ("hOST", "a"),
            ("user-agent", "b"),
            ("ACCEPT", "c"),
            ("content-length", "7"),
            ("x", ""),
        ];
        assert_eq!(
            render("POST", &given, Some(b"body"), true),
            "POST /p?q HTTP/1.1\r\nhOST: a\r\nuser-agent: b\r\nACCEPT: c\r\ncontent-length: 7\r\nx: \r\n\r\nbody"
        );
    }

    #[test]
    fn a_length_is_sent_for_a_body_and_for_methods_that_expect_one() {
        assert!(render("GET", &[], Some(b"12345"), true).ends_with("Content-Length: 5\r\n\r\n12345"));
        assert!(render("GET", &[], Some(b""), true).contains("Content-Length: 0\r\n"));
        for method in ["POST", "PUT", "PATCH"] {
            assert!(render(method, &[], None, true).ends_with("Content-Length: 0\r\n\r\n"));
        }
        for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
            assert!(!render(method, &[], None, true).contains("Content-Length"));
        }
    }

    #[test]
    fn a_body_that_is_to_be_sent_in_chunks_is_and_has_no_length() {
        let request = render(
            "POST",
            &[("transfer-encoding", "Chunked")],
            Some(b"hello, hello, hello"),
            true,
        );
        assert!(!request.contains("Content-Length"));
        assert!(request.ends_with("transfer-encoding: Chunked\r\n\r\n13\r\nhello, hello, hello\r\n0\r\n\r\n"));
        let empty = render("POST", &[("Transfer-Encoding", "gzip, chunked")], None, true);
        assert!(empty.ends_with("gzip, chunked\r\n\r\n0\r\n\r\n"));
    }

    #[test]
    fn connection_close_is_added_unless_kept_alive_or_given() {
        assert!(render("GET", &[], None, false).contains("Connection: close\r\n"));
        assert!(!render("GET", &[], None, true).contains("Connection"));
        let given = render("GET", &[("connection", "upgrade")], None, false);
        assert!(!given.contains("close"));
    }

    #[test]
    fn http_1_0_closes_unless_it_says_otherwise() {
        let old = |headers: &[(&str, &str)], keep_alive| {
            render_as(HttpVersion::V1_0, "GET", headers, None, keep_alive)
        };
        assert!(old(&[], false).starts_with("GET /p?q HTTP/1.0\r\nHost: h:80\r\n"));
        assert!(!old(&[], false).contains("Connection"));
        assert!(old(&[], true).contains("Connection: keep-alive\r\n"));
        assert!(!old(&[("connection", "x")], true).contains("keep-alive"));
    }
}

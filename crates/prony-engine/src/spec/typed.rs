//! What a typed header means beside the settings of a request: each is settled here, and `docs/guides/load.md` has the table.

use super::{HttpVersion, Request, Wire};
use crate::error::Error;

type Headers = [(String, String)];

/// Whether a connection goes on after the reply: uwsgi and SCGI have one for each request, and a typed `Connection: close` ends it where
/// that is a word of the wire's own.
pub(crate) fn keeps_alive(request: &Request, wire: Wire) -> bool {
    let ends = match wire {
        Wire::Http { .. } => has(&request.headers, "connection", "close"),
        Wire::Uwsgi { .. } | Wire::Scgi {} => true,
        Wire::Fastcgi {} | Wire::Http2 { .. } => false,
    };
    request.keep_alive && !ends
}

/// Whether bodies are sent in chunks.
pub(crate) fn is_chunked(headers: &Headers) -> bool {
    has(headers, "transfer-encoding", "chunked")
}

/// Whether `TE` was typed, which `Connection` must name then (RFC 9110 section 10.1.4).
pub(crate) fn has_te(headers: &Headers) -> bool {
    values(headers, "te").next().is_some()
}

/// Refuses what contradicts a setting, or what the engine does not do.
///
/// # Errors
/// [`Error::InvalidSpec`] with the header, and what was expected.
pub(crate) fn check(request: &Request, body_bytes: usize, wire: Wire) -> Result<(), Error> {
    let headers = &request.headers;
    refuse(headers, "expect", "none of that name: the body is sent at once")?;
    refuse(
        headers,
        "upgrade",
        "none of that name: the protocol stays as it is",
    )?;
    once(headers, "host")?;
    check_length(headers, body_bytes)?;
    match wire {
        Wire::Http { version } => {
            check_coding(headers, version)?;
            check_connection(request)?;
            check_te(headers)
        }
        Wire::Http2 { .. } => check_te(headers),
        // HTTP/2 and CGI have a word of their own for what they do not have.
        _ => Ok(()),
    }
}

fn check_length(headers: &Headers, body_bytes: usize) -> Result<(), Error> {
    once(headers, "content-length")?;
    let Some(value) = values(headers, "content-length").next() else {
        return Ok(());
    };
    let digits = value.trim();
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse() == Ok(body_bytes) {
        return Ok(());
    }
    let expected = format!("{body_bytes}, or none of that name: so long is the body");
    Err(refusal("content-length", value, &expected))
}

/// Without `chunked` in the end, nobody could know where the body ends (RFC 9112 section 6.1).
fn check_coding(headers: &Headers, version: HttpVersion) -> Result<(), Error> {
    let codings: Vec<&str> = elements(headers, "transfer-encoding").collect();
    let Some(value) = values(headers, "transfer-encoding").next() else {
        return Ok(());
    };
    if version == HttpVersion::V1_0 {
        let expected = "none of that name with HTTP/1.0";
        return Err(refusal("transfer-encoding", value, expected));
    }
    let chunked = codings.iter().filter(|one| one.eq_ignore_ascii_case("chunked"));
    let is_last = codings
        .last()
        .is_some_and(|last| last.eq_ignore_ascii_case("chunked"));
    if chunked.count() != 1 || !is_last {
        return Err(refusal("transfer-encoding", value, "`chunked` once, in the end"));
    }
    refuse(
        headers,
        "content-length",
        "none of that name beside Transfer-Encoding",
    )
}

/// A server may send in the codings that it is asked for (RFC 9110 section 10.1.4), and no other than `chunked` is read.
fn check_te(headers: &Headers) -> Result<(), Error> {
    let other = values(headers, "te").find(|value| !value.trim().eq_ignore_ascii_case("trailers"));
    other.map_or(Ok(()), |value| {
        Err(refusal("te", value, "`trailers`: no other coding is read"))
    })
}

fn check_connection(request: &Request) -> Result<(), Error> {
    let headers = &request.headers;
    let keeps = has(headers, "connection", "keep-alive");
    if keeps && has(headers, "connection", "close") {
        return Err(refusal("connection", "close, keep-alive", "one of both"));
    }
    if keeps && !request.keep_alive {
        let expected = "`close`, or none of that name: connections are not to be kept";
        return Err(refusal("connection", "keep-alive", expected));
    }
    Ok(())
}

fn values<'h>(headers: &'h Headers, name: &'h str) -> impl Iterator<Item = &'h str> {
    let of_name = headers
        .iter()
        .filter(|(given, _)| given.eq_ignore_ascii_case(name));
    of_name.map(|(_, value)| value.as_str())
}

fn elements<'h>(headers: &'h Headers, name: &'h str) -> impl Iterator<Item = &'h str> {
    let split = values(headers, name).flat_map(|value| value.split(','));
    split.map(str::trim).filter(|element| !element.is_empty())
}

fn has(headers: &Headers, name: &str, element: &str) -> bool {
    elements(headers, name).any(|one| one.eq_ignore_ascii_case(element))
}

fn once(headers: &Headers, name: &str) -> Result<(), Error> {
    let second = values(headers, name).nth(1);
    second.map_or(Ok(()), |value| Err(refusal(name, value, "one of that name")))
}

fn refuse(headers: &Headers, name: &str, expected: &str) -> Result<(), Error> {
    let first = values(headers, name).next();
    first.map_or(Ok(()), |value| Err(refusal(name, value, expected)))
}

fn refusal(name: &str, value: &str, expected: &str) -> Error {
    Error::InvalidSpec(format!(
        "`workload.request.headers` has `{name}: {value}`; expected {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::cgi::tests::request;

    const USUAL: Wire = Wire::Http {
        version: HttpVersion::V1_1,
    };

    /// Why a request of five bytes with these headers is refused; nothing: it is not.
    fn why(headers: &[(&str, &str)], keep_alive: bool) -> String {
        let request = Request {
            keep_alive,
            ..request("POST", "/", headers)
        };
        check(&request, 5, USUAL).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_header_that_contradicts_another_or_a_setting_is_refused_with_what_was_expected() {
        for (headers, expected) in [
            (&[("Expect", "100-continue")][..], "the body is sent at once"),
            (&[("upgrade", "h2c")], "the protocol stays as it is"),
            (&[("Host", "a"), ("host", "b")], "one of that name"),
            (&[("content-length", "4")], "expected 5, or none"),
            (&[("Content-Length", "5, 5")], "expected 5, or none"),
            (&[("Content-Length", "+5")], "expected 5, or none"),
            (&[("Content-Length", "")], "expected 5, or none"),
            (&[("Transfer-Encoding", "gzip")], "`chunked` once, in the end"),
            (&[("Transfer-Encoding", " , ")], "`chunked` once, in the end"),
            (
                &[("Transfer-Encoding", "chunked, gzip")],
                "`chunked` once, in the end",
            ),
            (
                &[("transfer-encoding", "chunked"), ("TRANSFER-ENCODING", "chunked")],
                "`chunked` once, in the end",
            ),
            (
                &[("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
                "none of that name beside",
            ),
            (&[("Connection", "Keep-Alive, close")], "one of both"),
            (&[("TE", "trailers, deflate;q=0.5")], "no other coding is read"),
        ] {
            assert!(
                why(headers, true).contains(expected),
                "{headers:?}: {}",
                why(headers, true)
            );
        }
        let kept = why(&[("connection", "Keep-Alive")], false);
        assert!(kept.contains("not to be kept"), "{kept}");
    }

    #[test]
    fn what_fits_stands() {
        for headers in [
            &[("Connection", "close")][..],
            &[("CONNECTION", "x, Keep-Alive")],
            &[("Transfer-Encoding", "gzip, Chunked")],
            &[("Content-Length", " 5 ")],
            &[
                ("TE", "trailers"),
                ("Host", "h"),
                ("Upgrade-Insecure-Requests", "1"),
            ],
        ] {
            assert_eq!(why(headers, true), "", "{headers:?}");
        }
    }

    #[test]
    fn a_connection_is_closed_by_any_of_its_elements_whatever_their_case() {
        for (wire, value, keeps) in [
            (USUAL, "close", false),
            (USUAL, "TE,  Close", false),
            (USUAL, "closed", true),
            (USUAL, "keep-alive", true),
            (Wire::Fastcgi {}, "close", true),
            (Wire::Uwsgi { modifier1: 0 }, "keep-alive", false),
            (Wire::Scgi {}, "keep-alive", false),
        ] {
            let asked = request("GET", "/", &[("cOnnection", value)]);
            assert_eq!(keeps_alive(&asked, wire), keeps, "{wire:?} {value}");
        }
    }
}

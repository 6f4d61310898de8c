//! A request as the variables of CGI (RFC 3875 section 4.1), which FastCGI, uwsgi and SCGI frame each in its own way.

use super::http1::{whole_headers, USER_AGENT};
use crate::error::Error;
use crate::spec::{Request, Target};

/// Names and values, in the order in which they are sent.
pub(super) type Variables = Vec<(String, Vec<u8>)>;

/// The variables of a request. The headers that HTTP/1.1 would carry are among them, defaults included, but for
/// `Connection`, which is HTTP's own. The whole path is `PATH_INFO`: the application is at the root.
///
/// # Errors
/// [`Error::InvalidSpec`] for what no variable can express: a transfer coding, a NUL in the path.
pub(super) fn variables(request: &Request, body: Option<&[u8]>, target: &Target) -> Result<Variables, Error> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path = percent_decoded(path);
    if path.contains(&0) {
        return Err(Error::InvalidSpec(format!(
            "`workload.request.path` is `{}`; expected no `%00`: variables of CGI end there",
            request.path
        )));
    }
    let (name, port) = target.server();
    let mut variables: Variables = [
        ("REQUEST_METHOD", request.method.as_bytes()),
        ("SCRIPT_NAME", b""),
        ("PATH_INFO", &path),
        ("QUERY_STRING", query.as_bytes()),
        ("REQUEST_URI", request.path.as_bytes()),
        ("SERVER_NAME", name.as_bytes()),
        ("SERVER_PORT", port.to_string().as_bytes()),
        ("SERVER_PROTOCOL", b"HTTP/1.1"),
        ("SERVER_SOFTWARE", USER_AGENT.as_bytes()),
        ("REMOTE_ADDR", b"127.0.0.1"),
        ("GATEWAY_INTERFACE", b"CGI/1.1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_vec()))
    .to_vec();
    let host = target.authority();
    for (name, value) in whole_headers(&request.method, &request.headers, body, None, &host) {
        add_header(&mut variables, name, value.as_bytes())?;
    }
    Ok(variables)
}

/// A repeated header is one list (RFC 3875 section 4.1.18); cookies have a separator of their own.
fn add_header(variables: &mut Variables, header: &str, value: &[u8]) -> Result<(), Error> {
    let name = header.to_ascii_uppercase().replace('-', "_");
    let (name, separator) = match name.as_str() {
        "TRANSFER_ENCODING" => {
            return Err(Error::InvalidSpec(format!(
                "`workload.request.headers` has `{header}`; expected none: CGI knows a Content-Length only"
            )))
        }
        "CONTENT_LENGTH" if header.contains('_') => {
            return Err(Error::InvalidSpec(format!(
                "`workload.request.headers` has `{header}`; expected none: in CGI that is the Content-Length"
            )))
        }
        "CONTENT_LENGTH" | "CONTENT_TYPE" => (name, ", "),
        "COOKIE" => (format!("HTTP_{name}"), "; "),
        _ => (format!("HTTP_{name}"), ", "),
    };
    match variables.iter_mut().find(|(known, _)| *known == name) {
        Some((_, list)) => list.extend_from_slice(&[separator.as_bytes(), value].concat()),
        None => variables.push((name, value.to_vec())),
    }
    Ok(())
}

/// `PATH_INFO` is not encoded; what is no escape stands for itself.
fn percent_decoded(path: &str) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let [byte, after @ ..] = rest {
        let escape = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                decoded.push((high << 4) | low);
                rest = &rest[3..];
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    // At most 15.
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::spec::{Socket, Wire};

    pub fn target() -> Target {
        Target {
            host: "::1".to_owned(),
            others: Vec::new(),
            port: 8000,
            socket: Socket::Tcp,
            wire: Wire::default(),
            tls: None,
            proxy: None,
        }
    }

    pub fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: None,
            keep_alive: true,
        }
    }

    fn texts(request: &Request, body: Option<&[u8]>) -> Vec<(String, String)> {
        let text = |value| String::from_utf8(value).unwrap();
        let variables = variables(request, body, &target()).unwrap();
        variables
            .into_iter()
            .map(|(name, value)| (name, text(value)))
            .collect()
    }

    fn value(variables: &[(String, String)], name: &str) -> Option<String> {
        let found: Vec<_> = variables.iter().filter(|(known, _)| known == name).collect();
        assert!(found.len() <= 1, "{name} is there twice");
        found.first().map(|(_, value)| value.clone())
    }

    #[test]
    fn a_plain_request_has_the_variables_of_cgi() {
        let variables = texts(&request("GET", "/a%20b%2?q=%20&r", &[]), None);
        let expected = [
            ("REQUEST_METHOD", "GET"),
            ("SCRIPT_NAME", ""),
            ("PATH_INFO", "/a b%2"),
            ("QUERY_STRING", "q=%20&r"),
            ("REQUEST_URI", "/a%20b%2?q=%20&r"),
            ("SERVER_NAME", "[::1]"),
            ("SERVER_PORT", "8000"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_SOFTWARE", USER_AGENT),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("HTTP_HOST", "[::1]:8000"),
            ("HTTP_USER_AGENT", USER_AGENT),
            ("HTTP_ACCEPT", "*/*"),
        ];
        let owned = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, owned);
    }

    #[test]
    fn headers_are_variables_and_a_repeated_one_is_a_list() {
        let headers = [
            ("Content-type", "text/plain"),
            ("X-One", "1"),
            ("host", "h"),
            ("x-one", "2"),
            ("Cookie", "a=1"),
            ("cookie", "b=2"),
        ];
        let variables = texts(&request("POST", "/", &headers), Some(b"12345"));
        for (name, expected) in [
            ("CONTENT_LENGTH", "5"),
            ("CONTENT_TYPE", "text/plain"),
            ("HTTP_X_ONE", "1, 2"),
            ("HTTP_HOST", "h"),
            ("HTTP_COOKIE", "a=1; b=2"),
        ] {
            assert_eq!(value(&variables, name).as_deref(), Some(expected));
        }
        assert_eq!(value(&variables, "HTTP_CONTENT_TYPE"), None);
    }

    #[test]
    fn without_keep_alive_there_is_still_no_connection_header() {
        let closing = Request {
            keep_alive: false,
            ..request("GET", "/", &[])
        };
        assert_eq!(value(&texts(&closing, None), "HTTP_CONNECTION"), None);
    }

    #[test]
    fn what_no_variable_can_say_is_refused() {
        for (path, header, expected) in [
            (
                "/a%00b",
                "x",
                "`workload.request.path` is `/a%00b`; expected no `%00`",
            ),
            (
                "/",
                "Transfer-Encoding",
                "`workload.request.headers` has `Transfer-Encoding`; expected none",
            ),
            (
                "/",
                "content_length",
                "`workload.request.headers` has `content_length`; expected none",
            ),
        ] {
            let error =
                variables(&request("GET", path, &[(header, "chunked")]), None, &target()).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}

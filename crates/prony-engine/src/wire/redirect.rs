//! Where a redirect leads: the next request for the same server (RFC 9110 section 15.4, RFC 3986 section 5.2). Without I/O.
//!
//! A redirect to another host, scheme or port is never followed: whoever may load one server may not load another because that says so.

use crate::error::Error;
use crate::spec::requests::{Book, Kind};
use crate::spec::{Group, HttpVersion, Request, Spec, Target};
use crate::wire::http1::render_request;
use crate::wire::Asks;
use std::borrow::Cow;
use std::sync::Arc;

/// What a load needs to know to follow redirects.
#[derive(Debug, Clone)]
pub struct Redirects {
    most: u32,
    target: Target,
    version: HttpVersion,
    asked: Asked,
}

/// The requests of the load, as the users of one group send them.
#[derive(Debug, Clone)]
enum Asked {
    /// One of each path of the mix.
    Paths {
        requests: Vec<Request>,
        body: Option<Vec<u8>>,
    },
    /// Those of a file.
    Rows {
        book: Arc<Book>,
        kinds: Vec<Kind>,
        keep_alive: bool,
    },
}

impl Asked {
    /// A request as it was sent first, and its body.
    fn first(&self, one: impl Asks) -> (Cow<'_, Request>, Option<Cow<'_, [u8]>>) {
        match self {
            Self::Paths { requests, body } => (
                Cow::Borrowed(&requests[one.path()]),
                body.as_deref().map(Cow::Borrowed),
            ),
            Self::Rows {
                book,
                kinds,
                keep_alive,
            } => {
                let (row, kind) = one.row();
                let (request, body) = book.request(&kinds[kind], row, *keep_alive);
                (Cow::Owned(request), body.map(Cow::Owned))
            }
        }
    }
}

/// A request that a redirect led to.
#[derive(Debug)]
pub struct Hop {
    // How many redirects in a row there were.
    number: u32,
    request: Request,
    has_body: bool,
    bytes: Vec<u8>,
}

impl Hop {
    /// How many redirects in a row led here.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The request as it is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it asks the server to do.
    pub fn method(&self) -> &str {
        &self.request.method
    }
}

/// What a reply asks for.
#[derive(Debug)]
pub enum Next {
    /// Nothing: it is no redirect.
    Nothing,
    /// This request.
    Hop(Box<Hop>),
    /// What is not followed, for this reason.
    Refused(&'static str),
}

const ELSEWHERE: &str = "the redirect leads to another host, scheme or port, where it is not followed";
const NO_URL: &str = "the Location of the redirect is no URL";
const NO_LOCATION: &str = "the redirect has no Location within 4 KiB";
const TOO_MANY: &str = "one redirect more than are followed";

impl Redirects {
    /// Of the users of a group, by its place; null where none are followed.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for a body that is not base64.
    pub fn of(spec: &Spec, group: usize) -> Result<Option<Self>, Error> {
        if spec.workload.follow == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            most: spec.workload.follow,
            target: spec.target.clone(),
            version: spec.target.wire.version(),
            asked: Asked::Paths {
                requests: spec.requests_by_group().swap_remove(group),
                body: spec.request_body()?,
            },
        }))
    }

    /// With the requests of a file, as the users of a group send them.
    pub fn of_book(self, book: &Arc<Book>, group: Option<&Group>, keep_alive: bool) -> Self {
        let asked = Asked::Rows {
            book: Arc::clone(book),
            kinds: book.kinds_of(group),
            keep_alive,
        };
        Self { asked, ..self }
    }

    /// What follows a reply with this status and `Location` to a request, or to the last hop of it.
    pub fn next(&self, first: impl Asks, last: Option<&Hop>, status: u16, location: Option<&[u8]>) -> Next {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Next::Nothing;
        }
        let Some(location) = location else {
            return Next::Refused(NO_LOCATION);
        };
        let number = last.map_or(0, |hop| hop.number);
        if number >= self.most {
            return Next::Refused(TOO_MANY);
        }
        let (request, body) = self.asked.first(first);
        let asked = last.map_or(&*request, |hop| &hop.request);
        let body = body.as_deref().filter(|_| last.is_none_or(|hop| hop.has_body));
        match self.path_of(asked, location) {
            Ok(path) => Next::Hop(Box::new(self.hop(number + 1, asked, (status, path), body))),
            Err(why) => Next::Refused(why),
        }
    }

    fn hop(&self, number: u32, asked: &Request, (status, path): (u16, String), body: Option<&[u8]>) -> Hop {
        let method = method_after(status, &asked.method);
        let keeps_body = method == asked.method;
        let headers = asked.headers.iter();
        let kept = headers.filter(|(name, _)| keeps_body || !is_of_body(name));
        let request = Request {
            method: method.to_owned(),
            path,
            headers: kept.cloned().collect(),
            body: None,
            keep_alive: asked.keep_alive,
        };
        let body = body.filter(|_| keeps_body);
        let sent = self.target.asked(&request);
        let bytes = render_request(self.version, &sent, body, &self.target.authority());
        Hop {
            number,
            request,
            has_body: body.is_some(),
            bytes,
        }
    }

    /// The path that a `Location` means, which answers this request.
    fn path_of(&self, asked: &Request, location: &[u8]) -> Result<String, &'static str> {
        let text = encoded(location).ok_or(NO_URL)?;
        let text = text.split('#').next().unwrap_or_default();
        let scheme = if self.target.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let rest = match scheme_of(text) {
            Some(other) if !other.eq_ignore_ascii_case(scheme) => return Err(ELSEWHERE),
            Some(same) => &text[same.len() + 1..],
            None => text,
        };
        let Some(rest) = rest.strip_prefix("//") else {
            let is_relative = rest.len() == text.len();
            return is_relative.then(|| joined(&asked.path, text)).ok_or(NO_URL);
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if !is_same(authority, &self.authority_of(asked), scheme) {
            return Err(ELSEWHERE);
        }
        Ok(joined("/", if rest.is_empty() { "/" } else { rest }))
    }

    /// The server by the name that it was asked for by.
    fn authority_of(&self, asked: &Request) -> String {
        let typed = asked
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("host"));
        typed.map_or_else(|| self.target.authority(), |(_, value)| value.clone())
    }
}

/// RFC 9110 section 15.4: 303 is answered with GET, and of 301 and 302 every client makes one of POST.
fn method_after(status: u16, method: &str) -> &str {
    match (status, method) {
        (303, "HEAD") => "HEAD",
        (303, _) | (301 | 302, "POST") => "GET",
        _ => method,
    }
}

/// Fields that go with a body, and do not outlive it.
fn is_of_body(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("content-") || matches!(name.as_str(), "transfer-encoding" | "trailer" | "digest")
}

/// With what is not ASCII, and blanks, percent-encoded, as browsers do; null for control characters, which no URL has.
fn encoded(location: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(location.len());
    for &byte in location {
        match byte {
            0..b' ' | 0x7f => return None,
            b' ' | 0x80.. => text.push_str(&format!("%{byte:02X}")),
            _ => text.push(char::from(byte)),
        }
    }
    Some(text)
}

/// The scheme that a reference begins with; null: it is relative.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let begins = scheme
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic());
    (begins && scheme.bytes().all(is_name)).then_some(scheme)
}

/// Whether two authorities are one server: whatever the case, with the usual port or without one.
fn is_same(one: &str, other: &str, scheme: &str) -> bool {
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let bare = |text: &str| {
        let text = text.to_ascii_lowercase();
        let text = text.strip_suffix(usual).unwrap_or(&text);
        text.strip_suffix(':').unwrap_or(text).to_owned()
    };
    bare(one) == bare(other)
}

/// A relative reference, resolved against the path, with its query, of the request that was answered (RFC 3986 section 5.2.2).
fn joined(base: &str, reference: &str) -> String {
    let base_path = base.split('?').next().unwrap_or_default();
    let (path, query) = match reference.find('?') {
        Some(at) => reference.split_at(at),
        None => (reference, ""),
    };
    match path {
        "" if query.is_empty() => base.to_owned(),
        "" => format!("{base_path}{query}"),
        _ if path.starts_with('/') => format!("{}{query}", without_dots(path)),
        _ => {
            let folder = &base_path[..=base_path.rfind('/').unwrap_or(0)];
            format!("{}{query}", without_dots(&format!("{folder}{path}")))
        }
    }
}

/// RFC 3986 section 5.2.4, of a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let is_folder = path.ends_with("/.") || path.ends_with("/..");
    let end = if is_folder && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::spec::requests::tests::{book, compiled, kind};
    use crate::wire::Same;
    use proptest::prelude::*;

    fn redirects(method: &str, body: Option<&str>, follow: u32) -> Redirects {
        let headers = serde_json::json!([["Content-Type", "text/plain"], ["X-Own", "1"]]);
        let spec = serde_json::json!({
            "target": {"host": "127.0.0.1", "port": 8000},
            "workload": {
                "loop": {"kind": "closed", "connections": 1}, "stop": {"kind": "requests", "requests": 1},
                "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 0, "follow": follow,
                "request": {"method": method, "path": "/a/b?q", "headers": headers, "body": body, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "economical"
        });
        Redirects::of(&Spec::from_json(&spec.to_string()).unwrap(), 0)
            .unwrap()
            .unwrap()
    }

    fn after(status: u16, method: &str, location: &str) -> Result<String, &'static str> {
        let redirects = redirects(method, Some("aGk="), 3);
        match redirects.next(Same, None, status, Some(location.as_bytes())) {
            Next::Hop(hop) => Ok(String::from_utf8(hop.bytes).unwrap()),
            Next::Refused(why) => Err(why),
            Next::Nothing => Err("nothing"),
        }
    }

    fn path_after(location: &str) -> Result<String, &'static str> {
        let sent = after(302, "GET", location)?;
        Ok(sent.split(' ').nth(1).unwrap_or_default().to_owned())
    }

    #[test]
    fn a_location_is_resolved_against_the_path_that_was_asked_for() {
        for (location, path) in [
            ("/login", "/login"),
            ("/login?next=/a#top", "/login?next=/a"),
            ("c", "/a/c"),
            ("../c/./d?x", "/c/d?x"),
            ("../../../..", "/"),
            ("./", "/a/"),
            ("?page=2", "/a/b?page=2"),
            ("#top", "/a/b?q"),
            ("", "/a/b?q"),
            ("http://127.0.0.1:8000", "/"),
            ("HTTP://127.0.0.1:8000/x", "/x"),
            ("http://127.0.0.1:8000?x", "/?x"),
            ("//127.0.0.1:8000/x", "/x"),
            ("/b\u{fc}cher x", "/b%C3%BCcher%20x"),
            ("/a:b", "/a:b"),
        ] {
            assert_eq!(path_after(location).as_deref(), Ok(path), "{location}");
        }
    }

    #[test]
    fn what_leads_to_another_server_is_not_followed() {
        for location in [
            "https://127.0.0.1:8000/",
            "http://127.0.0.1:8001/",
            "http://127.0.0.1/",
            "http://127.0.0.1:8000@evil.example/",
            "http://me:secret@127.0.0.1:8000/",
            "//evil.example/",
            "http://127.0.0.1:8000.evil.example/",
            "http://127.0.0.1:8000\\@evil.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
        ] {
            assert_eq!(path_after(location), Err(ELSEWHERE), "{location}");
        }
        assert_eq!(path_after("http:x"), Err(NO_URL));
        assert_eq!(path_after("/a\r\nHost: x"), Err(NO_URL));
    }

    #[test]
    fn the_method_after_a_redirect_is_that_of_its_status() {
        for (status, method, wanted) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "POST", "GET"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (301, "PUT", "PUT"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
        ] {
            let sent = after(status, method, "/x").unwrap();
            assert!(
                sent.starts_with(&format!("{wanted} /x HTTP/1.1\r\n")),
                "{status}: {sent}"
            );
            let keeps = wanted == method;
            assert_eq!(sent.contains("Content-Type"), keeps, "{status}: {sent}");
            assert_eq!(sent.ends_with("\r\n\r\nhi"), keeps, "{status}: {sent}");
            assert!(sent.contains("X-Own: 1\r\n"));
        }
        assert_eq!(after(304, "GET", "/x"), Err("nothing"));
        assert_eq!(after(300, "GET", "/x"), Err("nothing"));
    }

    /// A request of a file: its row, which is of the kind of that number.
    #[derive(Debug, Clone, Copy)]
    struct Row(usize);

    impl Asks for Row {
        fn path(self) -> usize {
            0
        }

        fn row(self) -> (usize, usize) {
            (self.0, self.0)
        }
    }

    #[test]
    fn a_row_of_a_file_goes_on_with_what_it_has_itself() {
        let kinds = serde_json::json!([kind("POST"), kind("PUT")]);
        let rows: [(u32, u32, Vec<&[u8]>); 2] =
            [(0, 0, vec![b"1", b"v", b"b"]), (1, 0, vec![b"2", b"w", b"c"])];
        let book = book(compiled(&kinds, &rows), 2).unwrap();
        let redirects = redirects("GET", None, 2).of_book(&Arc::new(book), None, true);
        let sent = |status, row| match redirects.next(Row(row), None, status, Some(b"x")) {
            Next::Hop(hop) => String::from_utf8(hop.bytes).unwrap(),
            other => panic!("{other:?}"),
        };
        let kept = sent(307, 1);
        assert!(kept.starts_with("PUT /a/x HTTP/1.1\r\n"), "{kept}");
        assert!(
            kept.contains("x: <w>\r\n") && kept.ends_with("\r\n\r\nc!"),
            "{kept}"
        );
        let asked = sent(303, 0);
        assert!(
            asked.starts_with("GET /a/x HTTP/1.1\r\n") && asked.contains("x: <v>\r\n"),
            "{asked}"
        );
        assert!(asked.ends_with("\r\n\r\n"), "{asked}");
    }

    #[test]
    fn so_many_redirects_are_followed_and_no_more() {
        let redirects = redirects("GET", None, 2);
        let mut last = None;
        for path in ["/1", "/2"] {
            last = match redirects.next(Same, last.as_deref(), 302, Some(path.as_bytes())) {
                Next::Hop(hop) => Some(hop),
                other => panic!("{other:?}"),
            };
        }
        let third = redirects.next(Same, last.as_deref(), 302, Some(b"/3"));
        assert!(matches!(third, Next::Refused(TOO_MANY)), "{third:?}");
        assert!(matches!(
            redirects.next(Same, None, 302, None),
            Next::Refused(NO_LOCATION)
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_server_says_the_next_request_is_one_line_for_a_path(location in "[ -~]{0,40}|[/.?#:@a-c\u{e9}\r\n]{0,20}") {
            if let Ok(sent) = after(302, "GET", &location) {
                let line = sent.split("\r\n").next().unwrap();
                let words: Vec<&str> = line.split(' ').collect();
                prop_assert_eq!(words.len(), 3);
                prop_assert!(words[1].starts_with('/') && !words[1].contains('#'));
                prop_assert_eq!(sent.matches("\r\n").count(), after(302, "GET", "/").unwrap().matches("\r\n").count());
            }
        }
    }
}

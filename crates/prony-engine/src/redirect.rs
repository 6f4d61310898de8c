//! Where a redirect leads: the next request for the same server (RFC 9110 section 15.4, RFC 3986 section 5.2). Without I/O.
//!
//! A redirect to another host, scheme or port is never followed: whoever may load one server may not load another because that says so.

use crate::error::Error;
use crate::protocol::http1::render_request;
use crate::spec::{HttpVersion, Request, Spec, Target};

/// What a load needs to know to follow redirects.
#[derive(Debug, Clone)]
pub struct Redirects {
    most: u32,
    target: Target,
    version: HttpVersion,
    // One of each path of the mix.
    requests: Vec<Request>,
    body: Option<Vec<u8>>,
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
    /// Of a load; null where none are followed.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for a body that is not base64.
    pub fn of(spec: &Spec) -> Result<Option<Self>, Error> {
        if spec.workload.follow == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            most: spec.workload.follow,
            target: spec.target.clone(),
            version: spec.target.wire.version(),
            requests: spec.workload.requests(),
            body: spec.request_body()?,
        }))
    }

    /// What follows a reply with this status and `Location` to the request for a path of the mix, or to the last hop of it.
    pub fn next(&self, path: usize, last: Option<&Hop>, status: u16, location: Option<&[u8]>) -> Next {
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
        let asked = last.map_or(&self.requests[path], |hop| &hop.request);
        let has_body = last.map_or(self.body.is_some(), |hop| hop.has_body);
        match self.path_of(asked, location) {
            Ok(path) => Next::Hop(Box::new(self.hop(number + 1, asked, (status, path), has_body))),
            Err(why) => Next::Refused(why),
        }
    }

    fn hop(&self, number: u32, asked: &Request, (status, path): (u16, String), has_body: bool) -> Hop {
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
        let has_body = has_body && keeps_body;
        let body = self.body.as_deref().filter(|_| has_body);
        let sent = self.target.asked(&request);
        let bytes = render_request(self.version, &sent, body, &self.target.authority());
        Hop {
            number,
            request,
            has_body,
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
        Redirects::of(&Spec::from_json(&spec.to_string()).unwrap())
            .unwrap()
            .unwrap()
    }

    fn after(status: u16, method: &str, location: &str) -> Result<String, &'static str> {
        let redirects = redirects(method, Some("aGk="), 3);
        match redirects.next(0, None, status, Some(location.as_bytes())) {
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

    #[test]
    fn so_many_redirects_are_followed_and_no_more() {
        let redirects = redirects("GET", None, 2);
        let mut last = None;
        for path in ["/1", "/2"] {
            last = match redirects.next(0, last.as_deref(), 302, Some(path.as_bytes())) {
                Next::Hop(hop) => Some(hop),
                other => panic!("{other:?}"),
            };
        }
        let third = redirects.next(0, last.as_deref(), 302, Some(b"/3"));
        assert!(matches!(third, Next::Refused(TOO_MANY)), "{third:?}");
        assert!(matches!(
            redirects.next(0, None, 302, None),
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

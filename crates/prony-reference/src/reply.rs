//! The bytes of replies, rendered once.

use std::rc::Rc;

use crate::config::{Config, Framing};

/// A reply as it goes over the wire.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    /// Content in `bytes`, without chunk framing.
    pub(crate) body_bytes: u64,
    /// Where a cut reply ends: after the head and half of the framed body.
    pub(crate) cut_at: usize,
    /// Content before the cut.
    pub(crate) cut_body_bytes: u64,
}

/// Everything by which one reply of a server differs from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) error: bool,
    pub(crate) method_is_head: bool,
    pub(crate) http_1_0: bool,
    pub(crate) last: bool,
}

impl Variant {
    const COUNT: usize = 16;

    fn index(self) -> usize {
        usize::from(self.error)
            | (usize::from(self.method_is_head) << 1)
            | (usize::from(self.http_1_0) << 2)
            | (usize::from(self.last) << 3)
    }
}

/// The replies of a server, each rendered when it is first needed, which for most is never.
#[derive(Debug)]
pub(crate) struct Replies {
    config: Config,
    body: Vec<u8>,
    rendered: [Option<Rc<Reply>>; Variant::COUNT],
    invalid: Rc<Reply>,
}

impl Replies {
    pub(crate) fn new(config: &Config) -> Replies {
        let body = match &config.body {
            Some(text) => text.clone().into_bytes(),
            None => deterministic_body(config.body_bytes),
        };
        let invalid = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
        let mut replies = Replies {
            config: config.clone(),
            body,
            rendered: Default::default(),
            invalid: Rc::new(Reply {
                cut_at: invalid.len(),
                bytes: invalid,
                body_bytes: 0,
                cut_body_bytes: 0,
            }),
        };
        // So that the first request costs what the others do.
        replies.get(Variant {
            error: false,
            method_is_head: false,
            http_1_0: false,
            last: false,
        });
        replies
    }

    pub(crate) fn get(&mut self, variant: Variant) -> Rc<Reply> {
        let slot = &mut self.rendered[variant.index()];
        Rc::clone(slot.get_or_insert_with(|| Rc::new(render(&self.config, &self.body, variant))))
    }

    /// The answer to what is no HTTP request.
    pub(crate) fn invalid(&self) -> Rc<Reply> {
        Rc::clone(&self.invalid)
    }
}

/// The first `length` bytes of a fixed sequence: printable, and of a prime period, so that a body with bytes missing or
/// doubled at any power of two differs from the right one.
pub fn deterministic_body(length: u64) -> Vec<u8> {
    const PERIOD: &[u8; 61] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy";
    PERIOD.iter().copied().cycle().take(length as usize).collect()
}

/// The framing that a reply can have: HTTP/1.0 has no chunks (RFC 9112 section 6.1).
pub(crate) fn framing_for(config: &Config, http_1_0: bool) -> Framing {
    match config.framing {
        Framing::Chunked if http_1_0 => Framing::CloseDelimited,
        framing => framing,
    }
}

fn render(config: &Config, body: &[u8], variant: Variant) -> Reply {
    let status = if variant.error {
        config.error_status
    } else {
        config.status
    };
    let framing = framing_for(config, variant.http_1_0);
    let mut bytes = render_head(config, status, framing, body.len(), variant).into_bytes();
    let head_bytes = bytes.len();
    // RFC 9110 sections 9.3.2, 15.3.5 and 15.4.5.
    if variant.method_is_head || has_no_body(status) {
        return Reply {
            bytes,
            body_bytes: 0,
            cut_at: head_bytes,
            cut_body_bytes: 0,
        };
    }
    match framing {
        Framing::Chunked => render_chunks(&mut bytes, config, body),
        Framing::ContentLength | Framing::CloseDelimited => bytes.extend_from_slice(body),
    }
    let cut_at = head_bytes + (bytes.len() - head_bytes) / 2;
    let cut_body_bytes = match framing {
        Framing::Chunked => content_before(cut_at - head_bytes, config, body.len()),
        Framing::ContentLength | Framing::CloseDelimited => cut_at - head_bytes,
    };
    Reply {
        bytes,
        body_bytes: body.len() as u64,
        cut_at,
        cut_body_bytes: cut_body_bytes as u64,
    }
}

fn has_no_body(status: u16) -> bool {
    status == 204 || status == 304
}

fn render_head(
    config: &Config,
    status: u16,
    framing: Framing,
    body_bytes: usize,
    variant: Variant,
) -> String {
    let mut head = String::new();
    if config.informational && !variant.http_1_0 {
        head.push_str("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
    }
    head.push_str(&format!("HTTP/1.1 {status} {}\r\n", reason(status)));
    head.push_str("Server: prony-reference\r\nContent-Type: text/plain\r\n");
    match framing {
        // RFC 9110 section 8.6: not with 204, but a 304 may say what a 200 would.
        _ if status == 204 => {}
        Framing::ContentLength => head.push_str(&format!("Content-Length: {body_bytes}\r\n")),
        Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framing::CloseDelimited => {}
    }
    if config.trailers && framing == Framing::Chunked {
        head.push_str("Trailer: X-Body-Bytes\r\n");
    }
    if variant.last && config.close_header {
        head.push_str("Connection: close\r\n");
    } else if variant.http_1_0 && !variant.last {
        head.push_str("Connection: keep-alive\r\n");
    }
    head.push_str("\r\n");
    head
}

fn render_chunks(bytes: &mut Vec<u8>, config: &Config, body: &[u8]) {
    for chunk in body.chunks(config.chunk_bytes as usize) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n");
    if config.trailers {
        bytes.extend_from_slice(format!("X-Body-Bytes: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
}

/// How much content lies in the first `framed_bytes` of a chunked body.
fn content_before(framed_bytes: usize, config: &Config, body_bytes: usize) -> usize {
    let (mut framed, mut content) = (0, 0);
    while content < body_bytes {
        let chunk = (body_bytes - content).min(config.chunk_bytes as usize);
        framed += format!("{chunk:x}\r\n").len();
        if framed + chunk >= framed_bytes {
            return content + framed_bytes.saturating_sub(framed);
        }
        framed += chunk + 2;
        content += chunk;
        if framed >= framed_bytes {
            return content;
        }
    }
    content
}

/// Reason phrases of the codes that servers under test send; any other is legal without one (RFC 9112 section 4).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{content_before, render, Variant};
    use crate::config::Config;

    const PLAIN: Variant = Variant {
        error: false,
        method_is_head: false,
        http_1_0: false,
        last: false,
    };

    #[test]
    fn a_chunked_body_has_its_chunks_and_its_trailer() {
        let config =
            Config::from_json(r#"{"framing": "chunked", "chunk_bytes": 4, "trailers": true}"#).unwrap();
        let reply = render(&config, b"abcdef", PLAIN);
        let text = String::from_utf8(reply.bytes).unwrap();
        assert!(
            text.ends_with("\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\nX-Body-Bytes: 6\r\n\r\n"),
            "{text}"
        );
        assert_eq!(reply.body_bytes, 6);
    }

    #[test]
    fn content_before_a_cut_is_counted_without_framing() {
        let config = Config::from_json(r#"{"framing": "chunked", "chunk_bytes": 4}"#).unwrap();
        let framed = b"4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n";
        for cut in 0..framed.len() {
            let letters = framed[..cut]
                .iter()
                .filter(|byte| byte.is_ascii_lowercase())
                .count();
            assert_eq!(content_before(cut, &config, 6), letters, "cut at {cut}");
        }
    }

    #[test]
    fn a_304_says_the_length_of_what_it_does_not_send() {
        let config = Config::from_json(r#"{"status": 304}"#).unwrap();
        let text = String::from_utf8(render(&config, b"abc", PLAIN).bytes).unwrap();
        assert!(
            text.contains("Content-Length: 3\r\n") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
    }
}

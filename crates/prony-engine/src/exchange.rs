//! One request and its reply as bytes, for callers with their own I/O: readiness, contracts.

use crate::error::Error;
use crate::protocol::http2::{parts, Connection, News};
use crate::protocol::{
    fastcgi, http1, http2, scgi, EndOfStream, FastCgi, Http1, Http2, Progress, Protocol, Reader, Same, Scgi,
    Uwsgi,
};
use crate::spec::{Request, Target, Wire};

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its body, without any framing.
    pub body: Vec<u8>,
}

/// The bytes of a request, as a run would send them.
///
/// # Errors
/// [`Error::InvalidSpec`] for an invalid target or request.
pub fn encode_request(target: &Target, request: &Request) -> Result<Vec<u8>, Error> {
    target.check()?;
    request.check()?;
    let body = request.decoded_body()?;
    let body = body.as_deref();
    Ok(match target.wire {
        Wire::Http {} => rendered(Http1::new(request, body, &target.authority())),
        Wire::Fastcgi {} => rendered(FastCgi::new(request, body, target)?),
        Wire::Uwsgi { modifier1 } => rendered(Uwsgi::new(request, body, target, modifier1)?),
        Wire::Scgi {} => rendered(Scgi::new(request, body, target)?),
        Wire::Http2 { .. } => opened(Http2::new(request, body, target)?)?,
    })
}

/// The opening of a connection and the one request on it, as far as a server takes it without a word of its own.
fn opened(mut protocol: Http2) -> Result<Vec<u8>, Error> {
    let (head, body) = parts(protocol.bytes(Same));
    let mut connection = Connection::new();
    let stream = connection.begin(0, head, false, body.is_empty());
    let mut bytes = connection.pending().to_vec();
    connection.advance(bytes.len());
    let taken = stream.map_or(0, |stream| connection.send(stream, body));
    bytes.extend_from_slice(connection.pending());
    if taken < body.len() {
        let message =
            "`workload.request.body` is longer than 65,535 bytes; expected less: more waits for the server";
        return Err(Error::InvalidSpec(message.to_owned()));
    }
    Ok(bytes)
}

fn rendered(mut protocol: impl Protocol) -> Vec<u8> {
    let request = protocol.next();
    protocol.bytes(request).to_vec()
}

/// The reply to a request with this method, from all bytes received so far; null while it is incomplete.
/// `ended`: nothing more will come.
///
/// # Errors
/// [`Error::Reply`] when the bytes are not a reply, or will never be a complete one.
pub fn decode_reply(wire: Wire, method: &str, data: &[u8], ended: bool) -> Result<Option<Reply>, Error> {
    let is_head = method == "HEAD";
    match wire {
        Wire::Http {} => decode(http1::ReplyReader::new(is_head), data, ended),
        Wire::Fastcgi {} => decode(fastcgi::ReplyReader::new(is_head), data, ended),
        Wire::Uwsgi { .. } | Wire::Scgi {} => decode(scgi::reader(is_head), data, ended),
        Wire::Http2 { .. } => decode_stream(is_head, data, ended),
    }
}

/// The reply to the first request of a connection.
fn decode_stream(is_head: bool, data: &[u8], ended: bool) -> Result<Option<Reply>, Error> {
    let (mut connection, mut reader) = (Connection::new(), http2::ReplyReader::default());
    // Which request it was makes no difference to its reply, but for HEAD.
    connection.begin(0, &[], is_head, true);
    let (mut body, mut end) = (Vec::new(), None);
    let taken = connection.take(data, &mut |_, _, news| match news {
        News::Head(text) | News::Body(text) => {
            reader.feed(text, &mut |piece| body.extend_from_slice(piece));
        }
        News::Complete => end = Some(reader.finish()),
        News::Short => end = Some(EndOfStream::WithinBody),
        News::Reset(_) | News::Unprocessed => end = Some(EndOfStream::Refused("the server reset the stream")),
        News::Broken(why) => end = Some(EndOfStream::Refused(why)),
        News::Bytes | News::Room => {}
    });
    match (end, taken) {
        (Some(end), _) => whole(end, reader.status(), body),
        (None, Err(why)) => Err(Error::Reply(why)),
        (None, Ok(())) if ended => whole(reader.end_of_stream(), reader.status(), body),
        (None, Ok(())) => Ok(None),
    }
}

fn decode(mut reader: impl Reader, data: &[u8], ended: bool) -> Result<Option<Reply>, Error> {
    let mut body = Vec::new();
    let end = match reader.feed(data, &mut |piece| body.extend_from_slice(piece)) {
        Progress::More if !ended => return Ok(None),
        Progress::More => reader.end_of_stream(),
        Progress::Complete { .. } => EndOfStream::Complete,
        Progress::Ended(end) => end,
        Progress::Malformed(reason) => return Err(Error::Reply(reason)),
    };
    whole(end, reader.status(), body)
}

fn whole(end: EndOfStream, status: u16, body: Vec<u8>) -> Result<Option<Reply>, Error> {
    match end {
        EndOfStream::Complete => Ok(Some(Reply { status, body })),
        EndOfStream::NoReply => Err(Error::Reply("the connection was closed before the reply")),
        EndOfStream::WithinHead => Err(Error::Reply("the reply ends within its head")),
        EndOfStream::WithinBody => Err(Error::Reply("the reply ends within its body")),
        EndOfStream::Refused(reason) => Err(Error::Reply(reason)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Those whose replies are a document of their own.
    fn wires() -> impl Iterator<Item = Wire> {
        let all = Wire::NAMES.into_iter().map(|name| Wire::named(name).unwrap());
        all.filter(|wire| *wire != MULTIPLEXED)
    }

    const END: &[u8] = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";

    /// `data` as this wire's reply, and whether it must end with the close.
    fn framed(wire: Wire, fields: &str, body: &str) -> Vec<u8> {
        let line = if matches!(wire, Wire::Http {}) {
            "HTTP/1.1 404 No\r\n"
        } else {
            "Status: 404 No\r\n"
        };
        let document = format!("{line}{fields}\r\n{body}").into_bytes();
        match wire {
            Wire::Fastcgi {} => {
                let header = [1, 6, 0, 1, 0, document.len() as u8, 0, 0];
                [&header[..], &document, END].concat()
            }
            _ => document,
        }
    }

    #[test]
    fn a_reply_is_null_until_it_is_complete_on_every_wire() {
        for wire in wires() {
            let data = framed(wire, "Content-Length: 2\r\n", "hi");
            for length in 0..data.len() {
                assert_eq!(
                    decode_reply(wire, "GET", &data[..length], false).unwrap(),
                    None,
                    "{wire:?} {length}"
                );
                assert!(
                    decode_reply(wire, "GET", &data[..length], true).is_err(),
                    "{wire:?} {length}"
                );
            }
            let reply = decode_reply(wire, "GET", &data, false).unwrap().unwrap();
            assert_eq!((reply.status, reply.body.as_slice()), (404, b"hi".as_slice()));
        }
    }

    const MULTIPLEXED: Wire = Wire::Http2 { streams: 1 };

    #[test]
    fn http_2_has_one_exchange_as_bytes_too() {
        let data = [
            &b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x8d"[..],
            b"\0\0\x02\0\x01\0\0\0\x01hi",
        ]
        .concat();
        for length in 0..data.len() {
            assert_eq!(
                decode_reply(MULTIPLEXED, "GET", &data[..length], false).unwrap(),
                None
            );
            assert!(decode_reply(MULTIPLEXED, "GET", &data[..length], true).is_err());
        }
        let reply = decode_reply(MULTIPLEXED, "GET", &data, false).unwrap().unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (404, b"hi".as_slice()));
        assert!(decode_reply(MULTIPLEXED, "HEAD", &data, false).is_err());
        assert!(decode_reply(MULTIPLEXED, "GET", b"HTTP/1.1 400 No\r\n\r\n", false).is_err());
    }

    #[test]
    fn a_request_of_http_2_is_sent_behind_the_opening_of_its_connection() {
        let target = Target {
            host: "h".to_owned(),
            port: 80,
            socket: crate::spec::Socket::Tcp,
            wire: MULTIPLEXED,
            tls: None,
        };
        let request = |length: usize| Request {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Some(base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD,
                vec![b'x'; length],
            )),
            keep_alive: true,
        };
        let bytes = encode_request(&target, &request(5)).unwrap();
        assert!(bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        assert!(bytes.ends_with(b"\0\0\x05\0\x01\0\0\0\x01xxxxx"));
        assert!(encode_request(&target, &request(70_000)).is_err());
    }

    #[test]
    fn the_close_ends_a_reply_without_a_length() {
        for wire in wires().filter(|wire| !matches!(wire, Wire::Fastcgi {})) {
            let data = framed(wire, "", "hi");
            assert_eq!(decode_reply(wire, "GET", &data, false).unwrap(), None);
            assert_eq!(
                decode_reply(wire, "GET", &data, true).unwrap().unwrap().body,
                b"hi"
            );
        }
    }

    #[test]
    fn the_reply_to_head_has_no_body_whatever_its_length_says() {
        for wire in wires() {
            let data = framed(wire, "Content-Length: 2\r\n", "");
            assert_eq!(
                decode_reply(wire, "HEAD", &data, false).unwrap().unwrap().body,
                b""
            );
        }
    }

    #[test]
    fn garbage_is_an_error_on_every_wire() {
        for wire in wires() {
            let error = decode_reply(wire, "GET", b"SSH-2.0-x\r\n\r\n", false).unwrap_err();
            assert!(matches!(error, Error::Reply(_)), "{wire:?}");
        }
    }
}

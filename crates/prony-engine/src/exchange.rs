//! One request and its reply as bytes, for callers with their own I/O: readiness, contracts.

use crate::error::Error;
use crate::protocol::{
    fastcgi, http1, scgi, EndOfStream, FastCgi, Http1, Progress, Protocol, Reader, Scgi, Uwsgi,
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
    })
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
    match end {
        EndOfStream::Complete => Ok(Some(Reply {
            status: reader.status(),
            body,
        })),
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

    fn wires() -> impl Iterator<Item = Wire> {
        Wire::NAMES.into_iter().map(|name| Wire::named(name).unwrap())
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

//! One request and its reply as bytes, for callers with their own I/O: readiness, contracts.
//!
//! Over HTTP/2 a long body waits for the server's word, so there an exchange is a conversation: [`Stream`].

use crate::error::Error;
use crate::spec::typed;
use crate::spec::{Request, Target, Wire};
use crate::wire::http2::{parts, Connection, News};
use crate::wire::{
    fastcgi, http1, http2, scgi, EndOfStream, FastCgi, Http1, Http2, Progress, Protocol, Reader, Same, Scgi,
    Uwsgi,
};

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
    typed::check(request, body.map_or(0, <[u8]>::len), target.wire)?;
    Ok(match target.wire {
        Wire::Http2 { .. } => return Err(Error::InvalidSpec(IS_A_CONVERSATION.to_owned())),
        Wire::Http { version } => rendered(Http1::new(version, request, body, &target.authority())),
        Wire::Fastcgi {} => rendered(FastCgi::new(request, body, target)?),
        Wire::Uwsgi { modifier1 } => rendered(Uwsgi::new(request, body, target, modifier1)?),
        Wire::Scgi {} => rendered(Scgi::new(request, body, target)?),
    })
}

const IS_A_CONVERSATION: &str = "`target.wire` is `http2`; expected one whose request is sent at once";

/// One exchange over HTTP/2.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    id: Option<u32>,
    body: Vec<u8>,
    sent: usize,
    reading: Reading,
}

/// The reply, as far as it is there.
#[derive(Debug, Default)]
struct Reading {
    reader: http2::ReplyReader,
    body: Vec<u8>,
    end: Option<EndOfStream>,
}

impl Stream {
    /// Before its first byte.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] for an invalid target or request.
    pub fn new(target: &Target, request: &Request) -> Result<Self, Error> {
        target.check()?;
        request.check()?;
        let body = request.decoded_body()?;
        typed::check(request, body.as_deref().map_or(0, <[u8]>::len), target.wire)?;
        let protocol = Http2::new(request, body.as_deref(), target)?;
        let (head, body) = parts(protocol.bytes(Same));
        let mut connection = Connection::new();
        let id = connection.begin(0, head, request.method == "HEAD", body.is_empty());
        Ok(Self {
            connection,
            id,
            body: body.to_vec(),
            sent: 0,
            reading: Reading::default(),
        })
    }

    /// Takes what is to be sent now; none where the server is to say something first. More may follow at once.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let rest = &self.body[self.sent..];
        if let (Some(id), false) = (self.id, rest.is_empty()) {
            self.sent += self.connection.send(id, rest);
        }
        let pending = self.connection.pending().to_vec();
        self.connection.advance(pending.len());
        pending
    }

    /// Takes what was received, nothing at the end of the connection, and returns the reply as soon as it is complete.
    ///
    /// # Errors
    /// [`Error::Reply`] when the bytes are no reply, or will never be a complete one.
    pub fn receive(&mut self, data: &[u8]) -> Result<Option<Reply>, Error> {
        let reading = &mut self.reading;
        let taken = self.connection.take(data, &mut |_, _, news| reading.take(news));
        let ended = data.is_empty().then(|| reading.reader.end_of_stream());
        match (reading.end.take().or(ended), taken) {
            (Some(end), _) => whole(end, reading.reader.status(), std::mem::take(&mut reading.body)),
            (None, Err(why)) => Err(Error::Reply(why)),
            (None, Ok(())) => Ok(None),
        }
    }
}

impl Reading {
    fn take(&mut self, news: News<'_>) {
        match news {
            News::Head(text) | News::Body(text) => {
                let body = &mut self.body;
                self.reader.feed(text, &mut |piece| body.extend_from_slice(piece));
            }
            News::Complete => self.end = Some(self.reader.finish()),
            News::Short => self.end = Some(EndOfStream::WithinBody),
            News::Unwanted => {}
            News::Reset(_) | News::Unprocessed | News::Refused => {
                self.end = Some(EndOfStream::Refused("the server reset the stream"));
            }
            News::Broken(why) => self.end = Some(EndOfStream::Refused(why)),
            News::Bytes | News::Room => {}
        }
    }
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
        Wire::Http { version } => decode(http1::ReplyReader::new(version, is_head), data, ended),
        Wire::Fastcgi {} => decode(fastcgi::ReplyReader::new(is_head), data, ended),
        Wire::Uwsgi { .. } | Wire::Scgi {} => decode(scgi::reader(is_head), data, ended),
        Wire::Http2 { .. } => Err(Error::InvalidSpec(IS_A_CONVERSATION.to_owned())),
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
        let line = if matches!(wire, Wire::Http { .. }) {
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

    fn stream(method: &str, body: &[u8]) -> Stream {
        let target = Target {
            host: "h".to_owned(),
            others: Vec::new(),
            port: 80,
            socket: crate::spec::Socket::Tcp,
            wire: MULTIPLEXED,
            tls: None,
            proxy: None,
        };
        let coded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, body);
        let request = Request {
            method: method.to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Some(coded).filter(|_| !body.is_empty()),
            keep_alive: true,
        };
        assert!(encode_request(&target, &request).is_err());
        Stream::new(&target, &request).unwrap()
    }

    #[test]
    fn http_2_has_one_exchange_as_bytes_too() {
        let data = [
            &b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x8d"[..],
            b"\0\0\x02\0\x01\0\0\0\x01hi",
        ]
        .concat();
        let mut whole = stream("GET", &[]);
        for length in 0..data.len() {
            let mut cut = stream("GET", &[]);
            assert!(length == 0 || cut.receive(&data[..length]).unwrap().is_none());
            assert!(cut.receive(&[]).is_err());
        }
        let reply = data.chunks(1).find_map(|piece| whole.receive(piece).unwrap());
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (404, b"hi".as_slice()));
        assert!(stream("HEAD", &[]).receive(&data).is_err());
        assert!(stream("GET", &[]).receive(b"HTTP/1.1 400 No\r\n\r\n").is_err());
        assert!(decode_reply(MULTIPLEXED, "GET", &data, false).is_err());
    }

    #[test]
    fn a_request_of_http_2_is_sent_behind_the_opening_of_its_connection() {
        let mut short = stream("POST", b"xxxxx");
        let bytes = short.take_pending();
        assert!(bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        assert!(bytes.ends_with(b"\0\0\x05\0\x01\0\0\0\x01xxxxx"));
        assert_eq!(short.take_pending(), b"");
    }

    /// How much of a body is sent before the server is to say something.
    fn body_bytes(stream: &mut Stream) -> usize {
        let pieces = std::iter::from_fn(|| Some(stream.take_pending()).filter(|piece| !piece.is_empty()));
        let sent = pieces.collect::<Vec<_>>().concat();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let (mut rest, mut sum) = (sent.strip_prefix(preface).unwrap_or(&sent), 0);
        while let [a, b, c, kind, ..] = *rest {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            sum += if kind == 0 { length } else { 0 };
            rest = &rest[9 + length..];
        }
        sum
    }

    #[test]
    fn a_long_body_over_http_2_goes_on_when_the_server_says_so() {
        let mut long = stream("POST", &[b'z'; 200_000]);
        assert_eq!(body_bytes(&mut long), 65_535);
        // Settings, and more room for the connection and for the stream.
        let more = [
            &b"\0\0\0\x04\0\0\0\0\0"[..],
            b"\0\0\x04\x08\0\0\0\0\0\0\x10\0\0",
            b"\0\0\x04\x08\0\0\0\0\x01\0\x10\0\0",
        ];
        assert_eq!(long.receive(&more.concat()).unwrap(), None);
        assert_eq!(body_bytes(&mut long), 200_000 - 65_535);
        let reply = long.receive(b"\0\0\x01\x01\x05\0\0\0\x01\x89").unwrap();
        assert_eq!(reply.unwrap().status, 204);
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

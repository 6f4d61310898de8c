//! Finds the end of each request in a stream of bytes. Does no I/O.

use std::mem::MaybeUninit;

/// A head longer than this, or one of more fields, is refused.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;

/// What the reply must know of a complete request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method_is_head: bool,
    pub(crate) http_1_0: bool,
    pub(crate) wants_close: bool,
    pub(crate) body_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Incomplete,
    Complete(Request),
    Invalid,
}

/// Reads one request after the other.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    request: Request,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Head,
    Length(u64),
    Chunked(Chunked),
}

/// Where in a chunked body the reader is. Carriage returns are not counted in `TrailerLine`.
#[derive(Clone, Copy, Debug)]
enum Chunked {
    Size(u64),
    Extension(u64),
    Data(u64),
    AfterData,
    TrailerLine(u64),
}

struct NotHttp;

impl RequestReader {
    /// Takes what it can of `input`; returns how many bytes it took and whether they completed a request.
    pub(crate) fn advance(&mut self, input: &[u8]) -> (usize, Progress) {
        let mut taken = 0;
        if matches!(self.stage, Stage::Head) {
            match self.read_head(input) {
                Ok(0) if input.len() < MAX_HEAD_BYTES => return (0, Progress::Incomplete),
                Ok(0) | Err(NotHttp) => return (0, Progress::Invalid),
                Ok(head_bytes) => taken = head_bytes,
            }
        }
        let (body_taken, progress) = self.read_body(&input[taken..]);
        (taken + body_taken, progress)
    }

    /// Returns the length of the head, 0 while it is incomplete.
    fn read_head(&mut self, input: &[u8]) -> Result<usize, NotHttp> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut []);
        let status = parsed
            .parse_with_uninit_headers(input, &mut headers)
            .map_err(|_| NotHttp)?;
        let httparse::Status::Complete(head_bytes) = status else {
            return Ok(0);
        };
        let http_1_0 = parsed.version == Some(0);
        self.request = Request {
            method_is_head: parsed.method == Some("HEAD"),
            http_1_0,
            wants_close: http_1_0,
            body_bytes: 0,
        };
        self.stage = Stage::Length(0);
        for header in parsed.headers.iter() {
            self.read_header(header)?;
        }
        Ok(head_bytes)
    }

    fn read_header(&mut self, header: &httparse::Header) -> Result<(), NotHttp> {
        let name = header.name;
        if name.eq_ignore_ascii_case("connection") {
            if has_token(header.value, b"close") {
                self.request.wants_close = true;
            } else if has_token(header.value, b"keep-alive") {
                self.request.wants_close = false;
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") && has_token(header.value, b"chunked") {
            self.stage = Stage::Chunked(Chunked::Size(0));
        } else if name.eq_ignore_ascii_case("content-length") && !matches!(self.stage, Stage::Chunked(_)) {
            let text = std::str::from_utf8(header.value).map_err(|_| NotHttp)?;
            self.stage = Stage::Length(text.trim().parse().map_err(|_| NotHttp)?);
        }
        Ok(())
    }

    fn read_body(&mut self, input: &[u8]) -> (usize, Progress) {
        let (taken, ended) = match self.stage {
            Stage::Head => (0, Ok(false)),
            Stage::Length(remaining) => self.read_length(remaining, input),
            Stage::Chunked(chunked) => self.read_chunked(chunked, input),
        };
        match ended {
            Ok(false) => (taken, Progress::Incomplete),
            Ok(true) => {
                self.stage = Stage::Head;
                (taken, Progress::Complete(self.request))
            }
            Err(NotHttp) => (taken, Progress::Invalid),
        }
    }

    fn read_length(&mut self, remaining: u64, input: &[u8]) -> (usize, Result<bool, NotHttp>) {
        let taken = remaining.min(input.len() as u64);
        self.request.body_bytes += taken;
        self.stage = Stage::Length(remaining - taken);
        (taken as usize, Ok(remaining == taken))
    }

    fn read_chunked(&mut self, mut chunked: Chunked, input: &[u8]) -> (usize, Result<bool, NotHttp>) {
        let mut taken = 0;
        while taken < input.len() {
            if let Chunked::Data(remaining) = chunked {
                let data = remaining.min((input.len() - taken) as u64);
                self.request.body_bytes += data;
                taken += data as usize;
                chunked = if data == remaining {
                    Chunked::AfterData
                } else {
                    Chunked::Data(remaining - data)
                };
                continue;
            }
            let byte = input[taken];
            taken += 1;
            match chunked.step(byte) {
                Ok(Some(next)) => chunked = next,
                Ok(None) => return (taken, Ok(true)),
                Err(NotHttp) => return (taken, Err(NotHttp)),
            }
        }
        self.stage = Stage::Chunked(chunked);
        (taken, Ok(false))
    }
}

impl Chunked {
    /// The next stage after one byte of framing; `None` after the last byte of the body.
    fn step(self, byte: u8) -> Result<Option<Chunked>, NotHttp> {
        let next = match (self, byte) {
            (Chunked::Size(0) | Chunked::Extension(0), b'\n') => Chunked::TrailerLine(0),
            (Chunked::Size(size) | Chunked::Extension(size), b'\n') => Chunked::Data(size),
            (Chunked::Size(size), b';' | b' ' | b'\t') => Chunked::Extension(size),
            (Chunked::Size(size), b'\r') => Chunked::Size(size),
            (Chunked::Size(size), digit) => {
                let value = (digit as char).to_digit(16).ok_or(NotHttp)?;
                Chunked::Size(size.checked_mul(16).ok_or(NotHttp)? + u64::from(value))
            }
            (Chunked::Extension(size), _) => Chunked::Extension(size),
            (Chunked::AfterData, b'\r') => Chunked::AfterData,
            (Chunked::AfterData, b'\n') => Chunked::Size(0),
            (Chunked::AfterData | Chunked::Data(_), _) => return Err(NotHttp),
            (Chunked::TrailerLine(0), b'\n') => return Ok(None),
            (Chunked::TrailerLine(_), b'\n') => Chunked::TrailerLine(0),
            (Chunked::TrailerLine(length), b'\r') => Chunked::TrailerLine(length),
            (Chunked::TrailerLine(length), _) => Chunked::TrailerLine(length + 1),
        };
        Ok(Some(next))
    }
}

/// Whether a comma-separated list contains a token, in any case.
fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::{Progress, Request, RequestReader};

    fn read_all(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Progress> {
        let mut reader = RequestReader::default();
        let (mut input, mut found) = (Vec::new(), Vec::new());
        for piece in pieces {
            input.extend(piece);
            loop {
                let (taken, progress) = reader.advance(&input);
                input.drain(..taken);
                if progress == Progress::Incomplete {
                    break;
                }
                found.push(progress);
                if progress == Progress::Invalid {
                    return found;
                }
            }
        }
        found
    }

    const STREAM: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\
        HEAD / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n\
        POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
        POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n\
        GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";

    fn expected() -> Vec<Progress> {
        [
            Request::default(),
            Request {
                method_is_head: true,
                wants_close: true,
                ..Request::default()
            },
            Request {
                body_bytes: 5,
                ..Request::default()
            },
            Request {
                body_bytes: 11,
                ..Request::default()
            },
            Request {
                http_1_0: true,
                wants_close: true,
                ..Request::default()
            },
            Request {
                http_1_0: true,
                ..Request::default()
            },
        ]
        .map(Progress::Complete)
        .to_vec()
    }

    #[test]
    fn requests_are_found_however_the_stream_is_split() {
        for piece_bytes in 1..=STREAM.len() {
            assert_eq!(
                read_all(STREAM.chunks(piece_bytes).map(<[u8]>::to_vec)),
                expected()
            );
        }
    }

    #[test]
    fn what_is_not_http_is_invalid() {
        for input in [
            "\0\0\0 nonsense\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ] {
            assert_eq!(
                read_all([input.as_bytes().to_vec()].into_iter()),
                [Progress::Invalid],
                "{input:?}"
            );
        }
    }

    #[test]
    fn a_head_without_end_is_invalid() {
        let input = format!("GET /{} HTTP/1.1\r\n", "a".repeat(70_000)).into_bytes();
        assert_eq!(read_all([input].into_iter()), [Progress::Invalid]);
    }
}

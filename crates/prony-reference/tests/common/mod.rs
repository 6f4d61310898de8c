//! A client that shares no code with the server.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prony_reference::{Config, Server};

pub const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
pub const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";

pub fn start(config: &str) -> Server {
    Server::start(Config::from_json(config).unwrap()).unwrap()
}

pub struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn connect(server: &Server) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a request and reads its reply.
    pub fn ask(&mut self, request: &str) -> Reply {
        self.send(request);
        self.reply(request.starts_with("HEAD"))
    }

    pub fn reply(&mut self, to_head: bool) -> Reply {
        let (status, headers) = self.head();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
            trailers: Vec::new(),
        };
        if to_head || status < 200 || status == 204 || status == 304 {
            return reply;
        }
        if reply.header("Transfer-Encoding") == Some("chunked") {
            self.chunks(&mut reply);
        } else if let Some(length) = reply.header("Content-Length") {
            reply.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut reply.body).unwrap();
        } else {
            self.stream.read_to_end(&mut reply.body).unwrap();
        }
        reply
    }

    fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status_line = self.line();
        (
            status_line.split(' ').nth(1).unwrap().parse().unwrap(),
            self.fields(),
        )
    }

    fn fields(&mut self) -> Vec<(String, String)> {
        std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()))
            .map(|line| {
                line.split_once(": ")
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .unwrap()
            })
            .collect()
    }

    fn chunks(&mut self, reply: &mut Reply) {
        loop {
            let length = usize::from_str_radix(&self.line(), 16).unwrap();
            if length == 0 {
                reply.trailers = self.fields();
                return;
            }
            let mut chunk = vec![0; length];
            self.stream.read_exact(&mut chunk).unwrap();
            reply.body.extend(chunk);
            assert_eq!(self.line(), "");
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "{line:?}");
        line.trim_end().to_owned()
    }

    /// Everything up to the end of the connection, and whether that was a reset.
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => (bytes, false),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (bytes, true),
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the server closed the connection in order, with nothing more to read.
    pub fn is_closed(&mut self) -> bool {
        self.rest() == (Vec::new(), false)
    }

    /// Whether nothing comes for 50 ms.
    pub fn hears_nothing(&mut self) -> bool {
        self.socket()
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let outcome = self.stream.fill_buf().map(<[u8]>::len);
        self.socket()
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        matches!(outcome, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

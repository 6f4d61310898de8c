//! The least that a closed loop can cost here: one send and one receive a request, and nothing else. No time-outs, no
//! latencies, no reading of replies beyond their length. `bench/engine` puts generators beside it.
//!
//! ```sh
//! cargo run --release -p prony-engine --example floor -- epoll 127.0.0.1:8000 100 2
//! ```
//!
//! Prints how many replies came. Ends with 3 where the kernel has no io_uring for it (`floor uring 0 0 0` only asks that).

mod epoll;
mod uring;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What both loops do.
pub struct Load {
    sockets: Vec<TcpStream>,
    request: Vec<u8>,
    // All replies have the length of the first.
    reply_bytes: usize,
    until: Instant,
}

/// How much of the replies each connection has, and how many there were.
pub struct Tally {
    had: Vec<usize>,
    reply_bytes: usize,
    /// Complete replies.
    pub replies: u64,
}

impl Tally {
    fn of(load: &Load) -> Self {
        Self {
            had: vec![0; load.sockets.len()],
            reply_bytes: load.reply_bytes,
            replies: 0,
        }
    }

    /// Takes what a connection received; whether its reply is complete.
    fn take(&mut self, slot: usize, count: usize) -> io::Result<bool> {
        self.had[slot] += count;
        if count == 0 || self.had[slot] > self.reply_bytes {
            return Err(io::Error::other("a reply of another length than the first"));
        }
        let is_complete = self.had[slot] == self.reply_bytes;
        if is_complete {
            self.had[slot] = 0;
            self.replies += 1;
        }
        Ok(is_complete)
    }
}

/// The length of a reply, by its `Content-Length`.
fn reply_bytes(address: SocketAddr, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut socket = TcpStream::connect(address)?;
    socket.write_all(request)?;
    let mut reply = Vec::new();
    let head_bytes = loop {
        let mut piece = [0; 16 * 1024];
        let count = socket.read(&mut piece)?;
        reply.extend_from_slice(&piece[..count]);
        match reply.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None if count == 0 => return Err("the server closed the connection".into()),
            None => {}
        }
    };
    let head = String::from_utf8_lossy(&reply[..head_bytes]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err("the reply is not 200".into());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    Ok(head_bytes + length.ok_or("no Content-Length")?.trim().parse::<usize>()?)
}

fn connected(address: SocketAddr, count: usize) -> io::Result<Vec<TcpStream>> {
    let connect = |_| {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    (0..count).map(connect).collect()
}

fn run(words: &[String]) -> Result<u64, Box<dyn Error>> {
    let [kind, address, connections, seconds] = words else {
        return Err("usage: floor epoll|uring ADDRESS:PORT CONNECTIONS SECONDS".into());
    };
    let address: SocketAddr = address.parse()?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
    let until = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let load = Load {
        sockets: connected(address, connections.parse()?)?,
        reply_bytes: reply_bytes(address, &request)?,
        request,
        until,
    };
    match kind.as_str() {
        "epoll" => Ok(epoll::run(&load)?),
        "uring" => Ok(uring::run(&load)?),
        _ => Err("neither epoll nor uring".into()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|kind| kind == "uring") {
        if let Err(error) = uring::probe() {
            eprintln!("error: this kernel has no io_uring for it: {error}");
            return ExitCode::from(3);
        }
        if words.get(1).is_some_and(|address| address == "0") {
            return ExitCode::SUCCESS;
        }
    }
    match run(&words) {
        Ok(replies) => {
            println!("{replies}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

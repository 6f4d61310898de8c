//! A tunnel through an HTTP proxy, over any other driver: CONNECT, and then bytes as they are (RFC 9110 section 9.3.6).

use super::{Driver, Ready, Received, Streams};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Sockets of another driver, each with a tunnel through the proxy at its other end.
#[derive(Debug)]
pub struct Tunnel<D> {
    inner: D,
    asking: Arc<[u8]>,
    ways: Vec<Way>,
    events: Vec<Ready>,
}

/// How far a slot's tunnel is.
#[derive(Debug, Default)]
enum Way {
    #[default]
    Closed,
    /// The socket is on its way.
    Connecting,
    /// The proxy has so many bytes of what it is asked, and has said this.
    Asking {
        written: usize,
        said: Vec<u8>,
    },
    Open,
    /// The attempt is over; how has not been asked for yet.
    Failed(io::Error),
}

// What proxies say is short; a page for people may follow a refusal, and is not read.
const LONGEST_REPLY_BYTES: usize = 16 * 1024;
const MOST_FIELDS: usize = 64;

impl<D: Driver> Tunnel<D> {
    /// Over a driver without sockets, which connects to the proxy. `asking`: the request for a tunnel.
    pub fn new(inner: D, asking: Vec<u8>) -> Self {
        Self {
            inner,
            asking: asking.into(),
            ways: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Something happened to a slot that has no tunnel yet; what is over by it is ready.
    fn on_the_way(&mut self, event: &Ready, ready: &mut Vec<Ready>) {
        let slot = event.slot;
        if matches!(self.ways[slot], Way::Connecting) && event.writable {
            self.ways[slot] = match self.inner.connect_result(slot) {
                Ok(()) => Way::asking(),
                Err(error) => Way::Failed(error),
            };
        }
        if matches!(self.ways[slot], Way::Asking { .. }) {
            self.ask(slot);
        }
        let is_over = matches!(self.ways[slot], Way::Open | Way::Failed(_));
        if is_over {
            ready.push(Ready {
                writable: true,
                readable: event.hangup,
                ..*event
            });
        }
    }

    /// Goes on asking for a tunnel.
    fn ask(&mut self, slot: usize) {
        let Way::Asking { written, said } = &mut self.ways[slot] else {
            return;
        };
        match asked(&mut self.inner, slot, &self.asking, written)
            .and_then(|()| answered(&mut self.inner, slot, said))
        {
            Ok(()) => self.ways[slot] = Way::Open,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => self.ways[slot] = Way::Failed(error),
        }
    }
}

impl Way {
    fn asking() -> Self {
        Self::Asking {
            written: 0,
            said: Vec::new(),
        }
    }
}

/// Sends what the proxy is asked; `WouldBlock` where it does not take all of it.
fn asked<D: Driver>(inner: &mut D, slot: usize, asking: &[u8], written: &mut usize) -> io::Result<()> {
    while *written < asking.len() {
        *written += inner.send(slot, &asking[*written..])?;
    }
    Ok(())
}

/// Takes what the proxy says; `WouldBlock` until that is whole.
fn answered<D: Driver>(inner: &mut D, slot: usize, said: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let received = inner.receive(slot)?;
        if received.bytes.is_empty() {
            return Err(refused(
                "the proxy closed the connection before its reply".to_owned(),
            ));
        }
        said.extend_from_slice(received.bytes);
        if let Some(outcome) = verdict(said) {
            return outcome;
        }
        if said.len() > LONGEST_REPLY_BYTES {
            return Err(refused("the reply of the proxy is longer than 16 KiB".to_owned()));
        }
    }
}

/// What the reply of a proxy means: a tunnel for any 2xx, whatever its fields say of a body; null: it is not whole.
fn verdict(said: &[u8]) -> Option<io::Result<()>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut reply = httparse::Response::new(&mut fields);
    let length = match reply.parse(said) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(error) => {
            return Some(Err(refused(format!(
                "the proxy did not answer in HTTP/1: {error}"
            ))))
        }
    };
    let (status, reason) = (reply.code.unwrap_or(0), reply.reason.unwrap_or_default());
    match status {
        100..=199 => verdict(&said[length..]),
        200..=299 if length < said.len() => Some(Err(refused(
            "bytes came behind the reply of the proxy".to_owned(),
        ))),
        200..=299 => Some(Ok(())),
        _ => Some(Err(refused(
            format!("the proxy answered {status} {reason}")
                .trim_end()
                .to_owned(),
        ))),
    }
}

fn refused(why: String) -> io::Error {
    io::Error::new(ErrorKind::ConnectionRefused, why)
}

fn not_connected() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTCONN)
}

impl<D: Driver> Driver for Tunnel<D> {
    const NAME: &'static str = D::NAME;

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        if slot >= self.ways.len() {
            self.ways.resize_with(slot + 1, Way::default);
        }
        let is_there = self.inner.connect(slot)?;
        self.ways[slot] = if is_there { Way::asking() } else { Way::Connecting };
        self.ask(slot);
        Ok(false)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        match std::mem::take(&mut self.ways[slot]) {
            Way::Failed(error) => Err(error),
            Way::Open => {
                self.ways[slot] = Way::Open;
                Ok(())
            }
            _ => Err(not_connected()),
        }
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        self.inner.send(slot, bytes)
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        self.inner.receive(slot)
    }

    fn close(&mut self, slot: usize) {
        if let Some(way) = self.ways.get_mut(slot) {
            *way = Way::Closed;
        }
        self.inner.close(slot);
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.inner.wait(timeout_ns, &mut events);
        for event in events.drain(..) {
            match self.ways[event.slot] {
                Way::Open => ready.push(event),
                _ => self.on_the_way(&event, ready),
            }
        }
        self.events = events;
        waited
    }

    fn opened_to(&self) -> &[u64] {
        self.inner.opened_to()
    }

    fn too_late(&self, slot: Option<usize>) -> &'static str {
        match slot.and_then(|slot| self.ways.get(slot)) {
            Some(Way::Asking { .. }) => "the proxy did not open a tunnel before the time-out",
            _ => self.inner.too_late(slot),
        }
    }
}

impl<D: Driver> Streams for Tunnel<D> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<Result<(), String>> {
        verdict(text.as_bytes()).map(|outcome| outcome.map_err(|error| error.to_string()))
    }

    #[test]
    fn any_2xx_is_a_tunnel_and_all_else_says_why_there_is_none() {
        assert_eq!(said("HTTP/1.1 200 Connection established\r\n\r\n"), Some(Ok(())));
        assert_eq!(said("HTTP/1.0 204 \r\nContent-Length: 9\r\n\r\n"), Some(Ok(())));
        assert_eq!(
            said("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
            Some(Ok(()))
        );
        assert_eq!(said("HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(said("HTTP/1.1 100 Go on\r\n\r\n"), None);
        for (text, why) in [
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n<html>",
                "the proxy answered 407 Proxy Authentication Required",
            ),
            ("HTTP/1.1 502\r\n\r\n", "the proxy answered 502"),
            (
                "HTTP/1.1 200 OK\r\n\r\nSSH-2.0",
                "bytes came behind the reply of the proxy",
            ),
            (
                "SSH-2.0-x\r\n",
                "the proxy did not answer in HTTP/1: invalid HTTP version",
            ),
        ] {
            assert_eq!(said(text), Some(Err(why.to_owned())), "{text}");
        }
    }
}

//! TLS over any other driver: handshakes in bounded pieces, then bytes as they are.
//!
//! A connection is open when its handshake has ended. Handshakes are work of this side, of a tenth of a millisecond and more: they are
//! done between two rounds of the worker, one at a time while others have replies to be taken.

use super::{Driver, Ready, Received, RECEIVE_BYTES};
use crate::clock::{Clock, Monotonic};
use crate::tls::{Broken, Client, Handshakes};
use rustls::ClientConnection;
use std::collections::VecDeque;
use std::io::{self, BufRead, ErrorKind, Read, Write};

/// Sockets of another driver, with TLS on them.
#[derive(Debug)]
pub struct Tls<D> {
    inner: D,
    client: Client,
    sessions: Vec<Session>,
    events: Vec<Ready>,
    // Slots whose handshake may go on.
    queue: VecDeque<usize>,
    others_are_ready: bool,
    plain: Vec<u8>,
    handshakes: Handshakes,
}

#[derive(Debug, Default)]
struct Session {
    stage: Stage,
    connection: Option<Box<ClientConnection>>,
    /// Bytes of the request that are encrypted, of which the kernel has not taken the last.
    owed: usize,
    hangup: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Closed,
    /// The socket is on its way.
    Connecting,
    /// Its handshake has been going on since then.
    Shaking {
        since_ns: u64,
    },
    Open,
    /// The attempt is over; how has not been asked for yet.
    Failed(io::Error),
}

const SHAKEN_AT_ONCE: usize = 8;
// Of 64 KiB each: what takes more is no handshake, and no data either.
const READS: usize = 4;
// Encrypted at once: as much as the library keeps.
const PIECE_BYTES: usize = 64 * 1024;
// What one reading holds, and what was left of the record before.
const PLAIN_BYTES: usize = RECEIVE_BYTES + 32 * 1024;

impl<D: Driver> Tls<D> {
    /// Over a driver without sockets.
    pub fn new(inner: D, client: Client) -> Self {
        Self {
            inner,
            client,
            sessions: Vec::new(),
            events: Vec::new(),
            queue: VecDeque::new(),
            others_are_ready: false,
            plain: vec![0; PLAIN_BYTES],
            handshakes: Handshakes::default(),
        }
    }

    /// The socket is there: its handshake begins.
    fn begin(&mut self, slot: usize) -> io::Result<()> {
        let Client { config, name, .. } = &self.client;
        let made = ClientConnection::new(config.clone(), name.clone());
        let connection = made.map_err(|error| Broken::of(&error))?;
        let session = &mut self.sessions[slot];
        session.connection = Some(Box::new(connection));
        session.stage = Stage::Shaking {
            since_ns: Monotonic.now(),
        };
        self.queue.push_back(slot);
        Ok(())
    }

    /// Something happened to a socket that is not open yet; what is over by it is ready.
    fn on_the_way(&mut self, event: &Ready, ready: &mut Vec<Ready>) {
        let slot = event.slot;
        self.sessions[slot].hangup |= event.hangup;
        match self.sessions[slot].stage {
            Stage::Connecting if event.writable => {
                let begun = self.inner.connect_result(slot).and_then(|()| self.begin(slot));
                if let Err(error) = begun {
                    self.fail(slot, error, ready);
                }
            }
            Stage::Shaking { .. } => self.queue.push_back(slot),
            _ => {}
        }
    }

    /// Goes on with a handshake; what is over by it is ready.
    fn shake(&mut self, slot: usize, ready: &mut Vec<Ready>) {
        let session = &mut self.sessions[slot];
        let (Stage::Shaking { since_ns }, Some(connection)) = (&session.stage, &mut session.connection)
        else {
            return;
        };
        match shaken(connection, &mut self.inner, slot) {
            Ok(None) => {}
            Ok(Some(may_have_more)) => {
                let took_ns = Monotonic.now().saturating_sub(*since_ns);
                if let Err(error) = self.client.check_protocol(connection) {
                    self.handshakes.failed += 1;
                    return self.fail(slot, error, ready);
                }
                self.handshakes.count(connection, took_ns);
                // Bytes that came with the handshake: nobody asked for any.
                let readable = may_have_more || has_plain(connection);
                session.stage = Stage::Open;
                ready.push(ended(slot, readable, session.hangup));
            }
            Err(error) => {
                self.handshakes.failed += 1;
                self.fail(slot, error, ready);
            }
        }
    }

    fn fail(&mut self, slot: usize, error: io::Error, ready: &mut Vec<Ready>) {
        self.sessions[slot].stage = Stage::Failed(error);
        ready.push(ended(slot, false, true));
    }

    fn is_shaking(&self, slot: usize) -> bool {
        let session = self.sessions.get(slot);
        session.is_some_and(|session| matches!(session.stage, Stage::Shaking { .. }))
    }
}

/// The end of an attempt, as an event of a socket.
fn ended(slot: usize, readable: bool, hangup: bool) -> Ready {
    Ready {
        slot,
        writable: true,
        readable,
        hangup,
    }
}

/// Sends and receives what a handshake has; null while it waits for the server, else whether more may be there to be read.
fn shaken<D: Driver>(
    connection: &mut ClientConnection,
    inner: &mut D,
    slot: usize,
) -> io::Result<Option<bool>> {
    let mut may_have_more = false;
    for _ in 0..READS {
        match flush(connection, inner, slot) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(last_word(connection, inner, slot).unwrap_or_else(|| lost(&error))),
            Ok(()) => {}
        }
        if !connection.is_handshaking() {
            return Ok(Some(may_have_more));
        }
        let received = match inner.receive(slot) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            result => result.map_err(|error| lost(&error))?,
        };
        if received.bytes.is_empty() {
            return Err(Broken::because(
                "the server closed the connection in the TLS handshake",
            ));
        }
        may_have_more = received.may_have_more;
        let fed = feed(connection, received.bytes, |_| {});
        if fed.is_err() {
            // Says to the server why, if it still listens.
            let _ = flush(connection, inner, slot);
        }
        fed?;
    }
    Err(Broken::because("256 KiB came, and no end of the TLS handshake"))
}

/// Why the peer closed, where it said so before what we sent found nobody.
fn last_word<D: Driver>(connection: &mut ClientConnection, inner: &mut D, slot: usize) -> Option<io::Error> {
    let received = inner.receive(slot).ok()?;
    feed(connection, received.bytes, |_| {}).err()
}

/// The socket failed under its handshake.
fn lost(error: &io::Error) -> io::Error {
    Broken::because(format!("the connection broke in the TLS handshake: {error}"))
}

/// Hands encrypted bytes to a session, and lets `take` have what they are after each piece.
fn feed(
    connection: &mut ClientConnection,
    mut bytes: &[u8],
    mut take: impl FnMut(&mut ClientConnection),
) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = connection.read_tls(&mut bytes);
        let count = read.map_err(|error| Broken::because(error.to_string()))?;
        connection
            .process_new_packets()
            .map_err(|error| Broken::of(&error))?;
        take(connection);
        // After the peer's word that it is over, nothing is read any more.
        if count == 0 {
            break;
        }
    }
    Ok(())
}

/// Sends what the session has to send.
fn flush<D: Driver>(connection: &mut ClientConnection, inner: &mut D, slot: usize) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(&mut Wire { inner, slot })?;
    }
    Ok(())
}

/// A slot of a driver as what can be written to.
struct Wire<'d, D> {
    inner: &'d mut D,
    slot: usize,
}

impl<D: Driver> Write for Wire<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.send(self.slot, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn has_plain(connection: &mut ClientConnection) -> bool {
    connection
        .reader()
        .fill_buf()
        .is_ok_and(|bytes| !bytes.is_empty())
}

/// Whether the peer has said that it is over, and all before that has been taken.
fn is_over(connection: &mut ClientConnection) -> bool {
    connection.reader().fill_buf().is_ok_and(<[u8]>::is_empty)
}

/// Takes what is decrypted, behind what was `filled` before.
fn take_plain(connection: &mut ClientConnection, plain: &mut [u8], filled: &mut usize) {
    while let Ok(count @ 1..) = connection.reader().read(&mut plain[*filled..]) {
        *filled += count;
    }
}

fn not_connected() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTCONN)
}

impl<D: Driver> Driver for Tls<D> {
    const NAME: &'static str = D::NAME;

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        if slot >= self.sessions.len() {
            self.sessions.resize_with(slot + 1, Session::default);
        }
        self.close(slot);
        let is_there = self.inner.connect(slot)?;
        self.sessions[slot].stage = Stage::Connecting;
        if is_there {
            self.begin(slot)?;
        }
        Ok(false)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        let session = &mut self.sessions[slot];
        match std::mem::take(&mut session.stage) {
            Stage::Failed(error) => Err(error),
            Stage::Open => {
                session.stage = Stage::Open;
                Ok(())
            }
            _ => Err(not_connected()),
        }
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let session = self.sessions.get_mut(slot).ok_or_else(not_connected)?;
        let connection = session.connection.as_mut().ok_or_else(not_connected)?;
        // What was encrypted before is sent first: only when the kernel has the last of it, it counts as sent.
        if session.owed == 0 {
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            session.owed = connection.writer().write(piece)?;
        }
        match flush(connection, &mut self.inner, slot) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            Err(error) => Err(last_word(connection, &mut self.inner, slot).unwrap_or(error)),
            Ok(()) => Ok(std::mem::take(&mut session.owed)),
        }
    }

    /// What is encrypted.
    fn committed(&self, slot: usize) -> usize {
        self.sessions.get(slot).map_or(0, |session| session.owed)
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let Self {
            inner,
            sessions,
            plain,
            ..
        } = self;
        let session = sessions.get_mut(slot).ok_or_else(not_connected)?;
        let connection = session.connection.as_mut().ok_or_else(not_connected)?;
        let (mut filled, mut may_have_more) = (0, true);
        take_plain(connection, plain, &mut filled);
        for _ in 0..READS {
            if filled > 0 || !may_have_more || is_over(connection) {
                break;
            }
            let received = inner.receive(slot)?;
            if received.bytes.is_empty() {
                // Whether it ended by the peer's word or was cut.
                connection.read_tls(&mut io::empty())?;
                let over = connection.reader().fill_buf().map(|_| ());
                return over.map(|()| Received::of(&[], false));
            }
            may_have_more = received.may_have_more;
            let fed = feed(connection, received.bytes, |connection| {
                take_plain(connection, plain, &mut filled);
            });
            // An answer to the peer's own records, or why they are refused; what does not fit goes with the next bytes.
            let _ = flush(connection, inner, slot);
            fed?;
        }
        let is_over = is_over(connection);
        if filled == 0 && !is_over {
            return Err(if may_have_more {
                Broken::because("256 KiB of TLS came without data")
            } else {
                ErrorKind::WouldBlock.into()
            });
        }
        let may_have_more = filled > 0 && (may_have_more || is_over);
        Ok(Received::of(&plain[..filled], may_have_more))
    }

    fn close(&mut self, slot: usize) {
        if let Some(session) = self.sessions.get_mut(slot) {
            let session = std::mem::take(session);
            if let (Stage::Open, Some(mut connection), 0) = (session.stage, session.connection, session.owed)
            {
                connection.send_close_notify();
                let _ = flush(&mut connection, &mut self.inner, slot);
            }
        }
        self.inner.close(slot);
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.inner.wait(timeout_ns, &mut events);
        for event in events.drain(..) {
            if matches!(self.sessions[event.slot].stage, Stage::Open) {
                ready.push(event);
            } else {
                self.on_the_way(&event, ready);
            }
        }
        self.events = events;
        self.others_are_ready = !ready.is_empty();
        waited
    }

    fn work(&mut self, ready: &mut Vec<Ready>) {
        let most = if self.others_are_ready { 1 } else { SHAKEN_AT_ONCE };
        for _ in 0..most {
            let Some(slot) = self.queue.pop_front() else {
                return;
            };
            self.shake(slot, ready);
        }
    }

    fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    fn too_late(&self, slot: Option<usize>) -> &'static str {
        match slot {
            Some(slot) if self.is_shaking(slot) => "the TLS handshake did not end before the time-out",
            Some(_) => "no connection before the time-out",
            None => "no connection with a finished TLS handshake before the time-out",
        }
    }

    fn handshakes(&mut self) -> Option<Handshakes> {
        Some(std::mem::take(&mut self.handshakes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::spec::Spec;

    /// Connects at once; the server says nothing, but for one slot that is ready again and again.
    #[derive(Debug)]
    struct Silent {
        ready: Option<usize>,
    }

    impl Driver for Silent {
        const NAME: &'static str = "silent";

        fn connect(&mut self, _: usize) -> io::Result<bool> {
            Ok(true)
        }

        fn connect_result(&mut self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn send(&mut self, _: usize, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn receive(&mut self, _: usize) -> io::Result<Received<'_>> {
            Err(ErrorKind::WouldBlock.into())
        }

        fn close(&mut self, _: usize) {}

        fn wait(&mut self, _: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
            ready.extend(self.ready.map(|slot| ended(slot, true, false)));
            Ok(())
        }
    }

    fn client() -> Client {
        let spec = r#"{"target": {"host": "localhost", "port": 443, "tls": {"verify": false}}, "workload": {
            "loop": {"kind": "closed", "connections": 1}, "stop": {"kind": "requests", "requests": 1},
            "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 0,
            "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
            "expect": {"status": null, "body": null}}, "threads": 1, "cpus": null, "pacing": "precise"}"#;
        let target = Spec::from_json(spec).unwrap().target;
        Client::new(&target, target.tls.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn t16_while_others_have_replies_one_handshake_goes_on_at_a_time() {
        for (ready, at_once) in [(Some(0), 1), (None, SHAKEN_AT_ONCE)] {
            let mut driver = Tls::new(Silent { ready }, client());
            for slot in 0..=20 {
                assert!(!driver.connect(slot).unwrap());
            }
            driver.sessions[0].stage = Stage::Open;
            let (mut others, mut over) = (Vec::new(), Vec::new());
            driver.wait(0, &mut others).unwrap();
            assert_eq!(others.len(), usize::from(ready.is_some()));
            let before = driver.queue.len();
            driver.work(&mut over);
            assert_eq!(before - driver.queue.len(), at_once);
            assert!(driver.has_work() && over.is_empty());
        }
    }
}

//! TLS over any other driver: handshakes in bounded pieces, then bytes as they are.
//!
//! A connection is open when its handshake has ended. Handshakes are work of this side, of a tenth of a millisecond and more: they are
//! done between two rounds of the worker, one at a time while others have replies to be taken.

use super::{Driver, Ready, Received, Streams, RECEIVE_BYTES};
use crate::clock::{Clock, Monotonic};
use crate::socket::handshakes::{copy, Broken, Client, Handshakes};
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
    // Slots whose handshake may go on, or that brought no data and may have more to be read.
    queue: Queue,
    others_are_ready: bool,
    plain: Vec<u8>,
    handshakes: Handshakes,
}

/// Slots in the order of their turns, each once, whatever becomes of its connection meanwhile.
#[derive(Debug, Default)]
struct Queue {
    slots: VecDeque<usize>,
    // By slot: whether it is among them.
    has: Vec<bool>,
}

#[derive(Debug, Default)]
struct Session {
    stage: Stage,
    connection: Option<Box<ClientConnection>>,
    /// Bytes of the request that are encrypted, of which the kernel has not taken the last.
    owed: usize,
    /// Bytes that have come since the last data.
    came: usize,
    /// Data that came while something else was done: it is received next.
    early: Vec<u8>,
    /// The peer has closed its side: no event says so again, so it is read to the end.
    hangup: bool,
    /// Why it broke, behind data that is received first.
    broken: Option<io::Error>,
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
// What takes more is no handshake, and no data either.
const MOST_WITHOUT_DATA: usize = 4 * RECEIVE_BYTES;
// Encrypted at once: as much as the library keeps.
const PIECE_BYTES: usize = 64 * 1024;
// What one reading holds, and what was left of the record before.
const PLAIN_BYTES: usize = RECEIVE_BYTES + 32 * 1024;

impl Queue {
    fn push(&mut self, slot: usize) {
        if slot >= self.has.len() {
            self.has.resize(slot + 1, false);
        }
        if !std::mem::replace(&mut self.has[slot], true) {
            self.slots.push_back(slot);
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let slot = self.slots.pop_front()?;
        self.has[slot] = false;
        Some(slot)
    }
}

impl<D: Driver> Tls<D> {
    /// Over a driver without sockets.
    pub fn new(inner: D, client: Client) -> Self {
        Self {
            inner,
            client,
            sessions: Vec::new(),
            events: Vec::new(),
            queue: Queue::default(),
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
        self.queue.push(slot);
        Ok(())
    }

    /// Something happened to a socket that is not open yet; what is over by it is ready.
    fn on_the_way(&mut self, event: &Ready, ready: &mut Vec<Ready>) {
        let slot = event.slot;
        match self.sessions[slot].stage {
            Stage::Connecting if event.writable => {
                let begun = self.inner.connect_result(slot).and_then(|()| self.begin(slot));
                if let Err(error) = begun {
                    self.fail(slot, error, ready);
                }
            }
            Stage::Shaking { .. } => self.queue.push(slot),
            _ => {}
        }
    }

    /// Goes on with a handshake; what is over by it is ready.
    fn shake(&mut self, slot: usize, ready: &mut Vec<Ready>) {
        let session = &mut self.sessions[slot];
        let shaken = session.shaken(&mut self.inner, slot);
        let (Stage::Shaking { since_ns }, Some(connection)) = (&session.stage, &mut session.connection)
        else {
            return;
        };
        match shaken {
            Ok(None) => {}
            Ok(Some(may_have_more)) => {
                let took_ns = Monotonic.now().saturating_sub(*since_ns);
                if let Err(error) = self.client.check_protocol(connection) {
                    self.handshakes.failed += 1;
                    return self.fail(slot, error, ready);
                }
                self.handshakes.count(connection, took_ns);
                // Bytes that came with the handshake, for which nobody asked, or the word that it is over.
                let readable = may_have_more || !session.early.is_empty() || is_over(connection);
                session.came = 0;
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

impl Session {
    /// Sends and receives what a handshake has; null while it waits for the server, else whether more may be there to be read.
    fn shaken<D: Driver>(&mut self, inner: &mut D, slot: usize) -> io::Result<Option<bool>> {
        let (Stage::Shaking { .. }, Some(connection)) = (&self.stage, &mut self.connection) else {
            return Ok(None);
        };
        let mut may_have_more = true;
        while self.came < MOST_WITHOUT_DATA {
            match flush(connection, inner, slot) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(self.last_word(inner, slot).unwrap_or_else(|| lost(&error))),
                Ok(()) => {}
            }
            if !connection.is_handshaking() {
                return Ok(Some(may_have_more));
            }
            // However small the pieces are in which it comes: an event says when there is the next one.
            if !may_have_more {
                return Ok(None);
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
            self.came += received.bytes.len();
            may_have_more = received.may_have_more || self.hangup;
            let fed = feed(connection, received.bytes, |connection| {
                keep_plain(connection, &mut self.early)
            });
            if fed.is_err() {
                // Says to the server why, if it still listens.
                let _ = flush(connection, inner, slot);
            }
            fed?;
        }
        Err(Broken::because("256 KiB came, and no end of the TLS handshake"))
    }

    /// Why the peer closed, where it said so before what we sent found nobody.
    fn last_word<D: Driver>(&mut self, inner: &mut D, slot: usize) -> Option<io::Error> {
        if self.broken.is_none() {
            let connection = self.connection.as_mut()?;
            let received = inner.receive(slot).ok()?;
            let fed = feed(connection, received.bytes, |connection| {
                keep_plain(connection, &mut self.early)
            });
            self.broken = fed.err();
        }
        self.broken.as_ref().map(copy)
    }
}

/// The socket failed under its handshake.
fn lost(error: &io::Error) -> io::Error {
    Broken::because(format!("the connection broke in the TLS handshake: {error}"))
}

/// The library keeps no more of what it is handed.
fn no_room(error: io::Error) -> io::Error {
    Broken::because(error.to_string())
}

/// Hands encrypted bytes to a session, and lets `take` have what they are after each piece; of one that breaks, what came before.
fn feed(
    connection: &mut ClientConnection,
    mut bytes: &[u8],
    mut take: impl FnMut(&mut ClientConnection),
) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = connection.read_tls(&mut bytes).map_err(no_room)?;
        let processed = connection.process_new_packets();
        take(connection);
        processed.map_err(|error| Broken::of(&error))?;
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

/// Keeps what is decrypted, behind what was kept before.
fn keep_plain(connection: &mut ClientConnection, early: &mut Vec<u8>) {
    // It ends with `WouldBlock`, or with the end of the stream, which the next reading finds again.
    let _ = connection.reader().read_to_end(early);
}

/// Takes what was kept, as much as one reading may give.
fn take_early(early: &mut Vec<u8>, plain: &mut [u8]) -> usize {
    let count = early.len().min(RECEIVE_BYTES);
    plain[..count].copy_from_slice(&early[..count]);
    early.drain(..count);
    count
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
            let written = connection.writer().write(piece);
            session.owed = written.map_err(|error| session.broken.as_ref().map_or(error, copy))?;
        }
        match flush(connection, &mut self.inner, slot) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            Err(error) => Err(session.last_word(&mut self.inner, slot).unwrap_or(error)),
            Ok(()) => Ok(std::mem::take(&mut session.owed)),
        }
    }

    /// Reads once. What brought no data is read on between two rounds, as a handshake goes on: the others have their turn before.
    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let Self {
            inner,
            sessions,
            queue,
            plain,
            ..
        } = self;
        let session = sessions.get_mut(slot).ok_or_else(not_connected)?;
        let connection = session.connection.as_mut().ok_or_else(not_connected)?;
        let mut filled = take_early(&mut session.early, plain);
        let mut may_have_more = true;
        if filled == 0 && session.broken.is_none() && !is_over(connection) {
            let received = inner.receive(slot)?;
            if received.bytes.is_empty() {
                // Whether it ended by the peer's word or was cut.
                connection.read_tls(&mut io::empty()).map_err(no_room)?;
                let over = connection.reader().fill_buf().map(|_| ());
                return over.map(|()| Received::of(&[], false));
            }
            may_have_more = received.may_have_more || session.hangup;
            session.came += received.bytes.len();
            let fed = feed(connection, received.bytes, |connection| {
                take_plain(connection, plain, &mut filled);
            });
            session.broken = fed.err();
            // An answer to the peer's own records, or why they are refused; what does not fit goes with the next bytes. Those of a request
            // go where they are counted: its reply may come at once.
            if session.owed == 0 {
                let _ = flush(connection, inner, slot);
            }
        }
        let is_over = is_over(connection);
        if filled > 0 || is_over {
            session.came = 0;
            let may_have_more = filled > 0 && (may_have_more || is_over || session.broken.is_some());
            return Ok(Received::of(&plain[..filled], may_have_more));
        }
        if let Some(error) = &session.broken {
            return Err(copy(error));
        }
        if session.came >= MOST_WITHOUT_DATA {
            return Err(Broken::because("256 KiB of TLS came without data"));
        }
        if may_have_more {
            queue.push(slot);
        }
        Err(ErrorKind::WouldBlock.into())
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
            self.sessions[event.slot].hangup |= event.hangup;
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
            let Some(slot) = self.queue.pop() else {
                return;
            };
            let session = &self.sessions[slot];
            if matches!(session.stage, Stage::Open) {
                ready.push(Ready {
                    slot,
                    writable: false,
                    readable: true,
                    hangup: session.hangup,
                });
            } else {
                self.shake(slot, ready);
            }
        }
    }

    fn has_work(&self) -> bool {
        !self.queue.slots.is_empty()
    }

    fn too_late(&self, slot: Option<usize>) -> &'static str {
        match slot {
            Some(slot) if self.is_shaking(slot) => "the TLS handshake did not end before the time-out",
            Some(_) => self.inner.too_late(slot),
            None => "no connection with a finished TLS handshake before the time-out",
        }
    }

    fn opened_to(&self) -> &[u64] {
        self.inner.opened_to()
    }

    fn handshakes(&mut self) -> Option<Handshakes> {
        Some(std::mem::take(&mut self.handshakes))
    }
}

impl<D: Driver> Streams for Tls<D> {}

#[cfg(test)]
mod tests;

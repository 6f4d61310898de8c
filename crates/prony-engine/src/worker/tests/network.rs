//! A network and a server that do whatever a script says, in simulated time.
//!
//! Readiness is reported as by an edge-triggered poller: once for each thing that happens, with the state of the socket then. What no
//! correct client does panics: a request on a connection that still owes a reply, bytes that are not the request's next, two sockets in one
//! slot.

use crate::clock::{Clock, Simulated};
use crate::socket::{Driver, Ready, Received, Streams, RECEIVE_BYTES};
use crate::worker::Opening;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The body that is expected.
pub const BODY: &str = "hello";
// Every call takes some time, as in life; it also keeps a worker that spins from standing still.
pub const CALL_NS: u64 = 300;
const DELAYS_NS: [u64; 6] = [900_000, 0, 700, 40_000, 7_000_000, 60_000_000];

/// Choices, in order; when they run out, the network and the server are perfect.
#[derive(Debug, Default)]
pub struct Script {
    choices: VecDeque<u8>,
}

impl Script {
    pub fn new(choices: Vec<u8>) -> Self {
        let choices = choices.into();
        Self { choices }
    }

    pub fn pick(&mut self, count: usize) -> usize {
        usize::from(self.choices.pop_front().unwrap_or(0)) % count
    }

    fn delay_ns(&mut self) -> u64 {
        DELAYS_NS[self.pick(DELAYS_NS.len())]
    }
}

/// What this side of the network saw: the other side of the account.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub attempts: u64,
    pub connected: u64,
    pub refused: u64,
    /// Connections on which bytes came before a request.
    pub spoke_first: u64,
    pub bytes_taken: u64,
    pub bytes_given: u64,
    /// Replies handed over to the last byte.
    pub good: u64,
    pub unavailable: u64,
    pub other_body: u64,
    /// Good ones that were handed over before their request had been taken to its last byte.
    pub early: u64,
    /// The most requests that were under way at once.
    pub most_owed: usize,
    pub waits: u64,
    pub calls: u64,
    /// The most attempts that were begun between two waits.
    pub most_attempts_at_once: u64,
    attempts_at_last_wait: u64,
    /// The most requests that were begun between two waits, on connections of which nothing was new.
    pub most_begun_unasked: usize,
    // Since the last wait; null: something was new.
    begun_unasked: Option<usize>,
    pub closed: u64,
    /// Of which requests good replies were handed over, to the last byte.
    pub answered: Vec<usize>,
    /// Which requests were begun, each time that one was.
    pub begun: Vec<usize>,
    /// How many requests were under way, each time that one was begun.
    pub owed: Vec<(u64, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Unavailable,
    OtherBody,
}

#[derive(Debug)]
enum Piece {
    Bytes {
        bytes: Vec<u8>,
        completes: Option<Verdict>,
    },
    End {
        completes: Option<Verdict>,
    },
    Reset,
}

#[derive(Debug)]
struct Socket {
    /// When the attempt ends, and with which errno (0: well).
    connect: (u64, i32),
    is_connected: bool,
    /// Which of the requests is the current one, and how many of its bytes were taken.
    request: usize,
    taken: usize,
    /// A reply is owed: its request has begun.
    owes: bool,
    /// It was answered before it was taken in full.
    is_answered: bool,
    /// Full until then.
    blocked_until_ns: u64,
    /// The next send takes nothing.
    is_full: bool,
    inbound: VecDeque<(u64, Piece)>,
    edges: Vec<u64>,
}

impl Socket {
    fn piece_is_there(&self, now_ns: u64) -> bool {
        self.inbound.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns)
    }

    fn hangs_up(&self, now_ns: u64) -> bool {
        let is_end =
            |(at_ns, piece): &(u64, Piece)| *at_ns <= now_ns && !matches!(piece, Piece::Bytes { .. });
        self.inbound.iter().any(is_end)
    }

    fn is_reset(&self, now_ns: u64) -> bool {
        let is_reset = |(at_ns, piece): &(u64, Piece)| *at_ns <= now_ns && matches!(piece, Piece::Reset);
        self.inbound.iter().any(is_reset)
    }

    fn arrive(&mut self, at_ns: u64, piece: Piece) {
        let last_ns = self.inbound.back().map_or(0, |(at_ns, _)| *at_ns);
        let at_ns = at_ns.max(last_ns);
        self.inbound.push_back((at_ns, piece));
        self.edges.push(at_ns);
    }

    fn ready(&self, slot: usize, now_ns: u64) -> Ready {
        let is_over = self.connect.0 <= now_ns;
        let failed = is_over && self.connect.1 != 0;
        let hangup = failed || self.hangs_up(now_ns);
        Ready {
            slot,
            writable: is_over && (failed || self.is_reset(now_ns) || self.blocked_until_ns <= now_ns),
            readable: hangup || self.piece_is_there(now_ns),
            hangup,
        }
    }
}

/// All sockets, the server behind them, and the clock.
#[derive(Debug)]
pub struct World {
    pub clock: Simulated,
    pub script: Script,
    pub tally: Tally,
    pub requests: Vec<Vec<u8>>,
    pub cancel_ns: u64,
    /// What each call takes.
    pub call_ns: u64,
    /// When another worker has opened its connections, which it says then.
    pub other: Option<(u64, Arc<Opening>)>,
    pub cancelled: Rc<AtomicBool>,
    sockets: Vec<Option<Socket>>,
}

impl World {
    /// A server that takes any of these requests.
    pub fn new(clock: Simulated, script: Script, requests: Vec<Vec<u8>>, slots: usize) -> Self {
        Self {
            clock,
            script,
            tally: Tally::default(),
            requests,
            cancel_ns: u64::MAX,
            call_ns: CALL_NS,
            other: None,
            cancelled: Rc::default(),
            sockets: (0..slots).map(|_| None).collect(),
        }
    }

    fn call(&mut self) -> u64 {
        self.tally.calls += 1;
        self.clock.advance_to(self.clock.now() + self.call_ns);
        self.hear_the_other();
        self.clock.now()
    }

    fn hear_the_other(&mut self) {
        let now_ns = self.clock.now();
        if let Some((at_ns, opening)) = self.other.take_if(|(at_ns, _)| *at_ns <= now_ns) {
            opening.ready(at_ns);
        }
    }

    fn begin(&mut self, slot: usize) -> io::Result<bool> {
        let now_ns = self.call();
        assert!(self.sockets[slot].is_none(), "slot {slot} has a socket already");
        self.tally.attempts += 1;
        let delay_ns = self.script.delay_ns();
        let connect = match self.script.pick(10) {
            5 => return self.refuse(libc::EADDRNOTAVAIL),
            6 => return self.refuse(libc::EMFILE),
            7 => (now_ns + delay_ns, libc::ECONNREFUSED),
            8 => (u64::MAX, 0),
            9 => (now_ns, 0),
            _ => (now_ns + delay_ns, 0),
        };
        let at_once = connect == (now_ns, 0);
        let mut socket = Socket {
            connect,
            is_connected: at_once,
            request: 0,
            taken: 0,
            owes: false,
            is_answered: false,
            blocked_until_ns: 0,
            is_full: false,
            inbound: VecDeque::new(),
            edges: vec![connect.0],
        };
        if connect.1 == 0 && connect.0 != u64::MAX {
            match self.script.pick(12) {
                10 => socket.arrive(connect.0, Piece::End { completes: None }),
                11 => socket.arrive(connect.0, Piece::Reset),
                // A reply that comes with the connection looks like one that comes after the request was sent at once.
                9 if !at_once => socket.arrive(connect.0, bytes(plain("200 OK", "", BODY), None)),
                _ => {}
            }
        }
        self.sockets[slot] = Some(socket);
        self.tally.connected += u64::from(at_once);
        Ok(at_once)
    }

    fn refuse<T>(&mut self, errno: i32) -> io::Result<T> {
        self.tally.refused += 1;
        Err(io::Error::from_raw_os_error(errno))
    }

    fn attempt_result(&mut self, slot: usize) -> io::Result<()> {
        let now_ns = self.call();
        self.tally.begun_unasked = None;
        let socket = self.sockets[slot].as_mut().expect("a socket");
        assert!(
            !socket.is_connected && socket.connect.0 <= now_ns,
            "asked too early"
        );
        if socket.connect.1 != 0 {
            let errno = socket.connect.1;
            return self.refuse(errno);
        }
        socket.is_connected = true;
        match socket.inbound.front() {
            Some((_, Piece::Bytes { .. })) => self.tally.spoke_first += 1,
            _ => self.tally.connected += 1,
        }
        Ok(())
    }

    fn take(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let choice = self.script.pick(8);
        let socket = self.sockets[slot].as_mut().expect("a socket");
        assert!(socket.is_connected, "sent on a connection that is none yet");
        if socket.is_reset(now_ns) {
            return Err(io::Error::from_raw_os_error(libc::ECONNRESET));
        }
        if socket.blocked_until_ns > now_ns || std::mem::take(&mut socket.is_full) {
            let until_ns = socket.blocked_until_ns.max(now_ns + 20_000);
            socket.blocked_until_ns = until_ns;
            socket.edges.push(until_ns);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if socket.taken == 0 {
            assert!(!socket.owes, "a second request before the reply to the first");
            (socket.owes, socket.is_answered) = (true, false);
            let known = self.requests.iter().position(|request| request == bytes);
            socket.request = known.expect("one of the requests");
            self.tally.begun.push(socket.request);
            self.tally.begun_unasked = self.tally.begun_unasked.map(|count| count + 1);
        }
        let request = &self.requests[socket.request];
        assert_eq!(bytes, &request[socket.taken..], "not what comes next");
        let count = match choice {
            6 => bytes.len().div_ceil(2),
            7 => 1,
            _ => bytes.len(),
        };
        socket.is_full = count < bytes.len();
        socket.taken += count;
        let is_whole = socket.taken == request.len();
        if is_whole {
            socket.taken = 0;
        }
        self.tally.bytes_taken += count as u64;
        let was_answered = socket.is_answered;
        self.count_owed(now_ns);
        if was_answered {
            return Ok(count);
        }
        let answers_early = !is_whole && self.script.pick(6) == 5;
        if is_whole || answers_early {
            self.answer(slot, now_ns, answers_early);
        }
        Ok(count)
    }

    /// Sockets that there are now.
    pub fn sockets(&self) -> usize {
        self.sockets.iter().flatten().count()
    }

    fn count_owed(&mut self, now_ns: u64) {
        let owed = self.sockets.iter().flatten().filter(|socket| socket.owes).count();
        self.tally.owed.push((now_ns, owed));
        self.tally.most_owed = self.tally.most_owed.max(owed);
    }

    fn answer(&mut self, slot: usize, now_ns: u64, is_early: bool) {
        let script = &mut self.script;
        let at_ns = now_ns + script.delay_ns();
        let mut pieces: Vec<(u64, Piece)> = match script.pick(18) {
            5 => in_pieces(&plain("200 OK", "", BODY), Verdict::Good, script),
            6 => whole(plain("503 No", "", BODY), Verdict::Unavailable),
            7 => vec![],
            8 => vec![(0, Piece::End { completes: None })],
            9 => vec![(0, Piece::Reset)],
            10 => cut(plain("200 OK", "", BODY), script),
            11 => vec![(0, bytes("SSH-2.0-x\r\n\r\n".into(), None))],
            12 => with_surplus(script),
            13 => closed_after(whole(plain("200 OK", "", BODY), Verdict::Good), script),
            14 => closed_after(
                whole(plain("200 OK", "Connection: close\r\n", BODY), Verdict::Good),
                script,
            ),
            15 => whole(plain("200 OK", "", "other"), Verdict::OtherBody),
            16 => until_close(script),
            17 => whole(
                format!(
                    "HTTP/1.1 103 Hints\r\n\r\n{}",
                    plain("200 OK", "", &"x".repeat(150_000))
                ),
                Verdict::OtherBody,
            ),
            _ => whole(plain("200 OK", "", BODY), Verdict::Good),
        };
        if is_early {
            pieces.push((60_000_000, Piece::End { completes: None }));
        }
        if let Some(socket) = &mut self.sockets[slot] {
            socket.is_answered = is_early;
            for (delay_ns, piece) in pieces {
                socket.arrive(at_ns + delay_ns, piece);
            }
        }
    }

    fn give(&mut self, slot: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let socket = self.sockets[slot].as_mut().expect("a socket");
        assert!(socket.is_connected, "received on a connection that is none yet");
        let (mut given, mut done) = (0, None);
        while given < buffer.len() && socket.piece_is_there(now_ns) {
            let Some((_, Piece::Bytes { bytes, completes })) = socket.inbound.front_mut() else {
                break;
            };
            let count = bytes.len().min(buffer.len() - given);
            buffer[given..given + count].copy_from_slice(&bytes[..count]);
            bytes.drain(..count);
            given += count;
            if bytes.is_empty() {
                done = done.or(completes.take());
                socket.inbound.pop_front();
            }
        }
        if given > 0 {
            self.tally.begun_unasked = None;
            let is_asked = socket.owes;
            socket.owes &= done.is_none();
            let (is_early, request) = (socket.taken > 0, socket.request);
            self.tally.bytes_given += if is_asked { given as u64 } else { 0 };
            self.hand_over(done, is_early, request);
            return Ok(given);
        }
        if !socket.piece_is_there(now_ns) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match socket.inbound.front_mut() {
            Some((_, Piece::End { completes })) => {
                let (done, is_early) = (completes.take(), socket.taken > 0);
                let request = socket.request;
                self.hand_over(done, is_early, request);
                Ok(0)
            }
            _ => Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
        }
    }

    fn hand_over(&mut self, verdict: Option<Verdict>, is_early: bool, request: usize) {
        match verdict {
            Some(Verdict::Good) => {
                self.tally.early += u64::from(is_early);
                self.tally.good += 1;
                self.tally.answered.push(request);
            }
            Some(Verdict::Unavailable) => self.tally.unavailable += 1,
            Some(Verdict::OtherBody) => self.tally.other_body += 1,
            None => {}
        }
    }

    fn pass(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) {
        self.tally.waits += 1;
        let attempts = self.tally.attempts - self.tally.attempts_at_last_wait;
        self.tally.most_attempts_at_once = self.tally.most_attempts_at_once.max(attempts);
        self.tally.attempts_at_last_wait = self.tally.attempts;
        let begun = self.tally.begun_unasked.replace(0).unwrap_or(0);
        self.tally.most_begun_unasked = self.tally.most_begun_unasked.max(begun);
        let now_ns = self.clock.now() + self.call_ns;
        let edges = self.sockets.iter().flatten().flat_map(|socket| &socket.edges);
        let next_ns = edges.min().copied().unwrap_or(u64::MAX);
        self.clock
            .advance_to(next_ns.min(now_ns.saturating_add(timeout_ns)).max(now_ns));
        self.hear_the_other();
        let now_ns = self.clock.now();
        for (slot, socket) in self.sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let before = socket.edges.len();
            socket.edges.retain(|&at_ns| at_ns > now_ns);
            if socket.edges.len() < before {
                ready.push(socket.ready(slot, now_ns));
            }
        }
        if now_ns >= self.cancel_ns {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

fn plain(status: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn bytes(text: String, completes: Option<Verdict>) -> Piece {
    let bytes = text.into_bytes();
    Piece::Bytes { bytes, completes }
}

fn whole(text: String, verdict: Verdict) -> Vec<(u64, Piece)> {
    vec![(0, bytes(text, Some(verdict)))]
}

fn in_pieces(text: &str, verdict: Verdict, script: &mut Script) -> Vec<(u64, Piece)> {
    let step = 1 + script.pick(20);
    let gap_ns = script.delay_ns() / 8;
    let count = text.len().div_ceil(step);
    let piece = |place: usize| {
        let text = text[place * step..text.len().min((place + 1) * step)].to_owned();
        let completes = (place + 1 == count).then_some(verdict);
        (place as u64 * gap_ns, bytes(text, completes))
    };
    (0..count).map(piece).collect()
}

fn cut(text: String, script: &mut Script) -> Vec<(u64, Piece)> {
    let at = 1 + script.pick(text.len() - 1);
    let end = match script.pick(2) {
        0 => Piece::End { completes: None },
        _ => Piece::Reset,
    };
    vec![(0, bytes(text[..at].to_owned(), None)), (script.delay_ns(), end)]
}

fn closed_after(mut pieces: Vec<(u64, Piece)>, script: &mut Script) -> Vec<(u64, Piece)> {
    let end = match script.pick(2) {
        0 => Piece::End { completes: None },
        _ => Piece::Reset,
    };
    pieces.push((script.delay_ns(), end));
    pieces
}

/// More than was asked for: in one piece, or behind a reply that fills a read to the byte.
fn with_surplus(script: &mut Script) -> Vec<(u64, Piece)> {
    if script.pick(2) == 0 {
        return whole(plain("200 OK", "", BODY) + "surplus", Verdict::Good);
    }
    let head_bytes = plain("200 OK", "", &"x".repeat(60_000)).len() - 60_000;
    let filling = plain("200 OK", "", &"x".repeat(RECEIVE_BYTES - head_bytes));
    let mut pieces = whole(filling, Verdict::OtherBody);
    pieces.push((0, bytes(plain("200 OK", "", BODY), None)));
    pieces
}

fn until_close(script: &mut Script) -> Vec<(u64, Piece)> {
    let head = bytes(format!("HTTP/1.1 200 OK\r\n\r\n{BODY}"), None);
    let completes = Some(Verdict::Good);
    vec![(0, head), (script.delay_ns(), Piece::End { completes })]
}

/// The worker's way into the world.
pub struct Network {
    world: Rc<RefCell<World>>,
    buffer: Vec<u8>,
}

impl Network {
    pub fn new(world: Rc<RefCell<World>>) -> Self {
        let buffer = vec![0; RECEIVE_BYTES];
        Self { world, buffer }
    }
}

impl Driver for Network {
    const NAME: &'static str = "simulated";

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        self.world.borrow_mut().begin(slot)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        self.world.borrow_mut().attempt_result(slot)
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        self.world.borrow_mut().take(slot, bytes)
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let count = self.world.borrow_mut().give(slot, &mut self.buffer)?;
        Ok(Received::of(&self.buffer[..count], count == self.buffer.len()))
    }

    fn close(&mut self, slot: usize) {
        let mut world = self.world.borrow_mut();
        let socket = world.sockets[slot].take();
        world.tally.closed += u64::from(socket.is_some());
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.world.borrow_mut().pass(timeout_ns, ready);
        Ok(())
    }
}

impl Streams for Network {}

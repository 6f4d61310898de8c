//! The worker over TLS against a server that breaks it in whatever way, in simulated time.
//!
//! The server's side of TLS is real; what it sends is cut, spoiled, held back or followed by what no reply is. It counts the replies that
//! were handed over to the last byte on a connection of which nothing was spoiled before.

use super::http2::{frame, good};
use super::network::Script;
use super::{well, Case, Passed, BODY, CALL_NS, EPOCH_NS, MS};
use crate::clock::{Clock, Simulated};
use crate::record::recorder::{seconds, Recorder};
use crate::record::recording::StreamTimes;
use crate::socket::handshakes::Client;
use crate::socket::{self, Driver, Ready, Received, Streams, Tls, RECEIVE_BYTES};
use crate::spec::{HttpVersion, Spec, Wire};
use crate::wire::{Http1, Http2, Protocol};
use crate::worker::{task, Common, Gauges, Worker};
use proptest::prelude::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

const PREFACE_BYTES: usize = 24;
const DELAYS_NS: [u64; 4] = [50_000, 0, 700, 7_000_000];
// A record of data that no key of the session has made, and one that is no record.
const FOREIGN: [u8; 25] = [
    23, 3, 3, 0, 20, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
];
const JUNK: [u8; 5] = *b"junk!";

fn reply() -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len())
}

/// The length of the first request, a head without a body, if all of it is there.
fn whole(input: &[u8]) -> Option<usize> {
    Some(memchr::memmem::find(input, b"\r\n\r\n")? + 4)
}

fn file(name: &str) -> String {
    format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn config(versions: &[&'static SupportedProtocolVersion], tickets: usize) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let made = builder
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    let mut config = made.unwrap();
    config.send_tls13_tickets = tickets;
    config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).to_vec();
    Arc::new(config)
}

// Some 70 KiB of tickets are many, and still no reason to break.
static CONFIGS: LazyLock<[Arc<ServerConfig>; 4]> = LazyLock::new(|| {
    let (new, old) = (&[&rustls::version::TLS13], &[&rustls::version::TLS12]);
    [config(new, 2), config(new, 0), config(new, 300), config(old, 0)]
});

#[derive(Debug, Default)]
struct Tally {
    connected: u64,
    /// Good replies that were handed over whole.
    whole: u64,
    /// What the server did that may cost a request.
    harms: u64,
    /// What it did so that nothing says that it is over.
    silences: u64,
    waits: u64,
    reads: u64,
    calls: u64,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// What came before it is so many whole replies.
    Whole(u64),
    End,
    Reset,
}

struct Socket {
    connected_ns: u64,
    is_open: bool,
    session: ServerConnection,
    is_http2: bool,
    has_preface: bool,
    input: Vec<u8>,
    inbound: VecDeque<(u64, Piece)>,
    edges: Vec<u64>,
    last_ns: u64,
    /// It says that it is over as soon as its handshake has ended, and keeps the socket.
    leaves: bool,
    /// Something it sent was spoiled, or held back.
    is_spoiled: bool,
    /// It looks at nothing more.
    is_over: bool,
}

struct Server {
    clock: Simulated,
    script: Script,
    is_http2: bool,
    sockets: Vec<Option<Socket>>,
    tally: Tally,
}

impl Socket {
    fn arrive(&mut self, at_ns: u64, piece: Piece) {
        self.last_ns = self.last_ns.max(at_ns);
        self.inbound.push_back((self.last_ns, piece));
        self.edges.push(self.last_ns);
    }

    fn end(&mut self, at_ns: u64, piece: Piece) {
        self.arrive(at_ns, piece);
        self.is_over = true;
    }

    /// What TLS has to send by itself, and what was written.
    fn encrypted(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// The next whole request: the bytes that answer it.
    fn next_reply(&mut self) -> Option<Vec<u8>> {
        if !self.is_http2 {
            let length = whole(&self.input)?;
            self.input.drain(..length);
            return Some(reply().into_bytes());
        }
        if !self.has_preface {
            self.has_preface = self.input.len() >= PREFACE_BYTES;
            self.input
                .drain(..if self.has_preface { PREFACE_BYTES } else { 0 });
        }
        loop {
            let header = self.input.get(..9).filter(|_| self.has_preface)?;
            let length = 9 + u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let (kind, id) = (header[3], [header[5], header[6], header[7], header[8]]);
            if self.input.len() < length {
                return None;
            }
            let one: Vec<u8> = self.input.drain(..length).collect();
            match kind {
                1 => return Some(good(u32::from_be_bytes(id))),
                6 if one[4] == 0 => self.write(&frame(6, 1, 0, &one[9..])),
                _ => {}
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.session.writer().write_all(bytes).unwrap();
    }

    /// A fatal alert: what it would say of a record that no key of the session has made.
    fn refuse(&mut self) {
        let _ = self.session.read_tls(&mut &FOREIGN[..]);
        let _ = self.session.process_new_packets();
    }
}

/// Another byte at this place, or behind it where a record says what the receiver does not look at.
fn spoil(bytes: &mut [u8], place: usize) {
    let mut begin = 0;
    while let Some(header) = bytes.get(begin..begin + 5) {
        let length = 5 + usize::from(u16::from_be_bytes([header[3], header[4]]));
        let within = place.saturating_sub(begin);
        if within < length && header[0] != 20 {
            let within = if within < 3 { 5 } else { within };
            bytes[begin + within] ^= 1 << (place % 8);
            return;
        }
        begin += length;
    }
    // Behind the last record, or in one that says nothing.
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
}

impl Server {
    fn call(&mut self) -> u64 {
        self.tally.calls += 1;
        self.clock.advance_to(self.clock.now() + CALL_NS);
        self.clock.now()
    }

    fn connect(&mut self, slot: usize) {
        let connected_ns = self.call() + 50_000;
        if slot >= self.sockets.len() {
            self.sockets.resize_with(slot + 1, || None);
        }
        assert!(self.sockets[slot].is_none(), "slot {slot} has a socket");
        self.tally.connected += 1;
        let config = &CONFIGS[self.script.pick(CONFIGS.len())];
        let mut socket = Socket {
            connected_ns,
            is_open: false,
            session: ServerConnection::new(Arc::clone(config)).unwrap(),
            is_http2: self.is_http2,
            has_preface: false,
            input: Vec::new(),
            inbound: VecDeque::new(),
            edges: vec![connected_ns],
            last_ns: connected_ns,
            leaves: self.script.pick(16) == 15,
            is_spoiled: false,
            is_over: false,
        };
        if self.is_http2 {
            socket.write(&frame(4, 0, 0, &[]));
        }
        self.sockets[slot] = Some(socket);
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let choice = self.script.pick(12);
        let socket = self.sockets[slot].as_mut().unwrap();
        assert!(socket.is_open, "sent on a connection that is none yet");
        let is_reset = |(at_ns, piece): &(u64, Piece)| *at_ns <= now_ns && matches!(piece, Piece::Reset);
        if socket.inbound.iter().any(is_reset) {
            return Err(io::Error::from_raw_os_error(libc::ECONNRESET));
        }
        if choice == 11 {
            socket.edges.push(now_ns + 20_000);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = if choice == 10 {
            bytes.len().div_ceil(2)
        } else {
            bytes.len()
        };
        let mut taken = &bytes[..count];
        while !taken.is_empty() && !socket.is_over {
            let read = socket.session.read_tls(&mut taken).unwrap();
            socket.is_over |= socket.session.process_new_packets().is_err() || read == 0;
            let mut plain = [0; 4096];
            while let Ok(count @ 1..) = socket.session.reader().read(&mut plain) {
                socket.input.extend_from_slice(&plain[..count]);
            }
        }
        if socket.leaves && !socket.session.is_handshaking() && !socket.is_over {
            socket.session.send_close_notify();
            socket.is_over = true;
            self.tally.harms += 1;
        }
        self.transmit(slot, now_ns, 0);
        self.look(slot, now_ns);
        Ok(count)
    }

    /// Answers the requests that are whole, in their order.
    fn look(&mut self, slot: usize, now_ns: u64) {
        loop {
            let socket = self.sockets[slot].as_mut().unwrap();
            let Some(reply) = socket.next_reply().filter(|_| !socket.is_over) else {
                return self.transmit(slot, now_ns, 0);
            };
            self.answer(slot, now_ns, &reply);
        }
    }

    fn answer(&mut self, slot: usize, now_ns: u64, reply: &[u8]) {
        let choice = self.script.pick(22);
        let later = self.script.pick(2);
        let split = self.script.pick(reply.len() - 1) + 1;
        let socket = self.sockets[slot].as_mut().unwrap();
        if choice == 19 {
            self.tally.harms += 1;
            self.tally.silences += 1;
            return;
        }
        let mut replies = 1;
        match choice {
            // Its word that it is over comes too early, or nothing but that.
            20 | 21 => {
                socket.write(&reply[..if choice == 20 { split } else { 0 }]);
                socket.session.send_close_notify();
                replies = 0;
            }
            // New keys before it and within it, as often as is allowed.
            12 => {
                let _ = socket.session.refresh_traffic_keys();
                socket.write(&reply[..split]);
                for _ in 0..20 {
                    let _ = socket.session.refresh_traffic_keys();
                }
                socket.write(&reply[split..]);
            }
            13 => {
                socket.write(&reply[..split]);
                socket.write(&reply[split..]);
            }
            _ => socket.write(reply),
        }
        self.transmit(slot, now_ns, replies);
        let socket = self.sockets[slot].as_mut().unwrap();
        match choice {
            // More often than that.
            14 => {
                for _ in 0..100 {
                    let _ = socket.session.refresh_traffic_keys();
                }
            }
            15 => socket.session.send_close_notify(),
            16 => socket.refuse(),
            _ => {}
        }
        if matches!(choice, 14..=16 | 20 | 21) {
            self.tally.harms += 1;
        }
        self.transmit(slot, now_ns, 0);
        let socket = self.sockets[slot].as_mut().unwrap();
        match choice {
            14 => socket.end(now_ns + MS, Piece::End),
            15 | 16 | 20 | 21 => socket.end(now_ns + [0, 20_000][later], Piece::End),
            17 | 18 => {
                let rest = if choice == 17 { &FOREIGN[..] } else { &JUNK };
                self.tally.harms += 1;
                socket.arrive(now_ns, Piece::Bytes(rest.to_vec()));
                socket.end(now_ns + [0, 20_000][later], Piece::End);
            }
            _ => {}
        }
    }

    /// What the session has to send, to the end of so many replies, goes on its way, or does not.
    fn transmit(&mut self, slot: usize, now_ns: u64, replies: u64) {
        let Self { script, tally, .. } = self;
        let socket = self.sockets[slot].as_mut().unwrap();
        let mut bytes = socket.encrypted();
        if bytes.is_empty() {
            return;
        }
        let at_ns = now_ns + DELAYS_NS[script.pick(DELAYS_NS.len())];
        let choice = script.pick(24);
        let place = (script.pick(256) * 256 + script.pick(256)) % bytes.len();
        if matches!(choice, 18..=21) {
            // A reply that it ends with is not whole, and none that follows is.
            tally.silences += u64::from(matches!(choice, 18 | 21));
            socket.is_spoiled = true;
        }
        tally.harms += u64::from(matches!(choice, 18..=22));
        match choice {
            18 => spoil(&mut bytes, place),
            19..=21 => bytes.truncate(place),
            _ => {}
        }
        match choice {
            // Byte by byte, while they are read; or in two pieces.
            16 => {
                let rest = bytes.split_off(bytes.len().min(2000));
                for (number, byte) in bytes.into_iter().enumerate() {
                    socket.arrive(at_ns + number as u64 * 200, Piece::Bytes(vec![byte]));
                }
                socket.arrive(at_ns, Piece::Bytes(rest));
            }
            17 => {
                let rest = bytes.split_off(place);
                socket.arrive(at_ns, Piece::Bytes(bytes));
                socket.arrive(at_ns + 30_000, Piece::Bytes(rest));
            }
            _ => socket.arrive(at_ns, Piece::Bytes(bytes)),
        }
        if !socket.is_spoiled {
            socket.arrive(at_ns, Piece::Whole(replies));
        }
        match choice {
            // The second one without the word for it.
            19 | 22 => socket.end(at_ns, Piece::End),
            20 => socket.end(at_ns, Piece::Reset),
            21 => socket.is_over = true,
            _ => {}
        }
    }

    fn give(&mut self, slot: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let now_ns = self.call();
        self.tally.reads += 1;
        let socket = self.sockets[slot].as_mut().unwrap();
        let mut given = 0;
        while let Some((_, piece)) = socket.inbound.front_mut().filter(|(at_ns, _)| *at_ns <= now_ns) {
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Whole(replies) => {
                    self.tally.whole += *replies;
                    socket.inbound.pop_front();
                    continue;
                }
                Piece::End if given == 0 => return Ok(0),
                Piece::Reset if given == 0 => return Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
                _ => break,
            };
            let count = bytes.len().min(buffer.len() - given);
            buffer[given..given + count].copy_from_slice(&bytes[..count]);
            bytes.drain(..count);
            given += count;
            if !bytes.is_empty() {
                break;
            }
            socket.inbound.pop_front();
        }
        if given == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(given)
    }

    fn pass(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) {
        let now_ns = self.call();
        self.tally.waits += 1;
        let edges = self.sockets.iter().flatten().flat_map(|socket| &socket.edges);
        let next_ns = edges.min().copied().unwrap_or(u64::MAX);
        self.clock
            .advance_to(next_ns.min(now_ns.saturating_add(timeout_ns)).max(now_ns));
        let now_ns = self.clock.now();
        for (slot, socket) in self.sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let before = socket.edges.len();
            socket.edges.retain(|&at_ns| at_ns > now_ns);
            let is_over = |(at_ns, piece): &(u64, Piece)| {
                *at_ns <= now_ns && matches!(piece, Piece::End | Piece::Reset)
            };
            if socket.edges.len() < before {
                ready.push(Ready {
                    slot,
                    writable: socket.connected_ns <= now_ns,
                    readable: socket.inbound.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns),
                    hangup: socket.inbound.iter().any(is_over),
                });
            }
        }
    }
}

struct Wires {
    server: Rc<RefCell<Server>>,
    buffer: Vec<u8>,
}

impl Driver for Wires {
    const NAME: &'static str = "simulated";

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        self.server.borrow_mut().connect(slot);
        Ok(false)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        let mut server = self.server.borrow_mut();
        server.call();
        server.sockets[slot].as_mut().unwrap().is_open = true;
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        self.server.borrow_mut().send(slot, bytes)
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let count = self.server.borrow_mut().give(slot, &mut self.buffer)?;
        // As a socket: a short read has taken all that was there.
        Ok(Received::of(&self.buffer[..count], count == self.buffer.len()))
    }

    fn close(&mut self, slot: usize) {
        if let Some(socket) = self.server.borrow_mut().sockets.get_mut(slot) {
            *socket = None;
        }
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.server.borrow_mut().pass(timeout_ns, ready);
        Ok(())
    }
}

/// What requests go over, beneath which is TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Http1,
    Http2,
}

/// What a run left behind.
struct Run {
    recorder: Recorder,
    tally: Tally,
    took_ns: u64,
}

fn run(case: &Case, over: Over) -> Run {
    let mut spec = case.spec();
    spec.target.tls = Some(serde_json::from_str(r#"{"verify": false}"#).unwrap());
    spec.target.wire = match over {
        Over::Http2 => Wire::Http2 { streams: 3 },
        Over::Http1 => Wire::default(),
    };
    let clock = Simulated::default();
    clock.advance_to(EPOCH_NS);
    let server = Rc::new(RefCell::new(Server {
        clock: clock.clone(),
        script: Script::new(case.choices.clone()),
        is_http2: over == Over::Http2,
        sockets: Vec::new(),
        tally: Tally::default(),
    }));
    let wires = Wires {
        server: Rc::clone(&server),
        buffer: vec![0; RECEIVE_BYTES],
    };
    let tls = Tls::new(
        wires,
        Client::new(&spec.target, spec.target.tls.as_ref().unwrap()).unwrap(),
    );
    let request = &spec.workload.request;
    let recorder = match over {
        Over::Http1 => ran(
            &spec,
            Http1::new(HttpVersion::V1_1, request, None, "x"),
            tls,
            &clock,
        ),
        Over::Http2 => ran(
            &spec,
            Http2::new(request, None, &spec.target).unwrap(),
            socket::Http2::new(tls, clock.clone(), 3),
            &clock,
        ),
    };
    let tally = std::mem::take(&mut server.borrow_mut().tally);
    let took_ns = clock.now() - EPOCH_NS;
    Run {
        recorder,
        tally,
        took_ns,
    }
}

fn ran<P: Protocol, D: Streams>(spec: &Spec, protocol: P, driver: D, clock: &Simulated) -> Recorder {
    let common = Common::new(spec, EPOCH_NS, spec.own_connections().unwrap());
    let is_open_loop = spec.workload.shape.is_open();
    let mut recorder = Recorder::new(is_open_loop, seconds(common.times.open_ns).0);
    if matches!(spec.target.wire, Wire::Http2 { .. }) {
        recorder.streams = Some(StreamTimes::new(is_open_loop));
    }
    let share = task(spec, &common, 0).unwrap();
    let mut worker = Worker::new(protocol, driver, clock.clone(), share, recorder);
    let never = AtomicBool::new(false);
    worker
        .run(&never, &Gauges::default(), &mut Passed::default())
        .unwrap();
    worker.recorder
}

impl Run {
    fn check(&self, over: Over, requests: u64) {
        let (recorder, tally) = (&self.recorder, &self.tally);
        let account = &recorder.account;
        let said = || format!("{account:?} {tally:?} {:?}", recorder.error_samples);
        account.check().unwrap();
        assert_eq!((recorder.outstanding(), recorder.in_flight()), (0, 0));
        assert_eq!(account.scheduled, requests);
        // Whatever it was, it was the server.
        assert_eq!(account.client_other, 0, "{}", said());
        assert!(account.ok <= tally.whole, "{}", said());
        // No request is under way when the next one is begun: each whole reply has its own.
        assert!(over != Over::Http1 || account.ok == tally.whole, "{}", said());
        assert!(tally.harms > 0 || account.ok == requests, "{}", said());
        let late = account.timed_out + account.connect_timed_out + account.not_sent_queue;
        assert!(tally.silences > 0 || late == 0, "{}", said());
        // Each ends in a second, or with the time-out, and the longest wait before the next attempt is one more.
        assert!(self.took_ns <= 2100 * MS * (requests + 1), "{} ns", self.took_ns);
        assert!(tally.waits <= 1000 + 20 * (tally.calls - tally.waits) + self.took_ns / 100_000);
    }
}

fn cases() -> impl Strategy<Value = (Case, Over)> {
    let over = prop_oneof![Just(Over::Http1), Just(Over::Http2)];
    let load = (1usize..4, 1u64..25, proptest::option::of(20u64..2000));
    let choices = proptest::collection::vec(any::<u8>(), 0..400);
    (over, load, choices).prop_map(|(over, (connections, requests, rate_per_s), choices)| {
        let case = Case {
            requests: Some(requests),
            pacing: "economical",
            grace_ns: 60_000 * MS,
            choices,
            ..well(connections, rate_per_s)
        };
        (case, over)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t31_however_a_server_breaks_tls_every_request_has_one_end_and_no_whole_reply_is_lost((case, over) in cases()) {
        run(&case, over).check(over, case.requests.unwrap());
    }
}

#[test]
fn a_broken_record_behind_a_whole_reply_ends_its_connection_and_no_request() {
    let case = Case {
        requests: Some(5),
        // Each choice is harmless but that of an answer, which a record of nobody follows at once, and the end later.
        choices: vec![61; 1000],
        ..well(1, None)
    };
    let run = run(&case, Over::Http1);
    assert_eq!(run.recorder.account.ok, 5, "{:?}", run.recorder.error_samples);
    assert!(run.tally.harms >= 5 && run.tally.connected >= 5);
}

#[test]
fn nothing_is_read_behind_a_reply_with_which_its_connection_ended() {
    // A handshake without harm; then the end comes with the reply, and no word for it.
    let choices = [&[1, 0, 0, 0, 0, 0, 0][..], &[22; 100]].concat();
    let case = Case {
        requests: Some(1),
        choices,
        ..well(1, None)
    };
    let run = run(&case, Over::Http1);
    assert_eq!((run.recorder.account.ok, run.tally.harms), (1, 1));
    // In the handshake before the server has said anything, what it then has to say, and the reply.
    assert_eq!(run.tally.reads, 3);
}

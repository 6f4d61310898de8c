//! TLS over a driver that does what a test wants.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::spec::Spec;
use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use std::sync::Arc;

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
        driver.queue.pop();
        let (mut others, mut over) = (Vec::new(), Vec::new());
        driver.wait(0, &mut others).unwrap();
        assert_eq!(others.len(), usize::from(ready.is_some()));
        let before = driver.queue.slots.len();
        driver.work(&mut over);
        assert_eq!(before - driver.queue.slots.len(), at_once);
        assert!(driver.has_work() && over.is_empty());
    }
}

const FOREIGN: [u8; 25] = [
    23, 3, 3, 0, 20, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
];

// RFC 8446 section 4.6.1: for 3600 s, with a nonce and a ticket of a byte each.
const TICKET: [u8; 19] = [4, 0, 0, 15, 0, 0, 14, 16, 1, 2, 3, 4, 1, 7, 0, 1, 9, 0, 0];

/// One connection to a server whose bytes come as a test wants: each of these is a reading.
struct Peer {
    config: Arc<ServerConfig>,
    session: ServerConnection,
    inbound: VecDeque<Vec<u8>>,
    /// How it refuses what is sent.
    refuses: Option<ErrorKind>,
}

impl Peer {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let file = |name: &str| format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"));
        let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
        let made = builder
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let mut config = made.unwrap();
        config.enable_secret_extraction = true;
        let config = Arc::new(config);
        Self {
            session: ServerConnection::new(Arc::clone(&config)).unwrap(),
            config,
            inbound: VecDeque::new(),
            refuses: None,
        }
    }

    /// What the session has to send.
    fn encrypted(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// More tickets than that many bytes have, each in a record of its own, which are the last that it sends.
    fn tickets(&mut self, size: usize) -> Vec<u8> {
        self.handshake_records(&TICKET, size)
    }

    /// Records of a handshake with this in each of them, in all more than that many bytes, which are the last that it sends.
    fn handshake_records(&mut self, plain: &[u8], size: usize) -> Vec<u8> {
        let suite = self
            .session
            .negotiated_cipher_suite()
            .and_then(|suite| suite.tls13());
        let another = ServerConnection::new(Arc::clone(&self.config)).unwrap();
        let session = std::mem::replace(&mut self.session, another);
        let (mut number, secrets) = session.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
            panic!("another cipher");
        };
        let mut encrypter = suite.unwrap().aead_alg.encrypter(key, iv);
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let message = OutboundPlainMessage {
                typ: ContentType::Handshake,
                version: ProtocolVersion::TLSv1_3,
                payload: OutboundChunks::Single(plain),
            };
            bytes.extend(encrypter.encrypt(message, number).unwrap().encode());
            number += 1;
        }
        bytes
    }

    /// Sends data, as far as one session of the library keeps it.
    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.session.writer().write_all(bytes).unwrap();
        self.encrypted()
    }
}

impl Driver for Peer {
    const NAME: &'static str = "peer";

    fn connect(&mut self, _: usize) -> io::Result<bool> {
        Ok(true)
    }

    fn connect_result(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, _: usize, bytes: &[u8]) -> io::Result<usize> {
        match self.refuses {
            Some(kind) => Err(kind.into()),
            None => self.session.read_tls(&mut &*bytes),
        }
    }

    fn receive(&mut self, _: usize) -> io::Result<Received<'_>> {
        // One that is empty is the end.
        let bytes = self.inbound.pop_front().ok_or(ErrorKind::WouldBlock)?;
        let bytes: &'static [u8] = bytes.leak();
        Ok(Received::of(bytes, bytes.len() == RECEIVE_BYTES))
    }

    fn close(&mut self, _: usize) {}

    fn wait(&mut self, _: u64, _: &mut Vec<Ready>) -> io::Result<()> {
        Ok(())
    }
}

/// How a handshake ended of which each event is one reading of so many bytes.
fn shaken(driver: &mut Tls<Peer>, piece_bytes: usize) -> io::Result<()> {
    driver.connect(0).unwrap();
    let mut ready = Vec::new();
    driver.work(&mut ready);
    while ready.is_empty() {
        go_on(driver, piece_bytes, 1, &mut ready);
    }
    driver.connect_result(0)
}

/// What the server has to say comes in pieces, so many of which are there with each event.
fn go_on(driver: &mut Tls<Peer>, piece_bytes: usize, at_once: usize, ready: &mut Vec<Ready>) {
    driver.inner.session.process_new_packets().unwrap();
    let bytes = driver.inner.encrypted();
    assert!(!bytes.is_empty(), "neither side has anything to say");
    let pieces: Vec<_> = bytes.chunks(piece_bytes).map(<[u8]>::to_vec).collect();
    for pieces in pieces.chunks(at_once) {
        driver.inner.inbound.extend(pieces.iter().cloned());
        for _ in pieces {
            driver.queue.push(0);
            driver.work(ready);
        }
    }
}

/// An open connection, and the tickets of its server, which come before all else.
fn open() -> (Tls<Peer>, Vec<u8>) {
    let mut driver = Tls::new(Peer::new(&TLS13), client());
    shaken(&mut driver, RECEIVE_BYTES).unwrap();
    driver.inner.session.process_new_packets().unwrap();
    let tickets = driver.inner.encrypted();
    assert!(tickets.len() > 100);
    (driver, tickets)
}

fn received(driver: &mut Tls<Peer>) -> io::Result<Vec<u8>> {
    driver.receive(0).map(|received| received.bytes.to_vec())
}

#[test]
fn a_handshake_may_come_byte_by_byte_however_many_are_there_already() {
    for version in [&TLS12, &TLS13] {
        for at_once in [1, 100] {
            let mut driver = Tls::new(Peer::new(version), client());
            driver.connect(0).unwrap();
            let mut ready = Vec::new();
            driver.work(&mut ready);
            while ready.is_empty() {
                go_on(&mut driver, 1, at_once, &mut ready);
            }
            driver.connect_result(0).unwrap();
        }
    }
}

/// The library has limits of its own for each message, so that no handshake of its server comes near.
#[test]
fn what_a_handshake_takes_in_all_has_a_limit_of_bytes() {
    for (before, fits) in [(0, true), (MOST_WITHOUT_DATA - 300, false)] {
        let mut driver = Tls::new(Peer::new(&TLS12), client());
        driver.connect(0).unwrap();
        driver.sessions[0].came = before;
        let mut ready = Vec::new();
        driver.work(&mut ready);
        while ready.is_empty() {
            // Each event brings less than what is left.
            go_on(&mut driver, 100, 1, &mut ready);
        }
        let said = driver.connect_result(0).map_err(|error| error.to_string());
        let refused = Err("256 KiB came, and no end of the TLS handshake".to_owned());
        assert_eq!(said, if fits { Ok(()) } else { refused });
    }
}

#[test]
fn data_before_a_broken_record_is_received_and_then_why_it_broke_again_and_again() {
    let (mut driver, tickets) = open();
    let bytes = [&tickets[..], &driver.inner.say(b"all of it"), &FOREIGN].concat();
    driver.inner.inbound.push_back(bytes);
    let first = driver.receive(0).unwrap();
    assert_eq!((first.bytes, first.may_have_more), (&b"all of it"[..], true));
    let sent = driver.send(0, b"more");
    for error in [
        received(&mut driver).err(),
        received(&mut driver).err(),
        sent.err(),
    ] {
        let error = error.unwrap();
        assert_eq!(error.to_string(), "cannot decrypt peer's message");
        assert!(crate::socket::handshakes::is_broken(&error));
    }
}

#[test]
fn the_end_that_came_with_session_tickets_is_received() {
    let (mut driver, mut bytes) = open();
    driver.inner.session.send_close_notify();
    bytes.extend(driver.inner.encrypted());
    driver.inner.inbound.push_back(bytes);
    assert!(received(&mut driver).unwrap().is_empty());
}

#[test]
fn a_cut_that_came_with_session_tickets_is_found_though_no_event_says_so_again() {
    let (mut driver, bytes) = open();
    driver.inner.inbound.extend([bytes, Vec::new()]);
    driver.sessions[0].hangup = true;
    assert_eq!(received(&mut driver).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut ready = Vec::new();
    driver.work(&mut ready);
    assert!(ready[0].readable && ready[0].hangup && !driver.has_work());
    assert_eq!(
        received(&mut driver).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
}

#[test]
fn tickets_alone_are_nothing_to_be_received() {
    let (mut driver, bytes) = open();
    driver.inner.inbound.push_back(bytes);
    assert_eq!(received(&mut driver).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!driver.has_work());
}

#[test]
fn while_tickets_come_without_end_the_others_have_their_turn_after_each_reading() {
    let (mut driver, mut bytes) = open();
    bytes.extend(driver.inner.tickets(MOST_WITHOUT_DATA));
    let readings = bytes.chunks(RECEIVE_BYTES).map(<[u8]>::to_vec);
    driver.inner.inbound.extend(readings);
    for reading in 1..4 {
        let error = received(&mut driver).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{reading}: {error}");
        let mut ready = Vec::new();
        driver.work(&mut ready);
        assert!(ready[0].readable && !driver.has_work(), "{reading}");
    }
    let error = received(&mut driver).unwrap_err();
    assert_eq!(error.to_string(), "256 KiB of TLS came without data");
}

#[test]
fn a_slot_has_one_turn_at_a_time_however_often_it_is_read() {
    let (mut driver, mut bytes) = open();
    bytes.extend(driver.inner.tickets(3 * RECEIVE_BYTES));
    let readings = bytes.chunks(RECEIVE_BYTES).map(<[u8]>::to_vec);
    driver.inner.inbound.extend(readings);
    // After an event, and after the turn before.
    for _ in 0..2 {
        assert_eq!(received(&mut driver).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    let mut ready = Vec::new();
    driver.work(&mut ready);
    assert!(ready.len() == 1 && !driver.has_work(), "{ready:?}");
    // Of the connection that follows too.
    received(&mut driver).unwrap_err();
    driver.connect(0).unwrap();
    assert_eq!(driver.queue.slots, [0]);
}

#[test]
fn what_a_handshake_took_is_not_counted_behind_it() {
    let mut driver = Tls::new(Peer::new(&TLS13), client());
    driver.connect(0).unwrap();
    driver.sessions[0].came = MOST_WITHOUT_DATA - 10_000;
    let mut ready = Vec::new();
    driver.work(&mut ready);
    go_on(&mut driver, RECEIVE_BYTES, 1, &mut ready);
    driver.connect_result(0).unwrap();
    driver.inner.session.process_new_packets().unwrap();
    let bytes = [driver.inner.encrypted(), driver.inner.tickets(10_000)].concat();
    driver.inner.inbound.push_back(bytes);
    assert_eq!(received(&mut driver).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_end_that_came_with_that_of_the_handshake_is_found_though_no_event_says_so_again() {
    for version in [&TLS12, &TLS13] {
        let mut driver = Tls::new(Peer::new(version), client());
        driver.connect(0).unwrap();
        let mut ready = Vec::new();
        driver.work(&mut ready);
        while ready.is_empty() {
            let peer = &mut driver.inner.session;
            peer.process_new_packets().unwrap();
            // Of TLS 1.3 the first flight of the server is its last.
            if !peer.is_handshaking() || version.version == ProtocolVersion::TLSv1_3 {
                peer.send_close_notify();
            }
            go_on(&mut driver, RECEIVE_BYTES, 1, &mut ready);
        }
        driver.connect_result(0).unwrap();
        assert!(ready[0].readable, "{version:?}");
        assert!(received(&mut driver).unwrap().is_empty());
    }
}

/// A reply to what is not counted as sent would be one to nothing.
#[test]
fn what_is_owed_is_sent_only_where_it_is_counted() {
    let (mut driver, bytes) = open();
    driver.inner.refuses = Some(ErrorKind::WouldBlock);
    assert_eq!(
        driver.send(0, b"request").unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    driver.inner.refuses = None;
    driver.inner.inbound.push_back(bytes);
    received(&mut driver).unwrap_err();
    let reached = |driver: &mut Tls<Peer>| {
        let state = driver.inner.session.process_new_packets().unwrap();
        state.plaintext_bytes_to_read()
    };
    assert_eq!(reached(&mut driver), 0);
    assert_eq!(driver.send(0, b"request").unwrap(), 7);
    assert_eq!(reached(&mut driver), 7);
}

#[test]
fn why_it_broke_is_known_too_where_the_rest_of_a_request_finds_nobody() {
    let (mut driver, mut bytes) = open();
    driver.inner.refuses = Some(ErrorKind::WouldBlock);
    driver.send(0, b"request").unwrap_err();
    bytes.extend(FOREIGN);
    driver.inner.inbound.extend([bytes, Vec::new()]);
    let said = "cannot decrypt peer's message";
    assert_eq!(received(&mut driver).unwrap_err().to_string(), said);
    driver.inner.refuses = Some(ErrorKind::BrokenPipe);
    assert_eq!(driver.send(0, b"request").unwrap_err().to_string(), said);
    assert_eq!(received(&mut driver).unwrap_err().to_string(), said);
}

/// A message of 64 KiB that is not whole: as many bytes of it as the library keeps.
#[test]
fn an_end_that_the_library_has_no_room_for_is_a_fault_of_the_server() {
    const KEPT: usize = 0xffff;
    let (mut driver, mut bytes) = open();
    // As long as its first bytes say.
    let piece = [4, 0, 255, 240].repeat(16 * 1024 / 4);
    let records = driver.inner.handshake_records(&piece, KEPT);
    bytes.extend(&records[..KEPT]);
    driver.inner.inbound.extend([bytes, Vec::new()]);
    assert_eq!(received(&mut driver).unwrap_err().kind(), ErrorKind::WouldBlock);
    let error = received(&mut driver).unwrap_err();
    assert!(crate::socket::handshakes::is_broken(&error), "{error:?}");
    assert_eq!(error.to_string(), "message buffer full");
}

/// More than the library keeps, before the word why the connection ended.
#[test]
fn what_came_before_the_last_word_is_received_when_nothing_can_be_sent_any_more() {
    let (mut driver, mut bytes) = open();
    let data: Vec<u8> = (0..50_000u32).map(|number| number as u8).collect();
    bytes.extend(driver.inner.say(&data));
    // A server that refuses what it has got.
    driver.inner.session.read_tls(&mut &FOREIGN[..]).unwrap();
    driver.inner.session.process_new_packets().unwrap_err();
    bytes.extend(driver.inner.encrypted());
    assert!(bytes.len() < RECEIVE_BYTES);
    driver.inner.inbound.push_back(bytes);
    driver.inner.refuses = Some(ErrorKind::BrokenPipe);
    let said = "the server refused with the alert BadRecordMac";
    assert_eq!(driver.send(0, b"request").unwrap_err().to_string(), said);
    let mut all = Vec::new();
    let end = loop {
        match received(&mut driver) {
            Ok(bytes) => all.extend(bytes),
            Err(error) => break error,
        }
    };
    assert!(all == data, "{} of {} bytes", all.len(), data.len());
    assert_eq!(end.to_string(), said);
}

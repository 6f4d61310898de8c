//! A further protocol is one file, with the worker and the shared connections as they are: WebSocket (RFC 6455), as far as short text
//! messages need it. There are no fragments, and nothing answers a ping.
//!
//! A request is a message, and its reply is the message that comes back. A connection begins with the upgrade that its first request asks
//! for; the head that grants it is the head of each reply there.

use super::{check_paths, well, Case, Passed, BODY, MS};
use crate::account::Account;
use crate::clock::{Clock, Monotonic};
use crate::driver::{Epoll, Shared};
use crate::expect::{unmet_header, ExpectedHeader};
use crate::mix::Draw;
use crate::protocol::{EndOfStream, Mixed, News, Progress, Protocol, Reader, Same, Session};
use crate::random;
use crate::recorder::{seconds, PathLedger, Recorder};
use crate::spec::Wire;
use crate::worker::{task, Common, Gauges, Worker};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

// The pair of section 1.3. Whoever asks more than a test draws a key for each connection.
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const ACCEPT: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
// The first byte of a text message in one frame.
const TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;
const MOST_PENDING: usize = 64 * 1024;

/// The length of a head, and its status; null: it is not whole.
fn head(bytes: &[u8]) -> Option<(usize, u16)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    let status = std::str::from_utf8(bytes.get(9..12)?).ok()?;
    Some((end + 4, status.parse().ok()?))
}

/// One message. Its request is the length of the upgrade, the upgrade, and the message behind the first byte of its frame.
struct WebSocket(Vec<u8>);

impl WebSocket {
    fn new(message: &str) -> Self {
        let upgrade = format!(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{KEY}Sec-WebSocket-Version: 13\r\n\r\n"
        );
        let length = (upgrade.len() as u32).to_be_bytes();
        Self([&length, upgrade.as_bytes(), &[TEXT], message.as_bytes()].concat())
    }
}

impl Protocol for WebSocket {
    type Reader = Messages;
    type Request = Same;

    fn next(&mut self) -> Same {
        Same
    }

    fn bytes(&mut self, _: Same) -> &[u8] {
        &self.0
    }

    fn is_idempotent(&self, _: Same) -> bool {
        false
    }

    fn reader(&self) -> Messages {
        Messages::default()
    }

    fn keeps_alive(&self) -> bool {
        true
    }
}

/// Reads a head, which comes whole, and what follows until the connection says that the reply is over.
#[derive(Default)]
struct Messages {
    expected: Option<Arc<[ExpectedHeader]>>,
    unmet: Option<u16>,
    status: u16,
    body_bytes: u64,
    is_over: bool,
}

impl Reader for Messages {
    fn reset(&mut self) {
        let expected = self.expected.take();
        *self = Self {
            expected,
            ..Self::default()
        };
    }

    fn feed(&mut self, data: &[u8], on_body: &mut impl FnMut(&[u8])) -> Progress {
        let mut body = data;
        if let Some((end, status)) = head(data).filter(|_| !self.has_begun()) {
            let expected = self.expected.as_deref();
            self.unmet = expected.and_then(|expected| unmet_header(expected, &data[..end]));
            (self.status, body) = (status, &data[end..]);
        }
        self.body_bytes += body.len() as u64;
        on_body(body);
        Progress::More
    }

    fn end_of_stream(&mut self) -> EndOfStream {
        match self.status {
            0 => EndOfStream::NoReply,
            _ if self.is_over => EndOfStream::Complete,
            _ => EndOfStream::WithinBody,
        }
    }

    fn finish(&mut self) -> EndOfStream {
        self.is_over = true;
        self.end_of_stream()
    }

    fn status(&self) -> u16 {
        self.status
    }

    fn keeps_alive(&self) -> bool {
        self.status == 101
    }

    fn has_begun(&self) -> bool {
        self.status != 0
    }

    fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn expect_headers(&mut self, expected: Option<Arc<[ExpectedHeader]>>) {
        self.expected = expected;
    }

    fn unmet_header(&self) -> Option<u16> {
        self.unmet
    }
}

#[derive(Default, PartialEq)]
enum Stage {
    #[default]
    New,
    Asked,
    Granted,
    Over,
}

/// A connection. Requests go by their keys: each has one under way at most.
#[derive(Default)]
struct Connection {
    stage: Stage,
    out: Vec<u8>,
    input: Vec<u8>,
    head: Vec<u8>,
    /// Who asked for the upgrade, until its message is sent.
    first: Option<usize>,
    /// Whose messages were sent; null: it waits no more, and its reply comes all the same.
    order: VecDeque<Option<usize>>,
    has_answered: bool,
    masks: u64,
}

impl Connection {
    fn push(&mut self, key: usize, message: &[u8]) {
        // No two frames have the same mask (section 5.3).
        let mask = (random::next(&mut self.masks) as u32).to_be_bytes();
        self.out.extend([message[0], MASKED | (message.len() - 1) as u8]);
        self.out.extend(mask);
        self.out.extend(
            message[1..]
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        self.order.push_back(Some(key));
    }

    /// Takes the answer to the upgrade when it is whole.
    fn take_head(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) -> Result<(), &'static str> {
        let Some((length, status)) = head(&self.input) else {
            return if self.input.len() < MOST_PENDING {
                Ok(())
            } else {
                Err("a head without an end")
            };
        };
        self.head = self.input.drain(..length).collect();
        let is_granted = memchr::memmem::find(&self.head, ACCEPT.as_bytes()).is_some();
        match (status, self.first) {
            (101, _) if !is_granted => return Err("the upgrade was granted to another key"),
            (101, first) => {
                self.stage = Stage::Granted;
                first.inspect(|&key| on_news(key, length, News::Bytes));
                self.find_room(on_news);
            }
            (_, first) => {
                (self.stage, self.first) = (Stage::Over, None);
                first.inspect(|&key| on_news(key, length, News::Head(&self.head)));
                first.inspect(|&key| on_news(key, 0, News::Early));
            }
        }
        Ok(())
    }

    /// Takes a message that is whole; false: there is none.
    fn take_message(
        &mut self,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<bool, &'static str> {
        let message = match self.input[..] {
            [] | [TEXT] => None,
            [TEXT, length @ 0..126, ref rest @ ..] => rest.get(..length.into()),
            _ => return Err("a frame that is no short text message"),
        };
        let Some(message) = message else { return Ok(false) };
        let asked = self.order.pop_front().ok_or("a message that answers none")?;
        let whole = 2 + message.len();
        if let Some(key) = asked {
            on_news(key, 0, News::Head(&self.head));
            on_news(key, whole, News::Body(message));
            on_news(key, 0, News::Complete);
        }
        self.has_answered = true;
        self.input.drain(..whole);
        Ok(true)
    }
}

impl Session for Connection {
    const IS_IN_ORDER: bool = true;

    fn open(_: bool, _: bool) -> Self {
        Self::default()
    }

    /// The first message waits until the upgrade is granted (section 4.1).
    fn begin(&mut self, key: usize, request: &[u8], _: bool) -> (Option<u32>, usize) {
        let (length, rest) = request.split_first_chunk().unwrap();
        let (upgrade, message) = rest.split_at(u32::from_be_bytes(*length) as usize);
        if self.stage == Stage::Granted {
            self.push(key, message);
            return (Some(key as u32), request.len());
        }
        (self.stage, self.first) = (Stage::Asked, Some(key));
        self.out.extend(upgrade);
        (Some(key as u32), request.len() - message.len())
    }

    fn send(&mut self, id: u32, message: &[u8]) -> usize {
        let key = id as usize;
        if self.stage != Stage::Granted || self.first.take_if(|first| *first == key).is_none() {
            return 0;
        }
        self.push(key, message);
        message.len()
    }

    fn cancel(&mut self, id: u32, _: &mut impl FnMut(usize, usize, News<'_>)) {
        let own = Some(id as usize);
        let asked = self.order.iter_mut().chain([&mut self.first]);
        asked
            .filter(|asked| **asked == own)
            .for_each(|asked| *asked = None);
    }

    fn pending(&self) -> &[u8] {
        &self.out
    }

    fn advance(&mut self, count: usize) {
        self.out.drain(..count);
    }

    fn take(
        &mut self,
        bytes: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), &'static str> {
        self.input.extend_from_slice(bytes);
        match self.stage {
            Stage::New => return Err("bytes before the upgrade"),
            Stage::Asked => self.take_head(on_news)?,
            Stage::Granted | Stage::Over => {}
        }
        while self.stage == Stage::Granted && self.take_message(on_news)? {}
        Ok(())
    }

    fn find_room(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        if let (Stage::Granted, Some(key)) = (&self.stage, self.first) {
            on_news(key, 0, News::Room);
        }
    }

    fn room(&self) -> usize {
        match self.stage {
            Stage::New => 1,
            Stage::Granted if self.out.len() < MOST_PENDING => usize::MAX,
            _ => 0,
        }
    }

    fn is_usable(&self) -> bool {
        self.stage != Stage::Over
    }

    fn has(&self, id: u32) -> bool {
        self.order
            .iter()
            .chain([&self.first])
            .any(|asked| *asked == Some(id as usize))
    }

    fn has_answered(&self) -> bool {
        self.has_answered
    }
}

/// What the server does to whoever asks for the upgrade.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    /// It sends each message back, the first ones when all that are sent at once have come.
    Echoes,
    Refuses,
    /// It grants the upgrade to another key.
    Mistakes,
    /// It closes within the first message.
    Cuts,
    Ignores,
}

/// What the server saw: the other side of the account.
#[derive(Debug, Default, Clone, PartialEq)]
struct Tally {
    connected: u64,
    taken: u64,
    given: u64,
    /// Of the expected message, and of the other one.
    echoed: [u64; 2],
}

const AT_ONCE: usize = 8;
const OTHER: &str = "another";

fn serve(mut stream: TcpStream, manner: Manner, tally: &Mutex<Tally>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut upgrade = [0; 1024];
    let count = stream.read(&mut upgrade)?;
    let text = std::str::from_utf8(&upgrade[..count]).unwrap();
    // No message may come before the answer.
    assert!(text.starts_with("GET / HTTP/1.1\r\n") && text.contains(KEY) && text.ends_with("\r\n\r\n"));
    let head = match manner {
        Manner::Refuses => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        Manner::Mistakes => "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n".to_owned(),
        _ => format!("HTTP/1.1 101 Switching Protocols\r\n{ACCEPT}\r\n"),
    };
    let mut noted = tally.lock().unwrap();
    (noted.connected, noted.taken) = (noted.connected + 1, noted.taken + count as u64);
    noted.given += head.len() as u64;
    drop(noted);
    stream.write_all(head.as_bytes())?;
    if matches!(manner, Manner::Refuses | Manner::Mistakes) {
        return Ok(());
    }
    let mut held = Vec::new();
    let mut at_once = AT_ONCE;
    loop {
        held.push(message_of(&mut stream)?);
        match manner {
            Manner::Cuts => return stream.write_all(&[TEXT, BODY.len() as u8, BODY.as_bytes()[0]]),
            Manner::Echoes if held.len() >= at_once => at_once = 1,
            _ => continue,
        }
        for message in held.drain(..) {
            let mut noted = tally.lock().unwrap();
            noted.taken += 6 + message.len() as u64;
            noted.given += 2 + message.len() as u64;
            noted.echoed[usize::from(message != BODY.as_bytes())] += 1;
            drop(noted);
            stream.write_all(&[TEXT])?;
            stream.write_all(&[&[message.len() as u8], &message[..]].concat())?;
        }
    }
}

/// Reads a frame.
fn message_of(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut start = [0; 6];
    stream.read_exact(&mut start)?;
    let [first, length, mask @ ..] = start;
    assert_eq!((first, length & MASKED), (TEXT, MASKED));
    let mut message = vec![0; usize::from(length & !MASKED)];
    stream.read_exact(&mut message)?;
    message
        .iter_mut()
        .zip(mask.iter().cycle())
        .for_each(|(byte, mask)| *byte ^= mask);
    Ok(message)
}

/// The address of a server that does so, and what it sees.
fn server(manner: Manner) -> (SocketAddr, Arc<Mutex<Tally>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (address, tally) = (listener.local_addr().unwrap(), Arc::<Mutex<Tally>>::default());
    let seen = Arc::clone(&tally);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                let mut other = stream.try_clone()?;
                let ended = serve(stream, manner, &seen);
                // A close with bytes that nobody has read would be a reset.
                other.shutdown(Shutdown::Write)?;
                io::copy(&mut other, &mut io::sink())?;
                ended
            });
        }
    });
    (address, tally)
}

type Run = Worker<Mixed<WebSocket>, Shared<Epoll, Connection>, Monotonic>;

/// A closed loop of three messages that are expected back for each that is not, eight at once on each of four connections.
fn run(manner: Manner, requests: u64, timeout_ns: u64) -> (Run, Tally) {
    let case = Case {
        requests: Some(requests),
        timeout_ns,
        mix: vec![3.0, 1.0],
        ..well(4, None)
    };
    let mut spec = case.spec();
    // Of the wire nothing but how many requests a connection has at once.
    spec.target.wire = Wire::Http2 { streams: AT_ONCE };
    spec.workload.expect.status = Some(101);
    let common = Common::new(&spec, Monotonic.now(), case.connections);
    let mut recorder = Recorder::new(false, seconds(common.times.open_ns).0);
    recorder.paths = PathLedger::of(&spec.workload);
    let (address, tally) = server(manner);
    let each = vec![WebSocket::new(BODY), WebSocket::new(OTHER)];
    let mut worker = Worker::new(
        Mixed::new(each, Draw::new(spec.workload.mix.as_ref().unwrap())),
        Shared::new(Epoll::new(address, 0).unwrap(), Monotonic, AT_ONCE, false),
        Monotonic,
        task(&spec, &common, 0).unwrap(),
        recorder,
    );
    let never = AtomicBool::new(false);
    worker
        .run(&never, &Gauges::default(), &mut Passed::default())
        .unwrap();
    let recorder = &worker.recorder;
    recorder.account.check().unwrap();
    assert_eq!((recorder.outstanding(), recorder.in_flight()), (0, 0));
    assert_eq!(recorder.account.scheduled, requests);
    let tally = tally.lock().unwrap().clone();
    (worker, tally)
}

#[test]
fn messages_on_shared_connections_have_their_echoes_in_order() {
    let (worker, tally) = run(Manner::Echoes, 4000, 10_000 * MS);
    let Recorder {
        account,
        bytes,
        paths,
        distributions,
        ..
    } = &worker.recorder;
    assert_eq!(
        [account.ok, account.failed_validation],
        tally.echoed,
        "{account:?}"
    );
    assert_eq!(account.ok + account.failed_validation, 4000, "{account:?}");
    assert_eq!((bytes.sent, bytes.received), (tally.taken, tally.given));
    assert_eq!((tally.connected, worker.counts.opened), (4, 4));
    // Had a request the echo of another, one that expects its own would have failed.
    let records = &paths.as_ref().unwrap().records;
    check_paths(records, account, bytes, distributions).unwrap();
    let own = [records[0].account.ok, records[1].account.failed_validation];
    assert_eq!(own, [records[0].account.scheduled, records[1].account.scheduled]);
}

/// How many requests ended in one way.
type Counted = fn(&Account) -> u64;

#[test]
fn each_request_has_one_end_whatever_the_server_does_instead() {
    let of: [(Manner, Counted); 4] = [
        (Manner::Refuses, |account| account.bad_status[&404]),
        (Manner::Mistakes, |account| account.parse),
        (Manner::Cuts, |account| account.eof),
        (Manner::Ignores, |account| account.timed_out),
    ];
    for (manner, ended) in of {
        let timeout_ms = if manner == Manner::Ignores { 50 } else { 10_000 };
        let (worker, tally) = run(manner, 100, timeout_ms * MS);
        let account = &worker.recorder.account;
        assert_eq!((account.ok, ended(account)), (0, 100), "{manner:?}: {account:?}");
        assert!(tally.connected >= 4 && tally.echoed == [0, 0], "{tally:?}");
    }
}

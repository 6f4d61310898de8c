//! The worker with pipelines against a server that does whatever a test wants, in simulated time.
//!
//! The server takes the requests of a connection one after the other, and answers them so. What follows the last one that it answers, or a
//! close, it does not look at.

use super::network::Script;
use super::{cases, well, Case, Passed, BODY, CALL_NS, EPOCH_NS, MS};
use crate::clock::{Clock, Simulated};
use crate::driver::{Driver, Pipelined, Ready, Received, RECEIVE_BYTES};
use crate::protocol::Http1;
use crate::recorder::{seconds, Recorder};
use crate::spec::{HttpVersion, Spec, Wire};
use crate::worker::{task, Common, Gauges, Worker};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// A request that the server looks at.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// Which of all that it looks at, from 0.
    number: u64,
    /// Which of its connection, from 0.
    nth: u64,
}

/// What the server does, one thing after the other.
#[derive(Debug, Clone)]
enum Act {
    /// A piece of a reply.
    Piece(String),
    /// The last one; whether the whole is as expected.
    Last(String, bool),
    /// The connection ends.
    End,
    /// It is reset.
    Reset,
    /// Nothing comes any more.
    Stuck,
}

/// Each with the time between it and what it follows: the request, or what the server did before.
type Plan = Box<dyn FnMut(Asked) -> Vec<(u64, Act)>>;

pub(super) fn reply(fields: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
}

fn good() -> Act {
    Act::Last(reply(""), true)
}

/// A good reply that the server says is the last one.
fn last() -> Act {
    Act::Last(reply("Connection: close\r\n"), true)
}

#[derive(Debug, Default)]
struct Tally {
    connected: u64,
    /// That the server looked at.
    requests: u64,
    /// Good replies that were handed over to the last byte.
    good: u64,
    /// The most requests of a connection without a reply.
    most_owed: u64,
    sends: u64,
    bytes_taken: u64,
    bytes_given: u64,
}

struct Socket {
    connected_ns: u64,
    is_open: bool,
    input: Vec<u8>,
    acts: VecDeque<(u64, Act)>,
    edges: Vec<u64>,
    /// When the last of the acts is.
    last_ns: u64,
    /// It looks at nothing more.
    is_over: bool,
    requests: u64,
    replies: u64,
    blocked_until_ns: u64,
    is_full: bool,
}

struct Server {
    clock: Simulated,
    plan: Plan,
    /// What the kernel takes of what is sent.
    chops: Script,
    sockets: Vec<Option<Socket>>,
    tally: Tally,
}

impl Server {
    fn call(&self) -> u64 {
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
        self.sockets[slot] = Some(Socket {
            connected_ns,
            is_open: false,
            input: Vec::new(),
            acts: VecDeque::new(),
            edges: vec![connected_ns],
            last_ns: 0,
            is_over: false,
            requests: 0,
            replies: 0,
            blocked_until_ns: 0,
            is_full: false,
        });
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let choice = self.chops.pick(8);
        let socket = self.sockets[slot].as_mut().unwrap();
        assert!(socket.is_open, "sent on a connection that is none yet");
        assert!(!bytes.is_empty());
        let is_reset = |(at_ns, act): &(u64, Act)| *at_ns <= now_ns && matches!(act, Act::Reset);
        if socket.acts.iter().any(is_reset) {
            return Err(io::Error::from_raw_os_error(libc::ECONNRESET));
        }
        if socket.blocked_until_ns > now_ns || std::mem::take(&mut socket.is_full) {
            socket.blocked_until_ns = socket.blocked_until_ns.max(now_ns + 20_000);
            socket.edges.push(socket.blocked_until_ns);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = match choice {
            6 => bytes.len().div_ceil(2),
            7 => 1,
            _ => bytes.len(),
        };
        socket.is_full = count < bytes.len();
        socket.input.extend_from_slice(&bytes[..count]);
        self.tally.sends += 1;
        self.tally.bytes_taken += count as u64;
        self.look(slot, now_ns);
        Ok(count)
    }

    /// Looks at the requests that are whole, in their order.
    fn look(&mut self, slot: usize, now_ns: u64) {
        let socket = self.sockets[slot].as_mut().unwrap();
        while let Some(length) = whole(&socket.input) {
            socket.input.drain(..length);
            if socket.is_over {
                continue;
            }
            let asked = Asked {
                number: self.tally.requests,
                nth: socket.requests,
            };
            socket.requests += 1;
            self.tally.requests += 1;
            self.tally.most_owed = self.tally.most_owed.max(socket.requests - socket.replies);
            for (after_ns, act) in (self.plan)(asked) {
                socket.last_ns = socket.last_ns.max(now_ns) + after_ns;
                socket.is_over |= match &act {
                    Act::Last(text, _) => text.contains("Connection: close"),
                    Act::Piece(_) => false,
                    Act::End | Act::Reset | Act::Stuck => true,
                };
                socket.edges.push(socket.last_ns);
                socket.acts.push_back((socket.last_ns, act));
            }
        }
    }

    fn give(&mut self, slot: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let socket = self.sockets[slot].as_mut().unwrap();
        let mut given = 0;
        while let Some((_, act)) = socket.acts.front().filter(|(at_ns, _)| *at_ns <= now_ns) {
            let (text, is_good, is_last) = match act {
                Act::Piece(text) => (text, false, false),
                Act::Last(text, is_good) => (text, *is_good, true),
                Act::Stuck => break,
                Act::End if given == 0 => return Ok(0),
                Act::Reset if given == 0 => return Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
                _ => break,
            };
            buffer[given..given + text.len()].copy_from_slice(text.as_bytes());
            given += text.len();
            self.tally.good += u64::from(is_good);
            socket.replies += u64::from(is_last);
            socket.acts.pop_front();
        }
        self.tally.bytes_given += given as u64;
        if given == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(given)
    }

    fn pass(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) {
        let now_ns = self.call();
        let edges = self.sockets.iter().flatten().flat_map(|socket| &socket.edges);
        let next_ns = edges.min().copied().unwrap_or(u64::MAX);
        self.clock
            .advance_to(next_ns.min(now_ns.saturating_add(timeout_ns)).max(now_ns));
        let now_ns = self.clock.now();
        for (slot, socket) in self.sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let before = socket.edges.len();
            socket.edges.retain(|&at_ns| at_ns > now_ns);
            if socket.edges.len() < before {
                ready.push(socket.ready(slot, now_ns));
            }
        }
    }
}

impl Socket {
    fn ready(&self, slot: usize, now_ns: u64) -> Ready {
        let is_over = |(at_ns, act): &(u64, Act)| *at_ns <= now_ns && matches!(act, Act::End | Act::Reset);
        Ready {
            slot,
            writable: self.connected_ns <= now_ns && self.blocked_until_ns <= now_ns,
            readable: self.acts.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns),
            hangup: self.acts.iter().any(is_over),
        }
    }
}

/// The length of the first request, if it is there to its last byte.
pub(super) fn whole(input: &[u8]) -> Option<usize> {
    let end = input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&input[..end]).unwrap();
    assert!(head.contains(" / HTTP/1.1\r\n"), "{head}");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let whole = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    (input.len() >= whole).then_some(whole)
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
        Ok(Received::of(&self.buffer[..count], count > 0))
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

struct Run {
    worker: Worker<Http1, Pipelined<Wires, Simulated>, Simulated>,
    tally: Tally,
}

/// A load with so many requests at once on each connection. The kernel takes all that is sent.
fn run(case: &Case, pipeline: usize, plan: Plan) -> Run {
    run_with(case, pipeline, None, Vec::new(), plan)
}

fn spec_of(case: &Case, pipeline: usize) -> Spec {
    let mut spec = case.spec();
    spec.target.wire = Wire::Http {
        version: HttpVersion::V1_1,
        pipeline,
        any_method: true,
    };
    spec
}

fn run_with(case: &Case, pipeline: usize, body: Option<&[u8]>, chops: Vec<u8>, plan: Plan) -> Run {
    let spec = spec_of(case, pipeline);
    let common = Common::new(&spec, EPOCH_NS, spec.own_connections().unwrap());
    let clock = Simulated::default();
    clock.advance_to(EPOCH_NS);
    let server = Rc::new(RefCell::new(Server {
        clock: clock.clone(),
        plan,
        chops: Script::new(chops),
        sockets: Vec::new(),
        tally: Tally::default(),
    }));
    let wires = Wires {
        server: Rc::clone(&server),
        buffer: vec![0; RECEIVE_BYTES],
    };
    let is_open_loop = spec.workload.shape.is_open();
    let mut worker = Worker::new(
        Http1::new(HttpVersion::V1_1, &spec.workload.request, body, "x"),
        Pipelined::new(wires, clock.clone(), pipeline, case.method == "HEAD"),
        clock.clone(),
        task(&spec, &common, 0).unwrap(),
        Recorder::new(is_open_loop, seconds(common.times.open_ns).0),
    );
    let never = AtomicBool::new(false);
    worker
        .run(&never, &Gauges::default(), &mut Passed::default())
        .unwrap();
    let tally = std::mem::take(&mut server.borrow_mut().tally);
    Run { worker, tally }
}

impl Run {
    /// One end for each request, and no more good ones than the server gave.
    fn check(&self) {
        let recorder = &self.worker.recorder;
        recorder.account.check().unwrap();
        assert_eq!((recorder.outstanding(), recorder.in_flight()), (0, 0));
        let account = &recorder.account;
        assert!(account.ok + account.carried_in.answered <= self.tally.good);
        assert_eq!(recorder.distributions.ok_service.count(), account.ok);
        assert!(self.worker.counts.requests_sent >= self.tally.requests);
    }

    fn assert_all_ok(&self, requests: u64) {
        self.check();
        let recorder = &self.worker.recorder;
        let account = &recorder.account;
        let (all, samples) = ((account.scheduled, account.ok), &recorder.error_samples);
        assert_eq!(all, (requests, requests), "{account:?} {samples:?}");
    }
}

/// Replies that take a millisecond each, one after the other.
fn prompt() -> Plan {
    Box::new(|_| vec![(MS, good())])
}

fn counted(connections: usize, requests: u64) -> Case {
    Case {
        requests: Some(requests),
        ..well(connections, None)
    }
}

fn posting(case: Case) -> Case {
    Case {
        method: "POST",
        ..case
    }
}

#[test]
fn a_closed_loop_has_so_many_requests_under_way_on_each_connection() {
    let run = run(&counted(3, 3000), 10, prompt());
    run.assert_all_ok(3000);
    assert_eq!(
        (run.tally.connected, run.tally.most_owed, run.tally.good),
        (3, 10, 3000)
    );
    assert_eq!(run.worker.counts.opened, 3);
    let answered: Vec<u64> = run.worker.answered().collect();
    assert_eq!((answered.len(), answered.iter().sum::<u64>()), (3, 3000));
    let bytes = &run.worker.recorder.bytes;
    assert_eq!(
        (bytes.sent, bytes.received),
        (run.tally.bytes_taken, run.tally.bytes_given)
    );
}

#[test]
fn requests_that_are_begun_together_go_in_one_call() {
    let plan = |asked: Asked| vec![(if asked.nth % 10 == 0 { MS } else { 0 }, good())];
    let run = run(&counted(1, 3000), 10, Box::new(plan));
    run.assert_all_ok(3000);
    assert!(run.tally.sends < 1000, "{}", run.tally.sends);
}

#[test]
fn t14_each_of_a_pipeline_has_a_time_of_its_own() {
    let run = run(&counted(1, 16), 16, prompt());
    run.assert_all_ok(16);
    let times = &run.worker.recorder.distributions.ok_service;
    for number in 1..=16 {
        let took_ns = times.quantile_ns(f64::from(number) / 16.0 - 0.01).unwrap();
        let expected_ns = u64::from(number as u32) * MS;
        assert!(took_ns.abs_diff(expected_ns) < MS / 5, "{number}: {took_ns} ns");
    }
}

#[test]
fn in_an_open_loop_response_time_counts_from_when_a_request_was_due() {
    // Half as many are answered as are due.
    let case = Case {
        requests: Some(400),
        timeout_ns: 10_000 * MS,
        grace_ns: 10_000 * MS,
        ..well(1, Some(2000))
    };
    let run = run(&case, 4, prompt());
    run.assert_all_ok(400);
    let latencies = &run.worker.recorder.distributions;
    let responses = latencies.ok_response.as_ref().unwrap();
    assert!(responses.max_ns().unwrap() > 150 * MS);
    assert!(latencies.ok_service.max_ns().unwrap() < 45 * MS / 10);
    assert_eq!(run.tally.most_owed, 4);
}

#[test]
fn what_stands_behind_an_announced_close_is_sent_again_whatever_it_asks() {
    for every in [1, 2, 7] {
        let plan = move |asked: Asked| {
            let is_last = asked.nth % every == every - 1;
            let end = if is_last { vec![(0, Act::End)] } else { vec![] };
            [vec![(MS, if is_last { last() } else { good() })], end].concat()
        };
        let run = run(&posting(counted(2, 300)), 16, Box::new(plan));
        run.assert_all_ok(300);
        // None was looked at twice.
        assert_eq!(run.tally.requests, 300);
        assert!(run.worker.counts.retried > 0);
    }
}

#[test]
fn what_a_close_leaves_unanswered_is_sent_again_where_that_is_safe() {
    for every in [1, 2, 7] {
        let plan = move |asked: Asked| {
            let end = if asked.nth % every == every - 1 {
                vec![(0, Act::End)]
            } else {
                vec![]
            };
            [vec![(MS, good())], end].concat()
        };
        let run = run(&counted(2, 300), 16, Box::new(plan));
        run.assert_all_ok(300);
    }
}

#[test]
fn what_a_close_leaves_unanswered_and_is_not_safe_fails_once_each() {
    let plan = |asked: Asked| match asked.nth {
        5 => vec![(MS, Act::End)],
        _ => vec![(MS, good())],
    };
    let run = run(&posting(counted(1, 200)), 8, Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!((account.ok + account.eof, account.ok), (200, run.tally.good));
    assert!(account.eof > 20, "{account:?}");
    // Of each the server has seen at most one.
    assert!(run.tally.requests <= 200);
    assert_eq!(run.worker.counts.retried, 0);
}

#[test]
fn a_server_that_closes_each_connection_at_once_fails_one_request_for_each() {
    let run = run(&counted(1, 60), 8, Box::new(|_| vec![(MS, Act::End)]));
    run.check();
    assert_eq!(run.worker.recorder.account.eof, 60);
    assert!(run.tally.connected <= 61, "{}", run.tally.connected);
}

#[test]
fn a_request_that_times_out_costs_its_connection_and_those_behind_it_nothing_else() {
    let plan = |asked: Asked| match asked.number {
        500 => vec![(0, Act::Stuck)],
        _ => vec![(MS / 10, good())],
    };
    let case = Case {
        requests: Some(1000),
        timeout_ns: 50 * MS,
        ..well(1, Some(1000))
    };
    let run = run(&case, 100, Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!((account.timed_out, account.ok), (1, 999), "{account:?}");
    assert_eq!(run.tally.connected, 2);
    let retried = run.worker.counts.retried;
    assert!((20..90).contains(&retried), "{retried}");
    // Their clocks ran on.
    let responses = run.worker.recorder.distributions.ok_response.as_ref().unwrap();
    assert!(responses.max_ns().unwrap() > 45 * MS);
}

#[test]
fn all_that_wait_for_a_stuck_server_time_out() {
    let run = run(&counted(1, 40), 8, Box::new(|_| vec![(0, Act::Stuck)]));
    run.check();
    let account = &run.worker.recorder.account;
    // After the first eight one is sent at a time, and the others wait for it.
    assert_eq!(account.timed_out + account.not_sent_queue, 40, "{account:?}");
    assert_eq!(account.timed_out, 8 + 32 / 8, "{account:?}");
}

#[test]
fn interim_replies_chunks_and_heads_have_their_ends() {
    let chunked =
        "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n";
    let plan = move |asked: Asked| match asked.nth % 3 {
        0 => vec![(MS, good())],
        1 => vec![
            (MS, Act::Piece(chunked.to_owned())),
            (MS, Act::Last("3\r\nllo\r\n0\r\n\r\n".to_owned(), true)),
        ],
        _ => vec![(0, good())],
    };
    run(&counted(2, 300), 5, Box::new(plan)).assert_all_ok(300);
    let heads = |_: Asked| vec![(MS, Act::Last("HTTP/1.1 204 No\r\n\r\n".to_owned(), true))];
    let case = Case {
        method: "HEAD",
        ..counted(1, 30)
    };
    let run = run(&case, 5, Box::new(heads));
    run.check();
    // Whole replies, without the body that is expected.
    assert_eq!(run.worker.recorder.account.failed_validation, 30);
    assert_eq!(run.tally.connected, 1);
}

#[test]
fn a_body_that_ends_with_its_connection_ends_those_behind_it_elsewhere() {
    let plan = |asked: Asked| match asked.nth {
        3 => vec![
            (MS, Act::Piece("HTTP/1.1 200 OK\r\n\r\nhel".to_owned())),
            (MS, Act::Last("lo".to_owned(), true)),
            (0, Act::End),
        ],
        _ => vec![(MS, good())],
    };
    run(&counted(2, 300), 6, Box::new(plan)).assert_all_ok(300);
}

#[test]
fn what_is_no_reply_fails_one_request_and_those_behind_it_go_elsewhere() {
    let plan = |asked: Asked| match asked.nth {
        9 => vec![(MS, Act::Last("SSH-2.0-x\r\n\r\n".to_owned(), false))],
        _ => vec![(MS, good())],
    };
    let run = run(&counted(1, 200), 4, Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.ok + account.parse, 200, "{account:?}");
    // Of a connection nine are answered, and then one fails.
    assert!((15..=20).contains(&account.parse), "{account:?}");
}

#[test]
fn a_reply_that_nothing_asked_for_is_surplus_and_ends_the_connection() {
    let plan = |asked: Asked| match asked.nth {
        0 => vec![(MS, good()), (0, Act::Last(reply(""), false))],
        _ => vec![(MS, good())],
    };
    let case = Case {
        requests: Some(1),
        ..well(1, Some(100))
    };
    let run = run(&case, 4, Box::new(plan));
    run.assert_all_ok(1);
    assert_eq!((run.tally.connected, run.worker.counts.surplus), (1, 1));
}

#[test]
fn long_requests_are_sent_one_after_the_other_however_little_the_kernel_takes() {
    let body = vec![b'x'; 150_000];
    let chops = (0..2000).map(|number| 6 + u8::from(number % 11 == 0)).collect();
    let run = run_with(&posting(counted(1, 40)), 4, Some(&body), chops, prompt());
    run.assert_all_ok(40);
    assert_eq!(run.worker.recorder.bytes.sent, run.tally.bytes_taken);
    assert!(run.tally.bytes_taken > 40 * 150_000);
}

#[test]
fn a_reply_before_its_request_is_sent_is_none() {
    // The server answers what it has not read: a second reply to the first request.
    let plan = |_: Asked| vec![(0, good()), (MS / 100, Act::Last(reply(""), false))];
    let body = vec![b'x'; 200_000];
    let chops = vec![0, 0, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7];
    let run = run_with(&posting(counted(1, 2)), 2, Some(&body), chops, Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.ok + account.parse + account.eof, 2, "{account:?}");
    assert!(account.ok <= run.tally.good);
}

/// A server that does anything at all.
fn hostile(choices: Vec<u8>) -> Plan {
    const DELAYS_NS: [u64; 6] = [900_000, 0, 700, 40_000, 4_000_000, 30_000_000];
    let mut script = Script::new(choices);
    Box::new(move |_| {
        let delay_ns = DELAYS_NS[script.pick(6)];
        let gap_ns = DELAYS_NS[script.pick(6)];
        let bad = |text: &str| Act::Last(text.to_owned(), false);
        let piece = |text: &str| Act::Piece(text.to_owned());
        match script.pick(20) {
            6 => vec![(delay_ns, last()), (gap_ns, Act::End)],
            7 => vec![(delay_ns, Act::End)],
            8 => vec![(delay_ns, Act::Reset)],
            9 => vec![(delay_ns, good()), (gap_ns, Act::End)],
            10 => vec![(delay_ns, bad("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"))],
            11 => vec![
                (
                    delay_ns,
                    piece("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-"),
                ),
                (gap_ns, piece("Encoding: chunked\r\n\r\n5\r\nhe")),
                (gap_ns, Act::Last("llo\r\n0\r\n\r\n".to_owned(), true)),
            ],
            12 => vec![(delay_ns, piece("HTTP/1.1 200 OK\r\nConte")), (gap_ns, Act::End)],
            13 => vec![(0, Act::Stuck)],
            14 => vec![(delay_ns, bad("SSH-2.0-x\r\n\r\n"))],
            15 => vec![(delay_ns, good()), (gap_ns, bad("surplus"))],
            16 => vec![
                (delay_ns, piece("HTTP/1.1 200 OK\r\n\r\nhel")),
                (gap_ns, Act::Last("lo".to_owned(), true)),
                (gap_ns, Act::End),
            ],
            17 => vec![
                (
                    delay_ns,
                    piece("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"),
                ),
                (gap_ns, Act::Reset),
            ],
            18 => vec![(delay_ns, last()), (gap_ns, Act::Reset)],
            19 => vec![(delay_ns, good()), (gap_ns, good())],
            _ => vec![(delay_ns, good())],
        }
    })
}

fn hostile_cases() -> impl Strategy<Value = (Case, usize, Vec<u8>, Vec<u8>)> {
    let choices = || proptest::collection::vec(any::<u8>(), 0..400);
    (cases(), 2usize..12, choices(), choices()).prop_map(|(case, pipeline, choices, chops)| {
        let case = Case {
            keep_alive: true,
            ..case
        };
        (case, pipeline, choices, chops)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t31_wherever_the_server_closes_every_request_has_one_end((case, pipeline, choices, chops) in hostile_cases()) {
        let run = run_with(&case, pipeline, None, chops, hostile(choices));
        run.check();
        let account = &run.worker.recorder.account;
        if let (Some(requests), None) = (case.requests, case.rate_per_s) {
            prop_assert_eq!(account.scheduled, requests);
        }
        // What was not safe to be sent again the server has seen once at most.
        let is_whole = run.worker.task.times.open_ns == EPOCH_NS;
        if case.method == "POST" && is_whole {
            prop_assert!(run.tally.requests <= account.scheduled);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever went wrong is over when the server is well again: no place and no request is lost for good.
    #[test]
    fn a_server_that_is_well_again_serves_everything((case, pipeline, mut choices, chops) in hostile_cases(), open: bool) {
        choices.truncate(60);
        let case = Case {
            requests: None,
            warmup_ns: 0,
            stages: Vec::new(),
            duration_ns: 3000 * MS,
            timeout_ns: 30 * MS,
            rate_per_s: open.then_some(200),
            method: "GET",
            ..case
        };
        let mut run = run_with(&case, pipeline, None, chops, hostile(choices));
        run.check();
        let answered = run.worker.connections.iter().filter(|slot| slot.answered > 0).count();
        let last = &run.worker.recorder.seconds.finish()[2];
        prop_assert_eq!(last.failed, 0);
        prop_assert!(open || answered == case.connections * pipeline, "{answered}");
        prop_assert!(last.ok >= if open { last.scheduled - 2 } else { 500 * case.connections as u64 }, "{last:?}");
    }
}

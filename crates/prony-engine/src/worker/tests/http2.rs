//! The worker over HTTP/2 against a server that does whatever a test wants, in simulated time.
//!
//! The server checks what no correct client breaks: its windows, its limit of streams, the order of their numbers.

use super::network::Script;
use super::{well, Case, Passed, EPOCH_NS, MS};
use crate::clock::{Clock, Simulated};
use crate::distribution::Distribution;
use crate::record::recorder::{seconds, Recorder};
use crate::record::recording::StreamTimes;
use crate::socket::{self, Driver, Ready, Received, RECEIVE_BYTES};
use crate::spec::{Spec, Wire};
use crate::wire::Http2;
use crate::worker::{task, Common, Gauges, Worker};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

const CALL_NS: u64 = 300;
const PREFACE_BYTES: usize = 24;
// Requests are on their way before the server says what it takes.
const SETTINGS_AFTER_NS: u64 = 20_000;
const REFUSED: u32 = 7;
const INTERNAL: u32 = 2;

/// A request that is whole.
#[derive(Debug, Clone, Copy)]
struct Asked {
    now_ns: u64,
    /// Which of all connections, from 0.
    connection: u64,
    id: u32,
    /// Which of all requests, from 0.
    number: u64,
    /// Which of its connection, from 0.
    nth: u64,
}

/// What the server does.
#[derive(Debug, Clone)]
enum Act {
    /// A good reply.
    Reply(u32),
    /// Frames as they are.
    Frames(Vec<u8>),
    /// The connection ends.
    End,
    /// It is reset.
    Reset,
    /// Nothing comes any more.
    Stuck,
}

type Plan = Box<dyn FnMut(Asked) -> Vec<(u64, Act)>>;

pub(super) fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let header = [&[a, b, c, kind, flags][..], &id.to_be_bytes()].concat();
    [&header, payload].concat()
}

fn reset(id: u32, code: u32) -> Act {
    Act::Frames(frame(3, 0, id, &code.to_be_bytes()))
}

fn goaway(last: u32, code: u32) -> Act {
    Act::Frames(frame(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat()))
}

fn limit(streams: u32) -> Act {
    let payload = [&3u16.to_be_bytes()[..], &streams.to_be_bytes()].concat();
    Act::Frames(frame(4, 0, 0, &payload))
}

/// 200 with a body of five bytes.
pub(super) fn good(id: u32) -> Vec<u8> {
    [frame(1, 4, id, &[0x88]), frame(0, 1, id, super::BODY.as_bytes())].concat()
}

fn status(id: u32, index: u8) -> Act {
    Act::Frames(frame(1, 5, id, &[0x80 | index]))
}

#[derive(Debug, Default)]
struct Tally {
    connected: u64,
    requests: u64,
    /// Good replies that were handed over to the last byte while somebody waited for them.
    good: u64,
    /// The most streams at once on a connection.
    most_open: usize,
    sends: u64,
    body_bytes: u64,
}

struct Socket {
    number: u64,
    connected_ns: u64,
    is_open: bool,
    input: Vec<u8>,
    has_preface: bool,
    acts: Vec<(u64, Act)>,
    edges: Vec<u64>,
    open: BTreeSet<u32>,
    last_id: u32,
    requests: u64,
    window: i64,
}

struct Server {
    clock: Simulated,
    plan: Plan,
    settings: Act,
    sockets: Vec<Option<Socket>>,
    tally: Tally,
}

impl Socket {
    /// Not before its settings, with which a server begins.
    fn act(&mut self, at_ns: u64, act: Act) {
        let at_ns = at_ns.max(self.connected_ns + SETTINGS_AFTER_NS);
        let place = self.acts.partition_point(|(other_ns, _)| *other_ns <= at_ns);
        self.acts.insert(place, (at_ns, act));
        self.edges.push(at_ns);
    }
}

impl Server {
    fn call(&self) -> u64 {
        self.clock.advance_to(self.clock.now() + CALL_NS);
        self.clock.now()
    }

    fn connect(&mut self, slot: usize) {
        let now_ns = self.call();
        if slot >= self.sockets.len() {
            self.sockets.resize_with(slot + 1, || None);
        }
        assert!(self.sockets[slot].is_none(), "slot {slot} has a socket");
        let number = self.tally.connected;
        self.tally.connected += 1;
        let connected_ns = now_ns + 50_000;
        let mut socket = Socket {
            number,
            connected_ns,
            is_open: false,
            input: Vec::new(),
            has_preface: false,
            acts: Vec::new(),
            edges: vec![connected_ns],
            open: BTreeSet::new(),
            last_id: 0,
            requests: 0,
            window: 65_535,
        };
        socket.act(connected_ns, self.settings.clone());
        self.sockets[slot] = Some(socket);
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let now_ns = self.call();
        self.tally.sends += 1;
        let socket = self.sockets[slot].as_mut().unwrap();
        assert!(socket.is_open, "sent on a connection that is none yet");
        let is_reset = |(at_ns, act): &(u64, Act)| *at_ns <= now_ns && matches!(act, Act::Reset);
        if socket.acts.iter().any(is_reset) {
            return Err(io::Error::from_raw_os_error(libc::ECONNRESET));
        }
        socket.input.extend_from_slice(bytes);
        if !socket.has_preface && socket.input.len() >= PREFACE_BYTES {
            assert!(socket.input.starts_with(b"PRI * HTTP/2.0"));
            socket.input.drain(..PREFACE_BYTES);
            socket.has_preface = true;
        }
        while let Some(one) = self.next_frame(slot) {
            self.take(slot, now_ns, &one);
        }
        Ok(bytes.len())
    }

    fn next_frame(&mut self, slot: usize) -> Option<Vec<u8>> {
        let input = &mut self.sockets[slot].as_mut().unwrap().input;
        let length = u32::from_be_bytes([0, *input.first()?, *input.get(1)?, *input.get(2)?]) as usize;
        (input.len() >= 9 + length).then(|| input.drain(..9 + length).collect())
    }

    fn take(&mut self, slot: usize, now_ns: u64, one: &[u8]) {
        let socket = self.sockets[slot].as_mut().unwrap();
        let (kind, flags) = (one[3], one[4]);
        let id = u32::from_be_bytes([one[5], one[6], one[7], one[8]]);
        let length = one.len() - 9;
        match kind {
            1 => {
                assert!(
                    id % 2 == 1 && id > socket.last_id,
                    "{id} behind {}",
                    socket.last_id
                );
                socket.last_id = id;
                socket.open.insert(id);
                self.tally.most_open = self.tally.most_open.max(socket.open.len());
            }
            0 => {
                socket.window -= length as i64;
                assert!(socket.window >= 0, "more than the window allows");
                self.tally.body_bytes += length as u64;
                socket.window += length as i64;
                let more = (length as u32).to_be_bytes();
                socket.act(now_ns + 10_000, Act::Frames(frame(8, 0, 0, &more)));
                socket.act(now_ns + 10_000, Act::Frames(frame(8, 0, id, &more)));
            }
            3 => {
                socket.open.remove(&id);
            }
            6 => socket.act(now_ns + 10_000, Act::Frames(frame(6, 1, 0, &one[9..]))),
            _ => return,
        }
        if kind < 2 && flags & 1 == 1 {
            let asked = Asked {
                now_ns,
                connection: socket.number,
                id,
                number: self.tally.requests,
                nth: socket.requests,
            };
            socket.requests += 1;
            self.tally.requests += 1;
            for (delay_ns, act) in (self.plan)(asked) {
                socket.act(now_ns + delay_ns, act);
            }
        }
    }

    fn give(&mut self, slot: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let now_ns = self.call();
        let socket = self.sockets[slot].as_mut().unwrap();
        let mut given = 0;
        while let Some((_, act)) = socket.acts.first().filter(|(at_ns, _)| *at_ns <= now_ns) {
            let bytes = match act {
                Act::Reply(id) => good(*id),
                Act::Frames(bytes) => bytes.clone(),
                Act::Stuck => break,
                Act::End if given == 0 => return Ok(0),
                Act::Reset if given == 0 => return Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
                _ => return Ok(given),
            };
            if given + bytes.len() > buffer.len() {
                return Ok(given);
            }
            buffer[given..given + bytes.len()].copy_from_slice(&bytes);
            given += bytes.len();
            if let Act::Reply(id) = act {
                self.tally.good += u64::from(socket.open.remove(id));
            } else if bytes[3] == 3 || (bytes[3] == 1 && bytes[4] & 1 == 1) {
                socket
                    .open
                    .remove(&u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]));
            }
            socket.acts.remove(0);
        }
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
            let is_over =
                |(at_ns, act): &(u64, Act)| *at_ns <= now_ns && matches!(act, Act::End | Act::Reset);
            if socket.edges.len() < before {
                ready.push(Ready {
                    slot,
                    writable: socket.connected_ns <= now_ns,
                    readable: socket.acts.first().is_some_and(|(at_ns, _)| *at_ns <= now_ns),
                    hangup: socket.acts.iter().any(is_over),
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
    worker: Worker<Http2, socket::Http2<Wires, Simulated>, Simulated>,
    tally: Tally,
}

fn spec_of(case: &Case, streams: usize) -> Spec {
    let mut spec = case.spec();
    spec.target.wire = Wire::Http2 { streams };
    spec
}

/// A load with so many streams on each connection, of a server with these settings and this plan.
fn run(case: &Case, streams: usize, settings: Act, plan: Plan) -> Run {
    run_with(&spec_of(case, streams), None, settings, plan)
}

fn run_with(spec: &Spec, body: Option<&[u8]>, settings: Act, plan: Plan) -> Run {
    let Wire::Http2 { streams } = spec.target.wire else {
        panic!("not HTTP/2");
    };
    let common = Common::new(spec, EPOCH_NS, spec.own_connections().unwrap());
    let clock = Simulated::default();
    clock.advance_to(EPOCH_NS);
    let server = Rc::new(RefCell::new(Server {
        clock: clock.clone(),
        plan,
        settings,
        sockets: Vec::new(),
        tally: Tally::default(),
    }));
    let is_open_loop = spec.workload.shape.is_open();
    let mut recorder = Recorder::new(is_open_loop, seconds(common.times.open_ns).0);
    recorder.streams = Some(StreamTimes::new(is_open_loop));
    let wires = Wires {
        server: Rc::clone(&server),
        buffer: vec![0; RECEIVE_BYTES],
    };
    let mut worker = Worker::new(
        Http2::new(&spec.workload.request, body, &spec.target).unwrap(),
        socket::Http2::new(wires, clock.clone(), streams),
        clock.clone(),
        task(spec, &common, 0).unwrap(),
        recorder,
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
        let answered = account.ok + account.carried_in.answered;
        assert!(answered <= self.tally.good);
        let times = recorder.streams.as_ref().unwrap();
        assert_eq!(
            (times.wire.count(), times.stream_wait.count()),
            (account.ok, account.ok)
        );
        let service = recorder.distributions.ok_service.sum_ns();
        assert_eq!(times.wire.sum_ns() + times.stream_wait.sum_ns(), service);
        // Those that were on their way when their connection broke the server has not seen.
        assert!(self.worker.counts.requests_sent >= self.tally.requests);
    }

    fn ok(&self) -> u64 {
        self.worker.recorder.account.ok
    }

    fn quantile_ns(&self, quantile: f64) -> u64 {
        let latencies = &self.worker.recorder.distributions;
        let shown = latencies.ok_response.as_ref().unwrap_or(&latencies.ok_service);
        shown.quantile_ns(quantile).unwrap()
    }
}

fn no_limit() -> Act {
    Act::Frames(frame(4, 0, 0, &[]))
}

/// Replies after a millisecond.
fn prompt() -> Plan {
    Box::new(|asked| vec![(MS, Act::Reply(asked.id))])
}

fn counted(connections: usize, requests: u64) -> Case {
    Case {
        requests: Some(requests),
        ..well(connections, None)
    }
}

fn timed(connections: usize, rate_per_s: Option<u64>, duration_ns: u64) -> Case {
    Case {
        requests: None,
        duration_ns,
        ..well(connections, rate_per_s)
    }
}

#[test]
fn a_closed_loop_has_as_many_requests_under_way_as_its_connections_have_streams() {
    let run = run(&counted(3, 3000), 10, no_limit(), prompt());
    run.check();
    assert_eq!((run.ok(), run.tally.good), (3000, 3000));
    assert_eq!((run.tally.connected, run.tally.most_open), (3, 10));
    assert_eq!(run.worker.counts.opened, 3);
    assert_eq!(run.worker.recorder.distributions.connect.count(), 3);
    let answered: Vec<u64> = run.worker.answered().collect();
    assert_eq!((answered.len(), answered.iter().sum::<u64>()), (3, 3000));
    // The heads of many requests go in one call.
    assert!(run.tally.sends < 1500, "{}", run.tally.sends);
}

#[test]
fn an_open_loop_fills_a_connection_before_it_opens_the_next() {
    let run = run(&timed(10, Some(2000), 1000 * MS), 8, no_limit(), prompt());
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.ok, account.scheduled);
    assert!(run.tally.connected <= 2, "{:?}", run.tally);
}

#[test]
fn requests_wait_for_a_stream_where_the_server_takes_few_and_the_wait_is_a_series_of_its_own() {
    let run = run(&counted(1, 400), 10, limit(2), prompt());
    run.check();
    assert_eq!(run.ok(), 400);
    assert_eq!(run.worker.stream_figures().unwrap().limit, Some(2));
    let times = run.worker.recorder.streams.as_ref().unwrap();
    // Ten requests take turns at two streams of a millisecond.
    let (wait, wire) = (times.stream_wait.quantile_ns(0.5), times.wire.quantile_ns(0.5));
    assert!(
        wait.unwrap() > 39 * MS / 10 && wait.unwrap() < 41 * MS / 10,
        "{wait:?}"
    );
    assert!(wire.unwrap() < 11 * MS / 10, "{wire:?}");
    // Nobody waits longer than the others: what came first has its turn first.
    assert!(times.stream_wait.quantile_ns(0.99).unwrap() < 5 * MS);
}

#[test]
fn a_server_may_take_fewer_streams_while_the_load_runs() {
    let plan = |asked: Asked| {
        let mut acts = vec![(MS, Act::Reply(asked.id))];
        if asked.number == 100 {
            acts.push((0, limit(1)));
        }
        acts
    };
    let run = run(&counted(1, 300), 10, limit(5), Box::new(plan));
    run.check();
    assert_eq!((run.ok(), run.tally.most_open <= 100), (300, true));
    assert_eq!(run.worker.stream_figures().unwrap().limit, Some(1));
}

#[test]
fn t14_one_slow_stream_of_ten_leaves_the_others_as_they_are() {
    let alone = run(&timed(1, None, 2000 * MS), 10, no_limit(), prompt());
    let mut slow_until_ns = 0;
    let with_slow = move |asked: Asked| {
        let is_slow = asked.now_ns >= slow_until_ns;
        if is_slow {
            slow_until_ns = asked.now_ns + 100 * MS;
        }
        vec![(if is_slow { 100 * MS } else { MS }, Act::Reply(asked.id))]
    };
    let beside = run(&timed(1, None, 2000 * MS), 10, no_limit(), Box::new(with_slow));
    for run in [&alone, &beside] {
        run.check();
    }
    assert!(beside.worker.recorder.distributions.ok_service.max_ns() >= Some(100 * MS));
    for quantile in [0.1, 0.5, 0.9, 0.99] {
        let (alone, beside) = (alone.quantile_ns(quantile), beside.quantile_ns(quantile));
        let change = beside as f64 / alone as f64 - 1.0;
        assert!(change.abs() < 0.01, "{quantile}: {alone} and {beside} ns");
    }
}

#[test]
fn t01_a_freeze_of_the_server_is_in_the_latency_of_every_request_that_was_due_in_it() {
    let (from_ns, until_ns) = (EPOCH_NS + 2000 * MS, EPOCH_NS + 3000 * MS);
    let plan = move |asked: Asked| {
        let is_frozen = (from_ns..until_ns).contains(&asked.now_ns);
        let free_ns = if is_frozen { until_ns - asked.now_ns } else { 0 };
        vec![(free_ns + MS, Act::Reply(asked.id))]
    };
    let case = Case {
        timeout_ns: 5000 * MS,
        ..timed(20, Some(1000), 6000 * MS)
    };
    let run = run(&case, 100, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.ok, account.scheduled);
    assert!((5700..6300).contains(&account.scheduled), "{account:?}");
    assert!(run.quantile_ns(0.5) < 2 * MS && run.quantile_ns(0.9) >= 380 * MS);
    let longest = run
        .worker
        .recorder
        .distributions
        .ok_response
        .as_ref()
        .and_then(Distribution::max_ns);
    assert!((990 * MS..1010 * MS).contains(&longest.unwrap()), "{longest:?}");
}

#[test]
fn t03_what_is_never_answered_is_a_censored_sample() {
    let plan = |asked: Asked| match asked.number % 100 {
        7 => vec![],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    let case = Case {
        timeout_ns: 50 * MS,
        ..timed(4, Some(2000), 1000 * MS)
    };
    let run = run(&case, 10, no_limit(), Box::new(plan));
    run.check();
    let recorder = &run.worker.recorder;
    let account = &recorder.account;
    assert_eq!(account.scheduled, account.ok + account.timed_out);
    assert_eq!(account.timed_out, (run.tally.requests + 92) / 100);
    let censored = recorder.distributions.censored_response.as_ref().unwrap();
    assert_eq!(censored.count(), account.timed_out);
    assert!(censored.min_ns() >= Some(50 * MS));
    // A time-out ends a stream, not its connection.
    assert!(run.tally.connected <= 4 && run.worker.counts.reconnects == 0);
}

#[test]
fn t04_a_slow_connection_takes_nothing_of_the_rate() {
    let plan = |asked: Asked| {
        let delay_ns = if asked.connection == 0 { 100 * MS } else { MS };
        vec![(delay_ns, Act::Reply(asked.id))]
    };
    let run = run(&timed(10, Some(1000), 2000 * MS), 4, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(
        (account.ok, run.worker.queue_figures.bound_at_ns),
        (account.scheduled, None)
    );
    assert!(run.quantile_ns(0.5) < 2 * MS, "{}", run.quantile_ns(0.5));
}

#[test]
fn t31_each_stream_that_the_server_resets_is_a_failure_and_no_other() {
    let plan = |asked: Asked| match asked.number % 7 {
        6 => vec![(MS, reset(asked.id, INTERNAL))],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    let run = run(&counted(2, 700), 10, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!((account.ok, account.reset), (600, 100));
    assert_eq!((run.tally.connected, run.tally.requests), (2, 700));
    assert_eq!(run.worker.stream_figures().unwrap().resets, 100);
    let sample = &run.worker.recorder.error_samples[0];
    assert_eq!(sample.detail, "the server reset the stream: INTERNAL_ERROR");
}

#[test]
fn t31_each_reply_that_is_none_has_its_class() {
    let plan = |asked: Asked| {
        let head = |flags, coded: &[u8]| Act::Frames(frame(1, flags, asked.id, coded));
        let short = [&[0x88][..], &[0x0f, 0x0d, 1, b'9']].concat();
        let act = match asked.number % 5 {
            0 => status(asked.id, 14),
            1 => head(5, &short),
            2 => head(5, &[0x82]),
            3 => Act::Frames(frame(1, 5, asked.id, &[0x88])),
            _ => Act::Reply(asked.id),
        };
        vec![(MS, act)]
    };
    let run = run(&counted(1, 500), 5, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.bad_status, BTreeMap::from([(500, 100)]));
    let counts = (
        account.short_body,
        account.parse,
        account.failed_validation,
        account.ok,
    );
    assert_eq!(counts, (100, 100, 100, 100));
    assert_eq!(run.tally.connected, 1);
}

#[test]
fn t32_a_server_that_leaves_after_some_requests_loses_none() {
    // As many servers do: after so many requests a connection is left, and what came too late is not looked at.
    for (most, streams) in [(1, 1), (5, 1), (5, 10), (50, 10)] {
        let plan = move |asked: Asked| {
            if asked.nth >= most {
                return vec![];
            }
            let mut acts = vec![(MS, Act::Reply(asked.id))];
            if asked.nth == most - 1 {
                acts.push((0, goaway(asked.id, 0)));
                acts.push((2 * MS, Act::End));
            }
            acts
        };
        let run = run(&counted(2, 1000), streams, no_limit(), Box::new(plan));
        run.check();
        let account = &run.worker.recorder.account;
        assert_eq!(
            account.ok, 1000,
            "{account:?} {:?}",
            run.worker.recorder.error_samples
        );
        assert!(run.worker.counts.reconnects >= 1000 / most / 2 - 2);
        assert_eq!(run.worker.counts.requests_sent, 1000 + run.worker.counts.retried);
        assert_eq!(run.worker.counts.opened, run.tally.connected);
    }
}

#[test]
fn t32_a_connection_that_ends_without_a_word_is_met_once() {
    // It answers, and is gone when the next request is on its way.
    let plan = |asked: Asked| match asked.nth {
        9 => vec![(MS, Act::Reply(asked.id)), (MS + 1, Act::End)],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    let run = run(&counted(1, 1000), 1, no_limit(), Box::new(plan));
    run.check();
    assert_eq!((run.ok(), run.worker.counts.retried <= 100), (1000, true));
    assert_eq!(run.tally.connected, 100);
}

#[test]
fn a_request_that_is_refused_again_and_again_fails() {
    let plan = |asked: Asked| vec![(MS, reset(asked.id, REFUSED))];
    let run = run(&counted(1, 20), 2, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    // Nine waits, of 1 to 256 ms: another one would end after the time-out.
    assert_eq!((account.stream_refused, run.worker.counts.retried), (20, 20 * 9));
    assert_eq!(run.tally.requests, 20 * 10);
}

#[test]
fn what_every_connection_gives_back_is_refused_and_what_none_has_a_stream_for_was_not_sent() {
    // It takes a hundred streams before the server says anything, and that it leaves.
    let all = [frame(4, 0, 0, &[]), frame(7, 0, 0, &[0; 8])].concat();
    let run = run(&counted(1, 101), 101, Act::Frames(all), prompt());
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!((account.scheduled, account.eof), (101, 0));
    assert_eq!(account.stream_refused + account.not_sent_queue, 101);
    assert_eq!(run.worker.counts.requests_sent, run.tally.requests);
}

#[test]
fn a_request_that_no_stream_was_free_for_was_not_sent() {
    let case = Case {
        timeout_ns: 20 * MS,
        ..counted(1, 6)
    };
    let run = run(&case, 3, limit(0), prompt());
    run.check();
    let account = &run.worker.recorder.account;
    // The first three were on their way before the server said so.
    assert_eq!((account.scheduled, account.ok, account.not_sent_queue), (6, 3, 3));
    assert_eq!(run.worker.counts.requests_sent, run.tally.requests);
}

#[test]
fn the_wait_for_a_stream_goes_on_when_its_connection_is_left() {
    // The fourth waits for the third, whose connection ends with it.
    let plan = |asked: Asked| match asked.number {
        2 => vec![(10 * MS, Act::Reply(asked.id)), (10 * MS, goaway(asked.id, 0))],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    let run = run(&counted(1, 4), 2, limit(1), Box::new(plan));
    run.check();
    let times = run.worker.recorder.streams.as_ref().unwrap();
    assert_eq!((run.ok(), run.tally.connected), (4, 2));
    let (wire_ns, wait_ns) = (times.wire.sum_ns(), times.stream_wait.sum_ns());
    let ms = u128::from(MS);
    assert!((13 * ms..14 * ms).contains(&wire_ns), "{wire_ns}");
    assert!((10 * ms..11 * ms).contains(&wait_ns), "{wait_ns}");
}

#[test]
fn a_request_on_its_way_from_one_connection_to_the_next_at_the_end_was_not_sent() {
    let end_ns = EPOCH_NS + 20 * MS;
    // The first request was on its way before the server said that it takes none. It leaves when the next connection cannot be open
    // in time.
    let plan = move |asked: Asked| vec![(end_ns - 30_000 - asked.now_ns, goaway(asked.id, 0))];
    let case = Case {
        grace_ns: 0,
        ..timed(1, Some(1000), 20 * MS)
    };
    let run = run(&case, 8, limit(0), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert!(account.scheduled > 10, "{account:?}");
    assert_eq!(
        (account.in_flight_at_end, account.not_sent_end),
        (1, account.scheduled - 1)
    );
    assert_eq!((run.worker.counts.requests_sent, run.tally.requests), (1, 1));
}

#[test]
fn a_server_that_breaks_the_protocol_fails_what_is_under_way_and_gets_a_new_connection() {
    let plan = |asked: Asked| match asked.nth {
        20 => vec![(MS / 2, Act::Frames(frame(5, 4, 1, &[0, 0, 0, 2])))],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    let run = run(&counted(1, 400), 4, no_limit(), Box::new(plan));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!(account.ok + account.parse, 400);
    assert!(account.parse >= 4 && run.tally.connected > 10, "{account:?}");
}

#[test]
fn a_connection_on_which_nothing_comes_any_more_is_left() {
    let plan = |asked: Asked| match asked.connection {
        0 if asked.nth < 20 => vec![(MS, Act::Reply(asked.id))],
        0 => vec![(0, Act::Stuck)],
        _ => vec![(MS, Act::Reply(asked.id))],
    };
    for (streams, settings) in [(4, no_limit()), (4, limit(2)), (200, no_limit())] {
        let case = Case {
            timeout_ns: 20 * MS,
            ..timed(1, None, 2000 * MS)
        };
        let run = run(&case, streams, settings, Box::new(plan));
        run.check();
        let account = &run.worker.recorder.account;
        assert_eq!(run.tally.connected, 2, "{account:?}");
        // The server is asked when the first ones time out, and has a second to answer.
        let given_up = account.timed_out + account.not_sent_queue;
        assert!(given_up <= 54 * streams as u64, "{account:?}");
        assert!(account.ok >= 800 * streams.min(2) as u64, "{account:?}");
    }
}

#[test]
fn a_server_that_is_only_slow_keeps_its_connection() {
    let case = Case {
        timeout_ns: 20 * MS,
        ..timed(1, None, 3000 * MS)
    };
    // Of all that it is sent it answers nothing but pings.
    let run = run(&case, 4, no_limit(), Box::new(|_| vec![]));
    run.check();
    let account = &run.worker.recorder.account;
    assert_eq!((account.ok, run.tally.connected), (0, 1));
    assert!(account.timed_out >= 500, "{account:?}");
}

#[test]
fn bodies_go_through_small_windows_whole() {
    let mut spec = spec_of(&counted(2, 40), 3);
    spec.workload.request.method = "POST".to_owned();
    let body = vec![b'x'; 300_000];
    let small = [&4u16.to_be_bytes()[..], &1000u32.to_be_bytes()].concat();
    for settings in [no_limit(), Act::Frames(frame(4, 0, 0, &small))] {
        let run = run_with(&spec, Some(&body), settings, prompt());
        run.check();
        assert_eq!((run.ok(), run.tally.body_bytes), (40, 40 * 300_000));
    }
}

/// What a server may do on any request, by a script.
fn hostile(choices: Vec<u8>) -> Plan {
    let mut script = Script::new(choices);
    Box::new(move |asked: Asked| {
        let delay_ns = [MS, 0, 100_000, 7 * MS][script.pick(4)];
        let before = asked.id.saturating_sub(2 * script.pick(4) as u32);
        match script.pick(16) {
            6 => vec![(delay_ns, reset(asked.id, REFUSED))],
            7 => vec![(delay_ns, reset(asked.id, INTERNAL))],
            8 => vec![(delay_ns, goaway(before, 0)), (delay_ns + 3 * MS, Act::End)],
            9 => vec![(delay_ns, Act::Reply(asked.id)), (delay_ns, goaway(before, 11))],
            10 => vec![(delay_ns, Act::End)],
            11 => vec![(delay_ns, Act::Reset)],
            12 => vec![],
            13 => vec![
                (delay_ns, limit(script.pick(4) as u32)),
                (2 * delay_ns, Act::Reply(asked.id)),
                (20 * MS, limit(50)),
            ],
            14 => vec![(delay_ns, status(asked.id, 14))],
            15 => vec![(
                delay_ns,
                Act::Frames(frame(script.pick(10) as u8, 0, asked.id, &[0; 4])),
            )],
            _ => vec![(delay_ns, Act::Reply(asked.id))],
        }
    })
}

fn hostile_cases() -> impl Strategy<Value = (Case, usize, Vec<u8>)> {
    let load = (
        1usize..4,
        1usize..12,
        proptest::option::of(1u64..3000),
        any::<bool>(),
    );
    let limits = (
        prop_oneof![Just(5 * MS), Just(30 * MS), Just(200 * MS)],
        prop_oneof![Just(0), Just(300 * MS)],
        prop_oneof![Just("GET"), Just("POST")],
    );
    let choices = proptest::collection::vec(any::<u8>(), 0..400);
    (load, limits, choices).prop_map(|((connections, streams, rate, by_count), limits, choices)| {
        let case = Case {
            requests: by_count.then_some(60),
            duration_ns: 40 * MS,
            timeout_ns: limits.0,
            grace_ns: limits.1,
            method: limits.2,
            ..well(connections, rate)
        };
        (case, streams, choices)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t31_whatever_the_server_resets_leaves_or_closes_every_request_has_one_end(
        (case, streams, choices) in hostile_cases()
    ) {
        let run = run(&case, streams, no_limit(), hostile(choices));
        run.check();
        let account = &run.worker.recorder.account;
        if let Some(requests) = case.requests {
            prop_assert_eq!(account.scheduled, requests);
        }
        let (counts, connected) = (run.worker.counts, run.tally.connected);
        // Those that were opened before the window are not counted.
        let is_whole = run.worker.task.times.open_ns == EPOCH_NS;
        prop_assert!(counts.opened + counts.failures <= connected);
        // One for each may be on its way when the run ends.
        let unknown = connected - counts.opened - counts.failures;
        prop_assert!(!is_whole || unknown <= case.connections as u64, "{unknown}");
        prop_assert!(account.ok <= run.tally.good);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever went wrong is over when the server is well again: no slot, no request and no stream is lost for good.
    #[test]
    fn a_server_that_is_well_again_serves_everything((case, streams, mut choices) in hostile_cases(), open: bool) {
        choices.truncate(40);
        let case = Case {
            requests: None,
            duration_ns: 3000 * MS,
            timeout_ns: 30 * MS,
            rate_per_s: open.then_some(200),
            ..case
        };
        let mut run = run(&case, streams, no_limit(), hostile(choices));
        run.check();
        let answered = run.worker.connections.iter().filter(|slot| slot.answered > 0).count();
        let last = &run.worker.recorder.seconds.finish()[2];
        prop_assert_eq!(last.failed, 0);
        prop_assert!(open || answered == case.connections * streams, "{answered}");
        prop_assert!(last.ok >= if open { last.scheduled - 2 } else { 500 * (case.connections * streams) as u64 }, "{last:?}");
    }
}

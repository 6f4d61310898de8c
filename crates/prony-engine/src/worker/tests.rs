//! The worker against any network at all: whatever happens, every request has one end, and both sides agree on it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http2;
mod network;
mod tls;

use super::{task, Common, Edge, Gauges, Round, Times, Watch, Worker};
use crate::clock::{Clock, Simulated};
use crate::distribution::Distribution;
use crate::record::recorder::{seconds, PathLedger, Recorder, StageLedger};
use crate::record::recording::check_paths;
use crate::schedule::mix::Draw;
use crate::schedule::ConnectionPlan;
use crate::spec::Share;
use crate::spec::{ConnectionStage, HttpVersion, Spec};
use crate::wire::http1::ReplyReader;
use crate::wire::{Asks, Http1, Protocol, Rendered, Same, Sessions};
use base64::Engine as _;
use network::{Network, Script, Tally, World, BODY, CALL_NS};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const EPOCH_NS: u64 = 5_000_000_000;
const MS: u64 = 1_000_000;

#[derive(Debug, Clone)]
struct Case {
    /// Null: a closed loop.
    rate_per_s: Option<u64>,
    connections: usize,
    /// Null: time ends the window.
    requests: Option<u64>,
    duration_ns: u64,
    warmup_ns: u64,
    timeout_ns: u64,
    /// Null: the time-out is for connecting too.
    connect_timeout_ns: Option<u64>,
    grace_ns: u64,
    method: &'static str,
    keep_alive: bool,
    cancel_ns: Option<u64>,
    pacing: &'static str,
    choices: Vec<u8>,
    /// Of a closed loop whose connections are added and taken away.
    stages: Vec<ConnectionStage>,
    /// The weights of the paths; none: one path.
    mix: Vec<f64>,
    /// What a call to the kernel takes.
    call_ns: u64,
    /// When a second worker, which is not run, has opened its connections; null: there is none.
    other_ready_ns: Option<u64>,
    /// Of connections: their requests, and their age.
    lifetime: (Option<u64>, Option<u64>),
}

impl Case {
    /// A closed loop in these stages, if they ask for any connection.
    fn in_stages(self, stages: Vec<ConnectionStage>) -> Self {
        let ends = stages
            .iter()
            .flat_map(|stage| [stage.from_connections, stage.to_connections]);
        let Some(connections) = ends.max().filter(|&most| most > 0) else {
            return self;
        };
        let duration_ns = stages.iter().map(|stage| stage.duration_ns).sum();
        Self {
            rate_per_s: None,
            requests: None,
            connections,
            duration_ns,
            stages,
            ..self
        }
    }

    fn spec(&self) -> Spec {
        let connections = self.connections;
        let shape = match self.rate_per_s {
            Some(rate) => {
                serde_json::json!({"kind": "open", "rate_per_s": rate as f64, "arrivals": "poisson", "seed": 1, "connections": connections})
            }
            None => serde_json::json!({"kind": "closed", "connections": connections, "stages": self.stages}),
        };
        let stop = match self.requests {
            Some(requests) => serde_json::json!({"kind": "requests", "requests": requests}),
            None => serde_json::json!({"kind": "duration", "duration_ns": self.duration_ns}),
        };
        let body = base64::engine::general_purpose::STANDARD.encode(BODY);
        let spec = serde_json::json!({
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": shape, "stop": stop, "warmup_ns": self.warmup_ns, "timeout_ns": self.timeout_ns, "grace_ns": self.grace_ns,
                "connect_timeout_ns": self.connect_timeout_ns,
                "connection_requests": self.lifetime.0, "connection_age_ns": self.lifetime.1,
                "request": {"method": self.method, "path": "/", "headers": [], "body": null, "keep_alive": self.keep_alive},
                "expect": {"status": null, "body": body}
            },
            "threads": 1 + usize::from(self.other_ready_ns.is_some()), "cpus": null, "pacing": self.pacing
        });
        let mut spec = spec;
        let place = |number| {
            if number == 0 {
                "/".to_owned()
            } else {
                format!("/{number}")
            }
        };
        let path =
            |(number, weight): (usize, &f64)| serde_json::json!({"path": place(number), "weight": weight});
        let paths: Vec<_> = self.mix.iter().enumerate().map(path).collect();
        if !paths.is_empty() {
            spec["workload"]["mix"] = serde_json::json!({"seed": 7, "paths": paths});
        }
        Spec::from_json(&spec.to_string()).unwrap()
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let load = (
        proptest::option::of(1u64..3000),
        1usize..6,
        proptest::option::of(1u64..60),
        prop_oneof![Just(0), Just(0), Just(11 * MS)],
    );
    let limits = (
        prop_oneof![Just(3 * MS), Just(25 * MS), Just(200 * MS)],
        prop_oneof![Just(0), Just(10 * MS), Just(300 * MS)],
        prop_oneof![Just("GET"), Just("GET"), Just("POST")],
        prop::bool::weighted(0.8),
        proptest::option::weighted(0.2, 0u64..60 * MS),
        prop_oneof![Just("precise"), Just("economical")],
        proptest::option::weighted(0.3, prop_oneof![Just(2 * MS), Just(30 * MS)]),
    );
    let choices = proptest::collection::vec(any::<u8>(), 0..600);
    let stages = proptest::option::weighted(0.3, some_stages(15, 6));
    (load, limits, choices, stages).prop_map(|(load, limits, choices, stages)| {
        Case {
            rate_per_s: load.0,
            connections: load.1,
            requests: load.2,
            duration_ns: 40 * MS,
            warmup_ns: load.3,
            timeout_ns: limits.0,
            connect_timeout_ns: limits.6,
            grace_ns: limits.1,
            method: limits.2,
            keep_alive: limits.3,
            cancel_ns: limits.4,
            pacing: limits.5,
            choices,
            stages: Vec::new(),
            mix: Vec::new(),
            call_ns: CALL_NS,
            other_ready_ns: None,
            lifetime: (None, None),
        }
        .in_stages(stages.unwrap_or_default())
    })
}

/// Stages of up to `most_ms` and fewer than `most` connections.
fn some_stages(most_ms: u64, most: usize) -> impl Strategy<Value = Vec<ConnectionStage>> {
    let one = (1..most_ms, 0..most, 0..most).prop_map(|(length_ms, from_connections, to_connections)| {
        ConnectionStage {
            duration_ns: length_ms * MS,
            from_connections,
            to_connections,
        }
    });
    proptest::collection::vec(one, 1..5)
}

/// The edges that a run passed, and the replies of its rounds within the window.
#[derive(Default)]
struct Passed {
    edges: Vec<(Edge, u64)>,
    replies: u64,
}

impl Watch for Passed {
    fn pass(&mut self, edge: Edge, spin_ns: u64) {
        self.edges.push((edge, spin_ns));
    }

    fn round(&mut self, round: &Round) {
        assert!(round.began_ns <= round.woke_ns && round.woke_ns <= round.ended_ns);
        self.replies += round.replies;
    }
}

/// What a run left behind.
struct Run<P: Protocol = Http1> {
    worker: Worker<P, Network, Simulated>,
    tally: Tally,
    times: Times,
    ended_ns: u64,
    was_cancelled: bool,
    /// Sockets that were left.
    sockets: usize,
}

fn run(case: &Case) -> Run {
    let protocol = Http1::new(HttpVersion::V1_1, &case.spec().workload.request, None, "x");
    let requests = vec![protocol.bytes(Same).to_vec()];
    run_of(case, protocol, requests)
}

/// A load of a protocol that sends these requests.
fn run_of<P: Protocol>(case: &Case, protocol: P, requests: Vec<Vec<u8>>) -> Run<P> {
    let spec = case.spec();
    let common = Common::new(&spec, EPOCH_NS, case.connections);
    let clock = Simulated::default();
    clock.advance_to(EPOCH_NS);
    let script = Script::new(case.choices.clone());
    let mut world = World::new(clock.clone(), script, requests, case.connections);
    world.call_ns = case.call_ns;
    let other = case.other_ready_ns.filter(|_| common.workers > 1);
    world.other = other.map(|after_ns| (EPOCH_NS + after_ns, Arc::clone(&common.opening)));
    world.cancel_ns = case.cancel_ns.map_or(u64::MAX, |after_ns| EPOCH_NS + after_ns);
    let cancelled = Rc::clone(&world.cancelled);
    let world = Rc::new(RefCell::new(world));
    let mut recorder = Recorder::new(case.rate_per_s.is_some(), seconds(common.times.open_ns).0);
    recorder.stages = StageLedger::of(&spec.workload.shape);
    recorder.paths = PathLedger::of(&spec.workload);
    let share = task(&spec, &common, 0).unwrap();
    let mut worker = Worker::new(
        protocol,
        Network::new(Rc::clone(&world)),
        clock.clone(),
        share,
        recorder,
    );
    let mut passed = Passed::default();
    worker.run(&cancelled, &Gauges::default(), &mut passed).unwrap();
    let edges = passed.edges;
    assert!(matches!(edges[..], [] | [(Edge::Open, _), (Edge::Close, _)]));
    assert!(edges.is_empty() || case.pacing == "precise" || edges[1].1 == 0);
    assert!(passed.replies <= worker.recorder.replies());
    let tally = std::mem::take(&mut world.borrow_mut().tally);
    let sockets = world.borrow().sockets();
    let was_cancelled = cancelled.load(std::sync::atomic::Ordering::Relaxed);
    Run {
        times: worker.task.times,
        worker,
        tally,
        ended_ns: clock.now(),
        was_cancelled,
        sockets,
    }
}

fn length(distribution: Option<&Distribution>) -> u64 {
    distribution.map_or(0, Distribution::count)
}

impl<P: Protocol> Run<P> {
    /// One end for each request, in every place where ends are counted.
    fn check_account(&mut self) {
        let recorder = &mut self.worker.recorder;
        recorder.account.check().unwrap();
        assert_eq!((recorder.outstanding(), recorder.in_flight()), (0, 0));
        let account = &recorder.account;
        let carried: u64 = account.carried_in.unanswered.values().sum();
        let censored_sent = account.timed_out + account.in_flight_at_end;
        let censored_unsent = account.not_sent_queue + account.not_sent_end;
        let latencies = &recorder.distributions;
        assert_eq!(latencies.ok_service.count(), account.ok);
        assert!(latencies.censored_service.count() >= censored_sent);
        let censored = censored_sent + censored_unsent + account.connect_timed_out + carried;
        if self.worker.task.schedule.is_some() {
            assert_eq!(length(latencies.ok_response.as_ref()), account.ok);
            assert_eq!(length(latencies.censored_response.as_ref()), censored);
        } else {
            assert_eq!(latencies.censored_service.count(), censored);
        }
        assert_eq!(latencies.carried_in_service.count(), account.carried_in.answered);
        let (all, own) = (recorder.ended_so_far(), account.scheduled);
        let series = recorder.seconds.finish();
        assert_eq!(series.iter().map(|second| second.ok).sum::<u64>(), all.ok);
        assert_eq!(series.iter().map(|second| second.failed).sum::<u64>(), all.failed);
        assert_eq!(series.iter().map(|second| second.scheduled).sum::<u64>(), own);
        assert_eq!(
            series.iter().filter_map(|second| second.due_ok).sum::<u64>(),
            account.ok
        );
        assert!(series
            .iter()
            .all(|second| second.due_ok <= Some(second.scheduled)));
    }

    /// What the network did is what the worker wrote down; without a warm-up, to the last byte.
    fn check_against_the_network(&self) {
        let (recorder, tally) = (&self.worker.recorder, &self.tally);
        let account = &recorder.account;
        assert!(account.ok + account.carried_in.answered <= tally.good);
        if self.times.open_ns > EPOCH_NS {
            return;
        }
        let unavailable = account.bad_status.get(&503).copied().unwrap_or(0);
        assert_eq!(
            (account.ok, unavailable, account.failed_validation),
            (tally.good, tally.unavailable, tally.other_body)
        );
        assert!(account.answered_early <= tally.early);
        assert_eq!(recorder.bytes.sent, tally.bytes_taken);
        assert_eq!(recorder.bytes.received, tally.bytes_given);
        let counts = self.worker.counts;
        assert_eq!(counts.opened, tally.connected);
        assert!(counts.failures >= tally.refused && counts.opened + counts.failures <= tally.attempts);
        assert!(tally.attempts - counts.opened - counts.failures <= self.worker.connections.len() as u64);
        assert!(counts.retried <= account.scheduled && counts.surplus >= tally.spoke_first);
        assert_eq!(account.carried_in.requests, 0);
    }

    fn check_little(&self) {
        let little = self.worker.recorder.little();
        let (integral, sum) = (little.in_flight_integral_ns, little.sojourn_sum_ns);
        // Stamps of one step may differ by the calls within it.
        let slack = u128::from(self.tally.calls) * 300 * self.worker.connections.len() as u128;
        assert!(integral.abs_diff(sum) <= slack, "{integral} for {sum}");
    }

    /// Neither late nor busy with nothing.
    fn check_end(&self, case: &Case) {
        let last_ns = match (case.requests, case.rate_per_s) {
            (None, _) => self.times.close_ns,
            (Some(_), Some(_)) => self.worker.last_intended_ns,
            (Some(_), None) => return,
        };
        let slack_ns = 50 * 300 * (1 + self.worker.connections.len() as u64);
        let end_ns = last_ns + case.grace_ns + slack_ns;
        assert!(
            self.was_cancelled || self.ended_ns <= end_ns,
            "{} ns late",
            self.ended_ns - end_ns
        );
    }

    fn check_scheduled(&self, case: &Case) {
        let scheduled = self.worker.recorder.account.scheduled;
        if self.was_cancelled {
            return;
        }
        if let Some(requests) = case.requests {
            assert_eq!(scheduled, requests);
        } else if case.rate_per_s.is_some() {
            let common = Common::new(&case.spec(), EPOCH_NS, case.connections);
            let mut schedule = task(&case.spec(), &common, 0).unwrap().schedule.unwrap();
            let dues = std::iter::repeat_with(|| EPOCH_NS + schedule.next_due());
            let window = self.times.open_ns..self.times.close_ns;
            let due = dues.take_while(|&due_ns| due_ns < window.end);
            assert_eq!(
                scheduled,
                due.filter(|due_ns| window.contains(due_ns)).count() as u64
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t03_whatever_the_network_does_every_request_has_one_end_and_both_sides_agree(case in cases()) {
        let mut run = run(&case);
        run.check_account();
        run.check_against_the_network();
        run.check_little();
        run.check_scheduled(&case);
        run.check_end(&case);
        prop_assert!(run.tally.most_owed <= case.connections);
    }

    #[test]
    fn connections_that_end_at_their_limit_take_no_request_with_them(case in cases(), lifetime in (proptest::option::of(1u64..4), proptest::option::of(1..20 * MS))) {
        let case = Case { lifetime, ..case };
        let mut run = run(&case);
        run.check_account();
        run.check_against_the_network();
        run.check_scheduled(&case);
        run.check_end(&case);
        prop_assert!(run.tally.most_owed <= case.connections);
    }

    /// As one with very many connections, whose round takes longer than the opening of the window is ahead.
    #[test]
    fn a_worker_that_learns_late_of_the_opening_has_one_end_for_each_request(
        case in cases(), call_ms in 1u64..40, other_ready_ns in 0..400 * MS
    ) {
        let case = Case {
            rate_per_s: None,
            connections: 2 * case.connections,
            call_ns: call_ms * MS,
            duration_ns: 400 * MS,
            stages: Vec::new(),
            other_ready_ns: Some(other_ready_ns),
            ..case
        };
        run(&case).check_account();
    }

    #[test]
    fn a_worker_waits_instead_of_asking_again_and_again(mut case in cases(), rate in 1u64..200) {
        // No spinning, which asks on purpose.
        case.pacing = "economical";
        case.rate_per_s = case.rate_per_s.map(|_| 3000 + rate);
        let run = run(&case);
        let events = run.tally.calls + run.worker.recorder.account.scheduled + 2 * run.tally.attempts;
        let elapsed_ns = run.ended_ns - EPOCH_NS;
        let most = 40 + 6 * events + elapsed_ns / 300_000;
        prop_assert!(run.tally.waits <= most, "{} waits for {events} events", run.tally.waits);
    }

    /// Whatever went wrong is over when the network is well again: no slot, no request and no wake-up is lost for good.
    #[test]
    fn a_network_that_is_well_again_serves_everything(mut case in cases(), open: bool) {
        case.choices.truncate(60);
        case.stages.clear();
        case.rate_per_s = open.then_some(200);
        (case.requests, case.cancel_ns, case.warmup_ns) = (None, None, 0);
        // Each refused connect takes two of the 60 choices, and the wait after it grows to 1 s: 21 s at worst.
        (case.duration_ns, case.timeout_ns) = (25_000 * MS, 25 * MS);
        // Shorter, requests that come together would be given up while they wait for the only connection, by a network that is well.
        case.connect_timeout_ns = case.connect_timeout_ns.map(|_| 25 * MS);
        let mut run = run(&case);
        let answered = run.worker.answered().filter(|&count| count > 0).count();
        let recorder = &mut run.worker.recorder;
        let last = &recorder.seconds.finish()[24];
        prop_assert_eq!(last.failed, 0);
        // Each connection serves a request in about a millisecond, or two.
        let least = if open { last.scheduled - 2 } else { 300 * case.connections as u64 };
        prop_assert!(last.ok >= least, "{last:?}");
        prop_assert!(open || answered == case.connections);
    }
}

#[test]
fn requests_that_the_kernel_takes_in_halves_arrive_whole() {
    let case = Case {
        rate_per_s: None,
        connections: 2,
        requests: Some(50),
        duration_ns: 0,
        warmup_ns: 0,
        timeout_ns: 200 * MS,
        connect_timeout_ns: None,
        grace_ns: 0,
        method: "GET",
        keep_alive: true,
        cancel_ns: None,
        pacing: "precise",
        // Each choice is harmless but that of a send, which takes half of what is left.
        choices: vec![54; 4000],
        stages: Vec::new(),
        mix: Vec::new(),
        call_ns: CALL_NS,
        other_ready_ns: None,
        lifetime: (None, None),
    };
    let run = run(&case);
    assert_eq!(run.worker.recorder.account.ok, 50);
    assert!(run.tally.calls > 50 * 6, "{:?}", run.tally);
}

fn well(connections: usize, rate_per_s: Option<u64>) -> Case {
    Case {
        rate_per_s,
        connections,
        requests: Some(connections as u64),
        duration_ns: 0,
        warmup_ns: 0,
        timeout_ns: 1000 * MS,
        connect_timeout_ns: None,
        grace_ns: 1000 * MS,
        method: "GET",
        keep_alive: true,
        cancel_ns: None,
        pacing: "precise",
        choices: Vec::new(),
        stages: Vec::new(),
        mix: Vec::new(),
        call_ns: CALL_NS,
        other_ready_ns: None,
        lifetime: (None, None),
    }
}

#[test]
fn a_network_that_is_well_gives_each_connection_as_many_requests_as_it_may_have() {
    let case = Case {
        requests: Some(60),
        lifetime: (Some(5), None),
        ..well(2, None)
    };
    let run = run(&case);
    assert_eq!(run.worker.recorder.account.ok, 60);
    assert_eq!((run.worker.counts.retired, run.tally.connected), (12, 12));
}

/// Requests that differ, as those of a mix or of a replay do: each is known by its number.
struct Numbered {
    next: usize,
    requests: Vec<Vec<u8>>,
}

impl Numbered {
    fn new(count: usize) -> Self {
        let request = |number| format!("GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes();
        Self {
            next: 0,
            requests: (0..count).map(request).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Number(usize);

impl Asks for Number {
    fn path(self) -> usize {
        self.0
    }
}

impl Protocol for Numbered {
    type Reader = ReplyReader;
    type Request = Number;

    fn next(&mut self) -> Number {
        self.next += 1;
        Number(self.next - 1)
    }

    fn bytes(&self, request: Number) -> &[u8] {
        &self.requests[request.0]
    }

    fn is_idempotent(&self, _: Number) -> bool {
        true
    }

    fn reader(&self) -> ReplyReader {
        ReplyReader::new(HttpVersion::V1_1, false)
    }

    fn keeps_alive(&self, _: Number) -> bool {
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_request_of_a_mix_is_sent_as_itself_and_again_only_where_it_met_a_close(case in cases(), count in 1u64..60) {
        let case = Case { requests: Some(count), warmup_ns: 0, cancel_ns: None, stages: Vec::new(), ..case };
        let protocol = Numbered::new(count as usize);
        let requests = protocol.requests.clone();
        let mut run = run_of(&case, protocol, requests);
        run.check_account();
        run.check_against_the_network();
        let mut starts = vec![0u64; count as usize];
        run.tally.begun.iter().for_each(|&number| starts[number] += 1);
        let again: u64 = starts.iter().map(|&starts| starts.saturating_sub(1)).sum();
        prop_assert!(again <= run.worker.counts.retried && starts.iter().all(|&starts| starts <= 2), "{starts:?}");
        // One that was never begun had no connection, or none that took it.
        let unbegun = starts.iter().filter(|&&starts| starts == 0).count() as u64;
        let account = &run.worker.recorder.account;
        prop_assert!(unbegun <= account.scheduled - account.ok);
    }
}

/// A load of a mix.
fn run_mix(case: &Case) -> Run<Sessions<Http1>> {
    let spec = case.spec();
    let requests = spec.workload.requests();
    let rendered = requests.iter().map(|one| {
        let whole = Http1::rendered(one, None, &spec.target).unwrap();
        whole.bytes(Same).to_vec()
    });
    let sessions = Sessions::of_mix(
        &spec,
        spec.workload.mix.as_ref().unwrap(),
        &spec.workload.requests(),
    )
    .unwrap();
    run_of(case, sessions, rendered.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_network_does_the_paths_of_a_mix_make_up_the_whole(
        case in cases(),
        mix in proptest::collection::vec(prop_oneof![Just(1.0), 0.01f64..10.0], 2..5),
    ) {
        let case = Case { mix, ..case };
        let mut run = run_mix(&case);
        run.check_account();
        run.check_against_the_network();
        run.check_little();
        let recorder = &run.worker.recorder;
        let paths = &recorder.paths.as_ref().unwrap().records;
        check_paths(paths, &recorder.account, &recorder.bytes, &recorder.distributions).unwrap();
        for (number, one) in paths.iter().enumerate() {
            one.account.check().unwrap();
            let answered = run.tally.answered.iter().filter(|&&request| request == number).count() as u64;
            let counted = one.account.ok + one.account.carried_in.answered;
            // Before the window nothing is counted.
            prop_assert!(counted <= answered);
            prop_assert!(run.times.open_ns > EPOCH_NS || counted == answered);
        }
    }

    #[test]
    fn the_requests_of_a_mix_are_those_of_its_draw_whatever_the_server_answers(case in cases()) {
        // A closed loop begins requests before its window opens: as many as its server answers.
        let rate_per_s = case.rate_per_s.or(Some(900));
        let case = Case { mix: vec![3.0, 1.0, 1.0], warmup_ns: 0, stages: Vec::new(), rate_per_s, ..case };
        let run = run_mix(&case);
        let mut draw = Draw::new(case.mix.iter().copied(), 7);
        let account = &run.worker.recorder.account;
        let mut expected = [0u64; 3];
        (0..account.scheduled).for_each(|_| expected[draw.next_path()] += 1);
        let paths = &run.worker.recorder.paths.as_ref().unwrap().records;
        let scheduled: Vec<u64> = paths.iter().map(|one| one.account.scheduled).collect();
        prop_assert_eq!(scheduled, expected);
    }
}

#[test]
fn paths_that_are_not_the_whole_are_a_fault() {
    let case = Case {
        mix: vec![1.0, 1.0],
        ..well(4, None)
    };
    let mut run = run_mix(&case);
    let recorder = &mut run.worker.recorder;
    let (account, bytes) = (recorder.account.clone(), recorder.bytes.clone());
    let records = &mut recorder.paths.as_mut().unwrap().records;
    records[1].account.ok += 1;
    let error = check_paths(records, &account, &bytes, &recorder.distributions).unwrap_err();
    assert!(error.to_string().contains("requests of all paths"), "{error}");
    records[1].account.ok -= 1;
    records[0].bytes.sent += 1;
    let error = check_paths(records, &account, &bytes, &recorder.distributions).unwrap_err();
    assert!(error.to_string().contains("bytes of all paths"), "{error}");
    records[0].bytes.sent -= 1;
    records[0].ok_service.as_mut().unwrap().record(1);
    let error = check_paths(records, &account, &bytes, &recorder.distributions).unwrap_err();
    assert!(error.to_string().contains("latencies of all paths"), "{error}");
}

const WHOLE: Share = Share {
    worker: 0,
    workers: 1,
};
// On a network that is well; a new connection takes as long.
const REPLY_NS: u64 = 900_000;

/// Each time at which the plan may change, and how many connections there are from then on.
fn changes(plan: &ConnectionPlan) -> Vec<(u64, usize)> {
    let times = std::iter::successors(Some(0), |&at_ns| plan.next_change_ns(at_ns));
    times.map(|at_ns| (at_ns, plan.at(at_ns))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_on_as_many_connections_as_the_plan_says_and_each_of_them_ends(stages in some_stages(60, 20)) {
        let case = well(1, None).in_stages(stages.clone());
        prop_assume!(!case.stages.is_empty());
        let mut run = run(&case);
        run.check_account();
        let account = &run.worker.recorder.account;
        prop_assert_eq!(account.ok, account.scheduled);
        let all = changes(&ConnectionPlan::new(&stages, WHOLE));
        // What is taken away ends its request first, also if its connection is only on its way; and calls take some time.
        let lasts_ns = 2 * REPLY_NS + 100_000;
        let window = run.tally.owed.iter().filter(|(at_ns, _)| *at_ns >= run.times.open_ns);
        for &(at_ns, owed) in window {
            let since_ns = at_ns - run.times.open_ns;
            let still = all.iter().zip(all.iter().skip(1)).filter(|((begin_ns, _), (end_ns, _))| {
                *begin_ns <= since_ns && end_ns + lasts_ns > since_ns
            });
            let most = still.map(|((_, count), _)| *count).max().unwrap_or(0);
            prop_assert!(owed <= most, "{owed} at {since_ns} ns, of at most {most}");
        }
        let held: f64 = all.windows(2).map(|pair| pair[0].1 as f64 * (pair[1].0 - pair[0].0) as f64).sum();
        let (requests, counts) = (held / REPLY_NS as f64, run.worker.counts);
        let changed = (counts.added + counts.taken_away) as f64;
        let most = requests + changed + case.connections as f64;
        let least = 0.9 * requests - 2.0 * changed - case.connections as f64;
        prop_assert!((least..=most).contains(&(account.ok as f64)), "{} of {least} to {most}", account.ok);
    }

    #[test]
    fn what_the_plan_added_less_what_it_took_away_is_what_is_there(stages in some_stages(60, 20)) {
        let case = well(1, None).in_stages(stages.clone());
        prop_assume!(!case.stages.is_empty());
        let run = run(&case);
        let counts = run.worker.counts;
        let there = stages[0].from_connections as u64 + counts.added - counts.taken_away;
        prop_assert_eq!(there, run.worker.wanted as u64);
        prop_assert_eq!(run.sockets, run.worker.wanted);
    }
}

#[test]
fn requests_are_counted_in_the_stage_in_which_they_were_begun() {
    let stage = |length_ms: u64, count: usize| ConnectionStage {
        duration_ns: length_ms * MS,
        from_connections: count,
        to_connections: count,
    };
    let run = run(&well(1, None).in_stages(vec![stage(50, 2), stage(20, 0), stage(50, 8)]));
    let records = &run.worker.recorder.stages.as_ref().unwrap().records;
    let begun: Vec<u64> = records.iter().map(|record| record.scheduled).collect();
    assert_eq!(begun.iter().sum::<u64>(), run.worker.recorder.account.scheduled);
    assert_eq!(begun[1], 0);
    assert!(
        begun[2] >= 4 * begun[0] - 32 && begun[2] <= 4 * begun[0] + 8,
        "{begun:?}"
    );
    for record in records {
        assert_eq!((record.ok, record.failed), (record.scheduled, 0));
        assert_eq!(length(record.ok_service.as_ref()), record.ok);
        assert!(record.ok_response.is_none());
    }
}

#[test]
fn t16_no_step_opens_more_connections_than_a_batch() {
    // At 3 million a second all requests are due within one wait.
    for rate in [None, Some(3_000_000)] {
        let run = run(&well(1000, rate));
        assert_eq!(run.worker.recorder.account.ok, 1000);
        assert!(run.tally.most_attempts_at_once <= 200, "{:?}", run.tally);
    }
}

/// A request costs a third of a `connect()`: of connections that are open, a step begins three times as many.
#[test]
fn connections_that_rest_until_all_are_open_start_in_larger_batches() {
    let run = run(&Case {
        requests: None,
        duration_ns: 40 * MS,
        ..well(1000, None)
    });
    assert_eq!(run.tally.most_begun_unasked, 24);
}

#[test]
fn t13_each_attempt_has_its_own_stamp() {
    // A network that connects at once, in one call.
    let at_once = Case {
        choices: vec![19; 8000],
        ..well(1000, None)
    };
    let run = run(&at_once);
    let connect = &run.worker.recorder.distributions.connect;
    assert!(connect.count() >= 100, "{connect:?}");
    assert_eq!(connect.max_ns(), Some(300));
}

#[test]
fn t15_each_reply_of_a_batch_bears_the_time_at_which_it_was_read() {
    let run = run(&well(64, None));
    let latencies = &run.worker.recorder.distributions.ok_service;
    assert_eq!(latencies.count(), 64);
    // Sent and read in the same order: had all one stamp, they would differ by 64 calls of 300 ns.
    let spread_ns = latencies.max_ns().unwrap() - latencies.min_ns().unwrap();
    assert!(spread_ns <= 10 * 300, "{spread_ns} ns");
}

/// To close thousands of connections takes longer than a cancelled run may: it has its account first.
#[test]
fn a_cancelled_run_accounts_for_its_requests_before_it_closes_their_connections() {
    let cut = Case {
        requests: None,
        duration_ns: 4000 * MS,
        cancel_ns: Some(1500 * MS),
        ..well(500, None)
    };
    let mut run = run(&cut);
    run.check_account();
    assert!(run.was_cancelled && run.tally.connected == 500);
    assert_eq!(run.tally.closed, 0);
}

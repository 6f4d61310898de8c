#![allow(clippy::unwrap_used)]

use super::{evidence, Cause, Evidence, Limited};
use crate::account::Class;
use crate::distribution::Distribution;
use crate::record::generator::{Generator, Thread};
use crate::record::recording::Recording;
use proptest::prelude::*;
use serde_json::json;

const SECOND: u64 = 1_000_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn run_of(shape: serde_json::Value) -> Recording {
    let kind = shape["kind"].clone();
    let value = json!({
        "format": 1,
        "engine": {"name": "prony", "version": "1", "driver": "epoll", "threads": 1, "pacing": null},
        "spec": {
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": shape,
                "stop": {"kind": "duration", "duration_ns": SECOND},
                "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 1,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "precise"
        },
        "loop": kind,
        "window": {"open_ns": SECOND, "close_ns": 2 * SECOND, "drained_ns": 5 * SECOND, "open_unix_ns": 0, "interrupted": false},
        "account": crate::account::Account::default(),
        "completed": {"ok": 0, "failed": 0},
        "connections": crate::record::recording::Connections::default(),
        "bytes": crate::record::recording::Bytes::default(),
        "queue": crate::record::recording::Queue::default(),
        "distributions": crate::record::recording::Distributions::default(),
        "series": [],
        "generator": crate::record::generator::Generator::default(),
        "little": crate::record::recording::Little::default(),
        "error_samples": []
    });
    serde_json::from_value(value).unwrap()
}

fn closed() -> Recording {
    let mut run = run_of(json!({"kind": "closed", "connections": 2}));
    run.generator.threads = vec![Thread::default()];
    run
}

/// An open loop of 2,000 requests, each sent `lag_ns` late and answered after `response_ns`; all sent in time.
fn open(lag_ns: u64, response_ns: u64) -> Recording {
    let shape =
        json!({"kind": "open", "rate_per_s": 2000.0, "arrivals": "constant", "seed": 1, "connections": 9});
    let mut run = run_of(shape);
    let (mut lags, mut responses) = (Distribution::default(), Distribution::default());
    for _ in 0..2_000 {
        run.account.scheduled += 1;
        run.account.count(Class::Ok, 200);
        lags.record(lag_ns);
        responses.record(response_ns);
    }
    run.distributions.send_lag = Some(lags);
    run.distributions.ok_response = Some(responses);
    run.generator.sent_in_window = 2_000;
    run.generator.threads = vec![Thread::default()];
    run.completed.ok = 2_000;
    run
}

fn limited(found: &[Evidence]) -> Limited {
    let mut generator = Generator::default();
    generator.conclude(found.to_vec());
    generator.limited
}

fn verdict(run: &Recording) -> Limited {
    limited(&evidence(run))
}

fn with_thread(thread: Thread) -> Recording {
    let mut run = closed();
    run.generator.threads.push(thread);
    run
}

#[test]
fn a_generator_that_did_nothing_unusual_is_not_limited() {
    assert_eq!(verdict(&closed()), Limited::No);
    assert_eq!(verdict(&open(2 * US, 200 * US)), Limited::No);
}

#[test]
fn a_lag_counts_by_its_share_of_the_latency_and_not_by_its_length() {
    assert_eq!(verdict(&open(9 * MS, 100 * MS)), Limited::No);
    assert_eq!(verdict(&open(60 * US, 200 * US)), Limited::Suspect);
    assert_eq!(verdict(&open(150 * US, 200 * US)), Limited::Yes);
}

#[test]
fn of_the_percentiles_the_one_counts_where_the_lag_is_the_largest_part() {
    let mut run = open(0, 10 * MS);
    let lags = run.distributions.send_lag.insert(Distribution::default());
    (0..1_970).for_each(|_| lags.record(US));
    (0..30).for_each(|_| lags.record(8 * MS));
    let found = evidence(&run);
    let Cause::Late {
        percentile, lag_ns, ..
    } = found[0].cause
    else {
        panic!("{found:?}");
    };
    assert_eq!((percentile, lag_ns / MS, found[0].level), (99.0, 8, Limited::Yes));
}

#[test]
fn a_percentile_with_few_requests_above_it_says_nothing() {
    let mut run = open(0, 10 * MS);
    let (mut lags, mut responses) = (Distribution::default(), Distribution::default());
    for k in 0..900 {
        lags.record(if k < 20 { 8 * MS } else { US });
        responses.record(10 * MS);
    }
    run.distributions.send_lag = Some(lags);
    run.distributions.ok_response = Some(responses);
    assert_eq!(verdict(&run), Limited::No);
}

#[test]
fn work_in_the_window_makes_a_thread_busy_and_spinning_does_not() {
    let working = |work_ns, spin_ns| {
        verdict(&with_thread(Thread {
            system_ns: work_ns + spin_ns,
            spin_ns,
            ..Thread::default()
        }))
    };
    assert_eq!(working(790 * MS, 200 * MS), Limited::No);
    assert_eq!(working(850 * MS, 0), Limited::Suspect);
    // The drain of three seconds in which it rests does not count.
    assert_eq!(working(960 * MS, 0), Limited::Yes);
}

#[test]
fn t43_long_waits_for_the_cpu_count_by_their_share_of_the_window() {
    let waiting = |long_wait_ns| {
        verdict(&with_thread(Thread {
            long_waits: 20,
            long_wait_ns,
            ..Thread::default()
        }))
    };
    assert_eq!(waiting(40 * MS), Limited::No);
    assert_eq!(waiting(60 * MS), Limited::Suspect);
    assert_eq!(waiting(300 * MS), Limited::Yes);
}

/// Waking up takes some 10 us each time where a virtual CPU had halted.
#[test]
fn t43_short_waits_are_none_however_many_there_are() {
    let run = with_thread(Thread {
        run_queue_ns: 300 * MS,
        turns: 30_000,
        ..Thread::default()
    });
    assert_eq!(verdict(&run), Limited::No);
}

#[test]
fn t43_of_few_long_waits_those_count_that_are_in_a_percentile() {
    // 4,000 replies after 1 ms each, and so many that lay in a wait of that length.
    let late = |replies, wait_ns| {
        let mut run = with_thread(Thread {
            long_waits: 9,
            long_wait_ns: 18 * MS,
            ..Thread::default()
        });
        run.distributions.ok_service.record_n(MS, 4_000);
        run.distributions.late_replies.record_n(wait_ns, replies);
        verdict(&run)
    };
    assert_eq!(late(20, 2 * MS), Limited::No);
    assert_eq!(late(36, 2 * MS), Limited::Yes);
    assert_eq!(late(36, 300 * US), Limited::Suspect);
    assert_eq!(late(36, 200 * US), Limited::No);
    assert_eq!(late(4_000, 200 * US), Limited::No);
}

#[test]
fn t43_waits_are_no_evidence_where_a_percentile_has_few_requests_above_it() {
    let mut run = with_thread(Thread {
        long_waits: 4,
        long_wait_ns: 18 * MS,
        ..Thread::default()
    });
    run.distributions.ok_service.record_n(MS, 90);
    run.distributions.late_replies.record_n(4 * MS, 8);
    assert_eq!(verdict(&run), Limited::No);
}

#[test]
fn t43_the_evidence_has_the_length_of_a_wait_and_the_share_of_late_replies() {
    let mut run = with_thread(Thread {
        long_waits: 10,
        long_wait_ns: 30 * MS,
        ..Thread::default()
    });
    run.distributions.ok_service.record_n(MS, 1_000);
    run.distributions.late_replies.record_n(3 * MS, 50);
    let cause = Cause::KeptWaiting {
        share: 0.03,
        wait_ns: 3 * MS,
        late_share: 0.05,
    };
    assert_eq!(evidence(&run)[0].cause, cause);
}

#[test]
fn t43_a_quota_that_stopped_a_thread_is_named_with_its_share() {
    let found = evidence(&with_thread(Thread {
        throttled_ns: Some(400 * MS),
        ..Thread::default()
    }));
    assert_eq!(found[0].cause, Cause::Throttled { share: 0.4 });
    assert_eq!(found[0].level, Limited::Yes);
}

/// The kernel counts the time in which a quota stops a thread as time on the run queue.
#[test]
fn t43_what_a_quota_took_is_not_taken_for_others_and_what_others_took_not_for_a_quota() {
    let causes = |run_queue_ns, throttled_ns| {
        let thread = Thread {
            run_queue_ns,
            turns: 100,
            long_waits: 100,
            long_wait_ns: run_queue_ns,
            throttled_ns: Some(throttled_ns),
            ..Thread::default()
        };
        evidence(&with_thread(thread))
            .into_iter()
            .map(|one| one.cause)
            .collect::<Vec<_>>()
    };
    assert_eq!(causes(420 * MS, 400 * MS), [Cause::Throttled { share: 0.4 }]);
    let others = Cause::KeptWaiting {
        share: 0.3,
        wait_ns: 7 * MS,
        late_share: 0.0,
    };
    assert_eq!(
        causes(700 * MS, 400 * MS),
        [Cause::Throttled { share: 0.4 }, others]
    );
    // The group's other threads were stopped, on two CPUs; this one rested meanwhile.
    assert_eq!(causes(MS, 900 * MS), []);
}

#[test]
fn t41_what_failed_on_this_side_is_named_by_what_was_missing() {
    let mut run = open(0, MS);
    run.account.scheduled += 7;
    (0..4).for_each(|_| run.account.count(Class::ClientNoAddress, 200));
    (0..2).for_each(|_| run.account.count(Class::ClientNoDescriptor, 200));
    run.account.count(Class::ClientNoBuffer, 200);
    let found = evidence(&run);
    let causes: Vec<_> = found.iter().map(|one| (one.level, one.cause)).collect();
    let expected = [
        (Limited::Yes, Cause::Ports { requests: 4 }),
        (Limited::Suspect, Cause::Descriptors { requests: 2 }),
        (Limited::Suspect, Cause::Buffers { requests: 1 }),
    ];
    assert_eq!(causes, expected);
}

#[test]
fn a_limit_of_requests_in_flight_that_held_some_back_decides() {
    let mut run = open(0, MS);
    run.queue.limit = Some(9);
    assert_eq!(verdict(&run), Limited::No);
    run.queue.bound_at_ns = Some(5 * MS);
    let cause = Cause::InFlight {
        connections: 9,
        at_ns: 5 * MS,
    };
    assert_eq!(evidence(&run)[0].cause, cause);
    assert_eq!(verdict(&run), Limited::Yes);
}

#[test]
fn a_rate_that_was_missed_stands_beside_its_cause_and_not_alone() {
    let mut run = open(0, MS);
    run.generator.sent_in_window = 1_800;
    assert_eq!(evidence(&run), []);
    run.generator.threads[0].user_ns = 900 * MS;
    let found = evidence(&run);
    let missed = Cause::RateMissed {
        share: 0.1,
        sent_per_s: 1_800.0,
    };
    assert_eq!((found[0].cause, found[0].level), (missed, Limited::Yes));
    assert_eq!(found[1].cause, Cause::Busy { share: 0.9 });
}

#[test]
fn requests_whose_connection_failed_were_not_missed() {
    let mut run = open(0, MS);
    run.account.scheduled += 500;
    (0..500).for_each(|_| run.account.count(Class::ConnectRefused, 200));
    run.generator.threads[0].user_ns = 900 * MS;
    let found = evidence(&run);
    assert!(found.iter().all(|one| matches!(one.cause, Cause::Busy { .. })));
}

#[test]
fn throughput_counts_against_the_ceiling_where_it_is_known() {
    let mut run = open(0, MS);
    for (ceiling_per_s, expected) in [
        (None, Limited::No),
        (Some(4_000.0), Limited::No),
        (Some(2_500.0), Limited::Suspect),
        (Some(2_100.0), Limited::Yes),
    ] {
        run.spec.ceiling_per_s = ceiling_per_s;
        assert_eq!(verdict(&run), expected);
    }
}

#[test]
fn a_window_of_a_tenth_of_a_second_says_nothing_of_shares() {
    let mut run = with_thread(Thread {
        user_ns: 100 * MS,
        long_waits: 30,
        long_wait_ns: 90 * MS,
        ..Thread::default()
    });
    run.window.close_ns = run.window.open_ns + 100 * MS;
    assert_eq!(verdict(&run), Limited::No);
}

#[test]
fn evidence_is_a_flat_object_with_its_level() {
    let found = evidence(&open(150 * US, 200 * US));
    let value = serde_json::to_value(found[0]).unwrap();
    let names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["kind", "lag_ns", "level", "percentile", "share"]);
    assert_eq!((&value["kind"], &value["level"]), (&json!("late"), &json!("yes")));
}

proptest! {
    #[test]
    fn the_strongest_comes_first_and_is_the_verdict(
        work in 0u64..SECOND, queue in 0u64..SECOND, throttled in proptest::option::of(0u64..SECOND), lag in 0u64..MS, bound: bool
    ) {
        let mut run = open(lag, MS);
        run.generator.threads[0] = Thread { user_ns: work, run_queue_ns: queue, long_wait_ns: queue, throttled_ns: throttled, ..Thread::default() };
        (run.queue.limit, run.queue.bound_at_ns) = (Some(9), bound.then_some(7));
        let found = evidence(&run);
        prop_assert!(found.windows(2).all(|pair| pair[0].level >= pair[1].level));
        prop_assert!(found.iter().all(|one| one.level > Limited::No));
        prop_assert_eq!(limited(&found), found.first().map_or(Limited::No, |one| one.level));
    }
}

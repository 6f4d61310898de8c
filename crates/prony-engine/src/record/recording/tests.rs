#![allow(clippy::unwrap_used)]

use super::{
    Bytes, Completed, Connections, Distributions, ErrorSample, Little, Queue, RawLatencies, Recording,
    Second, Window,
};
use crate::account::{Account, Class};
use crate::distribution::Distribution;
use crate::error::Error;
use crate::record::generator::{Cause, Evidence, Limited};
use crate::record::generator::{Generator, Thread};
use proptest::prelude::*;
use serde_json::{json, Value};

const SECOND: u64 = 1_000_000_000;

fn recording() -> Recording {
    let value = json!({
        "format": 1,
        "engine": {"name": "prony", "version": "1", "driver": "epoll", "threads": 1, "pacing": null},
        "spec": {
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": {"kind": "closed", "connections": 2},
                "stop": {"kind": "requests", "requests": 1},
                "warmup_ns": 0, "timeout_ns": 1, "grace_ns": 1,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": 1, "cpus": null, "pacing": "economical"
        },
        "loop": "closed",
        "window": Window::default(),
        "account": Account::default(),
        "completed": Completed::default(),
        "connections": Connections::default(),
        "bytes": Bytes::default(),
        "queue": Queue::default(),
        "distributions": Distributions::default(),
        "series": Vec::<Second>::new(),
        "generator": Generator::default(),
        "little": Little::default(),
        "error_samples": Vec::<ErrorSample>::new(),
    });
    serde_json::from_value(value).unwrap()
}

/// The parts of a recording that only count, as JSON.
const COUNTS: [&str; 6] = ["account", "completed", "connections", "bytes", "queue", "little"];

/// Gives each number below `value` a value of its own, upwards from `next`.
fn number(value: &mut Value, next: &mut u64) {
    match value {
        Value::Number(_) => {
            *value = json!(*next);
            *next += 1;
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| number(field, next)),
        _ => {}
    }
}

fn numbered(first: u64) -> Recording {
    let mut value = serde_json::to_value(recording()).unwrap();
    let mut next = first;
    for part in COUNTS {
        number(&mut value[part], &mut next);
    }
    serde_json::from_value(value).unwrap()
}

/// The numbers below `value`, with their pointers.
fn numbers(value: &Value, at: &str) -> Vec<(String, u64)> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, field)| numbers(field, &format!("{at}/{name}")))
            .collect(),
        other => other
            .as_u64()
            .map(|number| (at.to_owned(), number))
            .into_iter()
            .collect(),
    }
}

fn counts(of: &Recording) -> Vec<(String, u64)> {
    let value = serde_json::to_value(of).unwrap();
    COUNTS
        .iter()
        .flat_map(|part| numbers(&value[part], part))
        .collect()
}

#[test]
fn every_count_of_a_merged_recording_is_the_sum_of_both() {
    let (one, other) = (numbered(100), numbered(5_000));
    let mut merged = one.clone();
    merged.merge(&other);
    let pairs = counts(&one).into_iter().zip(counts(&other));
    let expected: Vec<_> = pairs
        .map(|((name, a), (_, b))| match name.as_str() {
            "connections/answered/min" => (name, a.min(b)),
            "connections/answered/max" => (name, a.max(b)),
            _ => (name, a + b),
        })
        .collect();
    assert!(expected.len() > 30);
    assert_eq!(counts(&merged), expected);
}

#[test]
fn every_count_of_a_stage_and_of_the_file_of_latencies_is_the_sum_of_both() {
    const NAMES: [&str; 6] = ["scheduled", "sent", "ok", "failed", "rows", "lost"];
    let of = |first: u64| {
        let count = |place: u64| first + place;
        let stage = json!({
            "begin_ns": 1, "duration_ns": 2, "from_connections": 3, "to_connections": 4,
            "scheduled": count(0), "sent": count(1), "ok": count(2), "failed": count(3),
        });
        Recording {
            stages: vec![serde_json::from_value(stage).unwrap()],
            raw_latencies: Some(RawLatencies {
                rows: count(4),
                lost: count(5),
                error: None,
            }),
            ..recording()
        }
    };
    let mut merged = of(100);
    merged.merge(&of(5_000));
    let value = serde_json::to_value(&merged).unwrap();
    for (place, name) in NAMES.iter().enumerate() {
        let part = if place < 4 {
            &value["stages"][0]
        } else {
            &value["raw_latencies"]
        };
        assert_eq!(part[name], json!(5_100 + 2 * place), "{name}");
    }
    let stage = &value["stages"][0];
    assert_eq!(
        (&stage["begin_ns"], &stage["to_connections"]),
        (&json!(1), &json!(4))
    );
}

#[test]
fn workers_without_a_connection_have_no_least_number_of_answers() {
    let none = recording();
    let mut merged = none.clone();
    merged.merge(&numbered(100));
    assert_eq!(
        merged.connections.answered.min,
        numbered(100).connections.answered.min
    );
    merged.merge(&none);
    assert_eq!(merged.connections.answered.min, 0);
}

#[test]
fn the_window_of_a_merged_recording_spans_both() {
    let of = |open_ns, close_ns, drained_ns, interrupted| Recording {
        window: Window {
            open_ns,
            close_ns,
            drained_ns,
            open_unix_ns: open_ns,
            interrupted,
        },
        ..recording()
    };
    let mut merged = of(10, 20, 40, false);
    merged.merge(&of(5, 30, 35, true));
    let Window {
        open_ns,
        close_ns,
        drained_ns,
        open_unix_ns,
        interrupted,
    } = merged.window;
    assert_eq!((open_ns, close_ns, drained_ns, open_unix_ns), (5, 30, 40, 5));
    assert!(interrupted);
    assert_eq!(merged.engine.threads, 2);
}

#[test]
fn seconds_merge_by_their_number_and_stay_in_order() {
    let second = |second, ok| {
        let mut latency = Distribution::default();
        latency.record(ok);
        Second {
            second,
            scheduled: ok + 3,
            due_ok: (ok < 30).then_some(ok + 2),
            sent: ok + 1,
            ok,
            failed: 2,
            body_bytes: 10 * ok,
            latency,
        }
    };
    let of = |series| Recording {
        series,
        ..recording()
    };
    let mut merged = of(vec![second(1, 10), second(3, 30)]);
    merged.merge(&of(vec![second(0, 1), second(1, 5), second(2, 20), second(3, 2)]));
    let seen: Vec<_> = merged
        .series
        .iter()
        .map(|one| {
            (
                one.second,
                one.scheduled,
                one.due_ok,
                one.sent,
                one.ok,
                one.failed,
                one.body_bytes,
                one.latency.count(),
            )
        })
        .collect();
    let expected = [
        (0, 4, Some(3), 2, 1, 2, 10, 1),
        (1, 21, Some(19), 17, 15, 4, 150, 2),
        (2, 23, Some(22), 21, 20, 2, 200, 1),
        // What one does not know of a second, nobody knows of the sum.
        (3, 38, None, 34, 32, 4, 320, 2),
    ];
    assert_eq!(seen, expected);
}

fn thread(work_ns: u64, spin_ns: u64, run_queue_ns: u64) -> Thread {
    Thread {
        user_ns: work_ns,
        system_ns: spin_ns,
        spin_ns,
        run_queue_ns,
        ..Thread::default()
    }
}

#[test]
fn the_cost_of_a_request_is_the_work_of_all_threads_and_spinning_is_none() {
    let mut whole = recording();
    for _ in 0..8 {
        whole.account.scheduled += 1;
        whole.account.count(Class::Ok, 200);
    }
    whole.completed.ok = 8;
    (whole.window.open_ns, whole.window.close_ns) = (SECOND, 3 * SECOND);
    whole.generator.threads = vec![thread(5_000, SECOND, 40), thread(3_000, 0, 2)];
    whole.little.in_flight_integral_ns = 330;
    whole.little.sojourn_sum_ns = 300;
    whole.finish().unwrap();
    let own = &whole.generator;
    assert_eq!(
        (own.cpu_work_ns, own.cpu_spin_ns, own.run_queue_ns),
        (8_000, SECOND, 42)
    );
    assert_eq!(own.cpu_ns_per_request, Some(1_000.0));
    assert_eq!(own.spin_share.to_string(), "0.25");
    assert_eq!(
        whole.little.residual.map(|share| format!("{share:.3}")),
        Some("0.100".into())
    );
}

#[test]
fn a_run_without_an_end_has_no_cost_per_request_and_no_residual() {
    let mut whole = recording();
    whole.finish().unwrap();
    assert_eq!(whole.generator.cpu_ns_per_request, None);
    assert_eq!(whole.little.residual, None);
}

#[test]
fn of_failures_of_a_class_three_different_ones_are_kept_the_earliest() {
    let sample = |class: &str, detail: &str, at_ns| ErrorSample {
        class: class.to_owned(),
        detail: detail.to_owned(),
        at_ns,
        received: None,
    };
    let mut whole = Recording {
        error_samples: vec![
            sample("reset", "d", 9),
            sample("reset", "a", 1),
            sample("reset", "a", 2),
            sample("reset", "b", 3),
        ],
        ..recording()
    };
    let other = Recording {
        error_samples: vec![sample("reset", "c", 4), sample("eof", "a", 5)],
        ..recording()
    };
    whole.merge(&other);
    whole.finish().unwrap();
    let seen: Vec<_> = whole
        .error_samples
        .iter()
        .map(|kept| (kept.class.as_str(), kept.detail.as_str(), kept.at_ns))
        .collect();
    assert_eq!(
        seen,
        [
            ("eof", "a", 5),
            ("reset", "a", 1),
            ("reset", "b", 3),
            ("reset", "c", 4)
        ]
    );
}

/// One valid reply: at which generator, in which second, after so long.
type Sample = (usize, u64, u64);

const GENERATORS: usize = 4;

/// What generators that had these samples say, as it arrives from another machine.
fn of_samples<'s>(samples: impl Iterator<Item = &'s Sample>) -> Recording {
    let mut found = recording();
    (found.window.open_ns, found.window.close_ns) = (SECOND, 4 * SECOND);
    for &(_, second, latency_ns) in samples {
        found.account.scheduled += 1;
        found.account.count(Class::Ok, 200);
        found.completed.ok += 1;
        found.distributions.ok_service.record(latency_ns);
        let mut latency = Distribution::default();
        latency.record(latency_ns);
        let ended = Second {
            second,
            ok: 1,
            latency,
            ..Second::default()
        };
        super::merge_series(&mut found.series, &[ended]);
    }
    found.finish().unwrap();
    sent(&found)
}

fn sent(recording: &Recording) -> Recording {
    serde_json::from_str(&serde_json::to_string(recording).unwrap()).unwrap()
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let latency_ns = prop_oneof![1u64..1_000, 1_000u64..10 * SECOND, 1u64..3_600 * SECOND];
    proptest::collection::vec((0..GENERATORS, 0u64..9, latency_ns), 0..200)
}

fn each_generator(samples: &[Sample]) -> Vec<Recording> {
    let own = |number| of_samples(samples.iter().filter(move |sample| sample.0 == number));
    (0..GENERATORS).map(own).collect()
}

/// Merged, and sent on to the next machine.
fn together(one: &Recording, other: &Recording) -> Recording {
    let mut merged = one.clone();
    merged.merge_machine(other).unwrap();
    sent(&merged)
}

/// All that does not say how many there were.
fn figures(of: &Recording) -> Value {
    let mut value = serde_json::to_value(of).unwrap();
    value["engine"]["threads"] = json!(null);
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t22_several_generators_together_say_what_one_says_of_the_same_samples(samples in samples()) {
        let parts = each_generator(&samples);
        let merged = parts.iter().skip(1).fold(parts[0].clone(), |whole, part| together(&whole, part));
        prop_assert_eq!(figures(&merged), figures(&of_samples(samples.iter())));
    }

    #[test]
    fn t22_generators_may_be_merged_in_any_order_and_in_any_groups(samples in samples(), shares in proptest::collection::vec(0.8f64..1.0, GENERATORS)) {
        let mut parts = each_generator(&samples);
        for (number, (part, share)) in parts.iter_mut().zip(shares).enumerate() {
            part.window.open_ns += number as u64 * 1_000;
            part.window.close_ns += number as u64 * 1_500;
            part.generator.evidence = vec![Evidence { level: Limited::Suspect, cause: Cause::Busy { share } }];
            let detail = (number % 2).to_string();
            part.error_samples = vec![ErrorSample { class: "reset".into(), detail, at_ns: 5, received: None }];
        }
        let [a, b, c, d] = &parts[..] else { unreachable!() };
        let one_by_one = together(&together(&together(a, b), c), d);
        let as_a_tree = together(&together(a, b), &together(c, d));
        let backwards = together(d, &together(c, &together(b, a)));
        prop_assert_eq!(figures(&one_by_one), figures(&as_a_tree));
        prop_assert_eq!(figures(&one_by_one), figures(&backwards));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t22_any_number_of_threads_adds_up_the_same(samples in samples(), threads in 1usize..9) {
        let texts = texts(&each_generator(&samples));
        let found = Recording::of_machines(&texts, &[0; GENERATORS], threads).unwrap();
        prop_assert_eq!(figures(&found), figures(&of_samples(samples.iter())));
    }
}

fn texts(parts: &[Recording]) -> Vec<String> {
    parts
        .iter()
        .map(|part| serde_json::to_string(part).unwrap())
        .collect()
}

#[test]
fn each_machine_has_a_clock_of_its_own_and_the_stamps_are_put_on_one() {
    let texts = texts(&each_generator(&[]));
    let found = Recording::of_machines(&texts, &[4_000, 3_000, 2_000, 7_000], 4).unwrap();
    let own = of_samples([].iter()).window;
    assert_eq!(found.window.open_ns, own.open_ns + 2_000);
    assert_eq!(found.window.drained_ns, own.drained_ns + 7_000);
}

#[test]
fn a_machine_whose_account_does_not_add_up_is_refused_also_when_it_is_the_only_one() {
    let mut alone = each_generator(&[]).remove(0);
    assert!(Recording::of_machines(&texts(&[alone.clone()]), &[0], 4).is_ok());
    alone.account.ok += 1;
    let refused = Recording::of_machines(&texts(&[alone]), &[0], 4).unwrap_err();
    assert!(matches!(refused, Error::Account(_)), "{refused}");
}

#[test]
fn what_is_no_recording_is_refused_wherever_it_stands() {
    let texts = texts(&each_generator(&[]));
    assert!(Recording::of_machines(&[], &[], 4).is_err());
    assert!(Recording::of_machines(&texts, &[0; GENERATORS - 1], 4).is_err());
    for place in 0..GENERATORS {
        let mut texts = texts.clone();
        texts[place] = "{}".to_owned();
        assert!(
            Recording::of_machines(&texts, &[0; GENERATORS], 4).is_err(),
            "{place}"
        );
    }
}

#[test]
fn the_verdict_of_machines_together_has_the_strongest_of_each_kind() {
    let of = |evidence: &[(Limited, Cause)]| {
        let mut one = of_samples([].iter());
        let evidence = evidence.iter().map(|&(level, cause)| Evidence { level, cause });
        one.generator.evidence = evidence.collect();
        one
    };
    let busy = |share| Cause::Busy { share };
    let throttled = Cause::Throttled { share: 0.01 };
    let merged = together(
        &of(&[(Limited::Suspect, busy(0.9)), (Limited::Suspect, throttled)]),
        &of(&[(Limited::Yes, busy(0.97))]),
    );
    assert_eq!(merged.generator.limited, Limited::Yes);
    let found: Vec<_> = merged.generator.evidence.iter().map(|one| one.cause).collect();
    assert_eq!(found, [busy(0.97), throttled]);
}

#[test]
fn windows_of_machines_that_open_one_after_the_other_are_no_longer_for_it() {
    let mut of_time = of_samples([].iter());
    of_time.spec.workload.stop = crate::spec::Stop::Duration {
        duration_ns: 3 * SECOND,
    };
    let later = of_time.clone().on_a_clock_ahead_by(700);
    let merged = together(&later, &of_time);
    assert_eq!(
        (merged.window.open_ns, merged.window.close_ns),
        (SECOND, 4 * SECOND)
    );
    let back = later.on_a_clock_ahead_by(-700);
    assert_eq!(back.window.open_ns, of_time.window.open_ns);
}

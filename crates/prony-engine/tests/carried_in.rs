//! What is open when the window opens belongs to the account, in a class of its own.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request, reply, start, Load, Scripted, MS};
use std::time::Duration;

/// Connections below this number never get a reply; the others get theirs after 20 ms.
fn silent_on(count: usize) -> Scripted {
    Scripted::start(move |number, stream, _| {
        while read_request(stream) {
            if number >= count {
                std::thread::sleep(Duration::from_millis(20));
                reply(stream);
            }
        }
    })
}

#[test]
fn t03_a_server_that_never_replies_is_in_the_account_however_long_the_warm_up() {
    let server = start(r#"{"silent_every": 1}"#);
    let load = Load::closed(server.port(), 50)
        .warmup_ms(200)
        .duration_ms(400)
        .timeout_ms(1000);
    for load in [load.clone(), load.threads(2)] {
        let recording = load.run();
        let carried = &recording.account.carried_in;
        assert_eq!((recording.account.scheduled, carried.requests), (0, 50));
        assert_eq!((carried.answered, &carried.failed), (0, &[].into()));
        assert_eq!(carried.unanswered, [("timed_out".to_owned(), 50)].into());
        // At their full age, which began in the warm-up.
        let ages = &recording.distributions.censored_service;
        assert_eq!(ages.count(), 50);
        assert!(ages.min_ns() >= Some(1000 * MS), "{:?}", ages.min_ns());
        assert_eq!(
            recording.series.iter().map(|second| second.failed).sum::<u64>(),
            50
        );
        assert_eq!(recording.error_samples[0].class, "timed_out");
    }
}

#[test]
fn t03_four_silent_connections_of_fifty_are_seen_through_a_warm_up() {
    let server = silent_on(4);
    let recording = Load::closed(server.port, 50)
        .warmup_ms(200)
        .duration_ms(400)
        .timeout_ms(1000)
        .run();
    let carried = &recording.account.carried_in;
    assert_eq!(carried.unanswered, [("timed_out".to_owned(), 4)].into());
    assert_eq!((carried.requests, carried.answered), (50, 46));
    assert_eq!(recording.account.ok, recording.account.scheduled);
    let latencies = &recording.distributions;
    // Those that were answered have the latency that they had, but not among the window's own.
    assert_eq!(latencies.carried_in_service.count(), 46);
    assert!(latencies.carried_in_service.min_ns() >= Some(20 * MS));
    assert_eq!(latencies.ok_service.count(), recording.account.ok);
    assert_eq!(recording.connections.answered.without_reply, 4);
}

/// Of ten connections: three never get a reply; the next get one, after 300 ms, and no more; the others all of theirs.
fn served_once_from(first: usize) -> Scripted {
    Scripted::start(move |number, stream, _| {
        let mut replies = 0;
        while read_request(stream) {
            let is_slow = (first..8).contains(&number);
            std::thread::sleep(Duration::from_millis(if is_slow { 300 } else { 5 }));
            if number >= 8 || (is_slow && replies == 0) {
                reply(stream);
                replies += 1;
            }
        }
    })
}

#[test]
fn a_connection_whose_only_reply_is_to_a_request_that_was_carried_in_is_not_without_one() {
    for (silent, once) in [(3, 5), (0, 8)] {
        let server = served_once_from(silent);
        let recording = Load::closed(server.port, 10)
            .warmup_ms(150)
            .duration_ms(500)
            .timeout_ms(1500)
            .run();
        let (account, answered) = (&recording.account, &recording.connections.answered);
        // Each of the slow ones has its one reply within the window, to a request of the warm-up.
        assert!(account.carried_in.answered >= once, "{account:?}");
        let unanswered = account
            .carried_in
            .unanswered
            .get("timed_out")
            .copied()
            .unwrap_or(0);
        assert_eq!(unanswered, silent as u64);
        assert_eq!(
            (answered.connections, answered.without_reply, answered.min),
            (10, silent as u64, u64::from(silent == 0))
        );
        assert!(answered.max >= 3, "{answered:?}");
    }
}

#[test]
fn the_drain_waits_for_what_was_carried_in_and_no_longer_than_its_grace() {
    let server = start(r#"{"silent_every": 1}"#);
    let load = Load::closed(server.port(), 3)
        .warmup_ms(100)
        .duration_ms(100)
        .timeout_ms(60_000)
        .grace_ms(150);
    let recording = load.run();
    let carried = &recording.account.carried_in;
    assert_eq!(carried.unanswered, [("in_flight_at_end".to_owned(), 3)].into());
    let drained_ns = recording.window.drained_ns - recording.window.close_ns;
    // Far from the time-out of a minute.
    assert!((150 * MS..30_000 * MS).contains(&drained_ns), "{drained_ns}");
}

#[test]
fn an_open_loop_carries_in_what_is_sent_and_what_waits_past_its_time() {
    let server = start(r#"{"silent_every": 1}"#);
    let recording = Load::open(server.port(), 100.0, 4)
        .warmup_ms(200)
        .duration_ms(100)
        .timeout_ms(500)
        .run();
    let (account, carried) = (&recording.account, &recording.account.carried_in);
    assert_eq!((account.scheduled, carried.requests), (10, 20));
    assert_eq!(carried.unanswered.values().sum::<u64>(), 20);
    let ages = recording.distributions.censored_response.unwrap();
    assert_eq!(ages.count(), 30);
    assert!(ages.min_ns() >= Some(500 * MS));
}

#[test]
fn a_connection_that_fails_after_the_opening_fails_a_request_that_was_carried_in() {
    let server = Scripted::start(|_, stream, _| {
        read_request(stream);
        std::thread::sleep(Duration::from_millis(150));
    });
    let recording = Load::closed(server.port, 2).warmup_ms(100).duration_ms(200).run();
    let carried = &recording.account.carried_in;
    assert_eq!((carried.requests, carried.failed["eof"]), (2, 2));
    assert!(recording.account.eof >= 2);
    let completed = recording.completed;
    assert_eq!((completed.ok, completed.failed >= 2), (0, true));
}

#[test]
fn a_run_that_ends_after_a_count_carries_in_too_and_still_makes_exactly_its_count() {
    let server = silent_on(1);
    let recording = Load::closed(server.port, 4)
        .warmup_ms(100)
        .requests(50)
        .timeout_ms(500)
        .run();
    let (account, carried) = (&recording.account, &recording.account.carried_in);
    assert_eq!((account.scheduled, account.ok), (50, 50));
    assert_eq!((carried.requests, carried.answered), (4, 3));
    assert_eq!(carried.unanswered["timed_out"], 1);
}

#[test]
fn where_nothing_is_loaded_before_the_window_nothing_is_carried_in() {
    let server = silent_on(0);
    for load in [
        Load::open(server.port, 100.0, 4).duration_ms(100),
        Load::closed(server.port, 4).requests(20),
    ] {
        assert_eq!(load.run().account.carried_in.requests, 0);
    }
}

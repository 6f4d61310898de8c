//! What latencies say of a server that is slow now and then. Bounds compare figures of one run with each other, or with the server's own
//! delays; nothing here needs a quiet machine.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request, reply, start, Load, Scripted, MS};
use prony_engine::Distribution;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn t01_a_stall_is_in_the_response_times_of_all_that_were_due_meanwhile() {
    let server = start(r#"{"stall": {"after_ns": 300000000, "for_ns": 300000000}}"#);
    let recording = Load::open(server.port(), 1000.0, 10).duration_ms(1000).run();
    assert_eq!((recording.account.scheduled, recording.account.ok), (1000, 1000));
    assert_eq!(server.counts().requests, 1000);
    let responses = recording.distributions.ok_response.unwrap();
    // 300 of 1,000 requests were due in the stall, and waited 300 ms to 0: a tenth of all more than 200 ms.
    let p90_ns = responses.quantile_ns(0.9).unwrap();
    assert!(
        (190 * MS..=responses.max_ns().unwrap()).contains(&p90_ns),
        "{p90_ns}"
    );
    // Ten were in flight; the others' waiting is no service time.
    let service = recording.distributions.ok_service;
    assert!(service.max_ns().unwrap() >= 290 * MS);
    assert!(
        service.quantile_ns(0.9).unwrap() < p90_ns / 2,
        "{:?}",
        service.quantile_ns(0.9)
    );
    assert!(
        recording.queue.waited >= 280 && recording.queue.max_length >= 200,
        "{:?}",
        recording.queue
    );
}

#[test]
fn t04_one_slow_connection_does_not_slow_the_others() {
    let server = Scripted::start(|number, stream, count| {
        while read_request(stream) {
            if number == 0 {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(300));
            }
            reply(stream);
        }
    });
    let recording = Load::open(server.port, 300.0, 10).duration_ms(1000).run();
    assert_eq!((recording.account.scheduled, recording.account.ok), (300, 300));
    // In a second one connection serves at most four requests of 300 ms; a schedule tied to connections would have given it thirty.
    assert!((1..=5).contains(&server.counted()), "{}", server.counted());
    let responses = recording.distributions.ok_response.unwrap();
    assert!(responses.max_ns().unwrap() >= 300 * MS);
    assert!(responses.quantile_ns(0.5).unwrap() < 100 * MS);
}

#[test]
fn t28_requests_in_flight_are_rate_times_time() {
    let server = start(r#"{"delay": {"kind": "exponential", "mean_ns": 1000000, "seed": 5}}"#);
    for connections in [1, 10] {
        let recording = Load::closed(server.port(), connections).duration_ms(300).run();
        let window_ns = u128::from(recording.window.drained_ns - recording.window.open_ns);
        let little = &recording.little;
        assert!(little.residual.unwrap().abs() < 1e-4, "{:?}", little.residual);
        assert_eq!(little.sojourn_sum_ns, recording.distributions.ok_service.sum_ns());
        let mean_in_flight = little.in_flight_integral_ns as f64 / window_ns as f64;
        assert!(mean_in_flight <= connections as f64);
    }
}

#[test]
fn latencies_are_at_least_the_delays_of_the_server() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 20000000}}"#);
    for load in [
        Load::closed(server.port(), 3),
        Load::open(server.port(), 100.0, 20),
    ] {
        let recording = load.duration_ms(400).run();
        let service = &recording.distributions.ok_service;
        assert!(service.min_ns().unwrap() >= 20 * MS);
        if let Some(responses) = recording.distributions.ok_response {
            assert!(responses.min_ns() >= service.min_ns());
        }
    }
}

/// The lateness of a loop that does nothing but sleep and spin: what this machine can do just now.
fn control_p99_ns(ticks: u32, gap: Duration) -> u64 {
    let (mut lateness, began) = (Distribution::default(), Instant::now());
    // SAFETY: no pointers are passed; it is the engine's own setting.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    for tick in 1..=ticks {
        let due = began + gap * tick;
        std::thread::sleep((due - Duration::from_micros(70)).saturating_duration_since(Instant::now()));
        while Instant::now() < due {}
        lateness.record(due.elapsed().as_nanos() as u64);
    }
    lateness.quantile_ns(0.99).unwrap()
}

#[test]
fn t07_precise_pacing_sends_when_a_request_is_due() {
    const CONTROL_NS: u64 = 50_000;
    let server = start("{}");
    let control = || std::thread::spawn(|| control_p99_ns(100, Duration::from_millis(4)));
    let before_ns = control().join().unwrap();
    let recording = Load::open(server.port(), 250.0, 4)
        .duration_ms(600)
        .precise()
        .run();
    let after_ns = control().join().unwrap();
    let lag_ns = recording
        .distributions
        .send_lag
        .unwrap()
        .quantile_ns(0.99)
        .unwrap();
    if before_ns.max(after_ns) > CONTROL_NS {
        eprintln!(
            "skipped: a plain loop is {before_ns} ns and {after_ns} ns late itself (the engine: {lag_ns} ns)"
        );
        return;
    }
    assert!(
        lag_ns <= 1_000_000,
        "{lag_ns} ns late, a plain loop {before_ns} ns and {after_ns} ns"
    );
    assert!(recording.generator.cpu_spin_ns > 0);
}

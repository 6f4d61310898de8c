//! What latencies say of a server that is slow now and then. Bounds compare figures of one run with each other, or with the server's own
//! delays; nothing here needs a quiet machine.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request, reply, start, Load, Scripted, MS};
use prony_engine::record::generator::{Cause, Limited};
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
        let latencies = &recording.distributions;
        let own_ns = latencies.ok_service.sum_ns();
        // Of those that were carried in, the part that lies in the window.
        let most_ns = own_ns + latencies.carried_in_service.sum_ns();
        assert!((own_ns..=most_ns).contains(&little.sojourn_sum_ns), "{little:?}");
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

#[test]
fn t08_exactly_what_the_rate_says_is_scheduled_from_end_to_end() {
    let server = start("{}");
    let port = server.port();
    let loads = [
        (7.0, 1_000, 7),
        (78.0, 500, 39),
        (333.0, 1_000, 333),
        (999.5, 1_000, 1_000),
        (30_001.0, 200, 6_001),
    ];
    std::thread::scope(|scope| {
        for (rate, ms, due) in loads {
            scope.spawn(move || {
                let recording = Load::open(port, rate, 64).duration_ms(ms).run();
                assert_eq!(recording.account.scheduled, due, "{rate}/s for {ms} ms");
            });
        }
    });
}

#[test]
fn t08_a_rate_beyond_the_machine_is_scheduled_in_full_and_reported_as_missed() {
    let server = start("{}");
    let load = Load::open(server.port(), 1_234_567.0, 8).duration_ms(300);
    let recording = load.grace_ms(50).timeout_ms(60_000).run();
    let (account, generator) = (&recording.account, &recording.generator);
    assert_eq!(account.scheduled, 370_371);
    assert!(account.not_sent_end > 0 && generator.sent_in_window < account.scheduled / 2);
    assert_eq!(generator.limited, Limited::Yes);
    let missed = |cause: &Cause| matches!(cause, Cause::RateMissed { share, .. } if *share > 0.5);
    assert!(
        generator.evidence.iter().any(|one| missed(&one.cause)),
        "{:?}",
        generator.evidence
    );
}

#[test]
fn t10_what_was_due_in_a_stall_is_all_sent_after_it_and_the_seconds_show_when() {
    let server = start(r#"{"stall": {"after_ns": 600000000, "for_ns": 700000000}}"#);
    let recording = Load::open(server.port(), 200.0, 1).duration_ms(2000).run();
    let (due, sent): (Vec<_>, Vec<_>) = recording
        .series
        .iter()
        .map(|second| (second.scheduled, second.sent))
        .unzip();
    assert_eq!((due[0], due[1], recording.account.ok), (200, 200, 400));
    // One connection: what was due from 0.6 to 1.3 s goes out after the stall, in the second after its own.
    assert!(sent[0] <= 140 && sent[1] >= 220, "{sent:?}");
    assert_eq!(sent.iter().sum::<u64>(), 400);
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

/// A precise load of half a second, with its send lag at p99, and that of a plain loop before and after it.
fn paced(port: u16) -> (prony_engine::Recording, u64, u64) {
    let control = || std::thread::spawn(|| control_p99_ns(100, Duration::from_millis(4)));
    let before_ns = control().join().unwrap();
    let recording = Load::open(port, 250.0, 4).duration_ms(600).precise().run();
    let after_ns = control().join().unwrap();
    let lag = recording.distributions.send_lag.as_ref().unwrap();
    let lag_ns = lag.quantile_ns(0.99).unwrap();
    (recording, lag_ns, before_ns.max(after_ns))
}

#[test]
fn t07_precise_pacing_sends_when_a_request_is_due() {
    const CONTROL_NS: u64 = 50_000;
    let server = start("{}");
    // The tests beside this one may spoil a load between its two controls.
    for _ in 0..5 {
        let (recording, lag_ns, control_ns) = paced(server.port());
        if control_ns <= CONTROL_NS && lag_ns > 1_000_000 {
            eprintln!("{lag_ns} ns late, a plain loop {control_ns} ns");
            continue;
        }
        if control_ns > CONTROL_NS {
            eprintln!("skipped: a plain loop is {control_ns} ns late itself (the engine: {lag_ns} ns)");
            return;
        }
        let generator = &recording.generator;
        assert!(generator.cpu_spin_ns > 0);
        assert!(generator.threads[0].spin_margin_ns.is_some());
        return;
    }
    panic!("more than a millisecond late each time");
}

#[test]
fn spinning_is_no_work_and_the_drain_is_no_part_of_the_window() {
    // The last reply comes 300 ms after the window, in which the worker only waits.
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 300000000}}"#);
    let recording = Load::open(server.port(), 5_000.0, 4_000)
        .duration_ms(300)
        .precise()
        .run();
    let generator = &recording.generator;
    let window_ns = recording.window.close_ns - recording.window.open_ns;
    let thread = &generator.threads[0];
    let used_ns = thread.user_ns + thread.system_ns;
    assert!(generator.cpu_spin_ns <= used_ns, "{thread:?}");
    assert_eq!(generator.cpu_work_ns, used_ns - thread.spin_ns);
    // A snapshot at an edge is late by what was under way there.
    assert!(
        used_ns < window_ns + window_ns / 2,
        "{thread:?} in {window_ns} ns"
    );
}

#[test]
fn economical_pacing_does_not_spin() {
    let server = start("{}");
    let recording = Load::open(server.port(), 2_000.0, 16).duration_ms(300).run();
    let generator = &recording.generator;
    assert_eq!(
        (generator.cpu_spin_ns, generator.threads[0].spin_margin_ns),
        (0, None)
    );
}

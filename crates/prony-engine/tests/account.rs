//! How many requests there are, and what becomes of those that are never answered.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, deaf, free_port, read_request, reply, since, start, Load, Scripted, MS};
use prony_engine::{Control, Distribution, Event};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn t33_exactly_n_requests_are_made() {
    let server = start("{}");
    let (closed, open) = (
        Load::closed(server.port(), 7),
        Load::open(server.port(), 4000.0, 7),
    );
    for load in [
        closed.clone(),
        closed.threads(2),
        open.clone(),
        open.clone().threads(2),
        open.poisson(3),
    ] {
        let before = server.counts();
        let recording = load.requests(1003).run();
        assert_eq!(recording.account.scheduled, 1003);
        assert_all_ok(&recording, &since(&server.counts(), &before));
    }
}

#[test]
fn all_that_was_sent_with_the_warm_up_is_what_the_server_counts() {
    let server = start("{}");
    let port = server.port();
    for load in [Load::closed(port, 20), Load::open(port, 2000.0, 50)] {
        for load in [load.clone(), load.threads(2)] {
            let before = server.counts();
            let recording = load.warmup_ms(100).duration_ms(200).run();
            let sent = recording.connections.requests_sent.unwrap();
            assert!(sent > recording.account.scheduled + recording.account.carried_in.requests);
            assert_eq!(sent, since(&server.counts(), &before).requests);
        }
    }
}

#[test]
fn t33_fewer_requests_than_connections_or_threads_are_made_as_well() {
    let server = start("{}");
    for count in [1, 2, 3] {
        let recording = Load::closed(server.port(), 7).threads(2).requests(count).run();
        assert_eq!(
            (recording.account.scheduled, recording.account.ok),
            (count, count)
        );
    }
    assert_eq!(server.counts().requests, 6);
}

#[test]
fn an_open_loop_schedules_its_rate_times_its_duration() {
    let server = start("{}");
    for threads in [1, 2] {
        let recording = Load::open(server.port(), 550.0, 10)
            .duration_ms(2000)
            .threads(threads)
            .run();
        assert_eq!((recording.account.scheduled, recording.account.ok), (1100, 1100));
        let by_second: Vec<u64> = recording.series.iter().map(|second| second.scheduled).collect();
        assert_eq!(by_second[..2], [550, 550]);
    }
    assert_eq!(server.counts().requests, 2200);
}

#[test]
fn poisson_arrivals_repeat_by_their_seed() {
    let server = start("{}");
    let scheduled = |seed| {
        let load = Load::open(server.port(), 700.0, 10)
            .poisson(seed)
            .duration_ms(500);
        let one = load.run().account.scheduled;
        assert_eq!(one, load.threads(2).run().account.scheduled);
        one
    };
    let counts: Vec<u64> = (1..4).map(scheduled).collect();
    assert!(counts.iter().any(|&count| count != counts[0]), "{counts:?}");
}

#[test]
fn warm_up_is_load_that_is_not_recorded() {
    let server = start("{}");
    let open = Load::open(server.port(), 500.0, 5)
        .warmup_ms(200)
        .duration_ms(400);
    for threads in [1, 2] {
        let before = server.counts();
        let recording = open.clone().threads(threads).run();
        assert_eq!((recording.account.scheduled, recording.account.ok), (200, 200));
        assert_eq!(server.counts().requests - before.requests, 300);
    }
    let before = server.counts();
    let closed = Load::closed(server.port(), 3).warmup_ms(100).requests(500).run();
    assert_eq!(closed.account.ok, 500);
    assert!(server.counts().requests - before.requests > 500);
    // They were opened in the warm-up.
    assert_eq!(closed.connections.opened, 0);
}

#[test]
fn t03_every_request_that_is_never_answered_times_out() {
    let server = start(r#"{"silent_every": 10}"#);
    let (closed, open) = (
        Load::closed(server.port(), 10).requests(200),
        Load::open(server.port(), 500.0, 100).duration_ms(400),
    );
    for load in [closed.clone(), closed.threads(2), open.clone(), open.threads(2)] {
        let before = server.counts();
        let recording = load.timeout_ms(150).run();
        let (account, after) = (&recording.account, server.counts());
        assert_eq!(account.timed_out, after.silent - before.silent);
        assert_eq!(account.ok, after.responses_complete - before.responses_complete);
        assert_eq!(account.ok + account.timed_out, account.scheduled);
        assert!(account.timed_out >= 5);
        let censored = &recording.distributions.censored_service;
        assert_eq!(censored.count(), account.timed_out);
        let responses = recording.distributions.censored_response.as_ref();
        assert!(responses.map_or(censored, |open| open).min_ns() >= Some(150 * MS));
        // A connection whose request timed out is closed: a late reply would be taken for the next one.
        assert!(recording.connections.opened >= account.timed_out);
    }
}

#[test]
fn t03_what_is_in_flight_at_the_end_is_censored_at_its_age() {
    let server = start(r#"{"silent_every": 1}"#);
    let load = Load::open(server.port(), 100.0, 10)
        .duration_ms(300)
        .grace_ms(100);
    let recording = load.run();
    let account = &recording.account;
    // Ten hold all connections; the others never get one.
    assert_eq!(
        (account.scheduled, account.in_flight_at_end, account.not_sent_end),
        (30, 10, 20)
    );
    assert_eq!(server.counts().silent, 10);
    assert_eq!((recording.queue.waited, recording.queue.max_length), (30, 20));
    let window = recording.window;
    let responses = recording.distributions.censored_response.unwrap();
    // The last is due at 290 ms, the first at 0.
    assert!(responses.min_ns().unwrap() >= 110 * MS);
    // It gave up 400 ms after the first, at the soonest, and was drained after that.
    let aged = responses.max_ns().unwrap();
    assert!(
        aged >= 400 * MS && aged <= window.drained_ns - window.open_ns,
        "{aged}"
    );
    // The three stop one after the other, in the window if not before it.
    let stopping = start(r#"{"silent_every": 80, "delay": {"kind": "fixed", "ns": 1000000}}"#);
    let closed = Load::closed(stopping.port(), 3)
        .duration_ms(1000)
        .grace_ms(50)
        .run();
    let carried = &closed.account.carried_in.unanswered;
    let before = carried.get("in_flight_at_end").copied().unwrap_or(0);
    assert_eq!(closed.account.in_flight_at_end + before, 3);
    let aged = closed.distributions.censored_service.max_ns().unwrap();
    assert!(before > 0 || aged <= closed.window.drained_ns - closed.window.open_ns);
}

#[test]
fn t05_a_request_ends_by_its_time_out_however_long_it_waited_before_it_was_sent() {
    let server = start(r#"{"silent_every": 1}"#);
    let load = Load::open(server.port(), 100.0, 1)
        .duration_ms(400)
        .timeout_ms(100);
    let recording = load.run();
    let account = &recording.account;
    assert_eq!(account.timed_out, server.counts().silent);
    assert_eq!(
        account.timed_out + account.not_sent_queue + account.connect_timed_out,
        40
    );
    let responses = recording.distributions.censored_response.unwrap();
    assert!(responses.min_ns().unwrap() >= 100 * MS);
    assert!(responses.quantile_ns(0.5).unwrap() < 200 * MS);
    // They waited most of it: sent, they had 10 ms left.
    let service = recording.distributions.censored_service;
    assert!(service.quantile_ns(0.5).unwrap() < 100 * MS);
}

#[test]
fn t06_a_stuck_request_is_one_time_out() {
    let server = start(r#"{"silent_every": 50}"#);
    let recording = Load::closed(server.port(), 2).requests(60).timeout_ms(300).run();
    let account = &recording.account;
    assert_eq!(
        (account.ok, account.timed_out, server.counts().silent),
        (59, 1, 1)
    );
    assert_eq!(recording.distributions.censored_service.count(), 1);
}

#[test]
fn t30_refused_connections_fail_requests_at_a_bounded_rate() {
    let recording = Load::closed(free_port(), 4).duration_ms(300).run();
    let refused = recording.account.connect_refused;
    assert_eq!(
        (
            recording.account.scheduled,
            recording.connections.connect_failures
        ),
        (refused, refused)
    );
    // Waits of 1, 2, 4 ... 128 ms are 255 ms: nine attempts at most on each connection, and a few more if one was late.
    assert!((4..=4 * 10).contains(&refused), "{refused}");
    assert!(recording.distributions.ok_service.is_empty());
    let open = Load::open(free_port(), 200.0, 4).duration_ms(300).run();
    assert_eq!(
        (open.account.connect_refused, open.connections.connect_failures),
        (60, 60)
    );
}

#[test]
fn a_server_that_appears_in_mid_run_is_used() {
    for open in [false, true] {
        let port = free_port();
        let load = if open {
            Load::open(port, 200.0, 4)
        } else {
            Load::closed(port, 4)
        };
        let (control, mut server) = (Control::new(), None);
        // It appears when requests have failed, and the load ends when some have succeeded.
        let follow = &mut |event: &Event| {
            if let Event::Progress { ok, failed, .. } = event {
                if *failed > 0 && server.is_none() {
                    server = Some(start(&format!(r#"{{"port": {port}}}"#)));
                }
                if *ok > 0 {
                    control.cancel();
                }
            }
        };
        let recording = prony_engine::run(&load.duration_ms(60_000).spec(), &control, follow).unwrap();
        let (account, requests) = (&recording.account, server.unwrap().counts().requests);
        assert!(account.ok > 0 && account.connect_refused > 0, "{account:?}");
        let cut = account.in_flight_at_end + account.not_sent_end;
        assert_eq!(account.ok + account.connect_refused + cut, account.scheduled);
        assert!(
            (account.ok..=account.ok + cut).contains(&requests),
            "{requests} {account:?}"
        );
    }
}

#[test]
fn a_server_that_never_accepts_is_connect_timed_out() {
    let (listener, _waiting) = deaf();
    let port = listener.local_addr().unwrap().port();
    let closed = Load::closed(port, 3)
        .duration_ms(350)
        .timeout_ms(100)
        .grace_ms(0)
        .run()
        .account;
    assert!(closed.connect_timed_out >= 3, "{closed:?}");
    assert_eq!(closed.connect_timed_out + closed.not_sent_end, closed.scheduled);
    let recording = Load::open(port, 100.0, 5).duration_ms(350).timeout_ms(100).run();
    assert_eq!(
        (recording.account.connect_timed_out, recording.account.scheduled),
        (35, 35)
    );
    assert!(
        recording
            .distributions
            .censored_response
            .unwrap()
            .min_ns()
            .unwrap()
            >= 100 * MS
    );
    assert_eq!(recording.connections.opened, 0);
}

/// The kernel repeats a dropped SYN after a second.
#[test]
fn t13_the_time_to_connect_stands_apart() {
    let (listener, waiting) = deaf();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(waiting);
        let serve = |mut stream: TcpStream| {
            while read_request(&mut stream) {
                reply(&mut stream)
            }
        };
        let connections: Vec<_> = listener.incoming().take(3).map(Result::unwrap).collect();
        let threads: Vec<_> = connections
            .into_iter()
            .map(|stream| std::thread::spawn(move || serve(stream)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let recording = Load::open(port, 20.0, 1).requests(26).run();
    server.join().unwrap();
    assert_eq!(recording.account.ok, 26);
    let connect = recording.distributions.connect;
    assert_eq!(connect.count(), 1);
    let took_ns = connect.max_ns().unwrap();
    assert!(took_ns >= 400 * MS);
    // The first request's response time contains it, no service time does.
    assert!(recording.distributions.ok_response.unwrap().max_ns().unwrap() >= took_ns);
    assert!(recording.distributions.ok_service.max_ns().unwrap() < took_ns);
}

#[test]
fn t38_no_answers_and_no_data_are_said_as_such() {
    let recording = Load::closed(free_port(), 1).requests(1).run();
    let text = serde_json::to_value(&recording).unwrap();
    assert_eq!(text["account"]["connect_refused"], 1);
    assert!(text["distributions"]["ok_service"]["min_ns"].is_null() && text["little"]["residual"].is_null());
    let server = start("{}");
    let one = Load::open(server.port(), 10.0, 1).requests(1).run();
    assert_eq!((one.account.ok, server.counts().requests), (1, 1));
    assert_eq!(
        one.distributions.ok_response.as_ref().map(Distribution::count),
        Some(1)
    );
    assert!(one.window.close_ns > one.window.open_ns);
    let none = Load::open(server.port(), 0.1, 1)
        .warmup_ms(20)
        .duration_ms(50)
        .run();
    assert_eq!(
        (none.account.scheduled, none.generator.cpu_ns_per_request),
        (0, None)
    );
}

#[test]
fn t39_a_body_that_never_ends_does_not_hold_the_run() {
    // It answers well for a while, so that a closed loop's window opens before it stops.
    let serve = |began: Instant, stream: &mut TcpStream| {
        while began.elapsed() < Duration::from_millis(100) {
            read_request(stream);
            reply(stream);
        }
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        read_request(stream);
    };
    for open in [false, true] {
        let began = Instant::now();
        let server = Scripted::start(move |_, stream, _| serve(began, stream));
        let load = if open {
            Load::open(server.port, 50.0, 20)
        } else {
            Load::closed(server.port, 3)
        };
        let began = Instant::now();
        let recording = load.timeout_ms(60_000).duration_ms(200).grace_ms(150).run();
        let drained_ns = recording.window.drained_ns - recording.window.close_ns;
        let account = &recording.account;
        assert!(account.in_flight_at_end >= 3, "{account:?}");
        assert_eq!(account.ok + account.in_flight_at_end, account.scheduled);
        assert_eq!(
            recording.bytes.body_received,
            2 * account.ok + 3 * account.in_flight_at_end
        );
        assert!(drained_ns >= 150 * MS && began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_cancelled_run_ends_soon_with_a_balanced_account() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 2000000}}"#);
    for load in [
        Load::closed(server.port(), 4),
        Load::open(server.port(), 500.0, 4),
    ] {
        let control = Control::new();
        let (remote, began) = (control.clone(), Instant::now());
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            remote.cancel();
        });
        let recording = load.threads(2).duration_ms(60_000).run_with(&control);
        canceller.join().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(recording.window.interrupted && recording.account.ok > 0);
        let length_ns = recording.window.close_ns - recording.window.open_ns;
        assert!((100 * MS..10_000 * MS).contains(&length_ns), "{length_ns}");
    }
}

#[test]
fn an_aborted_run_has_no_result() {
    let control = Control::new();
    control.abort();
    let outcome = prony_engine::run(&Load::closed(free_port(), 1).spec(), &control, &mut |_| {});
    assert!(matches!(outcome, Err(prony_engine::Error::Aborted)));
}

#[test]
fn events_come_in_their_order_and_progress_says_its_phase() {
    let server = start("{}");
    let load = Load::open(server.port(), 100.0, 2)
        .warmup_ms(300)
        .duration_ms(600);
    let mut events = Vec::new();
    let keep = &mut |event: &Event| events.push(serde_json::to_value(event).unwrap());
    let recording = prony_engine::run(&load.spec(), &Control::new(), keep).unwrap();
    let edges: Vec<_> = events
        .iter()
        .filter(|event| event["event"] != "progress")
        .collect();
    let names: Vec<_> = edges
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["started", "window_open", "window_close"]);
    assert_eq!(edges[1]["monotonic_ns"], recording.window.open_ns);
    assert_eq!(edges[2]["monotonic_ns"], recording.window.close_ns);
    let phases: Vec<_> = events
        .iter()
        .filter_map(|event| event["phase"].as_str())
        .collect();
    assert!(
        phases.starts_with(&["warmup"]) && phases.contains(&"window"),
        "{phases:?}"
    );
}

#[test]
fn a_worker_that_cannot_start_ends_the_others() {
    let server = start("{}");
    let mut spec = Load::closed(server.port(), 2)
        .threads(2)
        .duration_ms(60_000)
        .spec();
    spec.cpus = Some(vec![0, 100_000]);
    let began = Instant::now();
    assert!(prony_engine::run(&spec, &Control::new(), &mut |_| {}).is_err());
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// The server's own close of an idle connection is seen before the next request goes out on it.
#[test]
fn t32_a_post_after_an_idle_close_goes_out_on_a_new_connection() {
    let server = Scripted::start(|_, stream, count| {
        read_request(stream);
        reply(stream);
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    });
    let load = Load::open(server.port, 5.0, 4).requests(5).method("POST");
    let recording = load.run();
    assert_eq!((recording.account.ok, recording.connections.retried), (5, 0));
    assert_eq!(server.counted(), 5);
}

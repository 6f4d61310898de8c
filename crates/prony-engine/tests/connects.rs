//! When connections are opened, and what becomes of those that cannot be.

#![allow(clippy::unwrap_used)]

mod common;

use common::{deaf, free_port, read_request, reply, start, Load, MS};
use prony_engine::record::generator::Limited;
use prony_engine::{Control, Event, Recording};
use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A server that is deaf for 400 ms; the kernel repeats a dropped SYN after a second.
fn hears_late(listener: TcpListener, waiting: Vec<TcpStream>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(waiting);
        let serve = |mut stream: TcpStream| {
            while read_request(&mut stream) {
                reply(&mut stream)
            }
        };
        let streams = listener.incoming().take(2 + 3).map(Result::unwrap);
        let threads: Vec<_> = streams
            .map(|stream| std::thread::spawn(move || serve(stream)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
}

#[test]
fn t13_the_window_of_a_closed_loop_opens_when_its_connections_are_open() {
    for threads in [1, 2] {
        let (listener, waiting) = deaf();
        let load = Load::closed(listener.local_addr().unwrap().port(), 3).threads(threads);
        let server = hears_late(listener, waiting);
        let began = Instant::now();
        let recording = load.run();
        assert!(began.elapsed() > Duration::from_millis(900 + 300));
        server.join().unwrap();
        let (account, window) = (&recording.account, recording.window);
        assert_eq!(
            (account.ok, window.close_ns - window.open_ns),
            (account.scheduled, 300 * MS)
        );
        assert!(account.ok > 0 && recording.connections.opened == 0);
        // The time to connect stands apart, and in no latency.
        let connect = &recording.distributions.connect;
        assert_eq!(connect.count(), 3);
        let took_ns = connect.max_ns().unwrap();
        assert!(took_ns >= 900 * MS, "{took_ns}");
        assert!(recording.distributions.ok_service.max_ns().unwrap() < took_ns);
    }
}

#[test]
fn what_is_not_open_after_one_time_out_is_a_failed_connect_of_the_window() {
    let (listener, _waiting) = deaf();
    let load = Load::closed(listener.local_addr().unwrap().port(), 4);
    let recording = load.threads(2).timeout_ms(300).duration_ms(100).grace_ms(0).run();
    let account = &recording.account;
    // Each once by the opening; then each is tried again, which takes longer than the window.
    assert_eq!((account.connect_timed_out, account.not_sent_end), (4, 4));
    assert_eq!(recording.connections.connect_failures, 4);
    // At their age, which began before the window, and those of the window at theirs.
    let ages = &recording.distributions.censored_service;
    assert_eq!(ages.count(), 8);
    let is_whole = |share| ages.quantile_ns(share).is_some_and(|age_ns| age_ns >= 300 * MS);
    assert!(is_whole(1.0) && is_whole(0.6) && !is_whole(0.5), "{ages:?}");
}

#[test]
fn a_connection_has_a_time_out_of_its_own_where_that_is_asked_for() {
    let (listener, _waiting) = deaf();
    let port = listener.local_addr().unwrap().port();
    let began = Instant::now();
    let open = Load::open(port, 100.0, 5)
        .duration_ms(200)
        .connect_timeout_ms(100);
    let recording = open.timeout_ms(30_000).grace_ms(30_000).run();
    assert!(began.elapsed() < Duration::from_secs(10));
    let account = &recording.account;
    assert_eq!((account.connect_timed_out, account.scheduled), (20, 20));
    let ages = recording.distributions.censored_response.unwrap();
    assert!(ages.min_ns().unwrap() >= 100 * MS);
    let closed = Load::closed(port, 3).duration_ms(350).connect_timeout_ms(100);
    let account = closed.timeout_ms(30_000).grace_ms(0).run().account;
    assert!(account.connect_timed_out >= 3, "{account:?}");
}

#[test]
fn the_time_of_a_reply_then_counts_from_when_its_request_was_sent() {
    let server = start(r#"{"silent_every": 1}"#);
    let load = Load::open(server.port(), 100.0, 1)
        .duration_ms(200)
        .timeout_ms(100);
    let whole = load.clone().run();
    let service = whole.distributions.censored_service;
    assert!(service.min_ns().unwrap() < 90 * MS, "{service:?}");
    let phases = load.connect_timeout_ms(300).run();
    let account = &phases.account;
    // One after the other has the connection for 100 ms, and those that wait for it for 300 ms are not sent.
    assert_eq!(
        account.timed_out + account.not_sent_queue + account.connect_timed_out,
        20
    );
    assert!(account.timed_out >= 3, "{account:?}");
    let service = phases.distributions.censored_service;
    assert_eq!(service.count(), account.timed_out);
    assert!(service.min_ns().unwrap() >= 100 * MS, "{service:?}");
}

#[test]
fn a_closed_loop_whose_every_connection_is_refused_opens_its_window_at_once() {
    let began = Instant::now();
    let recording = Load::closed(free_port(), 4).timeout_ms(60_000).run();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(recording.account.connect_refused >= 4);
}

#[test]
fn connections_that_are_open_load_while_others_are_opened() {
    let server = start("{}");
    let recording = Load::closed(server.port(), 3).run();
    assert_eq!(recording.account.ok, recording.account.scheduled);
    assert!(server.counts().requests > recording.account.ok);
    let counted = Load::closed(server.port(), 3).requests(10);
    let before = server.counts().requests;
    assert_eq!(counted.run().account.ok, 10);
    assert_eq!(server.counts().requests - before, 10);
}

#[test]
fn progress_says_how_many_connections_have_been_open() {
    let (listener, _waiting) = deaf();
    let load = Load::closed(listener.local_addr().unwrap().port(), 2).timeout_ms(400);
    let mut events = Vec::new();
    let keep = &mut |event: &Event| events.push(serde_json::to_value(event).unwrap());
    prony_engine::run(&load.grace_ms(0).spec(), &Control::new(), keep).unwrap();
    let first = events.iter().find(|event| event["event"] == "progress").unwrap();
    assert_eq!(
        (&first["phase"], &first["connected"]),
        (&"opening".into(), &0.into())
    );
}

#[test]
fn a_run_that_is_cancelled_while_it_opens_has_an_empty_window() {
    let (listener, _waiting) = deaf();
    let load = Load::closed(listener.local_addr().unwrap().port(), 3).timeout_ms(60_000);
    let control = Control::new();
    let (remote, began) = (control.clone(), Instant::now());
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        remote.cancel();
    });
    let recording = load.run_with(&control);
    canceller.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    let window = recording.window;
    assert!(window.interrupted && window.open_ns == window.close_ns);
    assert_eq!(recording.account.scheduled, 0);
}

#[test]
fn t41_many_connections_over_loopback_come_from_several_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let load = Load::closed(listener.local_addr().unwrap().port(), 6_000);
    // It answers every connection's first request.
    let server = std::thread::spawn(move || {
        let streams: Vec<_> = listener.incoming().take(6_000).map(Result::unwrap).collect();
        let mut sources: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for mut stream in &streams {
            *sources.entry(stream.peer_addr().unwrap().ip()).or_default() += 1;
            reply(&mut stream.try_clone().unwrap());
            let _ = std::io::Write::flush(&mut stream);
        }
        (sources, streams)
    });
    let account = load.requests(6_000).timeout_ms(20_000).run().account;
    let (sources, _streams) = server.join().unwrap();
    assert_eq!((account.ok, account.scheduled), (6_000, 6_000), "{account:?}");
    let by_source: Vec<_> = sources
        .into_iter()
        .map(|(ip, count)| (ip.to_string(), count))
        .collect();
    let expected = [("127.0.0.1".to_owned(), 5_000), ("127.0.1.1".to_owned(), 1_000)];
    assert_eq!(by_source, expected);
}

/// Every reply takes half a second, so that 1,500 requests are outstanding at 3,000 a second.
#[test]
fn t01_an_open_loop_stays_open_however_much_is_outstanding() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 500000000}}"#);
    let load = Load::open_without_limit(server.port(), 3000.0);
    let recording = load.timeout_ms(6_000).duration_ms(1500).run();
    let account = &recording.account;
    assert_eq!((account.ok, account.scheduled), (4500, 4500), "{account:?}");
    let responses = recording.distributions.ok_response.unwrap();
    assert!(responses.min_ns() >= Some(500 * MS));
    let p99_ns = responses.quantile_ns(0.99).unwrap();
    // At 1,024 in flight 2,048 a second are answered, and the last ones wait for 0.7 s more.
    assert!(p99_ns < 1_100 * MS, "{p99_ns}");
    // At most 6 s x 3,000/s, and some.
    let limit = recording.queue.limit.unwrap();
    assert!((18_000..19_000).contains(&limit), "{limit}");
    assert_eq!(recording.queue.bound_at_ns, None);
}

#[test]
fn t42_a_limit_of_connections_that_binds_says_from_when_on() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 300000000}}"#);
    for threads in [1, 2] {
        let load = Load::open(server.port(), 1000.0, 100).threads(threads);
        let queue = load.duration_ms(600).run().queue;
        let bound_at_ns = queue.bound_at_ns.unwrap();
        // The hundredth request is due at 100 ms, and the window ends at 600.
        assert!((95 * MS..600 * MS).contains(&bound_at_ns), "{bound_at_ns}");
        assert_eq!(queue.limit, Some(100));
    }
    let closed = Load::closed(server.port(), 2).requests(2).run().queue;
    assert_eq!((closed.limit, closed.bound_at_ns), (None, None));
}

#[test]
fn what_a_run_may_have_in_flight_is_said_before_its_first_request() {
    let server = start("{}");
    let mut events = Vec::new();
    let keep = &mut |event: &Event| events.push(serde_json::to_value(event).unwrap());
    let load = Load::open_without_limit(server.port(), 100.0).timeout_ms(1_000);
    prony_engine::run(&load.spec(), &Control::new(), keep).unwrap();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(events[0]["limit"]["by"], "time_out");
    let [own, machine] = ["limit", "machine"].map(|key| events[0][key]["connections"].as_u64().unwrap());
    assert!((100..200).contains(&own) && own < machine, "{own} {machine}");
}

/// The kernel drops what does not fit into the listen queue, and repeats it after a second.
#[test]
fn connections_are_opened_as_fast_as_the_server_accepts_them() {
    let server = start(r#"{"backlog": 128}"#);
    let recording = Load::closed(server.port(), 3_000).timeout_ms(20_000).run();
    assert_eq!(recording.account.ok, recording.account.scheduled);
    let connect = recording.distributions.connect;
    assert_eq!(connect.count(), 3_000);
    let slow = connect.max_ns().unwrap();
    assert!(slow < 900 * MS, "{slow}");
}

/// Ten seconds of time-out: after a quarter of them all have been tried, though none is ever accepted by the server.
#[test]
fn a_server_that_accepts_none_is_tried_by_all_connections_within_the_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let load = Load::closed(listener.local_addr().unwrap().port(), 1_000);
    let account = load.timeout_ms(800).grace_ms(0).run().account;
    assert_eq!(account.client_other, 0, "{account:?}");
}

/// Every second request is never answered and keeps its connection, so that another one is opened for each.
#[test]
fn t16_a_thousand_connects_under_way_change_no_latency_by_a_twentieth_or_the_verdict_says_so() {
    let measured = |config: &str| {
        let server = start(config);
        let load = Load::open_without_limit(server.port(), 1_000.0).duration_ms(2_000);
        load.warmup_ms(200).timeout_ms(4_000).grace_ms(100).run()
    };
    let calm = measured(r#"{"delay": {"kind": "fixed", "ns": 20000000}}"#);
    let busy = measured(r#"{"delay": {"kind": "fixed", "ns": 20000000}, "silent_every": 2}"#);
    assert!(calm.connections.opened < 100, "{:?}", calm.connections);
    assert!(busy.connections.opened >= 950, "{:?}", busy.connections);
    assert_eq!(busy.account.client_no_descriptor, 0);
    let at = |recording: &Recording, quantile| {
        let responses = recording.distributions.ok_response.as_ref().unwrap();
        responses.quantile_ns(quantile).unwrap() as f64
    };
    let limits = [&calm, &busy].map(|one| one.generator.limited);
    for quantile in [0.5, 0.9] {
        let change = at(&busy, quantile) / at(&calm, quantile) - 1.0;
        assert!(
            change.abs() < 0.05 || limits != [Limited::No; 2],
            "{quantile}: {change:+.3}, {limits:?}"
        );
    }
}

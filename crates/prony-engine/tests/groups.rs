//! Groups of users: shares, headers, sources and delays, against what a server saw.

#![allow(clippy::unwrap_used)]

mod common;

use common::{in_both_loops, read_head, Load, Scripted, MS};
use prony_engine::distribution::Distribution;
use prony_engine::record::recording::GroupRecord;
use prony_engine::{Control, Recording};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

const DELAY_NS: u64 = 30 * MS;

/// Three quarters near, one quarter far, from an address of its own.
fn regions() -> Value {
    json!([
        {"name": "near", "weight": 3, "headers": [["X-Region", "near"]]},
        {"name": "far", "weight": 1, "headers": [["X-Region", "far"]], "source": "127.0.0.9", "delay_ns": DELAY_NS}
    ])
}

/// By region and address, the requests that came.
type Seen = Arc<Mutex<BTreeMap<(String, String), u64>>>;

fn counting() -> (Scripted, Seen) {
    let seen = Seen::default();
    let counts = Arc::clone(&seen);
    let server = Scripted::start(move |_, stream, _| {
        let from = stream.peer_addr().unwrap().ip().to_string();
        while let Some(head) = read_head(stream) {
            let of = |line: &str| line.strip_prefix("X-Region: ").map(str::to_owned);
            let regions: Vec<String> = head.lines().filter_map(of).collect();
            *counts
                .lock()
                .unwrap()
                .entry((regions.concat(), from.clone()))
                .or_default() += 1;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        }
    });
    (server, seen)
}

fn times(group: &GroupRecord) -> &Distribution {
    let times = &group.distributions;
    times.ok_response.as_ref().unwrap_or(&times.ok_service)
}

fn two(recording: &Recording) -> (&GroupRecord, &GroupRecord) {
    (&recording.groups[0], &recording.groups[1])
}

#[test]
fn each_group_sends_its_share_with_its_headers_from_its_address() {
    let (server, seen) = counting();
    for load in in_both_loops(server.port, 200) {
        seen.lock().unwrap().clear();
        let recording = load.groups(regions()).run();
        let (near, far) = two(&recording);
        assert_eq!((near.account.ok, far.account.ok), (150, 50));
        let region = |name: &str, from: &str, count: u64| ((name.to_owned(), from.to_owned()), count);
        let expected = [region("far", "127.0.0.9", 50), region("near", "127.0.0.1", 150)];
        assert_eq!(*seen.lock().unwrap(), BTreeMap::from(expected));
        assert_eq!(
            near.connections + far.connections,
            recording.spec.workload.shape.connections().unwrap() as u64
        );
        assert!(times(far).min_ns().unwrap() >= DELAY_NS && times(near).min_ns().unwrap() < DELAY_NS);
        assert_eq!(near.bytes.body_received, 300);
    }
}

/// The server sees the load that was asked for, at its pace, and the users see what the way adds.
#[test]
fn a_delay_is_in_each_time_and_not_in_the_arrivals_of_an_open_loop() {
    let (server, _) = counting();
    let load = Load::open(server.port, 1000.0, 8).groups(regions());
    let recording = load.run();
    let (near, far) = two(&recording);
    assert_eq!(near.account.scheduled + far.account.scheduled, 300);
    assert!(
        far.account.scheduled.abs_diff(75) <= 4,
        "{}",
        far.account.scheduled
    );
    let whole = &recording.distributions;
    assert!(whole.ok_response.as_ref().unwrap().max_ns().unwrap() >= DELAY_NS);
    assert!(
        recording.queue.waited <= near.account.scheduled,
        "a far user keeps no connection busy"
    );
    let second = &recording.series[0].latency;
    assert_eq!(second.max_ns(), whole.ok_response.as_ref().unwrap().max_ns());
}

#[test]
fn a_far_user_of_a_closed_loop_sends_one_request_a_round_trip() {
    let (server, _) = counting();
    for threads in [1, 3] {
        let recording = Load::closed(server.port, 8)
            .threads(threads)
            .groups(regions())
            .run();
        let (near, far) = two(&recording);
        assert_eq!((near.connections, far.connections), (6, 2));
        // Of 300 ms; those that are open when the window opens are carried in.
        let most = 2 * (300 * MS / DELAY_NS + 1);
        assert!(
            (2..=most).contains(&far.account.scheduled),
            "{}",
            far.account.scheduled
        );
        assert!(near.account.scheduled > 4 * most, "{}", near.account.scheduled);
        assert_eq!(far.account.ok, far.account.scheduled);
    }
}

/// The door leads to the hall, and that to the room. By region and path, the requests that came.
fn sending_on() -> (Scripted, Seen) {
    let seen = Seen::default();
    let counts = Arc::clone(&seen);
    let server = Scripted::start(move |_, stream, _| {
        while let Some(head) = read_head(stream) {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let region = if head.contains("X-Region: far") {
                "far"
            } else {
                "near"
            };
            *counts
                .lock()
                .unwrap()
                .entry((region.to_owned(), path.clone()))
                .or_default() += 1;
            let reply = match path.as_str() {
                "/" => "HTTP/1.1 302 Go\r\nLocation: /hall\r\nContent-Length: 0\r\n\r\n",
                "/hall" => "HTTP/1.1 302 Go\r\nLocation: /room\r\nContent-Length: 0\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            };
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    (server, seen)
}

#[test]
fn a_redirect_goes_on_as_its_group_asks_and_takes_the_way_once_more() {
    let (server, seen) = sending_on();
    for load in in_both_loops(server.port, 100) {
        seen.lock().unwrap().clear();
        let recording = load.follow(3).groups(regions()).run();
        let (near, far) = two(&recording);
        assert_eq!((near.account.ok, far.account.ok), (75, 25));
        let asked = |region: &str| {
            let seen = seen.lock().unwrap();
            let of = |path: &str| seen.get(&(region.to_owned(), path.to_owned())).copied();
            ["/", "/hall", "/room"].map(|path| of(path).unwrap_or(0))
        };
        assert_eq!((asked("near"), asked("far")), ([75; 3], [25; 3]));
        assert_eq!(recording.followed, BTreeMap::from([(302, 200)]));
        let least_ns = times(far).min_ns().unwrap();
        assert!((3 * DELAY_NS..4 * DELAY_NS).contains(&least_ns), "{least_ns}");
        assert!(times(near).min_ns().unwrap() < DELAY_NS);
    }
}

#[test]
fn a_far_user_who_is_sent_on_sends_one_request_in_as_many_round_trips() {
    let (server, _) = sending_on();
    let recording = Load::closed(server.port, 8).follow(2).groups(regions()).run();
    let (near, far) = two(&recording);
    // Of 300 ms, three ways of 30 ms each: two users, who were perhaps under way when the window opened.
    let most = 2 * (300 * MS / (3 * DELAY_NS) + 1);
    assert!(
        (2..=most).contains(&far.account.scheduled),
        "{}",
        far.account.scheduled
    );
    assert!(near.account.scheduled > 4 * most);
}

#[test]
fn the_ways_that_redirects_took_are_a_part_of_the_time_out() {
    let server = Scripted::start(|_, stream, _| {
        while let Some(head) = read_head(stream) {
            if head.starts_with("GET / ") {
                let _ = stream.write_all(b"HTTP/1.1 302 Go\r\nLocation: /hall\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    for load in in_both_loops(server.port, 8) {
        let recording = load.timeout_ms(100).follow(1).groups(regions()).run();
        for group in [two(&recording).0, two(&recording).1] {
            assert_eq!(group.account.timed_out, group.account.scheduled);
            let ages = &group.distributions;
            let ages = ages.censored_response.as_ref().unwrap_or(&ages.censored_service);
            let least_ns = ages.min_ns().unwrap();
            assert!(
                (100 * MS..150 * MS).contains(&least_ns),
                "{} {least_ns}",
                group.name
            );
        }
    }
}

#[test]
fn who_is_far_waits_no_longer_for_a_reply_than_who_is_near() {
    let silent = Scripted::start(|_, stream, _| while read_head(stream).is_some() {});
    for load in in_both_loops(silent.port, 8) {
        let recording = load.timeout_ms(100).groups(regions()).run();
        for group in [two(&recording).0, two(&recording).1] {
            assert_eq!(group.account.timed_out, group.account.scheduled);
            let ages = &group.distributions;
            let least = ages
                .censored_response
                .as_ref()
                .unwrap_or(&ages.censored_service)
                .min_ns()
                .unwrap();
            assert!((100 * MS..150 * MS).contains(&least), "{} {least}", group.name);
        }
    }
}

#[test]
fn an_address_that_this_machine_does_not_have_is_refused_before_the_load() {
    let groups = json!([{"name": "a", "weight": 1, "source": "192.0.2.1"}, {"name": "b", "weight": 1}]);
    let spec = Load::closed(9, 2).groups(groups).spec();
    let error = prony_engine::run(&spec, &Control::new(), &mut |_| {}).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("`workload.groups.source` is `192.0.2.1`; expected an address of this machine"),
        "{message}"
    );
}

#[test]
fn groups_ask_for_the_paths_of_a_mix_each_by_its_weight() {
    let (server, _) = counting();
    let load = Load::open(server.port, 2000.0, 8)
        .requests(512)
        .mix(&[("/", 3.0), ("/cart", 1.0)]);
    let recording = load.groups(regions()).run();
    let (near, far) = two(&recording);
    assert_eq!((near.account.ok, far.account.ok), (384, 128));
    let cart = recording.paths[1].account.scheduled;
    assert!(cart.abs_diff(128) <= 16, "{cart}");
}

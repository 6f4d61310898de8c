//! When the server answers. Bounds are one-sided where a busy machine may add time, and wide where they are not.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{start, Client, GET};
use prony_reference::Delay;

const MS: u64 = 1_000_000;

fn timed(client: &mut Client) -> Duration {
    let begin = Instant::now();
    client.ask(GET);
    begin.elapsed()
}

#[test]
fn no_reply_comes_before_its_delay() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 3000000}}"#);
    let mut client = Client::connect(&server);
    let times: Vec<_> = (0..10).map(|_| timed(&mut client)).collect();
    assert!(
        times.iter().all(|&time| time >= Duration::from_millis(3)),
        "{times:?}"
    );
    assert!(
        times.iter().min().unwrap() < &Duration::from_millis(5),
        "{times:?}"
    );
}

#[test]
fn the_delays_are_those_that_the_seed_foretells() {
    let server = start(
        r#"{"delay": {"kind": "bimodal", "low_ns": 0, "high_ns": 20000000, "high_share": 0.3, "seed": 5}}"#,
    );
    let delay = Delay::Bimodal {
        low_ns: 0,
        high_ns: 20 * MS,
        high_share: 0.3,
        seed: 5,
    };
    let mut client = Client::connect(&server);
    for number in 1..=20 {
        let time = timed(&mut client);
        if delay.of_request_ns(number) > 0 {
            assert!(time >= Duration::from_millis(20), "request {number}: {time:?}");
        }
    }
}

#[test]
fn delayed_requests_of_many_connections_are_in_flight_together() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 50000000}}"#);
    let mut clients: Vec<_> = (0..100).map(|_| Client::connect(&server)).collect();
    let begin = Instant::now();
    clients.iter_mut().for_each(|client| client.send(GET));
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.reply(false).status, 200));
    assert!(
        begin.elapsed() < Duration::from_millis(1000),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn pipelined_requests_have_their_delays_in_series() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 2000000}}"#);
    let mut client = Client::connect(&server);
    let begin = Instant::now();
    client.send(GET.repeat(10));
    (0..10).for_each(|_| drop(client.reply(false)));
    assert!(begin.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_stall_holds_every_thread_and_then_ends() {
    let server = start(r#"{"threads": 2, "stall": {"after_ns": 0, "for_ns": 150000000}}"#);
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(&server)).collect();
    let begin = Instant::now();
    // It stalls from its first request on, which is answered in the same step.
    clients[0].ask(GET);
    clients.iter_mut().for_each(|client| client.send(GET));
    clients.iter_mut().for_each(|client| {
        client.reply(false);
        assert!(
            begin.elapsed() >= Duration::from_millis(149),
            "{:?}",
            begin.elapsed()
        );
    });
    assert!(timed(&mut clients[3]) < Duration::from_millis(100));
}

#[test]
fn a_stalled_server_reads_nothing_but_can_be_asked_and_stopped() {
    let mut server = start(r#"{"stall": {"after_ns": 0, "for_ns": 60000000000}}"#);
    let mut client = Client::connect(&server);
    client.ask(GET);
    client.send(GET);
    assert!(client.hears_nothing());
    let begin = Instant::now();
    assert_eq!(server.counts().bytes_received, GET.len() as u64);
    server.stop();
    assert!(begin.elapsed() < Duration::from_secs(5));
}

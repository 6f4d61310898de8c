//! How connections end, and that the counts say so.

#![allow(clippy::unwrap_used)]

mod common;

use common::{start, Client, GET};
use prony_reference::{deterministic_body, Config, Server};

#[test]
fn a_connection_is_closed_after_n_replies_with_or_without_the_header() {
    for (header, last) in [(true, Some("close")), (false, None)] {
        let server = start(&format!(r#"{{"close_after": 3, "close_header": {header}}}"#));
        let mut client = Client::connect(&server);
        assert_eq!(client.ask(GET).header("Connection"), None);
        assert_eq!(client.ask(GET).header("Connection"), None);
        assert_eq!(client.ask(GET).header("Connection"), last);
        assert!(client.is_closed());
        let counts = server.counts();
        assert_eq!(
            (
                counts.closes,
                counts.responses_complete,
                counts.connections_closed_by_peer
            ),
            (1, 3, 0)
        );
    }
}

#[test]
fn without_keep_alive_each_connection_has_one_reply() {
    let server = start(r#"{"keep_alive": false}"#);
    for _ in 0..5 {
        let mut client = Client::connect(&server);
        assert_eq!(client.ask(GET).header("Connection"), Some("close"));
        assert!(client.is_closed());
    }
    assert_eq!(
        (server.counts().connections_accepted, server.counts().closes),
        (5, 5)
    );
}

#[test]
fn a_client_that_asks_for_a_close_gets_it() {
    let server = start("{}");
    let mut client = Client::connect(&server);
    let reply = client.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(reply.header("Connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn a_close_does_not_reset_what_pipelined_clients_still_have_to_read() {
    let server = start(r#"{"close_after": 2, "body_bytes": 10}"#);
    let mut client = Client::connect(&server);
    client.send(GET.repeat(50));
    assert_eq!(
        (client.reply(false).status, client.reply(false).status),
        (200, 200)
    );
    assert!(client.is_closed());
}

#[test]
fn the_nth_reply_is_cut_by_a_reset_after_half_of_its_body() {
    let server = start(r#"{"reset_after": 3, "body_bytes": 1000}"#);
    let mut client = Client::connect(&server);
    client.ask(GET);
    client.ask(GET);
    client.send(GET);
    let (bytes, reset) = client.rest();
    assert!(
        reset && bytes.ends_with(&deterministic_body(500)),
        "{} bytes, reset: {reset}",
        bytes.len()
    );
    let counts = server.counts();
    assert_eq!(
        (counts.requests, counts.responses_complete, counts.resets),
        (3, 2, 1)
    );
    assert_eq!(
        (
            counts.body_bytes_sent,
            counts.closes,
            counts.connections_closed_by_peer
        ),
        (2500, 0, 0)
    );
}

#[test]
fn the_nth_reply_is_cut_by_a_fin_after_half_of_its_body() {
    for framing in ["content_length", "chunked"] {
        let server = start(&format!(
            r#"{{"short_after": 1, "body_bytes": 1000, "framing": "{framing}"}}"#
        ));
        let mut client = Client::connect(&server);
        client.send(GET);
        let (bytes, reset) = client.rest();
        assert!(!reset && bytes.windows(4).any(|window| window == b"\r\n\r\n"));
        let counts = server.counts();
        assert_eq!(
            (counts.short, counts.responses_complete, counts.bytes_sent),
            (1, 0, bytes.len() as u64)
        );
    }
}

#[test]
fn every_nth_request_is_left_unanswered_on_an_open_connection() {
    let server = start(r#"{"silent_every": 3}"#);
    let mut client = Client::connect(&server);
    client.ask(GET);
    client.ask(GET);
    client.send(GET);
    client.send(GET);
    assert!(client.hears_nothing());
    assert_eq!(Client::connect(&server).ask(GET).status, 200);
    let counts = server.counts();
    assert_eq!(
        (counts.requests, counts.responses_complete, counts.silent),
        (4, 3, 1)
    );
    assert_eq!((counts.closes, counts.bytes_received), (0, 5 * GET.len() as u64));
}

#[test]
fn connections_that_the_client_closes_are_counted_as_its() {
    let server = start(r#"{"threads": 3}"#);
    for _ in 0..20 {
        Client::connect(&server).ask(GET);
    }
    while server.counts().connections_closed_by_peer < 20 {
        std::thread::yield_now();
    }
    assert_eq!(
        (server.counts().connections_accepted, server.counts().closes),
        (20, 0)
    );
}

#[test]
fn a_client_that_has_finished_sending_still_gets_its_reply() {
    let server = start(r#"{"body": "hello", "delay": {"kind": "fixed", "ns": 5000000}}"#);
    let mut client = Client::connect(&server);
    client.send(GET);
    client.socket().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply(false).body, b"hello");
    assert!(client.is_closed());
    assert_eq!(server.counts().connections_closed_by_peer, 1);
}

#[test]
fn a_client_that_leaves_during_the_delay_is_no_error() {
    let server = start(r#"{"delay": {"kind": "fixed", "ns": 5000000}}"#);
    let mut client = Client::connect(&server);
    client.send(GET);
    drop(client);
    assert_eq!(Client::connect(&server).ask(GET).status, 200);
    assert_eq!(server.counts().requests, 2);
}

#[test]
fn connections_are_dealt_out_to_threads_in_turn() {
    let server = start(r#"{"threads": 4}"#);
    let mut clients: Vec<_> = (0..40).map(|_| Client::connect(&server)).collect();
    clients
        .iter_mut()
        .for_each(|client| assert_eq!(client.ask(GET).status, 200));
    assert_eq!(
        (server.counts().connections_accepted, server.counts().requests),
        (40, 40)
    );
}

#[test]
fn a_stopped_server_keeps_its_counts_and_closes_its_connections() {
    let mut server = start(r#"{"threads": 2}"#);
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(&server)).collect();
    clients.iter_mut().for_each(|client| drop(client.ask(GET)));
    server.stop();
    server.stop();
    assert_eq!(server.counts().responses_complete, 4);
    assert!(clients.iter_mut().all(Client::is_closed));
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
}

#[test]
fn a_taken_port_and_a_missing_cpu_are_errors_that_say_so() {
    let server = start("{}");
    let config = Config {
        port: server.port(),
        ..Config::default()
    };
    let error = Server::start(config).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot listen on 127.0.0.1:{}: ", server.port())),
        "{error}"
    );
    let error = Server::start(Config {
        cpus: Some(vec![1023]),
        ..Config::default()
    })
    .unwrap_err()
    .to_string();
    assert!(error.starts_with("cannot pin a thread to CPU 1023: "), "{error}");
}

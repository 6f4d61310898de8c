//! What the server sends, and that it counts it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{start, Client, GET, HEAD};
use prony_reference::{deterministic_body, Counts};

#[test]
fn a_plain_reply_has_the_deterministic_body_and_is_counted_byte_by_byte() {
    let server = start(r#"{"body_bytes": 1000}"#);
    let mut client = Client::connect(&server);
    let reply = client.ask(GET);
    assert_eq!((reply.status, &reply.body), (200, &deterministic_body(1000)));
    let head = "HTTP/1.1 200 OK\r\nServer: prony-reference\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n";
    let expected = Counts {
        connections_accepted: 1,
        requests: 1,
        responses_complete: 1,
        bytes_received: GET.len() as u64,
        bytes_sent: head.len() as u64 + 1000,
        body_bytes_sent: 1000,
        ..Counts::default()
    };
    assert_eq!(server.counts(), expected);
}

#[test]
fn head_204_and_304_have_no_body_and_the_connection_goes_on() {
    for (config, request) in [
        ("{}", HEAD),
        (r#"{"status": 204}"#, GET),
        (r#"{"status": 304}"#, GET),
    ] {
        let server = start(config);
        let mut client = Client::connect(&server);
        for _ in 0..3 {
            assert_eq!(client.ask(request).body, b"");
        }
        assert_eq!(
            (
                server.counts().responses_complete,
                server.counts().body_bytes_sent
            ),
            (3, 0)
        );
    }
}

#[test]
fn head_says_the_length_that_get_would_have() {
    let server = start(r#"{"body": "hello"}"#);
    assert_eq!(
        Client::connect(&server).ask(HEAD).header("Content-Length"),
        Some("5")
    );
}

#[test]
fn a_chunked_reply_is_whole_and_has_its_trailer() {
    let server = start(r#"{"framing": "chunked", "chunk_bytes": 7, "body_bytes": 100, "trailers": true}"#);
    let mut client = Client::connect(&server);
    for _ in 0..2 {
        let reply = client.ask(GET);
        assert_eq!(reply.body, deterministic_body(100));
        assert_eq!(reply.trailers, [("X-Body-Bytes".to_owned(), "100".to_owned())]);
    }
    assert_eq!(server.counts().body_bytes_sent, 200);
}

#[test]
fn a_close_delimited_reply_ends_with_its_connection() {
    let server = start(r#"{"framing": "close_delimited", "body": "hello"}"#);
    let reply = Client::connect(&server).ask(GET);
    assert_eq!(
        (reply.body.as_slice(), reply.header("Connection")),
        (b"hello".as_slice(), Some("close"))
    );
    assert_eq!(server.counts().closes, 1);
}

#[test]
fn an_http_1_0_client_gets_no_chunks_and_no_103() {
    let server = start(r#"{"framing": "chunked", "informational": true, "body": "hello"}"#);
    let reply = Client::connect(&server).ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"hello".as_slice()));
}

#[test]
fn an_http_1_0_connection_stays_open_when_asked() {
    let server = start("{}");
    let mut client = Client::connect(&server);
    for _ in 0..2 {
        let reply = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(reply.header("Connection"), Some("keep-alive"));
    }
    assert_eq!(server.counts().connections_accepted, 1);
}

#[test]
fn a_103_comes_before_the_reply() {
    let server = start(r#"{"informational": true}"#);
    let mut client = Client::connect(&server);
    for _ in 0..2 {
        assert_eq!(client.ask(GET).status, 103);
        assert_eq!(client.reply(false).status, 200);
    }
    assert_eq!(server.counts().responses_complete, 2);
}

#[test]
fn request_bodies_are_read_and_counted() {
    let server = start("{}");
    let mut client = Client::connect(&server);
    assert_eq!(
        client
            .ask("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello")
            .status,
        200
    );
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(client.ask(chunked).status, 200);
    assert_eq!(
        (server.counts().requests, server.counts().body_bytes_received),
        (2, 8)
    );
}

#[test]
fn a_large_request_and_a_large_reply_pass() {
    let server = start(r#"{"body_bytes": 5000000}"#);
    let mut client = Client::connect(&server);
    let length = 3_000_000;
    client.send(format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"));
    client.send(vec![b'x'; length]);
    assert!(client.reply(false).body == deterministic_body(5_000_000));
    assert_eq!(server.counts().body_bytes_received, length as u64);
}

#[test]
fn a_request_that_comes_byte_by_byte_is_one_request() {
    let server = start("{}");
    let mut client = Client::connect(&server);
    GET.bytes().for_each(|byte| client.send([byte]));
    assert_eq!(client.reply(false).status, 200);
    assert_eq!(server.counts().requests, 1);
}

#[test]
fn pipelined_requests_are_answered_one_by_one() {
    let server = start(r#"{"body": "hello"}"#);
    let mut client = Client::connect(&server);
    client.send(GET.repeat(1000));
    (0..1000).for_each(|_| assert_eq!(client.reply(false).body, b"hello"));
    assert_eq!(
        (server.counts().requests, server.counts().responses_complete),
        (1000, 1000)
    );
}

#[test]
fn every_twentieth_request_of_the_server_is_an_error_whatever_the_connection() {
    let server = start(r#"{"error_every": 20, "threads": 2}"#);
    let mut clients: Vec<_> = (0..7).map(|_| Client::connect(&server)).collect();
    let statuses: Vec<_> = (0..100).map(|k| clients[k % 7].ask(GET).status).collect();
    let errors: Vec<_> = (1..=100).filter(|number| statuses[number - 1] == 503).collect();
    assert_eq!(errors, [20, 40, 60, 80, 100]);
    assert_eq!(
        (
            server.counts().responses_complete,
            server.counts().responses_error_status
        ),
        (100, 5)
    );
}

#[test]
fn what_is_not_http_gets_400_and_a_close() {
    let server = start("{}");
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("\0nonsense\r\n\r\n").status, 400);
    assert!(client.is_closed());
    assert_eq!(
        (server.counts().requests, server.counts().requests_invalid),
        (0, 1)
    );
}

#[test]
fn pieces_with_a_gap_reach_the_client_one_by_one() {
    let server = start(r#"{"body": "hello", "write_bytes": 40, "write_gap_ns": 20000000}"#);
    let mut client = Client::connect(&server);
    client.send(GET);
    let mut buffer = [0; 1000];
    let pieces: Vec<_> = (0..3)
        .map(|_| std::io::Read::read(&mut client.socket(), &mut buffer).unwrap())
        .collect();
    let total = server.counts().bytes_sent as usize;
    assert_eq!(pieces, [40, 40, total - 80]);
}

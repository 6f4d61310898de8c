//! HTTP/2 over real sockets: by prior knowledge and over TLS.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Load, Scripted};
use prony_engine::Recording;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const PREFACE_BYTES: usize = 24;

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &id.to_be_bytes(), payload].concat()
}

/// 200 with a body of two bytes.
fn reply(id: u32) -> Vec<u8> {
    [frame(1, 4, id, &[0x88]), frame(0, 1, id, b"hi")].concat()
}

const REPLY_BYTES: u64 = 21;

fn read_frame(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut header = [0; 9];
    stream.read_exact(&mut header).ok()?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
    let mut whole = header.to_vec();
    whole.resize(9 + length, 0);
    stream.read_exact(&mut whole[9..]).ok()?;
    Some(whole)
}

/// Answers every request, and counts the bytes of its frames.
fn serve(stream: &mut (impl Read + Write), count: &AtomicU64) {
    let mut preface = [0; PREFACE_BYTES];
    if stream.read_exact(&mut preface).is_err() {
        return;
    }
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let _ = stream.write_all(&frame(4, 0, 0, &[]));
    while let Some(one) = read_frame(stream) {
        let (kind, flags) = (one[3], one[4]);
        let id = u32::from_be_bytes([one[5], one[6], one[7], one[8]]);
        let is_request = kind < 2;
        count.fetch_add(if is_request { one.len() as u64 } else { 0 }, Ordering::Relaxed);
        let more = (one.len() as u32 - 9).to_be_bytes();
        let answer = match kind {
            0 | 1 if flags & 1 == 1 => [frame(8, 0, 0, &more), reply(id)].concat(),
            0 => [frame(8, 0, 0, &more), frame(8, 0, id, &more)].concat(),
            4 if flags & 1 == 0 => frame(4, 1, 0, &[]),
            _ => continue,
        };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

fn server() -> Scripted {
    Scripted::start(|_, stream, count| {
        // It writes frame by frame: none of them waits for the word that the one before has come.
        stream.set_nodelay(true).unwrap();
        serve(stream, count);
    })
}

fn file(name: &str) -> String {
    format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// With TLS, speaking these protocols.
fn secure_server(protocols: &[&[u8]]) -> Scripted {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    let config = Arc::new(config);
    Scripted::start(move |_, stream, count| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let stream = stream.try_clone().unwrap();
        stream.set_nodelay(true).unwrap();
        serve(&mut StreamOwned::new(connection, stream), count);
    })
}

fn streams(count: usize) -> Value {
    json!({"kind": "http2", "streams": count})
}

fn known() -> Value {
    json!({"ca_file": file("ca.pem")})
}

fn assert_all_ok(recording: &Recording, requests: u64, server: &Scripted) {
    let account = &recording.account;
    assert_eq!(
        (account.scheduled, account.ok),
        (requests, requests),
        "{account:?} {:?}",
        recording.error_samples
    );
    let bytes = &recording.bytes;
    assert_eq!(
        (bytes.received, bytes.body_received),
        (requests * REPLY_BYTES, requests * 2)
    );
    assert_eq!(bytes.sent, server.counted());
    let found = recording.streams.as_ref().unwrap();
    assert_eq!(
        (found.wire.count(), found.stream_wait.count()),
        (requests, requests)
    );
    let sum = found.wire.sum_ns() + found.stream_wait.sum_ns();
    assert_eq!(sum, recording.distributions.ok_service.sum_ns());
}

#[test]
fn requests_by_prior_knowledge_are_counted_in_both_loops() {
    for load in common::in_both_loops(1, 203) {
        let server = server();
        let recording = load.port(server.port).wire(streams(3)).expect_body(b"hi").run();
        assert_all_ok(&recording, 203, &server);
        assert!(recording.connections.opened <= 8);
        let schedule = recording
            .streams
            .as_ref()
            .and_then(|found| found.schedule_wait.as_ref());
        assert_eq!(schedule.is_some(), recording.spec.workload.shape.is_open());
    }
}

#[test]
fn each_thread_of_an_open_loop_has_a_connection_however_many_streams_one_has() {
    let server = server();
    let load = Load::open_without_limit(server.port, 400.0).requests(200);
    let recording = load.threads(4).wire(streams(10_000)).run();
    assert_all_ok(&recording, 200, &server);
    assert_eq!(recording.connections.opened, 4);
}

#[test]
fn requests_over_tls_agree_on_http_2() {
    let server = secure_server(&[b"h2", b"http/1.1"]);
    let load = Load::closed(server.port, 2).requests(100).wire(streams(10));
    let recording = load.secure(known()).run();
    assert_all_ok(&recording, 100, &server);
    let agreed = &recording.tls.as_ref().unwrap().alpn;
    assert_eq!(*agreed, BTreeMap::from([("h2".to_owned(), 2)]));
    assert_eq!(recording.connections.opened, 2);
    assert_eq!(recording.distributions.connect.count(), 2);
}

#[test]
fn a_server_that_does_not_agree_on_http_2_is_refused_and_nothing_is_sent() {
    for (protocols, said) in [
        (&[&b"http/1.1"[..]][..], "NoApplicationProtocol"),
        (&[], "did not agree to speak HTTP/2"),
    ] {
        let server = secure_server(protocols);
        let load = Load::closed(server.port, 1).duration_ms(100).wire(streams(2));
        let recording = load.secure(known()).run();
        let account = &recording.account;
        assert!(
            account.scheduled > 0 && account.tls == account.scheduled,
            "{account:?}"
        );
        assert!(
            recording.error_samples[0].detail.contains(said),
            "{:?}",
            recording.error_samples
        );
        assert_eq!(server.counted(), 0);
    }
}

#[test]
fn a_server_of_http_1_is_named_as_such() {
    let server = Scripted::start(|_, stream, _| {
        let mut preface = [0; PREFACE_BYTES];
        let _ = stream.read_exact(&mut preface);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut [0]);
    });
    let recording = Load::closed(server.port, 1).requests(3).wire(streams(1)).run();
    assert_eq!(recording.account.parse, 3, "{:?}", recording.account);
    assert_eq!(recording.error_samples[0].detail, "the server speaks HTTP/1 here");
}

#[test]
fn a_server_that_closes_at_once_is_met_as_over_http_1() {
    let server = Scripted::start(|_, _, _| {});
    for wire in [json!({"kind": "http"}), streams(1), streams(4)] {
        let recording = Load::closed(server.port, 4).requests(200).wire(wire).run();
        let account = &recording.account;
        let samples = &recording.error_samples;
        assert_eq!(account.eof + account.reset, 200, "{account:?} {samples:?}");
        assert_eq!(recording.connections.connect_failures, 0);
    }
}

#[test]
fn a_mix_and_bodies_go_over_http_2_too() {
    let server = server();
    let load = Load::closed(server.port, 2)
        .requests(300)
        .method("POST")
        .body(&[b'x'; 40_000])
        .mix(&[("/", 2.0), ("/cart", 1.0)])
        .wire(streams(1));
    let recording = load.run();
    assert_all_ok(&recording, 300, &server);
    let asked: Vec<u64> = recording.paths.iter().map(|one| one.account.ok).collect();
    assert!(asked[0] > asked[1] && asked[1] > 80, "{asked:?}");
}

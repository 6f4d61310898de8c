//! TLS: who is believed, what is counted, what a handshake costs, and how it ends.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_all_ok, Load, Scripted, MS};
use prony_engine::account::Account;
use prony_engine::socket::handshakes::Handshakes;
use prony_engine::{Control, Recording, Spec};
use prony_reference::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn file(name: &str) -> String {
    format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn pem(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// A server with the certificate of this name, and its key.
fn server_as(certificate: &str, key: &str, tls: Value, more: Value) -> Server {
    let mut config = json!({"tls": {"certificate": pem(certificate), "key": pem(key)}});
    for (place, values) in [("/tls", tls), ("", more)] {
        let place = config.pointer_mut(place).unwrap().as_object_mut().unwrap();
        place.extend(values.as_object().unwrap().clone());
    }
    common::start(&config.to_string())
}

fn server(tls: Value, more: Value) -> Server {
    server_as("server.pem", "server.key", tls, more)
}

fn known() -> Value {
    json!({"ca_file": file("ca.pem")})
}

fn with(key: &str, value: Value) -> Value {
    let mut tls = known();
    tls[key] = value;
    tls
}

fn handshakes(recording: &Recording) -> &Handshakes {
    recording.tls.as_ref().unwrap()
}

fn done(recording: &Recording) -> u64 {
    let found = handshakes(recording);
    found.full.count() + found.resumed.count()
}

fn only(name: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(name.to_owned(), count)])
}

/// All requests failed for want of a TLS session, and that is what the samples say.
fn assert_refused(recording: &Recording, said: &str) {
    let Account { scheduled, tls, .. } = recording.account;
    assert!(scheduled > 0 && tls == scheduled, "{:?}", recording.account);
    assert!(handshakes(recording).failed >= tls.min(1));
    for sample in &recording.error_samples {
        assert!(
            sample.class == "tls" && sample.detail.contains(said),
            "{sample:?}"
        );
    }
}

#[test]
fn requests_over_tls_are_counted_as_the_server_counts_them() {
    for load in common::in_both_loops(1, 203) {
        let server = server(json!({}), json!({}));
        let mut target = load.secure(known());
        target = target.port(server.port());
        let recording = target.run();
        assert_all_ok(&recording, &server.counts());
        assert_eq!(recording.account.ok, 203);
        assert_eq!(done(&recording), server.counts().handshakes);
        assert_eq!(recording.distributions.connect.count(), done(&recording));
        assert_eq!(handshakes(&recording).failed, 0);
    }
}

#[test]
fn what_a_handshake_agreed_on_is_in_the_result() {
    let cases = [
        (
            ("server.pem", "server.key"),
            json!(["1.3"]),
            "TLS 1.3",
            "TLS_AES_256_GCM_SHA384",
            "ECDSA P-256",
        ),
        (
            ("rsa.pem", "rsa.key"),
            json!(["1.2"]),
            "TLS 1.2",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "RSA 2048",
        ),
    ];
    for ((certificate, key), versions, protocol, cipher, kind) in cases {
        let server = server_as(certificate, key, json!({"versions": versions}), json!({}));
        let recording = Load::closed(server.port(), 3).requests(9).secure(known()).run();
        let found = handshakes(&recording);
        assert_eq!(found.protocols, only(protocol, 3));
        assert_eq!(found.ciphers, only(cipher, 3));
        assert_eq!(found.keys, only(kind, 3));
        assert_eq!(found.groups, only("X25519", 3));
        assert_eq!(found.alpn, only("http/1.1", 3));
    }
}

#[test]
fn a_certificate_for_another_name_is_refused_and_nothing_is_sent() {
    let server = server_as("wrong-host.pem", "server.key", json!({}), json!({}));
    // So many, and not for so long: a handshake that an end cuts off fails for the server alone.
    let recording = Load::closed(server.port(), 2).requests(40).secure(known()).run();
    assert_refused(&recording, "the server's certificate is for another name");
    // The server may read the last alert after the load has ended.
    let failed = handshakes(&recording).failed;
    let end = Instant::now() + Duration::from_secs(5);
    while server.counts().handshakes_failed < failed && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.counts().handshakes_failed, failed);
    assert_eq!(server.counts().requests, 0);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let server = server(json!({}), json!({}));
    let stranger = json!({"ca_file": file("other-ca.pem")});
    let recording = Load::open(server.port(), 100.0, 4)
        .duration_ms(100)
        .secure(stranger)
        .run();
    assert_refused(&recording, "of no authority that is known here");
    assert_eq!(server.counts().requests, 0);
}

#[test]
fn an_expired_certificate_is_refused() {
    let server = server_as("expired.pem", "server.key", json!({}), json!({}));
    let recording = Load::closed(server.port(), 1)
        .duration_ms(100)
        .secure(known())
        .run();
    assert_refused(&recording, "the server's certificate has expired");
}

#[test]
fn without_verification_any_certificate_is_taken() {
    for certificate in ["wrong-host.pem", "expired.pem", "server.pem"] {
        let server = server_as(certificate, "server.key", json!({}), json!({}));
        let recording = Load::closed(server.port(), 2)
            .requests(20)
            .secure(json!({"verify": false}))
            .run();
        assert_all_ok(&recording, &server.counts());
    }
}

#[test]
fn the_name_of_the_server_may_be_another_than_that_of_the_target() {
    let server = server_as("wrong-host.pem", "server.key", json!({}), json!({}));
    let named = with("server_name", json!("other.test"));
    let recording = Load::closed(server.port(), 2).requests(20).secure(named).run();
    assert_all_ok(&recording, &server.counts());
}

#[test]
fn a_server_that_wants_a_certificate_gets_ours() {
    let server = server(json!({"client_ca": pem("ca.pem")}), json!({}));
    let mut own = known();
    own["certificate_file"] = json!(file("client.pem"));
    own["key_file"] = json!(file("client.key"));
    let recording = Load::closed(server.port(), 2).requests(20).secure(own).run();
    assert_all_ok(&recording, &server.counts());
}

/// With TLS 1.3 the refusal comes after our handshake has ended, with 1.2 within it.
#[test]
fn without_our_certificate_its_alert_is_the_failure() {
    for version in ["1.2", "1.3"] {
        let server = server(
            json!({"client_ca": pem("ca.pem"), "versions": [version]}),
            json!({}),
        );
        let recording = Load::closed(server.port(), 1)
            .duration_ms(100)
            .secure(known())
            .run();
        let account = &recording.account;
        assert!(account.tls > 0 && account.tls == account.scheduled, "{account:?}");
        let said = &recording.error_samples[0].detail;
        assert!(said.contains("the alert"), "{said}");
        assert_eq!(server.counts().requests, 0);
    }
}

#[test]
fn a_version_that_is_too_old_is_refused() {
    let server = server(json!({"versions": ["1.2"]}), json!({}));
    let least = with("least_version", json!("1.3"));
    let recording = Load::closed(server.port(), 1)
        .duration_ms(100)
        .secure(least)
        .run();
    assert_refused(&recording, "ProtocolVersion");
    let recording = Load::closed(server.port(), 1).requests(5).secure(known()).run();
    assert_eq!(handshakes(&recording).protocols, only("TLS 1.2", 1));
}

#[test]
fn only_the_ciphers_that_are_asked_for_are_offered() {
    for (version, cipher) in [
        ("TLS 1.3", "TLS_AES_128_GCM_SHA256"),
        ("TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256"),
        ("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ] {
        let server = server(json!({}), json!({}));
        let load = Load::closed(server.port(), 2).requests(20);
        let recording = load.secure(with("ciphers", json!([cipher]))).run();
        assert_all_ok(&recording, &server.counts());
        assert_eq!(handshakes(&recording).ciphers, only(cipher, 2));
        assert_eq!(handshakes(&recording).protocols, only(version, 2));
    }
}

#[test]
fn a_cipher_that_does_not_fit_the_servers_key_is_a_failed_handshake() {
    let server = server(json!({}), json!({}));
    let of_rsa = with("ciphers", json!(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]));
    let recording = Load::closed(server.port(), 1)
        .duration_ms(100)
        .secure(of_rsa)
        .run();
    assert_refused(&recording, "the server refused with the alert HandshakeFailure");
}

#[test]
fn a_cipher_that_does_not_exist_is_refused_with_those_that_do() {
    let refused = |tls: Value| {
        let mut spec = serde_json::to_value(Load::closed(1, 1).secure(known()).spec()).unwrap();
        spec["target"]["tls"] = tls;
        Spec::from_json(&spec.to_string()).unwrap_err().to_string()
    };
    let unknown = refused(with("ciphers", json!(["TLS_AES_128_GCM_SHA256", "RC4"])));
    assert!(
        unknown.starts_with(
            "`target.tls.ciphers` is `RC4`; expected one of TLS_AES_256_GCM_SHA384, TLS_AES_128"
        ),
        "{unknown}"
    );
    let mut old = with("ciphers", json!(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]));
    old["least_version"] = json!("1.3");
    let found = refused(old);
    assert!(
        found.ends_with("expected one of TLS 1.3, the least version"),
        "{found}"
    );
}

#[test]
fn sessions_are_taken_up_again_where_both_sides_want_it() {
    for (own, theirs) in [(true, true), (true, false), (false, true)] {
        let server = server(json!({"resumption": theirs}), json!({}));
        let recording = Load::closed(server.port(), 2)
            .requests(60)
            .without_keep_alive()
            .secure(with("resumption", json!(own)))
            .run();
        let counts = server.counts();
        assert_all_ok(&recording, &counts);
        assert_eq!(handshakes(&recording).resumed.count(), counts.handshakes_resumed);
        assert_eq!((done(&recording), counts.handshakes), (60, 60));
        let resumed = counts.handshakes_resumed;
        assert!(
            if own && theirs {
                resumed >= 50
            } else {
                resumed == 0
            },
            "{resumed}"
        );
    }
}

#[test]
fn t39_a_server_that_stalls_in_the_handshake_ends_at_the_time_out() {
    let server = Scripted::start(|_, stream, _| {
        let mut hello = [0; 4096];
        // Takes what comes, and says nothing.
        while stream.read(&mut hello).is_ok_and(|count| count > 0) {}
    });
    let load = Load::closed(server.port, 2)
        .duration_ms(300)
        .timeout_ms(200)
        .grace_ms(200);
    let recording = load.secure(json!({"verify": false})).run();
    let account = &recording.account;
    assert!(account.scheduled >= 2, "{account:?}");
    assert_eq!(
        account.connect_timed_out + account.not_sent_end,
        account.scheduled
    );
    let window = recording.window;
    assert!(window.drained_ns - window.close_ns <= 400 * MS);
    let said = &recording.error_samples[0].detail;
    assert!(
        said.ends_with("the TLS handshake did not end before the time-out"),
        "{said}"
    );
    let open = Load::open(server.port, 50.0, 8)
        .duration_ms(300)
        .timeout_ms(200)
        .grace_ms(200);
    let recording = open.secure(json!({"verify": false})).run();
    assert_eq!(recording.account.connect_timed_out, recording.account.scheduled);
    let said = &recording.error_samples[0].detail;
    assert!(said.contains("TLS handshake"), "{said}");
}

#[test]
fn a_server_that_speaks_no_tls_is_named_so() {
    let plain = common::start("{}");
    let recording = Load::closed(plain.port(), 2)
        .duration_ms(100)
        .secure(known())
        .run();
    assert!(recording.account.tls == recording.account.scheduled && recording.account.tls > 0);
    let said = &recording.error_samples[0].detail;
    assert!(said.contains("TLS"), "{said}");
}

/// Junk, a close and a reset, each in the handshake.
#[test]
fn t31_what_breaks_a_handshake_is_of_the_class_tls() {
    let server = Scripted::start(|number, stream, _| {
        let mut hello = [0; 4096];
        let _ = stream.read(&mut hello);
        match number % 2 {
            0 => drop(stream.write_all(&[0x16, 3, 3, 0, 4, 9, 9, 9, 9])),
            _ => drop(stream.shutdown(std::net::Shutdown::Both)),
        }
    });
    let recording = Load::open(server.port, 200.0, 8)
        .duration_ms(200)
        .secure(json!({"verify": false}))
        .run();
    assert_eq!(recording.account.tls, recording.account.scheduled);
    assert_eq!(handshakes(&recording).failed, recording.account.tls);
    let said: Vec<_> = recording
        .error_samples
        .iter()
        .map(|sample| sample.detail.as_str())
        .collect();
    assert!(
        said.contains(&"the server closed the connection in the TLS handshake"),
        "{said:?}"
    );
}

#[test]
fn t35_replies_are_read_however_they_are_cut_into_records() {
    for pieces in [1, 7, 1000, 1_000_000] {
        let more = json!({"write_bytes": pieces, "body_bytes": 3000, "framing": "chunked", "trailers": true});
        let server = server(json!({}), more);
        let recording = Load::closed(server.port(), 2).requests(6).secure(known()).run();
        assert_all_ok(&recording, &server.counts());
    }
}

#[test]
fn large_bodies_go_both_ways() {
    let server = server(json!({}), json!({"body_bytes": 3_000_000}));
    let recording = Load::closed(server.port(), 2)
        .requests(6)
        .method("POST")
        .body(&vec![b'x'; 2_000_000])
        .secure(known())
        .run();
    assert_all_ok(&recording, &server.counts());
    assert_eq!(server.counts().body_bytes_received, 6 * 2_000_000);
}

#[test]
fn a_reply_that_only_its_end_completes_needs_the_peers_word_for_it() {
    for says_so in [true, false] {
        let server = server(
            json!({"close_notify": says_so}),
            json!({"framing": "close_delimited"}),
        );
        let recording = Load::closed(server.port(), 1).requests(8).secure(known()).run();
        let account = &recording.account;
        let expected = if says_so { (8, 0) } else { (0, 8) };
        assert_eq!(
            (account.ok, account.short_body),
            expected,
            "{:?}",
            recording.error_samples
        );
    }
}

#[test]
fn t32_a_close_after_each_reply_is_no_error() {
    for (says_so, header) in [(true, true), (true, false), (false, true), (false, false)] {
        let server = server(
            json!({"close_notify": says_so}),
            json!({"close_after": 1, "close_header": header}),
        );
        let recording = Load::closed(server.port(), 2).requests(30).secure(known()).run();
        assert_eq!(recording.account.ok, 30, "{:?}", recording.error_samples);
        assert_eq!(server.counts().responses_complete, 30);
    }
}

#[test]
fn t31_resets_and_cuts_are_counted_by_kind() {
    let server = server(json!({}), json!({"reset_after": 7, "body_bytes": 1000}));
    let recording = Load::closed(server.port(), 2).requests(70).secure(known()).run();
    let counts = server.counts();
    assert_eq!(recording.account.reset, counts.resets);
    assert_eq!(recording.account.ok, counts.responses_complete);
    assert!(counts.resets >= 9);
}

fn bare_server() -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    Arc::new(config.unwrap())
}

#[test]
fn what_tls_sends_by_itself_ends_no_idle_connection() {
    let config = bare_server();
    let server = Scripted::start(move |_, stream, connections| {
        connections.fetch_add(1, Ordering::Relaxed);
        stream.set_nodelay(true).unwrap();
        let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = rustls::Stream::new(&mut session, stream);
        while common::read_request_from(&mut tls) {
            tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                .unwrap();
            // The reply has been taken by then, and new keys are asked for where there is no request.
            std::thread::sleep(Duration::from_millis(5));
            tls.conn.refresh_traffic_keys().unwrap();
            tls.flush().unwrap();
        }
    });
    let recording = Load::open(server.port, 40.0, 1)
        .duration_ms(300)
        .secure(known())
        .run();
    assert_eq!(recording.account.ok, 12, "{:?}", recording.error_samples);
    assert_eq!((server.counted(), recording.connections.surplus), (1, 0));
}

#[test]
fn cancelled_loads_over_tls_have_their_account() {
    let server = server(json!({}), json!({"delay": {"kind": "fixed", "ns": 50_000_000}}));
    let control = Control::new();
    let other = control.clone();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        other.cancel();
    });
    let recording = Load::closed(server.port(), 3)
        .duration_ms(5000)
        .secure(known())
        .run_with(&control);
    stop.join().unwrap();
    assert!(recording.window.interrupted);
}

#[test]
fn files_that_do_not_fit_are_named() {
    let says = |tls: Value| {
        let load = Load::closed(1, 1).secure(tls);
        prony_engine::run(&load.spec(), &Control::new(), &mut |_| {})
            .unwrap_err()
            .to_string()
    };
    let missing = says(json!({"ca_file": "/nowhere/ca.pem"}));
    assert!(missing.starts_with("TLS: `/nowhere/ca.pem`: "), "{missing}");
    let key = says(json!({"ca_file": file("server.key")}));
    assert!(key.contains("no certificate in it"), "{key}");
    let mut pair = known();
    pair["certificate_file"] = json!(file("client.pem"));
    pair["key_file"] = json!(file("rsa.key"));
    let other = says(pair);
    assert!(other.contains("rsa.key`: no key of `"), "{other}");
}

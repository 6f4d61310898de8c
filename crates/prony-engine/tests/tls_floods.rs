//! Servers that flood beneath HTTP, with records of TLS: requests end, memory has a bound, and the other connections are served meanwhile.

#![allow(clippy::unwrap_used)]

mod common;

use common::{read_request_from, Load, Scripted, MS};
use prony_engine::Recording;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig, ServerConnection};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TIMEOUT_MS: u64 = 600;
const HUGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n";

// RFC 8446 section 4.6.1: for 3600 s, with a nonce and a ticket of a byte each.
const TICKET: [u8; 19] = [4, 0, 0, 15, 0, 0, 14, 16, 1, 2, 3, 4, 1, 7, 0, 1, 9, 0, 0];

/// Floods take all CPUs, and one at a time is measured.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Debug, Clone, Copy)]
enum Flood {
    /// A byte of the handshake now and then.
    Trickle,
    EmptyRecords,
    Tickets,
    /// As many as are read at once, and then the next ones.
    TicketsNowAndThen,
    NewKeys,
    /// With a byte of data after each.
    NewKeysAndData,
    SingleBytes,
}

/// With what its requests end. Nothing: with the time-out.
const FLOODS: [(Flood, &str); 7] = [
    (Flood::Trickle, ""),
    (Flood::EmptyRecords, "TooManyEmptyFragments"),
    (Flood::Tickets, "256 KiB of TLS came without data"),
    (Flood::TicketsNowAndThen, "256 KiB of TLS came without data"),
    (Flood::NewKeys, "TooManyKeyUpdateRequests"),
    (Flood::NewKeysAndData, ""),
    (Flood::SingleBytes, ""),
];

fn config() -> Arc<ServerConfig> {
    let file = |name: &str| format!("{}/../../tests/certificates/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let made = builder
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    let mut config = made.unwrap();
    config.enable_secret_extraction = true;
    config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).to_vec();
    Arc::new(config)
}

/// The server's side of a connection, below the library: records of any kind.
struct Records {
    encrypter: Box<dyn MessageEncrypter>,
    next: u64,
}

impl Records {
    fn of(session: ServerConnection) -> Self {
        let suite = session.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.tls13()).unwrap();
        let (next, secrets) = session.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
            panic!("another cipher");
        };
        let encrypter = suite.aead_alg.encrypter(key, iv);
        Self { encrypter, next }
    }

    /// So many of them.
    fn encrypted(&mut self, typ: ContentType, payload: &[u8], count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let payload = OutboundChunks::Single(payload);
            let version = ProtocolVersion::TLSv1_3;
            let plain = OutboundPlainMessage {
                typ,
                version,
                payload,
            };
            bytes.extend(self.encrypter.encrypt(plain, self.next).unwrap().encode());
            self.next += 1;
        }
        bytes
    }
}

fn endless(stream: &mut TcpStream, pause: Duration, mut more: impl FnMut() -> Vec<u8>) {
    while stream.write_all(&more()).is_ok() {
        std::thread::sleep(pause);
    }
}

fn flood(stream: &mut TcpStream, config: Arc<ServerConfig>, flood: Flood) {
    let mut session = ServerConnection::new(config).unwrap();
    if matches!(flood, Flood::Trickle) {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&[22, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xfb]);
        return endless(stream, Duration::from_millis(1), || vec![3]);
    }
    let mut tls = rustls::Stream::new(&mut session, stream);
    // The begin of a request, whatever is spoken.
    if tls.read(&mut [0; 4096]).is_err() || tls.flush().is_err() {
        return;
    }
    match flood {
        Flood::NewKeys => while tls.conn.refresh_traffic_keys().is_ok() && tls.flush().is_ok() {},
        Flood::NewKeysAndData => {
            let mut result = tls.write_all(HUGE.as_bytes());
            while result.is_ok() && tls.conn.refresh_traffic_keys().is_ok() {
                result = tls.write_all(b"x");
            }
        }
        _ => {
            let mut records = Records::of(session);
            let no_pause = Duration::ZERO;
            match flood {
                Flood::EmptyRecords => endless(stream, no_pause, || {
                    records.encrypted(ContentType::ApplicationData, &[], 1000)
                }),
                Flood::Tickets => endless(stream, no_pause, || {
                    records.encrypted(ContentType::Handshake, &TICKET, 1000)
                }),
                Flood::TicketsNowAndThen => endless(stream, Duration::from_millis(1), || {
                    records.encrypted(ContentType::Handshake, &TICKET, 100)
                }),
                _ => {
                    let head = records.encrypted(ContentType::ApplicationData, HUGE.as_bytes(), 1);
                    let _ = stream.write_all(&head);
                    endless(stream, no_pause, || {
                        records.encrypted(ContentType::ApplicationData, b"x", 1000)
                    });
                }
            }
        }
    }
}

/// Until so much time has passed.
fn serve(stream: &mut TcpStream, config: Arc<ServerConfig>, time: Duration) {
    let begun = Instant::now();
    let mut session = ServerConnection::new(config).unwrap();
    let mut tls = rustls::Stream::new(&mut session, stream);
    while begun.elapsed() < time && read_request_from(&mut tls) {
        let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    }
}

/// Floods connections of these numbers. The first one, if it is none of them, ends in the load, so that there is another one then.
fn server(flooded: RangeInclusive<usize>, with: Flood) -> Scripted {
    let config = config();
    Scripted::start(move |number, stream, _| {
        stream.set_nodelay(true).unwrap();
        let config = Arc::clone(&config);
        match number {
            number if flooded.contains(&number) => flood(stream, config, with),
            0 => serve(stream, config, Duration::from_millis(300)),
            _ => serve(stream, config, Duration::MAX),
        }
    })
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

/// What such a load has become, if it took neither memory nor time without end.
fn ran(load: Load, what: &str) -> Recording {
    let (before_bytes, begun) = (resident_bytes(), Instant::now());
    let secure = load.timeout_ms(TIMEOUT_MS).grace_ms(3 * TIMEOUT_MS);
    let recording = secure.secure(json!({"verify": false})).run();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{what}: {:?}",
        begun.elapsed()
    );
    let more_bytes = resident_bytes().saturating_sub(before_bytes);
    assert!(more_bytes < 32 << 20, "{what}: {more_bytes} bytes");
    let window = recording.window;
    assert!(
        window.drained_ns - window.close_ns < 2 * TIMEOUT_MS * MS,
        "{what}"
    );
    recording
}

fn said(recording: &Recording) -> Vec<&str> {
    let samples = recording.error_samples.iter();
    samples.map(|sample| sample.detail.as_str()).collect()
}

/// Requests that failed, in the window or carried into it.
fn failed(recording: &Recording) -> u64 {
    let (account, carried) = (&recording.account, &recording.account.carried_in);
    account.scheduled - account.ok + carried.requests - carried.answered
}

#[test]
fn a_flood_of_records_ends_its_own_request_and_no_other() {
    let _alone = ALONE.lock();
    for (with, why) in FLOODS {
        let what = format!("{with:?}");
        let server = server(4..=4, with);
        let recording = ran(Load::closed(server.port, 4).duration_ms(600), &what);
        assert!(recording.account.ok > 100, "{what}: {:?}", recording.account);
        assert_eq!(failed(&recording), 1, "{what}: {:?}", recording.account);
        let said = said(&recording);
        let why = if why.is_empty() {
            "before the time-out"
        } else {
            why
        };
        assert!(said.len() == 1 && said[0].contains(why), "{what}: {said:?}");
    }
}

#[test]
fn each_request_has_an_end_where_all_connections_are_flooded() {
    let _alone = ALONE.lock();
    for wire in [json!({"kind": "http"}), json!({"kind": "http2", "streams": 3})] {
        for (with, _) in FLOODS {
            let what = format!("{wire} {with:?}");
            let server = server(0..=usize::MAX, with);
            let load = Load::closed(server.port, 2).wire(wire.clone());
            let recording = ran(load.duration_ms(300), &what);
            let account = &recording.account;
            assert_eq!(account.ok, 0, "{what}: {account:?}");
            assert!(failed(&recording) >= 2, "{what}: {account:?}");
            assert_eq!(account.in_flight_at_end, 0, "{what}: {account:?}");
        }
    }
}

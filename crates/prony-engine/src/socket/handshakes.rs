//! TLS of a run: what is asked of the server, what its handshakes were, and why they failed.

use crate::distribution::Distribution;
use crate::error::Error;
use crate::spec::{LeastVersion, Target, TlsSpec, Wire};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::Resumption;
use rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind,
    RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

// Sessions that may be resumed are kept by server, and there is one.
const SERVERS_REMEMBERED: usize = 4;
// What is spoken on every connection.
const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// What connections of a run have in common.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
    /// What the server must agree to speak; null: HTTP/1.1 needs no agreement.
    must_agree: Option<&'static [u8]>,
}

impl Client {
    /// Reads what the specification names.
    ///
    /// # Errors
    /// [`Error::Tls`] with the file and what is wrong with it.
    pub fn new(target: &Target, asked: &TlsSpec) -> Result<Self, Error> {
        let typed = asked.server_name.as_ref().unwrap_or(&target.host);
        let name = ServerName::try_from(typed.clone())
            .map_err(|_| Error::Tls(format!("`{typed}` is not the name of a server")))?;
        let provider = Arc::new(provider(&asked.ciphers));
        let versions = versions(asked.least_version);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| Error::Tls(error.to_string()))?;
        let builder = if asked.verify {
            builder.with_root_certificates(roots(asked.ca_file.as_deref())?)
        } else {
            let anyone = Arc::new(Anyone(provider));
            builder.dangerous().with_custom_certificate_verifier(anyone)
        };
        let mut config = match (&asked.certificate_file, &asked.key_file) {
            (Some(certificate), Some(key)) => builder
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| unfit(key, &format!("no key of `{certificate}`: {error}")))?,
            _ => builder.with_no_client_auth(),
        };
        let must_agree = matches!(target.wire, Wire::Http2 { .. }).then_some(HTTP_2);
        config.alpn_protocols = vec![must_agree.unwrap_or(HTTP_1).to_vec()];
        config.resumption = if asked.resumption {
            Resumption::in_memory_sessions(SERVERS_REMEMBERED)
        } else {
            Resumption::disabled()
        };
        Ok(Self {
            config: Arc::new(config),
            name,
            must_agree,
        })
    }

    /// Whether a handshake agreed on what is to be spoken.
    pub(crate) fn check_protocol(&self, connection: &ClientConnection) -> io::Result<()> {
        match self.must_agree {
            Some(protocol) if connection.alpn_protocol() != Some(protocol) => {
                Err(Broken::because("the server did not agree to speak HTTP/2 (ALPN)"))
            }
            _ => Ok(()),
        }
    }
}

/// The library's own parts, with the cipher suites of these names, in this order; none: with all.
fn provider(ciphers: &[String]) -> CryptoProvider {
    let all = ring::default_provider();
    let found = |name: &String| {
        all.cipher_suites
            .iter()
            .find(|one| cipher_name(one.suite()) == *name)
    };
    let chosen: Vec<_> = ciphers.iter().filter_map(found).copied().collect();
    match chosen.is_empty() {
        true => all,
        false => CryptoProvider {
            cipher_suites: chosen,
            ..all
        },
    }
}

// The library has a name of its own for those of TLS 1.3 (RFC 8446 appendix B.4).
fn cipher_name(suite: CipherSuite) -> String {
    format!("{suite:?}").replace("TLS13_", "TLS_")
}

/// What is spoken, from the least version on; older ones than these are not.
fn versions(least: LeastVersion) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
    match least {
        LeastVersion::Tls12 => &ALL,
        LeastVersion::Tls13 => &ALL[..1],
    }
}

fn roots(file: Option<&str>) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                store
                    .add(certificate)
                    .map_err(|error| unfit(file, &error.to_string()))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        return Err(Error::Tls(
            "this machine has no certificates of authorities to verify the server's with".to_owned(),
        ));
    }
    Ok(store)
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unfit(file, &error.to_string()));
    let found = found?;
    if found.is_empty() {
        return Err(unfit(file, "no certificate in it"));
    }
    Ok(found)
}

fn private_key(file: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| unfit(file, &error.to_string()))
}

fn unfit(file: &str, reason: &str) -> Error {
    Error::Tls(format!("`{file}`: {reason}; expected a PEM file"))
}

/// Takes every certificate, but holds the server to the key in it.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The handshakes of a run, from the first connection on, and what they agreed on, by the number of connections.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)] // defined in docs/reference/engine-wire.md
pub struct Handshakes {
    pub full: Distribution,
    pub resumed: Distribution,
    pub failed: u64,
    pub protocols: BTreeMap<String, u64>,
    pub ciphers: BTreeMap<String, u64>,
    pub groups: BTreeMap<String, u64>,
    pub keys: BTreeMap<String, u64>,
    pub alpn: BTreeMap<String, u64>,
}

impl Handshakes {
    /// Counts one that is over and well.
    pub(crate) fn count(&mut self, connection: &ClientConnection, took_ns: u64) {
        if connection.handshake_kind() == Some(HandshakeKind::Resumed) {
            self.resumed.record(took_ns);
        } else {
            self.full.record(took_ns);
        }
        let version = connection.protocol_version();
        let suite = connection.negotiated_cipher_suite();
        let group = connection.negotiated_key_exchange_group();
        let alpn = connection.alpn_protocol().map(String::from_utf8_lossy);
        one_more(
            &mut self.protocols,
            version.map(|version| format!("{version:?}").replace("TLSv1_", "TLS 1.")),
        );
        one_more(&mut self.ciphers, suite.map(|suite| cipher_name(suite.suite())));
        one_more(&mut self.groups, group.map(|group| format!("{:?}", group.name())));
        one_more(&mut self.alpn, alpn.map(std::borrow::Cow::into_owned));
        let certificate = connection.peer_certificates().and_then(<[_]>::first);
        one_more(&mut self.keys, certificate.map(|one| key_of(one)));
    }

    /// Adds those of another worker; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.full.merge(&other.full);
        self.resumed.merge(&other.resumed);
        self.failed += other.failed;
        for (own, more) in [
            (&mut self.protocols, &other.protocols),
            (&mut self.ciphers, &other.ciphers),
            (&mut self.groups, &other.groups),
            (&mut self.keys, &other.keys),
            (&mut self.alpn, &other.alpn),
        ] {
            for (name, count) in more {
                *own.entry(name.clone()).or_default() += count;
            }
        }
    }
}

/// What was not agreed on has the name `none`.
fn one_more(counts: &mut BTreeMap<String, u64>, name: Option<String>) {
    *counts
        .entry(name.unwrap_or_else(|| "none".to_owned()))
        .or_default() += 1;
}

// Object identifiers as DER has them, with their length before them (RFC 3279, 5480, 8410).
const KEYS: [(&[u8], &str); 6] = [
    (
        &[8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        "ECDSA P-256",
    ),
    (&[5, 0x2b, 0x81, 0x04, 0x00, 0x22], "ECDSA P-384"),
    (&[5, 0x2b, 0x81, 0x04, 0x00, 0x23], "ECDSA P-521"),
    (&[3, 0x2b, 0x65, 0x70], "Ed25519"),
    (&[3, 0x2b, 0x65, 0x71], "Ed448"),
    (&[9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], "RSA"),
];

/// The kind of a certificate's key, of RSA with its length.
fn key_of(certificate: &CertificateDer<'_>) -> String {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return "unknown".to_owned();
    };
    let info = parsed.subject_public_key_info();
    let found = KEYS
        .iter()
        .find(|(id, _)| info.windows(id.len()).take(32).any(|window| window == *id));
    match found {
        // Around the modulus stand some 38 bytes (RFC 3279 section 2.3.1): less than the step of usual lengths.
        Some((_, name @ "RSA")) => format!("{name} {}", (info.len() - 38) / 64 * 512),
        Some((_, name)) => (*name).to_owned(),
        None => "unknown".to_owned(),
    }
}

/// Why a handshake failed, or the session after it broke.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(String);

impl Broken {
    /// As an error of a socket.
    pub(crate) fn because(reason: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self(reason.into()))
    }

    /// What the library says, in words.
    pub(crate) fn of(error: &rustls::Error) -> io::Error {
        Self::because(words(error))
    }
}

/// Whether an error of a socket is one of TLS.
pub(crate) fn is_broken(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Broken>())
}

/// An error once more, with its kind and its words.
pub(crate) fn copy(error: &io::Error) -> io::Error {
    if is_broken(error) {
        return Broken::because(error.to_string());
    }
    io::Error::new(error.kind(), error.to_string())
}

fn words(error: &rustls::Error) -> String {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => "the server's certificate has expired".to_owned(),
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet".to_owned()
            }
            Bad::UnknownIssuer => "the server's certificate is of no authority that is known here".to_owned(),
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                format!("the server's certificate is for another name: {bad}")
            }
            _ => format!("the server's certificate is not valid: {bad}"),
        },
        rustls::Error::InvalidMessage(_) => format!("what the server sent is no TLS: {error}"),
        rustls::Error::AlertReceived(alert) => format!("the server refused with the alert {alert:?}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cipher_name, ring};
    use crate::spec::CIPHERS;

    #[test]
    fn the_names_are_those_of_the_librarys_suites() {
        let all = ring::default_provider().cipher_suites;
        let names: Vec<_> = all.iter().map(|one| cipher_name(one.suite())).collect();
        assert_eq!(names, CIPHERS);
    }
}

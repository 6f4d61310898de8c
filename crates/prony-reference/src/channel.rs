//! The bytes of a connection: as they are, or through TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::config::Tls;
use crate::error::Error;

/// A client's socket, and what is spoken on it.
#[derive(Debug)]
pub(crate) enum Channel {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Channel {
    /// On a socket that has just been accepted.
    pub(crate) fn new(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Result<Channel, rustls::Error> {
        let Some(config) = tls else {
            return Ok(Channel::Plain(stream));
        };
        let connection = ServerConnection::new(Arc::clone(config))?;
        Ok(Channel::Tls(Box::new(StreamOwned::new(connection, stream))))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Channel::Plain(stream) => stream,
            Channel::Tls(stream) => &stream.sock,
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Channel::Plain(stream) => stream.read(buffer),
            Channel::Tls(stream) => stream.read(buffer),
        }
    }

    /// Whether bytes may be here that are no longer in the kernel.
    pub(crate) fn holds_bytes(&self) -> bool {
        matches!(self, Channel::Tls(_))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Channel::Plain(stream) => stream.write(bytes),
            Channel::Tls(stream) => stream.write(bytes),
        }
    }

    /// Hands to the kernel what was written and is still here. It must not read: what came would lie here, and no event would say so.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Channel::Tls(stream) = self else {
            return Ok(());
        };
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut stream.sock)?;
        }
        Ok(())
    }

    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Tls(stream) => stream.conn.wants_write(),
        }
    }

    /// Whether its handshake goes on.
    pub(crate) fn is_shaking(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Tls(stream) => stream.conn.is_handshaking(),
        }
    }

    /// Whether it took up an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Tls(stream) => stream.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Says that nothing more will come.
    pub(crate) fn close_notify(&mut self) {
        if let Channel::Tls(stream) = self {
            stream.conn.send_close_notify();
            // A client that has gone needs no word.
            let _ = self.flush();
        }
    }
}

/// What the connections of a server have in common.
pub(crate) fn server_config(tls: &Tls) -> Result<ServerConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = versions(&tls.versions)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| Error::tls("tls.versions", &error))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(pem)?), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| Error::tls("tls.client_ca", &error))?)
        }
    };
    let key =
        PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(|error| Error::tls("tls.key", &error))?;
    let chain = certificates("tls.certificate", &tls.certificate)?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| Error::tls("tls.key", &error))?;
    config.alpn_protocols = tls.alpn.iter().map(|name| name.clone().into_bytes()).collect();
    if !tls.resumption {
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

fn versions(names: &[String]) -> Result<Vec<&'static rustls::SupportedProtocolVersion>, Error> {
    let version = |name: &String| match name.as_str() {
        "1.2" => Ok(&rustls::version::TLS12),
        "1.3" => Ok(&rustls::version::TLS13),
        _ => Err(Error::tls(
            "tls.versions",
            &format!("`{name}`: expected 1.2 or 1.3"),
        )),
    };
    names.iter().map(version).collect()
}

fn roots(pem: &str) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("tls.client_ca", pem)? {
        store
            .add(certificate)
            .map_err(|error| Error::tls("tls.client_ca", &error))?;
    }
    Ok(store)
}

fn certificates(field: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| Error::tls(field, &error))
}

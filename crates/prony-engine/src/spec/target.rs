//! Whom a load is sent to: its address, its wire, and the way there.

use super::check::{is_on_one_line, require};
use super::Request;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// Where the load goes.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// An IPv4 or IPv6 literal, or a name; of a Unix socket the path.
    pub host: String,
    /// Further addresses of the server: connections go to all of them in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The TCP port; 0 with a Unix socket.
    pub port: u16,
    /// Which kind of socket it listens on.
    #[serde(default)]
    pub socket: Socket,
    /// What is spoken there.
    #[serde(default)]
    pub wire: Wire,
    /// Of connections with TLS; null: without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// Of a server behind an HTTP proxy: `host` and `port` are then the proxy's. Null: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Behind>,
}

/// The server behind an HTTP proxy: asked for by the whole URL, with TLS through a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Behind {
    /// The server's host and port, as the proxy is to find it.
    pub authority: String,
    /// The `Proxy-Authorization` for the proxy; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
}

impl Behind {
    /// What opens a tunnel (RFC 9110 section 9.3.6).
    pub fn connect(&self) -> Vec<u8> {
        let authority = &self.authority;
        let mut lines = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(value) = &self.authorization {
            lines += &format!("Proxy-Authorization: {value}\r\n");
        }
        (lines + "\r\n").into_bytes()
    }

    /// The request as a proxy takes it: for the whole URL (RFC 9112 section 3.2.2).
    pub(super) fn asked(&self, request: &Request) -> Request {
        let mut asked = request.clone();
        asked.path = format!("http://{}{}", self.authority, request.path);
        let is_typed = |name: &str| name.eq_ignore_ascii_case(PROXY_AUTHORIZATION);
        if let (Some(value), false) = (
            &self.authorization,
            asked.headers.iter().any(|(name, _)| is_typed(name)),
        ) {
            asked
                .headers
                .push((PROXY_AUTHORIZATION.to_owned(), value.clone()));
        }
        asked
    }

    pub(super) fn check(&self, target: &Target) -> Result<(), Error> {
        let is_place = |text: &str| {
            let (host, port) = text.rsplit_once(':')?;
            let is_host = !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"/@?#".contains(&byte));
            (is_host && port.parse::<u16>().is_ok_and(|port| port > 0)).then_some(())
        };
        let field = "target.proxy.authority";
        let fits = is_place(&self.authority).is_some();
        require(fits, field, &self.authority, "HOST:PORT")?;
        let value = self.authorization.as_deref().unwrap_or_default();
        require(
            is_on_one_line(value),
            "target.proxy.authorization",
            "...",
            "one line",
        )?;
        let is_http = matches!(target.wire, Wire::Http { .. });
        let is_tunnelled = target.tls.is_some() && matches!(target.wire, Wire::Http2 { .. });
        let fits = target.socket == Socket::Tcp && (is_http || is_tunnelled);
        require(
            fits,
            "target.proxy",
            &self.authority,
            "HTTP/1, or HTTP/2 with TLS, over TCP",
        )?;
        let has_name = target.tls.as_ref().is_none_or(|tls| tls.server_name.is_some());
        require(
            has_name,
            "target.tls.server_name",
            "",
            "the name of the server behind the proxy",
        )
    }
}

const PROXY_AUTHORIZATION: &str = "Proxy-Authorization";

/// What is asked of a server with TLS. Files are PEM, read once at the start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSpec {
    /// Whether the server's certificate must be of a known authority, valid, and for its name.
    pub verify: bool,
    /// The authorities that are known; null: those of this machine.
    pub ca_file: Option<String>,
    /// Our own certificate, with its chain; null: none.
    pub certificate_file: Option<String>,
    /// Its key.
    pub key_file: Option<String>,
    /// The server's name, for its certificate and for SNI; null: `target.host`.
    pub server_name: Option<String>,
    /// What is spoken at least.
    pub least_version: LeastVersion,
    /// Whether a connection may take up the session of an earlier one.
    pub resumption: bool,
    /// The cipher suites that are offered, in this order, by the names of [`CIPHERS`](CIPHERS); none: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
}

/// The cipher suites that can be spoken, in the order in which they are offered, by their names in the registry of IANA.
pub const CIPHERS: [&str; 9] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Whether the suite of this name is one of TLS 1.2: only there it says how keys are exchanged (RFC 8446 section 4.1.1).
pub(crate) fn is_of_tls12(name: &str) -> bool {
    name.contains("_WITH_")
}

impl Default for TlsSpec {
    fn default() -> Self {
        Self {
            verify: true,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            server_name: None,
            least_version: LeastVersion::Tls12,
            resumption: true,
            ciphers: Vec::new(),
        }
    }
}

impl TlsSpec {
    pub(super) fn check_ciphers(&self) -> Result<(), Error> {
        let field = "target.tls.ciphers";
        for name in &self.ciphers {
            let known = CIPHERS.contains(&name.as_str());
            require(known, field, name, &format!("one of {}", CIPHERS.join(", ")))?;
        }
        let too_old =
            self.least_version == LeastVersion::Tls13 && self.ciphers.iter().all(|one| is_of_tls12(one));
        let fits = self.ciphers.is_empty() || !too_old;
        require(
            fits,
            field,
            self.ciphers.join(", "),
            "one of TLS 1.3, the least version",
        )
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)] // the names are the definitions
pub enum LeastVersion {
    #[serde(rename = "1.2")]
    Tls12,
    #[serde(rename = "1.3")]
    Tls13,
}

/// The kind of socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Socket {
    /// TCP, over IPv4 or IPv6.
    #[default]
    Tcp,
    /// A Unix stream socket.
    Unix,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wire {
    /// HTTP/1.
    Http {
        /// Its version.
        #[serde(default, skip_serializing_if = "HttpVersion::is_usual")]
        version: HttpVersion,
    },
    /// FastCGI.
    Fastcgi {},
    /// uwsgi.
    Uwsgi {
        /// The plugin of uWSGI that is asked: 0 for WSGI, 5 for PSGI.
        #[serde(default)]
        modifier1: u8,
    },
    /// SCGI.
    Scgi {},
    /// HTTP/2: over TLS by its agreement (ALPN), without it by prior knowledge.
    Http2 {
        /// Requests at once on each connection.
        #[serde(default = "one")]
        streams: usize,
    },
}

/// A version of HTTP/1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)] // the names are the definitions
pub enum HttpVersion {
    #[serde(rename = "1.0")]
    V1_0,
    #[default]
    #[serde(rename = "1.1")]
    V1_1,
}

impl HttpVersion {
    /// Whether it is the one that nobody has to name.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::V1_1
    }

    /// As a request says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "HTTP/1.0",
            Self::V1_1 => "HTTP/1.1",
        }
    }
}

fn one() -> usize {
    1
}

// More than any server takes.
const MOST_STREAMS: usize = 10_000;

impl Default for Wire {
    fn default() -> Self {
        Self::Http {
            version: HttpVersion::default(),
        }
    }
}

impl Wire {
    /// The version of HTTP/1 that requests have; of other wires, whose own versions are not its, the usual one.
    pub fn version(self) -> HttpVersion {
        match self {
            Self::Http { version } => version,
            _ => HttpVersion::default(),
        }
    }

    /// Requests at once on each connection.
    pub fn streams(self) -> usize {
        match self {
            Self::Http2 { streams } => streams,
            _ => 1,
        }
    }

    /// All that the engine speaks, by the names of the specification.
    pub const NAMES: [&'static str; 5] = ["http", "fastcgi", "uwsgi", "scgi", "http2"];

    /// The wire with this name and no settings; null when the engine does not speak it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Self::default()),
            "fastcgi" => Some(Self::Fastcgi {}),
            "uwsgi" => Some(Self::Uwsgi { modifier1: 0 }),
            "scgi" => Some(Self::Scgi {}),
            "http2" => Some(Self::Http2 { streams: 1 }),
            _ => None,
        }
    }
}

// `sun_path` has 108 bytes, the last of them 0 (unix(7)).
pub(super) const LONGEST_SOCKET_PATH_BYTES: usize = 107;

impl Target {
    /// The server's name and port, as a gateway would pass them: a Unix socket has neither.
    pub fn server(&self) -> (String, u16) {
        match self.socket {
            Socket::Unix => ("localhost".to_owned(), 80),
            Socket::Tcp if self.host.contains(':') => (format!("[{}]", self.host), self.port),
            Socket::Tcp => (self.host.clone(), self.port),
        }
    }

    /// Its addresses, to which connections go in turn.
    pub fn hosts(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.host).chain(&self.others)
    }

    /// The `Host` of the requests.
    pub fn authority(&self) -> String {
        let usual = if self.tls.is_some() { 443 } else { 80 };
        if let Some(behind) = &self.proxy {
            let authority = behind.authority.as_str();
            return authority
                .strip_suffix(&format!(":{usual}"))
                .unwrap_or(authority)
                .to_owned();
        }
        match self.server() {
            (host, port) if port == usual || self.socket == Socket::Unix => host,
            (host, port) => format!("{host}:{port}"),
        }
    }

    /// A request as it is sent here: through a proxy that sees it, for the whole URL.
    pub fn asked(&self, request: &Request) -> Request {
        match &self.proxy {
            Some(behind) if self.tls.is_none() => behind.asked(request),
            _ => request.clone(),
        }
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(tls) = &self.tls {
            let wire = format!("{:?}", self.wire);
            let is_http = matches!(self.wire, Wire::Http { .. } | Wire::Http2 { .. });
            require(is_http, "target.wire", wire, "http or http2 with TLS")?;
            let is_pair = tls.certificate_file.is_some() == tls.key_file.is_some();
            let field = "target.tls.key_file";
            require(is_pair, field, "", "a certificate and its key, or neither")?;
            tls.check_ciphers()?;
        }
        if let Some(behind) = &self.proxy {
            behind.check(self)?;
        }
        let streams = self.wire.streams();
        let fits = (1..=MOST_STREAMS).contains(&streams);
        require(fits, "target.wire.streams", streams, "1 to 10,000")?;
        match self.socket {
            Socket::Tcp => require(self.port != 0, "target.port", self.port, "1 to 65535"),
            Socket::Unix => {
                require(self.port == 0, "target.port", self.port, "0 with a Unix socket")?;
                let fits = self.host.starts_with('/')
                    && self.host.len() <= LONGEST_SOCKET_PATH_BYTES
                    && !self.host.contains('\0');
                require(
                    fits,
                    "target.host",
                    &self.host,
                    "an absolute path of at most 107 bytes",
                )
            }
        }
    }
}

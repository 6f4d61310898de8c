//! The specification of a run. The JSON form is public: `docs/reference/engine-wire.md`.

use crate::error::Error;
use crate::protocol::typed;
use crate::schedule::Share;
use crate::tls::{is_of_tls12, CIPHERS};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::{Deserialize, Serialize};

mod groups;

pub use groups::{dealt, Group};

/// Everything that a run needs to know. Times are in nanoseconds.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Where the load goes.
    pub target: Target,
    /// What is sent, when, for how long.
    pub workload: Workload,
    /// Worker threads; never more than connections.
    pub threads: usize,
    /// The CPUs that workers are pinned to, round robin; null: not pinned.
    pub cpus: Option<Vec<usize>>,
    /// How workers wait for due times.
    pub pacing: Pacing,
    /// What a generator with so many threads and connections can reach on this machine, in requests per second; null: not known.
    #[serde(default)]
    pub ceiling_per_s: Option<f64>,
    /// Which part of the load this generator has; null: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Part>,
}

/// One of several generators that have one load together: request k is of generator k mod `of`, and connections and a number of
/// requests are dealt out likewise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// This generator's number, from 0.
    pub index: u64,
    /// How many there are.
    pub of: u64,
    /// When the schedule starts for all of them, by this machine's CLOCK_MONOTONIC; null: when it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
}

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
    fn asked(&self, request: &Request) -> Request {
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

    fn check(&self, target: &Target) -> Result<(), Error> {
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
    /// The cipher suites that are offered, in this order, by the names of [`CIPHERS`](crate::tls::CIPHERS); none: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
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
    fn check_ciphers(&self) -> Result<(), Error> {
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
    fn is_usual(&self) -> bool {
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
const LONGEST_SOCKET_PATH_BYTES: usize = 107;

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

/// What is sent, when, for how long.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What decides when the next request is sent: the last reply, or a schedule.
    #[serde(rename = "loop")]
    pub shape: Loop,
    /// What ends the window.
    pub stop: Stop,
    /// The same load before the window opens.
    pub warmup_ns: u64,
    /// The time-out of a request.
    pub timeout_ns: u64,
    /// The longest that a request waits for a connection; `timeout_ns` then counts from when it is sent. Null: `timeout_ns` is for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout_ns: Option<u64>,
    /// The longest wait for replies after the window.
    pub grace_ns: u64,
    /// What is sent.
    pub request: Request,
    /// Which reply is a success.
    pub expect: Expectation,
    /// The paths that requests ask for, where these are several; null: all ask for that of `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// A connection ends after so many requests; null: not for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_requests: Option<u64>,
    /// A connection ends with the first reply after so long; null: not for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_age_ns: Option<u64>,
    /// How many redirects in a row a request follows, on the same server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follow: u32,
    /// Who sends the requests; none: all users are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

// What browsers stop at is 20.
const MOST_HOPS: u32 = 100;

/// Requests that differ in their path: all else is that of the one `request`, whose path is the first of these.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Of the order in which paths are asked for.
    pub seed: u64,
    /// At least two, no two of them equal.
    pub paths: Vec<MixPath>,
    /// Where the requests are; `paths` are then the rows that they are counted in. Null: they differ in their path alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<RequestFile>,
}

/// A compiled file of requests, which is given beside the specification.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFile {
    /// What it was made of, in words.
    pub name: String,
    /// Of all its bytes.
    pub sha256: String,
    /// How many rows it has.
    pub requests: u64,
    /// In which order they are sent.
    pub order: Order,
}

/// The order in which the rows of a file are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As they stand, and from the beginning again.
    InOrder,
    /// Each once in an order that the seed sets, and in that order again.
    Shuffled,
    /// By their weights, as the paths of a mix.
    Weighted,
}

/// A path of a mix.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MixPath {
    /// As that of a request.
    pub path: String,
    /// Its share of all requests is this, divided by the sum of all weights.
    pub weight: f64,
}

/// The loop of a load.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loop {
    /// Each connection sends its next request when the last reply has arrived.
    Closed {
        /// Exactly so many.
        connections: usize,
        /// How many over the window; none: always `connections`, which else is the most of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<ConnectionStage>,
    },
    /// Requests are due by a schedule, whatever the server does.
    Open {
        /// Requests per second.
        rate_per_s: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// Of Poisson arrivals.
        seed: u64,
        /// At most so many, opened on demand; null: as many as can be outstanding, if this machine allows it.
        #[serde(default)]
        connections: Option<usize>,
        /// The rate over the window; none: always `rate_per_s`, which else is the highest of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<RateStage>,
    },
}

/// A part of the window in which the rate stays, or changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateStage {
    /// How long it is.
    pub duration_ns: u64,
    /// Requests per second at its beginning.
    pub from_per_s: f64,
    /// And at its end.
    pub to_per_s: f64,
}

/// A part of the window in which the number of connections stays, or changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionStage {
    /// How long it is.
    pub duration_ns: u64,
    /// How many there are at its beginning.
    pub from_connections: usize,
    /// And at its end.
    pub to_connections: usize,
}

// Each stage has latencies of its own, of 270 KB in each worker.
const MAX_STAGES: usize = 100;

impl Loop {
    /// Connections as asked for: exactly (closed) or at most (open).
    pub fn connections(&self) -> Option<usize> {
        match self {
            Self::Closed { connections, .. } => Some(*connections),
            Self::Open { connections, .. } => *connections,
        }
    }

    /// How long each of its stages is; none where the load does not change.
    pub fn stage_durations_ns(&self) -> Vec<u64> {
        match self {
            Self::Open { stages, .. } => stages.iter().map(|stage| stage.duration_ns).collect(),
            Self::Closed { stages, .. } => stages.iter().map(|stage| stage.duration_ns).collect(),
        }
    }

    /// Whether this is an open loop.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

/// How the arrivals of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As those of independent users.
    Poisson,
}

/// What ends the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// Time.
    Duration {
        /// The window's length.
        duration_ns: u64,
    },
    /// A count.
    Requests {
        /// Exactly so many in the window.
        requests: u64,
    },
}

/// One request, sent again and again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// Begins with `/`; may hold a query.
    pub path: String,
    /// Sent as they stand.
    pub headers: Vec<(String, String)>,
    /// Base64, or null.
    pub body: Option<String>,
    /// False: a connection for each request.
    pub keep_alive: bool,
}

/// Which reply is a success. What is empty or null checks nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Null, and no `statuses`: 200 to 399.
    pub status: Option<u16>,
    /// Ranges of statuses, both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<(u16, u16)>,
    /// Fields of the head, each with its value; null: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, Option<String>)>,
    /// Base64, or null: any.
    pub body: Option<String>,
    /// Texts, each base64, that the body contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body_contains: Vec<String>,
    /// Hexadecimal, or null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
}

impl Expectation {
    pub(crate) fn decoded_body(&self) -> Result<Option<Vec<u8>>, Error> {
        decoded("workload.expect.body", self.body.as_deref())
    }

    pub(crate) fn decoded_needles(&self) -> Result<Vec<Vec<u8>>, Error> {
        let field = "workload.expect.body_contains";
        let needles: Result<Vec<_>, Error> = self
            .body_contains
            .iter()
            .map(|text| Ok(decoded(field, Some(text))?.unwrap_or_default()))
            .collect();
        let needles = needles?;
        let fits = !needles.iter().any(Vec::is_empty);
        require(fits, field, "", "texts of at least one byte")?;
        Ok(needles)
    }

    pub(crate) fn decoded_sha256(&self) -> Result<Option<[u8; 32]>, Error> {
        let wrong = |text: &str| {
            let field = "workload.expect.body_sha256";
            Error::InvalidSpec(format!("`{field}` is `{text}`; expected 64 hexadecimal digits"))
        };
        self.body_sha256
            .as_deref()
            .map(|text| sha256_of(text).ok_or_else(|| wrong(text)))
            .transpose()
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    fn check(&self) -> Result<(), Error> {
        for &(low, high) in &self.statuses {
            let fits = (100..=999).contains(&low) && (low..=999).contains(&high);
            let field = "workload.expect.statuses";
            require(fits, field, format!("{low}, {high}"), "ranges within 100 to 999")?;
        }
        for (name, value) in &self.headers {
            let fits = is_token(name) && value.as_ref().is_none_or(|value| is_on_one_line(value));
            let shown = format!("{name}: {}", value.as_deref().unwrap_or_default());
            require(
                fits,
                "workload.expect.headers",
                shown,
                "a name and a value on one line",
            )?;
        }
        self.decoded_body()?;
        self.decoded_needles()?;
        self.decoded_sha256()?;
        Ok(())
    }
}

fn sha256_of(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    Some(std::array::from_fn(|place| {
        (digits[2 * place] << 4) | digits[2 * place + 1]
    }))
}

pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

pub(crate) fn is_on_one_line(value: &str) -> bool {
    !value.contains(['\r', '\n', '\0'])
}

/// How due times are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Sleep, then spin.
    Precise,
    /// Sleep only.
    Economical,
}

const HOUR_NS: u64 = 3_600_000_000_000;
// A due time is a multiple of 1 ns; beyond this rate gaps would vanish. Far above what a machine can send.
const MAX_RATE_PER_S: f64 = 1e9;

impl Spec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let spec: Self = serde_json::from_str(text)
            .map_err(|error| Error::InvalidSpec(format!("the specification: {error}")))?;
        spec.check()?;
        Ok(spec)
    }

    /// The request's body, decoded.
    pub fn request_body(&self) -> Result<Option<Vec<u8>>, Error> {
        self.workload.request.decoded_body()
    }

    /// Which of all generators this is.
    pub fn part(&self) -> Share {
        let Part { index, of, .. } = self.share.unwrap_or(Part::WHOLE);
        Share {
            worker: index,
            workers: of,
        }
    }

    /// The connections of this generator, as asked for: exactly (closed) or at most (open).
    pub fn own_connections(&self) -> Option<usize> {
        let whole = self.workload.shape.connections()?;
        Some(self.part().portion(whole as u64) as usize)
    }

    /// The requests of this generator, where a count ends the window.
    pub fn own_requests(&self) -> Option<u64> {
        match self.workload.stop {
            Stop::Requests { requests } => Some(self.part().portion(requests)),
            Stop::Duration { .. } => None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let load = &self.workload;
        self.check_share()?;
        require(self.threads >= 1, "threads", self.threads, "at least 1")?;
        self.target.check()?;
        require(
            self.cpus.as_ref().is_none_or(|cpus| !cpus.is_empty()),
            "cpus",
            "[]",
            "null or at least one CPU",
        )?;
        require(
            load.shape.connections() != Some(0),
            "workload.loop.connections",
            0,
            "at least 1",
        )?;
        if let Loop::Open { rate_per_s, .. } = load.shape {
            let fits = rate_per_s > 0.0 && rate_per_s <= MAX_RATE_PER_S;
            require(
                fits,
                "workload.loop.rate_per_s",
                rate_per_s,
                "more than 0, at most 1e9",
            )?;
        }
        load.check_stages()?;
        match load.stop {
            Stop::Duration { duration_ns } => require_time("workload.stop.duration_ns", duration_ns)?,
            Stop::Requests { requests } => {
                require(requests >= 1, "workload.stop.requests", requests, "at least 1")?
            }
        }
        require_time("workload.timeout_ns", load.timeout_ns)?;
        if let Some(connect_ns) = load.connect_timeout_ns {
            require_time("workload.connect_timeout_ns", connect_ns)?;
        }
        require(
            load.warmup_ns <= 24 * HOUR_NS,
            "workload.warmup_ns",
            load.warmup_ns,
            "at most a day",
        )?;
        require(
            load.grace_ns <= HOUR_NS,
            "workload.grace_ns",
            load.grace_ns,
            "at most an hour",
        )?;
        if let Some(ceiling_per_s) = self.ceiling_per_s {
            require(
                ceiling_per_s > 0.0,
                "ceiling_per_s",
                ceiling_per_s,
                "null or more than 0",
            )?;
        }
        load.request.check()?;
        let body_bytes = self.request_body()?.map_or(0, |body| body.len());
        typed::check(&load.request, body_bytes, self.target.wire)?;
        let is_kept = load.request.keep_alive || !matches!(self.target.wire, Wire::Http2 { .. });
        let field = "workload.request.keep_alive";
        require(is_kept, field, false, "true with HTTP/2")?;
        if let Some(mix) = &load.mix {
            mix.check(&load.request)?;
        }
        self.check_connections()?;
        self.check_groups()?;
        load.expect.check()
    }

    /// Where a connection ends, and where a request goes on.
    fn check_connections(&self) -> Result<(), Error> {
        let (load, wire) = (&self.workload, &self.target.wire);
        let is_alone = !matches!(wire, Wire::Http2 { .. });
        let has_limit = load.connection_requests.is_some() || load.connection_age_ns.is_some();
        let closes = load.request.keep_alive && !typed::keeps_alive(&load.request, *wire);
        let fits = !has_limit || !closes || load.request_file().is_some();
        let expected = "none of that name: a limit of connections needs some that are kept";
        require(fits, "workload.request.headers", "Connection: close", expected)?;
        if let Some(requests) = load.connection_requests {
            let fits = requests >= 1 && is_alone;
            let field = "workload.connection_requests";
            require(fits, field, requests, "at least 1, and not HTTP/2")?;
        }
        if let Some(age_ns) = load.connection_age_ns {
            let field = "workload.connection_age_ns";
            require_time(field, age_ns)?;
            require(is_alone, field, age_ns, "none with HTTP/2")?;
        }
        let fits = load.follow == 0 || (load.follow <= MOST_HOPS && matches!(wire, Wire::Http { .. }));
        require(fits, "workload.follow", load.follow, "at most 100, and HTTP/1")
    }

    /// Each generator has something to do.
    fn check_share(&self) -> Result<(), Error> {
        let Some(Part { index, of, .. }) = self.share else {
            return Ok(());
        };
        require((1..=MAX_GENERATORS).contains(&of), "share.of", of, "1 to 100,000")?;
        require(index < of, "share.index", index, "less than `share.of`")?;
        let connections = self.own_connections() != Some(0);
        require(
            connections,
            "share.of",
            of,
            "a connection for each, `workload.loop.connections`",
        )?;
        let requests = self.own_requests() != Some(0);
        require(
            requests,
            "share.of",
            of,
            "a request for each, `workload.stop.requests`",
        )
    }
}

// Their product with the threads of a machine stays far within 64 bits.
const MAX_GENERATORS: u64 = 100_000;

impl Part {
    const WHOLE: Self = Self {
        index: 0,
        of: 1,
        start_ns: None,
    };
}

const STAGES: &str = "workload.loop.stages";
const MIX: &str = "workload.mix";
// Each path has latencies of its own.
const MIX_PATHS: std::ops::RangeInclusive<usize> = 2..=100;
// So that no share is too small to ever be drawn.
const MIX_WEIGHTS: std::ops::RangeInclusive<f64> = 1e-4..=1e8;

impl Mix {
    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    fn check(&self, request: &Request) -> Result<(), Error> {
        if self.file.is_some() {
            return self.check_rows();
        }
        let (count, field) = (self.paths.len(), format!("{MIX}.paths"));
        require(MIX_PATHS.contains(&count), &field, count, "2 to 100 paths")?;
        for (place, one) in self.paths.iter().enumerate() {
            check_path(&format!("{field}.path"), &one.path)?;
            let is_new = !self.paths[..place].iter().any(|other| other.path == one.path);
            require(is_new, &format!("{field}.path"), &one.path, "each path once")?;
            let fits = MIX_WEIGHTS.contains(&one.weight);
            require(
                fits,
                &format!("{field}.weight"),
                one.weight,
                "0.0001 to 100000000",
            )?;
        }
        let is_first = request.path == self.paths[0].path;
        let expected = "the first path of the mix";
        require(is_first, "workload.request.path", &request.path, expected)
    }

    /// Of a file, whose requests may be counted in one row.
    fn check_rows(&self) -> Result<(), Error> {
        let (count, field) = (self.paths.len(), format!("{MIX}.paths"));
        require((1..=*MIX_PATHS.end()).contains(&count), &field, count, "1 to 100")?;
        for one in &self.paths {
            let fits = !one.path.is_empty() && is_on_one_line(&one.path);
            require(fits, &format!("{field}.path"), &one.path, "a name on one line")?;
            let fits = one.weight > 0.0 && one.weight.is_finite();
            require(fits, &format!("{field}.weight"), one.weight, "more than 0")?;
        }
        Ok(())
    }
}

impl Workload {
    /// The file that has the requests; null: they are in the specification.
    pub fn request_file(&self) -> Option<&RequestFile> {
        self.mix.as_ref().and_then(|mix| mix.file.as_ref())
    }

    /// The requests that are sent: one of each path.
    pub fn requests(&self) -> Vec<Request> {
        let asking = |path: &str| Request {
            path: path.to_owned(),
            ..self.request.clone()
        };
        match &self.mix {
            None => vec![self.request.clone()],
            Some(mix) => mix.paths.iter().map(|one| asking(&one.path)).collect(),
        }
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    fn check_stages(&self) -> Result<(), Error> {
        let durations_ns = self.shape.stage_durations_ns();
        let Some(whole_ns) = durations_ns.iter().copied().reduce(u64::saturating_add) else {
            return Ok(());
        };
        let count = durations_ns.len();
        require(count <= MAX_STAGES, STAGES, count, "at most 100 stages")?;
        for duration_ns in durations_ns {
            require_time(&format!("{STAGES}.duration_ns"), duration_ns)?;
        }
        let whole = Stop::Duration {
            duration_ns: whole_ns,
        };
        let stop = format!("{:?}", self.stop);
        require(
            self.stop == whole,
            "workload.stop",
            stop,
            "the duration of all stages",
        )?;
        match &self.shape {
            Loop::Open {
                rate_per_s, stages, ..
            } => check_rates(*rate_per_s, stages),
            Loop::Closed { connections, stages } => check_counts(*connections, stages),
        }
    }
}

fn check_rates(rate_per_s: f64, stages: &[RateStage]) -> Result<(), Error> {
    let rates: Vec<f64> = stages
        .iter()
        .flat_map(|stage| [stage.from_per_s, stage.to_per_s])
        .collect();
    for &rate in &rates {
        let fits = (0.0..=MAX_RATE_PER_S).contains(&rate);
        require(fits, STAGES, rate, "rates from 0 to 1e9")?;
    }
    let is_highest = rate_per_s == rates.into_iter().fold(0.0, f64::max);
    let name = "workload.loop.rate_per_s";
    require(is_highest, name, rate_per_s, "the highest rate of the stages")
}

fn check_counts(connections: usize, stages: &[ConnectionStage]) -> Result<(), Error> {
    let ends = stages
        .iter()
        .flat_map(|stage| [stage.from_connections, stage.to_connections]);
    let is_most = Some(connections) == ends.max();
    let name = "workload.loop.connections";
    require(is_most, name, connections, "the most connections of the stages")
}

impl Request {
    /// The body, decoded.
    pub(crate) fn decoded_body(&self) -> Result<Option<Vec<u8>>, Error> {
        decoded("workload.request.body", self.body.as_deref())
    }

    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_method(&self.method)?;
        check_path("workload.request.path", &self.path)?;
        for (name, value) in &self.headers {
            let fits = is_token(name) && is_on_one_line(value);
            require(
                fits,
                "workload.request.headers",
                format!("{name}: {value}"),
                "a name and a value on one line",
            )?;
        }
        self.decoded_body()?;
        Ok(())
    }
}

pub(crate) fn check_method(method: &str) -> Result<(), Error> {
    let field = "workload.request.method";
    require(is_token(method), field, method, "a method such as GET")?;
    let expected = "another: that asks for a tunnel, not for a path";
    require(method != "CONNECT", field, method, expected)
}

pub(crate) fn check_path(field: &str, path: &str) -> Result<(), Error> {
    let fits = path.starts_with('/') && path.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    require(fits, field, path, "a path that starts with / and has no blanks")
}

fn require(holds: bool, field: &str, value: impl std::fmt::Display, expected: &str) -> Result<(), Error> {
    holds
        .then_some(())
        .ok_or_else(|| Error::InvalidSpec(format!("`{field}` is `{value}`; expected {expected}")))
}

fn require_time(field: &str, value: u64) -> Result<(), Error> {
    require(
        (1..=24 * HOUR_NS).contains(&value),
        field,
        value,
        "1 ns to a day, in nanoseconds",
    )
}

fn decoded(field: &str, text: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    text.map(|text| {
        STANDARD
            .decode(text)
            .map_err(|error| Error::InvalidSpec(format!("`{field}` is not base64: {error}")))
    })
    .transpose()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLAIN: &str = r#"{"target": {"host": "127.0.0.1", "port": 8000}, "workload": {
        "loop": {"kind": "closed", "connections": 10}, "stop": {"kind": "duration", "duration_ns": 1000},
        "warmup_ns": 0, "timeout_ns": 1000, "grace_ns": 0,
        "request": {"method": "GET", "path": "/", "headers": [["a", "b"]], "body": null, "keep_alive": true},
        "expect": {"status": null, "body": null}}, "threads": 1, "cpus": null, "pacing": "precise"}"#;

    fn message(find: &str, replace: &str) -> String {
        assert!(PLAIN.contains(find), "{find}");
        Spec::from_json(&PLAIN.replace(find, replace))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_plain_one_is_read_and_written_back() {
        let spec = Spec::from_json(PLAIN).unwrap();
        let again = Spec::from_json(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again.workload.shape.connections(), Some(10));
    }

    #[test]
    fn every_wire_has_a_name_and_what_is_not_said_is_http_over_tcp() {
        for name in Wire::NAMES {
            let tagged = serde_json::json!({ "kind": name });
            assert_eq!(serde_json::from_value::<Wire>(tagged).ok(), Wire::named(name));
        }
        let target = Spec::from_json(PLAIN).unwrap().target;
        assert_eq!((target.socket, target.wire), (Socket::Tcp, Wire::default()));
        assert_eq!(Wire::named("gopher"), None);
    }

    #[test]
    fn http_1_0_is_written_back_and_http_1_1_goes_without_saying() {
        for (wire, written) in [
            (
                r#"{"kind":"http","version":"1.0"}"#,
                r#"{"kind":"http","version":"1.0"}"#,
            ),
            (r#"{"kind":"http","version":"1.1"}"#, r#"{"kind":"http"}"#),
        ] {
            let read: Wire = serde_json::from_str(wire).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
    }

    #[test]
    fn http_1_0_has_no_transfer_codings() {
        let old = PLAIN.replace(
            "\"port\": 8000",
            "\"port\": 8000, \"wire\": {\"kind\": \"http\", \"version\": \"1.0\"}",
        );
        assert!(Spec::from_json(&old).is_ok());
        let coded = old.replace("\"a\", \"b\"", "\"transfer-Encoding\", \"chunked\"");
        let error = Spec::from_json(&coded).unwrap_err().to_string();
        assert!(
            error.contains("`transfer-encoding: chunked`; expected none of that name"),
            "{error}"
        );
        assert!(Spec::from_json(&coded.replace("1.0", "1.1")).is_ok());
    }

    #[test]
    fn connections_that_a_typed_header_closes_have_no_other_limit() {
        let closing = PLAIN.replace("\"a\", \"b\"", "\"Connection\", \"x, Close\"");
        assert!(Spec::from_json(&closing).is_ok());
        for limit in ["\"connection_requests\": 9", "\"connection_age_ns\": 9"] {
            let limited = closing.replace("\"timeout_ns\"", &format!("{limit}, \"timeout_ns\""));
            let error = Spec::from_json(&limited).unwrap_err().to_string();
            assert!(error.contains("needs some that are kept"), "{limited}: {error}");
            let over_fastcgi = limited.replace(
                "\"port\": 8000",
                "\"port\": 8000, \"wire\": {\"kind\": \"fastcgi\"}",
            );
            assert!(Spec::from_json(&over_fastcgi).is_ok(), "{over_fastcgi}");
        }
    }

    #[test]
    fn a_unix_socket_is_an_absolute_path_without_a_port() {
        let target = |host: &str, port| Target {
            host: host.to_owned(),
            others: Vec::new(),
            port,
            socket: Socket::Unix,
            wire: Wire::default(),
            tls: None,
            proxy: None,
        };
        let fits = target("/run/s", 0);
        assert!(fits.check().is_ok());
        assert_eq!(fits.authority(), "localhost");
        let long = format!("/{}", "x".repeat(LONGEST_SOCKET_PATH_BYTES));
        for (host, port) in [("/run/s", 80), ("s", 0), (&long, 0)] {
            assert!(target(host, port).check().is_err(), "{host} {port}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_was_expected() {
        let cases = [
            (
                "\"connections\": 10",
                "\"connections\": 0",
                "`workload.loop.connections` is `0`; expected at least 1",
            ),
            (
                "\"threads\": 1",
                "\"threads\": 0",
                "`threads` is `0`; expected at least 1",
            ),
            (
                "\"threads\": 1",
                "\"threads\": 1, \"driver\": \"io_uring\"",
                "unknown field `driver`",
            ),
            (
                "\"path\": \"/\"",
                "\"path\": \"x\"",
                "`workload.request.path` is `x`; expected a path that starts with /",
            ),
            (
                "\"GET\"",
                "\"CONNECT\"",
                "`workload.request.method` is `CONNECT`; expected another",
            ),
            (
                "[\"a\", \"b\"]",
                "[\"a\", \"b\\r\\nc: d\"]",
                "expected a name and a value on one line",
            ),
            (
                "\"connections\": 10",
                "\"connections\": 10, \"stages\": [{\"duration_ns\": 1000, \"from_connections\": 1, \"to_connections\": 9}]",
                "`workload.loop.connections` is `10`; expected the most connections of the stages",
            ),
            (
                "\"connections\": 10",
                "\"connections\": 9, \"stages\": [{\"duration_ns\": 999, \"from_connections\": 1, \"to_connections\": 9}]",
                "expected the duration of all stages",
            ),
            (
                "\"connections\": 10",
                "\"connections\": 9, \"stages\": [{\"duration_ns\": 1000, \"from_per_s\": 1, \"to_per_s\": 9}]",
                "unknown field `from_per_s`",
            ),
            (
                "\"body\": null}}",
                "\"body\": \"%\"}}",
                "`workload.expect.body` is not base64",
            ),
            (
                "\"body\": null}}",
                "\"body\": null, \"statuses\": [[400, 300]]}}",
                "`workload.expect.statuses` is `400, 300`; expected ranges within 100 to 999",
            ),
            (
                "\"body\": null}}",
                "\"body\": null, \"body_sha256\": \"beef\"}}",
                "`workload.expect.body_sha256` is `beef`; expected 64 hexadecimal digits",
            ),
            (
                "\"body\": null}}",
                "\"body\": null, \"body_contains\": [\"\"]}}",
                "expected texts of at least one byte",
            ),
            (
                "\"port\": 8000",
                "\"port\": 8000, \"wire\": {\"kind\": \"http\", \"modifier1\": 5}",
                "unknown field `modifier1`",
            ),
            (
                "\"port\": 8000}, \"workload\": {",
                "\"port\": 8000, \"wire\": {\"kind\": \"http\", \"version\": \"2\"}}, \"workload\": {",
                "unknown variant `2`, expected `1.0` or `1.1`",
            ),
            (
                "\"port\": 8000",
                "\"port\": 8000, \"wire\": {\"kind\": \"scgi\", \"version\": \"1.0\"}",
                "unknown field `version`",
            ),
            (
                "\"port\": 8000",
                "\"port\": 8000, \"wire\": {\"kind\": \"http2\", \"streams\": 0}",
                "`target.wire.streams` is `0`; expected 1 to 10,000",
            ),
            (
                "\"port\": 8000",
                "\"port\": 8000, \"socket\": \"unix\"",
                "`target.port` is `8000`; expected 0 with a Unix socket",
            ),
            (
                "\"body\": null}}",
                "\"body\": null}, \"mix\": {\"seed\": 1, \"paths\": [{\"path\": \"/\", \"weight\": 1}]}}",
                "`workload.mix.paths` is `1`; expected 2 to 100 paths",
            ),
            (
                "\"body\": null}}",
                "\"body\": null}, \"mix\": {\"seed\": 1, \"paths\": [{\"path\": \"/\", \"weight\": 1}, {\"path\": \"/a\", \"weight\": 0}]}}",
                "`workload.mix.paths.weight` is `0`; expected 0.0001 to 100000000",
            ),
            (
                "\"body\": null}}",
                "\"body\": null}, \"mix\": {\"seed\": 1, \"paths\": [{\"path\": \"/\", \"weight\": 1}, {\"path\": \"/\", \"weight\": 2}]}}",
                "`workload.mix.paths.path` is `/`; expected each path once",
            ),
            (
                "\"body\": null}}",
                "\"body\": null}, \"mix\": {\"seed\": 1, \"paths\": [{\"path\": \"/\", \"weight\": 1}, {\"path\": \"/a b\", \"weight\": 2}]}}",
                "`workload.mix.paths.path` is `/a b`; expected a path that starts with / and has no blanks",
            ),
            (
                "\"body\": null}}",
                "\"body\": null}, \"mix\": {\"seed\": 1, \"paths\": [{\"path\": \"/a\", \"weight\": 1}, {\"path\": \"/\", \"weight\": 2}]}}",
                "`workload.request.path` is `/`; expected the first path of the mix",
            ),
            (
                "\"pacing\": \"precise\"",
                "\"pacing\": \"precise\", \"share\": {\"index\": 3, \"of\": 3}",
                "`share.index` is `3`; expected less than `share.of`",
            ),
            (
                "\"pacing\": \"precise\"",
                "\"pacing\": \"precise\", \"share\": {\"index\": 10, \"of\": 11}",
                "`share.of` is `11`; expected a connection for each",
            ),
            (
                "\"pacing\": \"precise\"",
                "\"pacing\": \"precise\", \"more\": 1",
                "unknown field `more`",
            ),
        ];
        for (find, replace, expected) in cases {
            assert!(
                message(find, replace).contains(expected),
                "{}",
                message(find, replace)
            );
        }
    }
}

//! The configuration of a reference server.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::delay::Delay;
use crate::error::Error;

/// The behaviour of a server. Missing fields have their default, unknown ones are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen on: an IPv4 or IPv6 literal, or `localhost` (127.0.0.1).
    pub host: String,
    /// Whether `host` may be an address that other machines reach.
    pub allow_non_loopback: bool,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The length of the listen queue; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// Threads, each with its own event loop. Connections are dealt out to them in turn.
    pub threads: usize,
    /// Whether each further thread has a table of descriptors of its own, so that the limit of descriptors holds for each of
    /// them alone. Each has a listener then, and the kernel deals connections out by their addresses, not in turn.
    pub own_descriptors: bool,
    /// The CPUs that threads are pinned to, round robin; `None`: not pinned.
    pub cpus: Option<Vec<usize>>,
    /// The status of ordinary replies. 204 and 304 have no body.
    pub status: u16,
    /// The length of the body; its content is [`crate::deterministic_body`].
    pub body_bytes: u64,
    /// The body as text, instead of `body_bytes`.
    pub body: Option<String>,
    /// How the client finds the end of the body. A chunked reply to HTTP/1.0 is close-delimited.
    pub framing: Framing,
    /// The length of a chunk (the last may be shorter).
    pub chunk_bytes: u64,
    /// Whether a chunked body ends with a trailer field.
    pub trailers: bool,
    /// Hand replies to the kernel in pieces of this many bytes, one `send` each; `None`: whole.
    pub write_bytes: Option<u64>,
    /// The time between two pieces.
    pub write_gap_ns: u64,
    /// The time between a request and its reply.
    pub delay: Delay,
    /// The CPU time that a thread works on each request, before its reply.
    pub work_ns: u64,
    /// A time in which the whole server stands still.
    pub stall: Option<Stall>,
    /// Every n-th request of the server gets `error_status`.
    pub error_every: Option<u64>,
    /// The status of those replies; the body is the ordinary one.
    pub error_status: u16,
    /// Every n-th request of the server is never answered. Its connection stays open, and what follows on it is
    /// received but not read as requests.
    pub silent_every: Option<u64>,
    /// A connection is closed after this many replies.
    pub close_after: Option<u64>,
    /// Whether the last reply before a close says `Connection: close`.
    pub close_header: bool,
    /// The n-th reply of a connection is cut by a RST after the head and half of the body (of a body longer
    /// than the socket buffers, the client may see less).
    pub reset_after: Option<u64>,
    /// The n-th reply of a connection is cut by a FIN after the head and half of the body.
    pub short_after: Option<u64>,
    /// Whether connections stay open; false: as `close_after` 1.
    pub keep_alive: bool,
    /// Whether a `103 Early Hints` goes before each reply (not to HTTP/1.0).
    pub informational: bool,
    /// What connections are secured with; `None`: nothing.
    pub tls: Option<Tls>,
}

/// TLS of a server. Texts are PEM. Missing fields have their default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// The server's certificate, with its chain.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The authority of the certificates that clients must have; `None`: they need none.
    pub client_ca: Option<String>,
    /// The versions that are spoken: `1.2`, `1.3`.
    pub versions: Vec<String>,
    /// The protocols that are offered within; empty: that is not asked.
    pub alpn: Vec<String>,
    /// Whether a session can be taken up again.
    pub resumption: bool,
    /// Whether a close says so before (close_notify).
    pub close_notify: bool,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            certificate: String::new(),
            key: String::new(),
            client_ca: None,
            versions: vec!["1.2".to_owned(), "1.3".to_owned()],
            alpn: vec!["http/1.1".to_owned()],
            resumption: true,
            close_notify: true,
        }
    }
}

/// How the client finds the end of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// By `Content-Length`.
    #[default]
    ContentLength,
    /// By the last chunk.
    Chunked,
    /// By the end of the connection.
    CloseDelimited,
}

/// A time in which nothing is read, accepted or written. The kernel still completes handshakes, as it does for a
/// process stopped by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Its begin, from the server's first request.
    pub after_ns: u64,
    /// Its length.
    pub for_ns: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            host: "127.0.0.1".to_owned(),
            allow_non_loopback: false,
            port: 0,
            backlog: 4096,
            threads: 1,
            own_descriptors: false,
            cpus: None,
            status: 200,
            body_bytes: 128,
            body: None,
            framing: Framing::ContentLength,
            chunk_bytes: 1024,
            trailers: false,
            write_bytes: None,
            write_gap_ns: 0,
            delay: Delay::None,
            work_ns: 0,
            stall: None,
            error_every: None,
            error_status: 503,
            silent_every: None,
            close_after: None,
            close_header: true,
            reset_after: None,
            short_after: None,
            keep_alive: true,
            informational: false,
            tls: None,
        }
    }
}

/// A body larger than this is a mistake in the unit rather than a wish: replies are kept whole in memory.
const MAX_BODY_BYTES: u64 = 1 << 30;

impl Config {
    /// Reads and checks a configuration.
    ///
    /// ```
    /// let error = prony_reference::Config::from_json(r#"{"threads": 0}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "`threads` is 0: expected 1 to 1024");
    /// ```
    pub fn from_json(text: &str) -> Result<Config, Error> {
        let config: Config = serde_json::from_str(text)?;
        config.validate()?;
        Ok(config)
    }

    /// Checks every field; [`crate::Server::start`] does so too.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_place()?;
        self.validate_reply()?;
        self.validate_delay()?;
        self.validate_cuts()?;
        for (field, value) in [
            ("error_every", self.error_every),
            ("silent_every", self.silent_every),
            ("close_after", self.close_after),
            ("write_bytes", self.write_bytes),
        ] {
            check(field, value, value != Some(0), "null or at least 1")?;
        }
        Ok(())
    }

    fn validate_place(&self) -> Result<(), Error> {
        self.address()?;
        check(
            "threads",
            self.threads,
            (1..=1024).contains(&self.threads),
            "1 to 1024",
        )?;
        check(
            "backlog",
            self.backlog,
            (1..=65_535).contains(&self.backlog),
            "1 to 65535",
        )?;
        let no_cpu = self.cpus.as_ref().is_some_and(Vec::is_empty);
        check("cpus", &self.cpus, !no_cpu, "null or a list of at least one CPU")
    }

    fn validate_reply(&self) -> Result<(), Error> {
        let final_status = 200..=599;
        check(
            "status",
            self.status,
            final_status.contains(&self.status),
            "200 to 599",
        )?;
        check(
            "error_status",
            self.error_status,
            final_status.contains(&self.error_status),
            "200 to 599",
        )?;
        check(
            "body_bytes",
            self.body_bytes,
            self.body_bytes <= MAX_BODY_BYTES,
            "at most 1 GiB",
        )?;
        check(
            "chunk_bytes",
            self.chunk_bytes,
            self.chunk_bytes > 0,
            "at least 1",
        )?;
        let trailers_fit = !self.trailers || self.framing == Framing::Chunked;
        check(
            "trailers",
            self.trailers,
            trailers_fit,
            "false, unless `framing` is \"chunked\"",
        )?;
        let gap_fits = self.write_gap_ns == 0 || self.write_bytes.is_some();
        check(
            "write_gap_ns",
            self.write_gap_ns,
            gap_fits,
            "0, unless `write_bytes` is set",
        )
    }

    fn validate_delay(&self) -> Result<(), Error> {
        match &self.delay {
            Delay::Bimodal { high_share, .. } => check(
                "delay.high_share",
                high_share,
                (0.0..=1.0).contains(high_share),
                "0 to 1",
            ),
            Delay::None | Delay::Fixed { .. } | Delay::Exponential { .. } => Ok(()),
        }
    }

    /// A cut that looks like a complete reply to the client would make the counts meaningless.
    fn validate_cuts(&self) -> Result<(), Error> {
        let body_bytes = self
            .body
            .as_ref()
            .map_or(self.body_bytes, |body| body.len() as u64);
        let has_body = body_bytes >= 2 && ![204, 304].contains(&self.status);
        for (field, value) in [
            ("reset_after", self.reset_after),
            ("short_after", self.short_after),
        ] {
            check(field, value, value != Some(0), "null or at least 1")?;
            check(
                field,
                value,
                value.is_none() || has_body,
                "null, unless the replies have a body of 2 bytes",
            )?;
        }
        let visible = self.short_after.is_none() || self.framing != Framing::CloseDelimited;
        check(
            "short_after",
            self.short_after,
            visible,
            "null, because `framing` is \"close_delimited\"",
        )
    }

    /// The address to listen on.
    pub(crate) fn address(&self) -> Result<IpAddr, Error> {
        let parsed = match self.host.as_str() {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            literal => literal.parse().ok(),
        };
        let Some(address) = parsed else {
            return Err(field_error("host", &self.host, "an IPv4 or IPv6 address"));
        };
        let reachable_only_here = address.is_loopback() || self.allow_non_loopback;
        check(
            "host",
            &self.host,
            reachable_only_here,
            "a loopback address, unless `allow_non_loopback` is true",
        )?;
        Ok(address)
    }
}

fn check(
    field: &'static str,
    value: impl Serialize,
    holds: bool,
    expected: &'static str,
) -> Result<(), Error> {
    if holds {
        Ok(())
    } else {
        Err(field_error(field, value, expected))
    }
}

fn field_error(field: &'static str, value: impl Serialize, expected: &'static str) -> Error {
    let value = serde_json::to_string(&value).unwrap_or_else(|_| "unprintable".to_owned());
    Error::Field {
        field,
        value,
        expected,
    }
}

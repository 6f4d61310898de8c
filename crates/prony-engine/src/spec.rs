//! The specification of a run. The JSON form is public: `docs/reference/engine-wire.md`.

use crate::error::Error;
use serde::{Deserialize, Serialize};

mod check;
mod groups;
mod load;
pub mod requests;
mod share;
mod target;
pub(crate) mod typed;

pub(crate) use check::{check_method, check_path, is_on_one_line, is_token};
use check::{require, require_time, HOUR_NS};
pub use groups::{dealt, Group};
pub use load::{
    Arrivals, ConnectionStage, Expectation, Loop, Mix, MixPath, Order, Pacing, RateStage, Request,
    RequestFile, Stop, Workload,
};
use load::{MAX_RATE_PER_S, MOST_HOPS};
pub use share::Share;
pub use target::{Behind, HttpVersion, LeastVersion, Socket, Target, TlsSpec, Wire, CIPHERS};

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::target::LONGEST_SOCKET_PATH_BYTES;
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

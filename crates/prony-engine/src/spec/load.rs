//! The load: its loop, its stop, its requests, and which replies are valid.

use super::check::{check_method, check_path, decoded, is_on_one_line, is_token, require, require_time};
use super::Group;
use crate::error::Error;
use serde::{Deserialize, Serialize};

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
pub(super) const MOST_HOPS: u32 = 100;

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
    pub(super) fn check(&self) -> Result<(), Error> {
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

/// How due times are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Sleep, then spin.
    Precise,
    /// Sleep only.
    Economical,
}

// A due time is a multiple of 1 ns; beyond this rate gaps would vanish. Far above what a machine can send.
pub(super) const MAX_RATE_PER_S: f64 = 1e9;

const STAGES: &str = "workload.loop.stages";
const MIX: &str = "workload.mix";
// Each path has latencies of its own.
const MIX_PATHS: std::ops::RangeInclusive<usize> = 2..=100;

// So that no share is too small to ever be drawn.
const MIX_WEIGHTS: std::ops::RangeInclusive<f64> = 1e-4..=1e8;

impl Mix {
    /// # Errors
    /// [`Error::InvalidSpec`] with the field, its value and what was expected.
    pub(super) fn check(&self, request: &Request) -> Result<(), Error> {
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
    pub(super) fn check_rows(&self) -> Result<(), Error> {
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
    pub(super) fn check_stages(&self) -> Result<(), Error> {
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

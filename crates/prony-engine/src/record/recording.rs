//! The result of a run. The JSON form is public: `docs/reference/engine-wire.md`.

use crate::account::{Account, Class};
use crate::distribution::Distribution;
use crate::error::Error;
use crate::record::generator::Generator;
use crate::socket::handshakes::Handshakes;
use crate::socket::Figures;
use crate::spec::{ConnectionStage, Loop, Pacing, RateStage, Spec, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

mod groups;
mod machines;
mod statuses;
mod streams;

pub use groups::GroupRecord;
pub use statuses::{Status, StatusRecord, Statuses};
pub use streams::StreamTimes;

/// The version of the JSON form.
pub const FORMAT: u32 = 1;

/// The result of a run, with the specification that produced it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs)] // defined in the document named above, field by field
pub struct Recording {
    pub format: u32,
    pub engine: Engine,
    pub spec: Spec,
    #[serde(rename = "loop")]
    pub shape: LoopKind,
    pub window: Window,
    pub account: Account,
    pub completed: Completed,
    pub connections: Connections,
    pub bytes: Bytes,
    pub queue: Queue,
    pub distributions: Distributions,
    /// Null without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Handshakes>,
    /// Null where a connection has one request at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    pub series: Vec<Second>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathRecord>,
    #[serde(default, skip_serializing_if = "Statuses::is_empty")]
    pub statuses: Statuses,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_latencies: Option<RawLatencies>,
    pub generator: Generator,
    pub little: Little,
    /// Where the first valid reply led that was a redirect; null: none was, or it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected_to: Option<String>,
    /// Redirects that were followed, by status, in the window and the drain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub followed: BTreeMap<u16, u64>,
    pub error_samples: Vec<ErrorSample>,
}

/// What decided when the next request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// The last reply.
    Closed,
    /// A schedule.
    Open,
}

/// Which engine it was.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Engine {
    pub name: String,
    pub version: String,
    pub driver: String,
    pub threads: usize,
    pub pacing: Option<Pacing>,
}

/// When it was: monotonic nanoseconds, and the wall clock at the opening.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Window {
    pub open_ns: u64,
    pub close_ns: u64,
    pub drained_ns: u64,
    pub open_unix_ns: u64,
    pub interrupted: bool,
}

/// Requests that ended within the window, those that were carried in too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Completed {
    pub ok: u64,
    pub failed: u64,
}

impl Completed {
    /// Counts one end.
    pub fn count(&mut self, class: Class) {
        match class {
            Class::Ok => self.ok += 1,
            _ => self.failed += 1,
        }
    }
}

/// What happened to connections, in the window and the drain.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Connections {
    pub opened: u64,
    pub reconnects: u64,
    pub connect_failures: u64,
    pub retried: u64,
    /// Connections that brought bytes which no request had asked for.
    pub surplus: u64,
    /// Requests from the first connection to the last, with those of the warm-up, and again those that were sent again.
    pub requests_sent: Option<u64>,
    /// Connections that the stages of a closed loop added, and took away; null where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_away: Option<u64>,
    /// Connections that ended with their requests, or their time; null where none end so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<u64>,
    /// Connections to each address, from the first one on, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_address: BTreeMap<String, u64>,
    pub answered: Answered,
}

/// How evenly the answers were spread over the connections (the engine's slots, whatever sockets they used).
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Answered {
    pub connections: u64,
    pub without_reply: u64,
    pub min: u64,
    pub max: u64,
}

/// Bytes handed to and taken from the kernel for requests of the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
    pub body_received: u64,
}

/// Requests that were due while no connection was idle.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Queue {
    pub waited: u64,
    pub max_length: u64,
    /// The most requests in flight; null in a closed loop.
    pub limit: Option<u64>,
    /// When a request first waited because of it, from the opening of the window; null: never.
    pub bound_at_ns: Option<u64>,
}

/// Latencies; null where the loop has none.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Distributions {
    pub ok_response: Option<Distribution>,
    pub ok_service: Distribution,
    pub carried_in_response: Option<Distribution>,
    pub carried_in_service: Distribution,
    pub censored_response: Option<Distribution>,
    pub censored_service: Distribution,
    pub send_lag: Option<Distribution>,
    /// How late requests were taken from the schedule, whether or not a connection was free for them: for the verdict alone.
    #[serde(skip)]
    pub due_lag: Option<Distribution>,
    /// Of each reply that was taken after a long wait of its worker for the CPU, how long that was: for the verdict alone.
    #[serde(skip)]
    pub late_replies: Distribution,
    pub connect: Distribution,
}

/// Requests that shared connections: the parts of the latencies of those of the window that are `ok`, and what the server said.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Streams {
    pub schedule_wait: Option<Distribution>,
    pub stream_wait: Distribution,
    pub wire: Distribution,
    pub goaways: u64,
    pub refused: u64,
    pub resets: u64,
    /// The fewest at once that the server took on a connection, where that was less than asked for.
    pub limit: Option<u32>,
}

impl Streams {
    /// Of a worker.
    pub fn of(times: &StreamTimes, figures: Figures) -> Self {
        Self {
            schedule_wait: times.schedule_wait.clone(),
            stream_wait: times.stream_wait.clone(),
            wire: times.wire.clone(),
            goaways: figures.goaways,
            refused: figures.refused,
            resets: figures.resets,
            limit: figures.limit,
        }
    }

    fn merge(&mut self, other: &Self) {
        merge_optional(&mut self.schedule_wait, other.schedule_wait.as_ref());
        self.stream_wait.merge(&other.stream_wait);
        self.wire.merge(&other.wire);
        self.goaways += other.goaways;
        self.refused += other.refused;
        self.resets += other.resets;
        self.limit = self.limit.into_iter().chain(other.limit).min();
    }
}

/// One second of the window or the drain.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Second {
    pub second: u64,
    pub scheduled: u64,
    /// Of those due in it (in a closed loop: begun), how many got a valid reply, whenever that was; null: not known.
    pub due_ok: Option<u64>,
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    pub body_bytes: u64,
    pub latency: Distribution,
}

/// What became of the requests that were due (open loop) or begun (closed loop) in one stage; `failed` are those without a latency.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct StageRecord {
    pub begin_ns: u64,
    pub duration_ns: u64,
    #[serde(flatten)]
    pub size: StageSize,
    pub scheduled: u64,
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_service: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_service: Option<Distribution>,
}

/// What a stage asks for, at its beginning and at its end.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum StageSize {
    Rate {
        from_per_s: f64,
        to_per_s: f64,
    },
    Connections {
        from_connections: usize,
        to_connections: usize,
    },
}

impl StageRecord {
    /// Of each stage an empty one.
    pub fn of(shape: &Loop) -> Vec<Self> {
        let sizes: Vec<StageSize> = match shape {
            Loop::Open { stages, .. } => stages.iter().map(StageSize::from).collect(),
            Loop::Closed { stages, .. } => stages.iter().map(StageSize::from).collect(),
        };
        let durations_ns = shape.stage_durations_ns();
        let begins_ns = durations_ns.iter().scan(0, |next_ns, duration_ns| {
            let begin_ns = *next_ns;
            *next_ns += duration_ns;
            Some(begin_ns)
        });
        begins_ns
            .zip(&durations_ns)
            .zip(sizes)
            .map(|((begin_ns, &duration_ns), size)| Self::new(begin_ns, duration_ns, size))
            .collect()
    }

    /// An empty one. A closed loop has no response times, and the service times of an open one are not kept by stage.
    fn new(begin_ns: u64, duration_ns: u64, size: StageSize) -> Self {
        let is_open = matches!(size, StageSize::Rate { .. });
        let empty = |is_kept: bool| is_kept.then(Distribution::default);
        Self {
            begin_ns,
            duration_ns,
            size,
            scheduled: 0,
            sent: 0,
            ok: 0,
            failed: 0,
            ok_response: empty(is_open),
            censored_response: empty(is_open),
            ok_service: empty(!is_open),
            censored_service: empty(!is_open),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        merge_optional(&mut self.ok_response, other.ok_response.as_ref());
        merge_optional(&mut self.censored_response, other.censored_response.as_ref());
        merge_optional(&mut self.ok_service, other.ok_service.as_ref());
        merge_optional(&mut self.censored_service, other.censored_service.as_ref());
    }
}

/// What became of the requests for one path of a mix; all paths together are the whole.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct PathRecord {
    pub path: String,
    pub weight: f64,
    pub account: Account,
    pub bytes: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_in_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_service: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_in_service: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_service: Option<Distribution>,
}

impl PathRecord {
    /// Of each path of a mix an empty one. A closed loop has no response times, and the service times of an open one are not kept by path.
    pub fn of(load: &Workload) -> Vec<Self> {
        let is_open = load.shape.is_open();
        let paths = load.mix.iter().flat_map(|mix| &mix.paths);
        let new = |path: &str, weight| {
            let empty = |is_kept: bool| is_kept.then(Distribution::default);
            Self {
                path: path.to_owned(),
                weight,
                account: Account::default(),
                bytes: Bytes::default(),
                ok_response: empty(is_open),
                carried_in_response: empty(is_open),
                censored_response: empty(is_open),
                ok_service: empty(!is_open),
                carried_in_service: empty(!is_open),
                censored_service: empty(!is_open),
            }
        };
        paths.map(|one| new(&one.path, one.weight)).collect()
    }

    fn merge(&mut self, other: &Self) {
        self.account.merge(&other.account);
        self.bytes.merge(&other.bytes);
        for (own, more) in self.times_mut().into_iter().zip(other.times()) {
            merge_optional(own, more);
        }
    }

    fn times(&self) -> [Option<&Distribution>; 6] {
        [
            self.ok_response.as_ref(),
            self.carried_in_response.as_ref(),
            self.censored_response.as_ref(),
            self.ok_service.as_ref(),
            self.carried_in_service.as_ref(),
            self.censored_service.as_ref(),
        ]
    }

    fn times_mut(&mut self) -> [&mut Option<Distribution>; 6] {
        [
            &mut self.ok_response,
            &mut self.carried_in_response,
            &mut self.censored_response,
            &mut self.ok_service,
            &mut self.carried_in_service,
            &mut self.censored_service,
        ]
    }
}

impl From<&RateStage> for StageSize {
    fn from(stage: &RateStage) -> Self {
        Self::Rate {
            from_per_s: stage.from_per_s,
            to_per_s: stage.to_per_s,
        }
    }
}

impl From<&ConnectionStage> for StageSize {
    fn from(stage: &ConnectionStage) -> Self {
        Self::Connections {
            from_connections: stage.from_connections,
            to_connections: stage.to_connections,
        }
    }
}

/// What came of the file of raw latencies: rows written, and rows lost, because the file could not take them in time or at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct RawLatencies {
    pub rows: u64,
    pub lost: u64,
    pub error: Option<String>,
}

/// Little's law, L = lambda x W, from two independent sides.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Little {
    pub in_flight_integral_ns: u128,
    /// The part of it before the window closed.
    #[serde(default)]
    pub window_integral_ns: Option<u128>,
    pub sojourn_sum_ns: u128,
    pub residual: Option<f64>,
}

/// One failure in full.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct ErrorSample {
    pub class: String,
    pub detail: String,
    pub at_ns: u64,
    /// The first bytes of the reply, base64; null: not one came.
    pub received: Option<String>,
}

/// How many failures of a class are kept in full.
pub const SAMPLES_PER_CLASS: usize = 3;
/// How many bytes of a reply a sample has.
pub const SAMPLE_BYTES: usize = 256;

impl Recording {
    /// Adds the result of another worker under the same specification. Associative; `finish` computes what depends on the whole.
    pub fn merge(&mut self, other: &Self) {
        self.window.open_ns = self.window.open_ns.min(other.window.open_ns);
        self.window.close_ns = self.window.close_ns.max(other.window.close_ns);
        self.window.drained_ns = self.window.drained_ns.max(other.window.drained_ns);
        self.window.open_unix_ns = self.window.open_unix_ns.min(other.window.open_unix_ns);
        self.window.interrupted |= other.window.interrupted;
        self.account.merge(&other.account);
        self.completed.ok += other.completed.ok;
        self.completed.failed += other.completed.failed;
        self.connections.merge(&other.connections);
        self.bytes.merge(&other.bytes);
        self.queue.merge(&other.queue);
        self.distributions.merge(&other.distributions);
        if let Some(more) = &other.tls {
            self.tls.get_or_insert_default().merge(more);
        }
        if let Some(more) = &other.streams {
            self.streams.get_or_insert_default().merge(more);
        }
        merge_series(&mut self.series, &other.series);
        for (own, more) in self.stages.iter_mut().zip(&other.stages) {
            own.merge(more);
        }
        for (own, more) in self.paths.iter_mut().zip(&other.paths) {
            own.merge(more);
        }
        statuses::merge(&mut self.statuses, &other.statuses);
        groups::merge(&mut self.groups, &other.groups);
        self.generator.merge(&other.generator);
        if let (Some(own), Some(more)) = (&mut self.raw_latencies, &other.raw_latencies) {
            own.rows += more.rows;
            own.lost += more.lost;
        }
        self.little.in_flight_integral_ns += other.little.in_flight_integral_ns;
        self.little.window_integral_ns =
            match (self.little.window_integral_ns, other.little.window_integral_ns) {
                (Some(own), Some(more)) => Some(own + more),
                _ => None,
            };
        self.little.sojourn_sum_ns += other.little.sojourn_sum_ns;
        self.error_samples.extend(other.error_samples.iter().cloned());
        self.engine.threads += other.engine.threads;
        if self.redirected_to.is_none() {
            self.redirected_to.clone_from(&other.redirected_to);
        }
        for (&status, hops) in &other.followed {
            *self.followed.entry(status).or_default() += hops;
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.account.check()?;
        let Self {
            account,
            bytes,
            distributions,
            ..
        } = self;
        check_paths(&self.paths, account, bytes, distributions)?;
        groups::check(&self.groups, account, bytes, distributions)?;
        statuses::check(&self.statuses, account, bytes, distributions)
    }

    /// All of that but the verdict.
    pub(super) fn sum_up(&mut self) -> Result<(), Error> {
        self.check()?;
        let window_ns = self.window.close_ns.saturating_sub(self.window.open_ns);
        self.generator
            .sum_up(window_ns, self.completed.ok + self.completed.failed);
        self.little.residual = (self.little.sojourn_sum_ns > 0)
            .then(|| self.little.in_flight_integral_ns as f64 / self.little.sojourn_sum_ns as f64 - 1.0);
        keep_few(&mut self.error_samples);
        Ok(())
    }
}

impl Bytes {
    fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.body_received += other.body_received;
    }
}

/// Checks that the paths of a mix make up the whole: each class of the account, all bytes, all latencies. Without a mix there are none.
///
/// # Errors
/// [`Error::Account`] with what differs.
pub fn check_paths(
    paths: &[PathRecord],
    account: &Account,
    bytes: &Bytes,
    latencies: &Distributions,
) -> Result<(), Error> {
    let Some((first, others)) = paths.split_first() else {
        return Ok(());
    };
    let mut sum = first.clone();
    for one in others {
        sum.merge(one);
    }
    let of = [
        (&latencies.ok_response, &latencies.ok_service),
        (&latencies.carried_in_response, &latencies.carried_in_service),
        (&latencies.censored_response, &latencies.censored_service),
    ];
    let whole = of.iter().map(|(response, _)| response.as_ref());
    let whole = whole.chain(of.iter().map(|(_, service)| Some(*service)));
    for (own, whole) in sum.times().into_iter().zip(whole) {
        let is_same = own.is_none() || figures(own) == figures(whole);
        require_same("latencies of all paths", is_same, &figures(own), &figures(whole))?;
    }
    require_same(
        "requests of all paths",
        sum.account == *account,
        &sum.account,
        account,
    )?;
    require_same("bytes of all paths", sum.bytes == *bytes, &sum.bytes, bytes)
}

/// Of no distribution as of an empty one.
fn figures(times: Option<&Distribution>) -> (u64, Option<u64>, Option<u64>, u128) {
    times.map_or((0, None, None, 0), |times| {
        (times.count(), times.min_ns(), times.max_ns(), times.sum_ns())
    })
}

fn require_same(what: &str, is_same: bool, own: &impl Debug, whole: &impl Debug) -> Result<(), Error> {
    let differ = || Error::Account(format!("{what}: {own:?}; of the whole: {whole:?}"));
    is_same.then_some(()).ok_or_else(differ)
}

impl Connections {
    fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.reconnects += other.reconnects;
        self.connect_failures += other.connect_failures;
        self.retried += other.retried;
        self.surplus += other.surplus;
        self.requests_sent = sum_of(self.requests_sent, other.requests_sent);
        self.added = sum_of(self.added, other.added);
        self.taken_away = sum_of(self.taken_away, other.taken_away);
        self.retired = sum_of(self.retired, other.retired);
        for (address, opened) in &other.by_address {
            *self.by_address.entry(address.clone()).or_default() += opened;
        }
        let (own, more) = (&mut self.answered, &other.answered);
        own.min = if own.connections == 0 {
            more.min
        } else {
            own.min.min(more.min)
        };
        own.max = own.max.max(more.max);
        own.connections += more.connections;
        own.without_reply += more.without_reply;
    }
}

impl Queue {
    fn merge(&mut self, other: &Self) {
        self.waited += other.waited;
        self.max_length += other.max_length;
        self.limit = sum_of(self.limit, other.limit);
        let bound = [self.bound_at_ns, other.bound_at_ns].into_iter().flatten();
        self.bound_at_ns = bound.min();
    }
}

impl Distributions {
    fn merge(&mut self, other: &Self) {
        merge_optional(&mut self.ok_response, other.ok_response.as_ref());
        merge_optional(&mut self.carried_in_response, other.carried_in_response.as_ref());
        merge_optional(&mut self.censored_response, other.censored_response.as_ref());
        merge_optional(&mut self.send_lag, other.send_lag.as_ref());
        merge_optional(&mut self.due_lag, other.due_lag.as_ref());
        self.ok_service.merge(&other.ok_service);
        self.carried_in_service.merge(&other.carried_in_service);
        self.censored_service.merge(&other.censored_service);
        self.late_replies.merge(&other.late_replies);
        self.connect.merge(&other.connect);
    }
}

/// The sum of what is known; null where neither is.
fn sum_of(own: Option<u64>, more: Option<u64>) -> Option<u64> {
    own.into_iter().chain(more).reduce(|own, more| own + more)
}

fn merge_optional(own: &mut Option<Distribution>, other: Option<&Distribution>) {
    if let Some(other) = other {
        own.get_or_insert_with(Distribution::default).merge(other);
    }
}

fn merge_series(own: &mut Vec<Second>, other: &[Second]) {
    for more in other {
        match own.binary_search_by_key(&more.second, |second| second.second) {
            Ok(place) => {
                let second = &mut own[place];
                second.scheduled += more.scheduled;
                second.due_ok = second.due_ok.zip(more.due_ok).map(|(own, more)| own + more);
                second.sent += more.sent;
                second.ok += more.ok;
                second.failed += more.failed;
                second.body_bytes += more.body_bytes;
                second.latency.merge(&more.latency);
            }
            Err(place) => own.insert(place, more.clone()),
        }
    }
}

fn keep_few(samples: &mut Vec<ErrorSample>) {
    let key = |one: &ErrorSample| {
        (
            one.class.clone(),
            one.at_ns,
            one.detail.clone(),
            one.received.clone(),
        )
    };
    samples.sort_by_cached_key(key);
    let mut kept: Vec<ErrorSample> = Vec::new();
    for sample in samples.drain(..) {
        let alike = kept.iter().filter(|other| other.class == sample.class);
        let is_new = !alike
            .clone()
            .any(|other| (&other.detail, &other.received) == (&sample.detail, &sample.received));
        if is_new && alike.count() < SAMPLES_PER_CLASS {
            kept.push(sample);
        }
    }
    *samples = kept;
}

#[cfg(test)]
mod tests;

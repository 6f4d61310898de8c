//! The result of a run. The JSON form is public: `docs/reference/engine-wire.md`.

use crate::account::{Account, Class};
use crate::clock::NS_PER_S;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::spec::{Pacing, Spec, Stage};
use serde::{Deserialize, Serialize};

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
    pub shape: String,
    pub window: Window,
    pub account: Account,
    pub completed: Completed,
    pub connections: Connections,
    pub bytes: Bytes,
    pub queue: Queue,
    pub distributions: Distributions,
    pub series: Vec<Second>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_latencies: Option<RawLatencies>,
    pub generator: Generator,
    pub little: Little,
    pub error_samples: Vec<ErrorSample>,
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

/// Requests that ended within the window, even if sent before it.
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
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
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
}

/// Latencies; null where the loop has none.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Distributions {
    pub ok_response: Option<Distribution>,
    pub ok_service: Distribution,
    pub censored_response: Option<Distribution>,
    pub censored_service: Distribution,
    pub send_lag: Option<Distribution>,
    pub connect: Distribution,
}

/// One second of the window or the drain.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Second {
    pub second: u64,
    pub scheduled: u64,
    pub ok: u64,
    pub failed: u64,
    pub body_bytes: u64,
    pub latency: Distribution,
}

/// What became of the requests that were due in one stage; `failed` are those without a latency.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct StageRecord {
    pub begin_ns: u64,
    pub duration_ns: u64,
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub scheduled: u64,
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    pub ok_response: Distribution,
    pub censored_response: Distribution,
}

impl StageRecord {
    /// Of each stage an empty one.
    pub fn of(stages: &[Stage]) -> impl Iterator<Item = Self> + '_ {
        stages.iter().scan(0, |next_ns, stage| {
            let begin_ns = *next_ns;
            *next_ns += stage.duration_ns;
            Some(Self {
                begin_ns,
                duration_ns: stage.duration_ns,
                from_per_s: stage.from_per_s,
                to_per_s: stage.to_per_s,
                ..Self::default()
            })
        })
    }

    fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        self.ok_response.merge(&other.ok_response);
        self.censored_response.merge(&other.censored_response);
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

/// What the load cost the generator, and whether the generator limited the figures.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Generator {
    #[serde(default)]
    pub limit: Option<Limit>,
    pub limited: Option<String>,
    pub cpu_work_ns: u64,
    pub cpu_spin_ns: u64,
    pub run_queue_ns: u64,
    pub cpu_ns_per_request: Option<f64>,
    pub spin_share: f64,
    pub threads: Vec<Thread>,
}

/// What of the generator may have set the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// A worker thread worked for so large a `share` of the window.
    Busy,
    /// Others had the CPU of a worker thread for so large a `share` of the window.
    KeptWaiting,
    /// One request in a hundred went out more than `lag_ns` late.
    Late,
}

/// A limit with the number that its kind has; the other is null.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Limit {
    pub kind: LimitKind,
    pub share: Option<f64>,
    pub lag_ns: Option<u64>,
}

/// One worker.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Thread {
    pub cpu: Option<usize>,
    pub user_ns: u64,
    pub system_ns: u64,
    pub spin_ns: u64,
    pub run_queue_ns: u64,
    #[serde(default)]
    pub turns: u64,
}

/// Little's law, L = lambda x W, from two independent sides.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Little {
    pub in_flight_integral_ns: u128,
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
}

/// How many failures of a class are kept in full.
pub const SAMPLES_PER_CLASS: usize = 3;

// A worker that works more than this of the time may be what set the figures.
const MAX_WORK_SHARE: f64 = 0.80;
// On a machine that does nothing else it was 0.2 to 0.6 %, with one CPU for generator and monitors (40 trials at 550/s).
const MAX_RUN_QUEUE_SHARE: f64 = 0.01;
// Where nobody else wants the CPU: 1.2 us a turn at 22,000 turns a second, 3 to 5 us where a virtual CPU had halted.
const TURN_NS: u64 = 5_000;
const MAX_SEND_LAG_NS: u64 = 10_000_000;

impl Recording {
    /// Adds the result of another worker or machine under the same specification. Associative; `finish` computes what depends on the whole.
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
        self.bytes.sent += other.bytes.sent;
        self.bytes.received += other.bytes.received;
        self.bytes.body_received += other.bytes.body_received;
        self.queue.waited += other.queue.waited;
        self.queue.max_length += other.queue.max_length;
        self.distributions.merge(&other.distributions);
        merge_series(&mut self.series, &other.series);
        for (own, more) in self.stages.iter_mut().zip(&other.stages) {
            own.merge(more);
        }
        self.generator
            .threads
            .extend(other.generator.threads.iter().cloned());
        if let (Some(own), Some(more)) = (&mut self.raw_latencies, &other.raw_latencies) {
            own.rows += more.rows;
            own.lost += more.lost;
        }
        self.little.in_flight_integral_ns += other.little.in_flight_integral_ns;
        self.little.sojourn_sum_ns += other.little.sojourn_sum_ns;
        self.error_samples.extend(other.error_samples.iter().cloned());
        self.engine.threads += other.engine.threads;
    }

    /// Computes what depends on the whole, and checks the account.
    ///
    /// # Errors
    /// [`Error::Account`] when a request has no end or two.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.account.check()?;
        let elapsed_ns = self.window.drained_ns.saturating_sub(self.window.open_ns);
        let generator = &mut self.generator;
        generator.cpu_spin_ns = generator.threads.iter().map(|thread| thread.spin_ns).sum();
        generator.run_queue_ns = generator.threads.iter().map(|thread| thread.run_queue_ns).sum();
        generator.cpu_work_ns = generator.threads.iter().map(Thread::work_ns).sum();
        let completed = self.account.ended();
        generator.cpu_ns_per_request =
            (completed > 0).then(|| generator.cpu_work_ns as f64 / completed as f64);
        let thread_time_ns = (elapsed_ns * generator.threads.len() as u64).max(1);
        generator.spin_share = generator.cpu_spin_ns as f64 / thread_time_ns as f64;
        generator.limit = generator.found_limit(elapsed_ns, self.distributions.send_lag.as_ref());
        generator.limited = generator.limit.map(|limit| limit.to_string());
        self.little.residual = (self.little.sojourn_sum_ns > 0)
            .then(|| self.little.in_flight_integral_ns as f64 / self.little.sojourn_sum_ns as f64 - 1.0);
        keep_few(&mut self.error_samples);
        Ok(())
    }
}

impl Connections {
    fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.reconnects += other.reconnects;
        self.connect_failures += other.connect_failures;
        self.retried += other.retried;
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

impl Distributions {
    fn merge(&mut self, other: &Self) {
        merge_optional(&mut self.ok_response, other.ok_response.as_ref());
        merge_optional(&mut self.censored_response, other.censored_response.as_ref());
        merge_optional(&mut self.send_lag, other.send_lag.as_ref());
        self.ok_service.merge(&other.ok_service);
        self.censored_service.merge(&other.censored_service);
        self.connect.merge(&other.connect);
    }
}

impl Thread {
    fn work_ns(&self) -> u64 {
        (self.user_ns + self.system_ns).saturating_sub(self.spin_ns)
    }

    /// Time that it waited for the CPU, beyond the usual wait of each turn on an idle CPU.
    fn kept_waiting_ns(&self) -> u64 {
        self.run_queue_ns.saturating_sub(self.turns * TURN_NS)
    }
}

impl Generator {
    fn found_limit(&self, elapsed_ns: u64, send_lag: Option<&Distribution>) -> Option<Limit> {
        // Too short to say anything: one scheduling quantum would decide.
        if elapsed_ns < NS_PER_S / 5 {
            return None;
        }
        let work = self.most(elapsed_ns, Thread::work_ns);
        if work > MAX_WORK_SHARE {
            return Some(Limit::of_share(LimitKind::Busy, work));
        }
        let waiting = self.most(elapsed_ns, Thread::kept_waiting_ns);
        if waiting > MAX_RUN_QUEUE_SHARE {
            return Some(Limit::of_share(LimitKind::KeptWaiting, waiting));
        }
        let lag_ns = send_lag.and_then(|lag| lag.quantile_ns(0.99)).unwrap_or(0);
        (lag_ns > MAX_SEND_LAG_NS).then_some(Limit {
            kind: LimitKind::Late,
            share: None,
            lag_ns: Some(lag_ns),
        })
    }

    /// The largest share of the window over all threads.
    fn most(&self, elapsed_ns: u64, time_ns: impl Fn(&Thread) -> u64) -> f64 {
        let elapsed = elapsed_ns.max(1) as f64;
        self.threads
            .iter()
            .map(|thread| time_ns(thread) as f64 / elapsed)
            .fold(0.0, f64::max)
    }
}

impl Limit {
    const fn of_share(kind: LimitKind, share: f64) -> Self {
        Self {
            kind,
            share: Some(share),
            lag_ns: None,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.share.unwrap_or(0.0);
        match self.kind {
            LimitKind::Busy => write!(out, "a worker thread was busy {percent:.0} % of the time"),
            LimitKind::KeptWaiting => write!(
                out,
                "others kept a worker thread waiting for its CPU {percent:.1} % of the time"
            ),
            LimitKind::Late => write!(
                out,
                "1 % of the requests went out more than {:.1} ms late",
                self.lag_ns.unwrap_or(0) as f64 / 1e6
            ),
        }
    }
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
    samples.sort_by(|a, b| (&a.class, a.at_ns).cmp(&(&b.class, b.at_ns)));
    let mut kept: Vec<ErrorSample> = Vec::new();
    for sample in samples.drain(..) {
        let alike = kept.iter().filter(|other| other.class == sample.class);
        let is_new = !alike.clone().any(|other| other.detail == sample.detail);
        if is_new && alike.count() < SAMPLES_PER_CLASS {
            kept.push(sample);
        }
    }
    *samples = kept;
}

#[cfg(test)]
mod tests;

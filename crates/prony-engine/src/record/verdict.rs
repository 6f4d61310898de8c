//! Was it the generator? Its verdict on itself: pure, from what a run measured.
//!
//! Each kind of evidence is relative to what was measured: a lag counts as a share of the latency at the same percentile, CPU as a share
//! of the window. `bench/generator_verdict` plants every kind, and counts how often healthy loads are called limited.

use crate::distribution::Distribution;
use crate::error::Error;
use crate::record::generator::{Cause, Evidence, Limited, Thread};
use crate::record::recording::Recording;

/// From where on a quantity is suspect, and from where on it decides.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    suspect: f64,
    yes: f64,
}

// A worker that has a fifth of its time left takes replies at once; one that has a twentieth left queues them.
const BUSY: Bounds = Bounds {
    suspect: 0.80,
    yes: 0.95,
};
// What others took from a worker it could not do: less than this is less than most effects that are looked for.
const KEPT_WAITING: Bounds = Bounds {
    suspect: 0.05,
    yes: 0.20,
};
// A quota stops a worker for whole periods, so that even a small share is in the tail.
const THROTTLED: Bounds = Bounds {
    suspect: 0.005,
    yes: 0.05,
};
// Of the latency that the lag is a part of.
const LATE: Bounds = Bounds {
    suspect: 0.25,
    yes: 0.50,
};
// Up to 70 % of what a generator can do its own queue is short.
const CEILING: Bounds = Bounds {
    suspect: 0.70,
    yes: 0.90,
};
const MISSED: Bounds = Bounds {
    suspect: 0.01,
    yes: 0.05,
};
// Of the requests that were due, those that failed on this side.
const FAILED_HERE: Bounds = Bounds {
    suspect: 0.0,
    yes: 0.001,
};
// The percentiles that are compared and ranked; each needs this many requests above it.
const PERCENTILES: [f64; 3] = [0.5, 0.9, 0.99];
const LEAST_ABOVE: f64 = 10.0;
// 1 - 0.99 is a little more than a hundredth.
const ROUNDING: f64 = 1e-6;
// Too short to say anything of shares: one scheduling quantum would decide.
const SHORTEST_NS: u64 = 200_000_000;

impl Bounds {
    fn level(self, value: f64) -> Limited {
        if value >= self.yes {
            Limited::Yes
        } else if value >= self.suspect {
            Limited::Suspect
        } else {
            Limited::No
        }
    }

    /// The evidence of a quantity; null below both bounds.
    fn evidence(self, value: f64, cause: Cause) -> Option<Evidence> {
        let level = self.level(value);
        (level > Limited::No).then_some(Evidence { level, cause })
    }
}

/// All that speaks against the generator, the strongest first, and of equal strength the cause before what follows from it.
pub fn evidence(run: &Recording) -> Vec<Evidence> {
    let window_ns = run.window.close_ns.saturating_sub(run.window.open_ns);
    let mut found: Vec<Evidence> = [in_flight(run)].into_iter().flatten().collect();
    found.extend(failed_here(run));
    if window_ns >= SHORTEST_NS {
        let threads = &run.generator.threads;
        found.extend(throttled(threads, window_ns));
        found.extend(busy(threads, window_ns));
        found.extend(kept_waiting(run, window_ns));
        found.extend(near_ceiling(run, window_ns));
    }
    found.extend(late(run));
    // What was not sent in time has another cause where none of these holds: connections that the server does not accept.
    if !found.is_empty() {
        found.extend(rate_missed(run, window_ns));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.level));
    found
}

impl Recording {
    /// Computes what depends on the whole, with the generator's verdict, and checks the account.
    ///
    /// # Errors
    /// [`Error::Account`] when a request has no end or two, or when the paths of a mix, the statuses, or the groups, are not the whole.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.sum_up()?;
        self.generator.conclude(evidence(self));
        Ok(())
    }
}

fn in_flight(run: &Recording) -> Option<Evidence> {
    let (connections, at_ns) = (run.queue.limit?, run.queue.bound_at_ns?);
    Some(Evidence {
        level: Limited::Yes,
        cause: Cause::InFlight { connections, at_ns },
    })
}

fn failed_here(run: &Recording) -> impl Iterator<Item = Evidence> {
    let account = &run.account;
    let ports = account.client_no_address;
    let descriptors = account.client_no_descriptor;
    let buffers = account.client_no_buffer;
    let causes = [
        (ports, Cause::Ports { requests: ports }),
        (
            descriptors,
            Cause::Descriptors {
                requests: descriptors,
            },
        ),
        (buffers, Cause::Buffers { requests: buffers }),
    ];
    let due = account.scheduled.max(1) as f64;
    let failed = causes.into_iter().filter(|&(requests, _)| requests > 0);
    failed.filter_map(move |(requests, cause)| FAILED_HERE.evidence(requests as f64 / due, cause))
}

fn throttled(threads: &[Thread], window_ns: u64) -> Option<Evidence> {
    let share = most(threads, window_ns, Thread::stopped_ns);
    THROTTLED.evidence(share, Cause::Throttled { share })
}

fn busy(threads: &[Thread], window_ns: u64) -> Option<Evidence> {
    let share = most(threads, window_ns, Thread::work_ns);
    BUSY.evidence(share, Cause::Busy { share })
}

/// Long waits for the CPU: by their share of the window, and by what they add to a percentile.
fn kept_waiting(run: &Recording, window_ns: u64) -> Option<Evidence> {
    let threads = &run.generator.threads;
    let worst = threads.iter().max_by_key(|thread| thread.kept_waiting_ns())?;
    let share = worst.kept_waiting_ns() as f64 / window_ns as f64;
    let late = &run.distributions.late_replies;
    let cause = Cause::KeptWaiting {
        share,
        wait_ns: worst.long_wait_ns / worst.long_waits.max(1),
        late_share: late.count() as f64 / latencies(run).count().max(1) as f64,
    };
    // Whether others or a quota kept a reply waiting is not known of each.
    let is_others = worst.kept_waiting_ns() >= worst.stopped_ns();
    let part = if is_others {
        most_of_a_percentile(late, latencies(run))
    } else {
        0.0
    };
    let level = KEPT_WAITING.level(share).max(LATE.level(part));
    (level > Limited::No).then_some(Evidence { level, cause })
}

/// The latencies that are shown.
fn latencies(run: &Recording) -> &Distribution {
    let latencies = &run.distributions;
    latencies.ok_response.as_ref().unwrap_or(&latencies.ok_service)
}

/// The largest share that waits have of a percentile; `late`: of each reply that lay in a long wait, how long that was.
fn most_of_a_percentile(late: &Distribution, latencies: &Distribution) -> f64 {
    let parts = PERCENTILES.iter().filter_map(|percentile| {
        let above = latencies.count() as f64 * (1.0 - percentile);
        if above < LEAST_ABOVE - ROUNDING {
            return None;
        }
        // So many replies lie above a percentile, give or take two standard deviations.
        let least = above - 2.0 * above.sqrt();
        let quantile = 1.0 - least / late.count().max(1) as f64;
        let wait_ns = if quantile > 0.0 {
            late.quantile_ns(quantile)?
        } else {
            0
        };
        let latency_ns = latencies.quantile_ns(*percentile)?;
        Some(wait_ns as f64 / latency_ns.max(1) as f64)
    });
    parts.fold(0.0, f64::max)
}

fn near_ceiling(run: &Recording, window_ns: u64) -> Option<Evidence> {
    let ceiling_per_s = run.spec.ceiling_per_s?;
    let completed = (run.completed.ok + run.completed.failed) as f64;
    let share = completed / (window_ns as f64 / 1e9) / ceiling_per_s;
    CEILING.evidence(share, Cause::NearCeiling { share, ceiling_per_s })
}

/// The percentile at which the lag is the largest part of the latency.
fn late(run: &Recording) -> Option<Evidence> {
    let latencies = &run.distributions;
    let response = latencies.ok_response.as_ref()?;
    let lags = [latencies.send_lag.as_ref(), latencies.due_lag.as_ref()];
    let pairs = lags
        .into_iter()
        .flatten()
        .flat_map(|lag| PERCENTILES.map(|percentile| (lag, percentile)));
    let parts = pairs.filter_map(|(lag, percentile)| part(lag, response, percentile));
    let (share, percentile, lag_ns) = parts.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let percentile = 100.0 * percentile;
    LATE.evidence(
        share,
        Cause::Late {
            share,
            percentile,
            lag_ns,
        },
    )
}

fn part(lag: &Distribution, response: &Distribution, percentile: f64) -> Option<(f64, f64, u64)> {
    let above = lag.count().min(response.count()) as f64 * (1.0 - percentile);
    if above < LEAST_ABOVE - ROUNDING {
        return None;
    }
    let (lag_ns, response_ns) = (lag.quantile_ns(percentile)?, response.quantile_ns(percentile)?);
    let share = lag_ns as f64 / response_ns.max(1) as f64;
    Some((share, percentile, lag_ns))
}

fn rate_missed(run: &Recording, window_ns: u64) -> Option<Evidence> {
    run.distributions.send_lag.as_ref()?;
    let account = &run.account;
    let never_connected = account.connect_refused
        + account.connect_timed_out
        + account.connect_unreachable
        + account.dns
        + account.tls;
    let due = account.scheduled.saturating_sub(never_connected);
    let sent = run.generator.sent_in_window.min(due);
    let share = (due - sent) as f64 / due.max(1) as f64;
    let sent_per_s = sent as f64 / (window_ns.max(1) as f64 / 1e9);
    MISSED.evidence(share, Cause::RateMissed { share, sent_per_s })
}

/// The largest share of the window over all threads.
fn most(threads: &[Thread], window_ns: u64, time_ns: impl Fn(&Thread) -> u64) -> f64 {
    let window = window_ns.max(1) as f64;
    let shares = threads.iter().map(|thread| time_ns(thread) as f64 / window);
    shares.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;

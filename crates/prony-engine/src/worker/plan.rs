//! What a worker is to do: its share of the load, in its own terms.

use super::margin;
use super::opening::Opening;
use crate::expect::Expect;
use crate::schedule::{ConnectionPlan, Constant, Poisson, Schedule, Share, Stages};
use crate::spec::{Arrivals, Loop, Pacing, Spec, Stop};
use std::sync::Arc;

/// Absolute times of a run, CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The start of the schedule.
    pub epoch_ns: u64,
    /// The opening of the window; the far future while it is not known.
    pub open_ns: u64,
    /// Its end; the far future when a count ends it, or the opening is not known.
    pub close_ns: u64,
    /// The length of the window; null when a count ends it.
    pub duration_ns: Option<u64>,
    /// A request's time-out.
    pub timeout_ns: u64,
    /// The longest drain.
    pub grace_ns: u64,
}

impl Times {
    /// For a run that starts at `epoch_ns`, as far as its opening is known.
    pub fn new(spec: &Spec, epoch_ns: u64, opening: &Opening) -> Self {
        let load = &spec.workload;
        let times = Self {
            epoch_ns,
            open_ns: u64::MAX,
            close_ns: u64::MAX,
            duration_ns: match load.stop {
                Stop::Duration { duration_ns } => Some(duration_ns),
                Stop::Requests { .. } => None,
            },
            timeout_ns: load.timeout_ns,
            grace_ns: load.grace_ns,
        };
        opening
            .open_ns()
            .map_or(times, |open_ns| times.opening_at(open_ns))
    }

    /// With a window that opens then.
    pub fn opening_at(self, open_ns: u64) -> Self {
        let close_ns = self.duration_ns.map_or(u64::MAX, |length_ns| open_ns + length_ns);
        Self {
            open_ns,
            close_ns,
            ..self
        }
    }
}

/// One worker's share.
pub struct Task {
    /// When things happen.
    pub times: Times,
    /// When the window opens, which all workers agree on.
    pub opening: Arc<Opening>,
    /// Its connections: exactly (closed loop) or at most (open loop).
    pub connections: usize,
    /// How many of them there are when, from the opening of the window on; null: always all.
    pub plan: Option<ConnectionPlan>,
    /// How many connections the workers before it have.
    pub first: usize,
    /// Its arrivals; null in a closed loop.
    pub schedule: Option<Box<dyn Schedule + Send>>,
    /// Its requests in the window, where a count ends it.
    pub requests: Option<u64>,
    /// Which reply is a success.
    pub expect: Expect,
    /// How long before a due time sleeping ends and spinning begins; null: it only sleeps.
    pub spin_margin_ns: Option<u64>,
}

/// How many workers there will be: no worker without a connection or a request.
pub fn worker_count(spec: &Spec) -> usize {
    let requests = match spec.workload.stop {
        Stop::Requests { requests } => usize::try_from(requests).unwrap_or(usize::MAX),
        Stop::Duration { .. } => usize::MAX,
    };
    spec.threads
        .min(spec.workload.shape.connections().unwrap_or(usize::MAX))
        .min(requests)
        .max(1)
}

/// The pacing of a run; null in a closed loop, which has no due times.
pub fn pacing_of(spec: &Spec) -> Option<Pacing> {
    spec.workload.shape.is_open().then_some(spec.pacing)
}

/// What all workers have in common.
#[derive(Debug, Clone)]
pub struct Common {
    /// When things happen.
    pub times: Times,
    /// When the window opens.
    pub opening: Arc<Opening>,
    /// How many workers there are.
    pub workers: usize,
    /// How many connections they have together: exactly (closed loop) or at most (open loop).
    pub connections: usize,
}

impl Common {
    /// Of a run that starts at `epoch_ns`, with so many connections.
    pub fn new(spec: &Spec, epoch_ns: u64, connections: usize) -> Self {
        let workers = worker_count(spec);
        let opening = Opening::new(spec, epoch_ns, workers);
        Self {
            times: Times::new(spec, epoch_ns, &opening),
            opening: Arc::new(opening),
            workers,
            connections,
        }
    }

    /// The share of a worker in what all have in common.
    pub fn share(&self, worker: usize) -> Share {
        Share {
            worker: worker as u64,
            workers: self.workers as u64,
        }
    }
}

/// The share of one worker.
pub fn task(spec: &Spec, common: &Common, worker: usize) -> Result<Task, crate::Error> {
    let load = &spec.workload;
    let share = common.share(worker);
    let schedule: Option<Box<dyn Schedule + Send>> = match load.shape {
        Loop::Closed { .. } => None,
        Loop::Open {
            arrivals,
            seed,
            ref stages,
            ..
        } if !stages.is_empty() => Some(Box::new(Stages::new(
            load.warmup_ns,
            stages,
            arrivals,
            seed,
            share,
        ))),
        Loop::Open {
            rate_per_s,
            arrivals: Arrivals::Constant,
            ..
        } => Some(Box::new(Constant::new(rate_per_s, share))),
        Loop::Open {
            rate_per_s,
            arrivals: Arrivals::Poisson,
            seed,
            ..
        } => Some(Box::new(Poisson::new(rate_per_s, seed, share))),
    };
    let connections = common.connections as u64;
    let requests = match load.stop {
        Stop::Requests { requests } => Some(share.portion(requests)),
        Stop::Duration { .. } => None,
    };
    Ok(Task {
        times: common.times,
        opening: Arc::clone(&common.opening),
        connections: share.portion(connections) as usize,
        plan: match &load.shape {
            Loop::Closed { stages, .. } if !stages.is_empty() => Some(ConnectionPlan::new(stages, share)),
            _ => None,
        },
        first: share.first_of(connections) as usize,
        schedule,
        requests,
        expect: Expect::new(&load.expect)?,
        spin_margin_ns: (pacing_of(spec) == Some(Pacing::Precise)).then_some(margin::LEAST_NS),
    })
}

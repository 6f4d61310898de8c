//! What a worker is to do: its share of the load, in its own terms.

use super::margin;
use crate::expect::Expect;
use crate::schedule::{Constant, Poisson, Schedule, Share};
use crate::spec::{Arrivals, Loop, Pacing, Spec, Stop};

/// Absolute times of a run, CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The start of the schedule.
    pub epoch_ns: u64,
    /// The opening of the window.
    pub open_ns: u64,
    /// Its end; the far future when a count ends it.
    pub close_ns: u64,
    /// A request's time-out.
    pub timeout_ns: u64,
    /// The longest drain.
    pub grace_ns: u64,
}

impl Times {
    /// For a run that starts at `epoch_ns`.
    pub fn new(spec: &Spec, epoch_ns: u64) -> Self {
        let load = &spec.workload;
        let open_ns = epoch_ns + load.warmup_ns;
        let close_ns = match load.stop {
            Stop::Duration { duration_ns } => open_ns + duration_ns,
            Stop::Requests { .. } => u64::MAX,
        };
        Self {
            epoch_ns,
            open_ns,
            close_ns,
            timeout_ns: load.timeout_ns,
            grace_ns: load.grace_ns,
        }
    }
}

/// One worker's share.
pub struct Task {
    /// When things happen.
    pub times: Times,
    /// Its connections: exactly (closed loop) or at most (open loop).
    pub connections: usize,
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
        .min(spec.workload.shape.connections())
        .min(requests)
        .max(1)
}

/// The pacing of a run; null in a closed loop, which has no due times.
pub fn pacing_of(spec: &Spec) -> Option<Pacing> {
    spec.workload.shape.is_open().then_some(spec.pacing)
}

/// The share of worker `worker` of `workers`.
pub fn task(spec: &Spec, times: Times, worker: usize, workers: usize) -> Result<Task, crate::Error> {
    let load = &spec.workload;
    let share = Share {
        worker: worker as u64,
        workers: workers as u64,
    };
    let schedule: Option<Box<dyn Schedule + Send>> = match load.shape {
        Loop::Closed { .. } => None,
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
    let requests = match load.stop {
        Stop::Requests { requests } => Some(portion(requests, share)),
        Stop::Duration { .. } => None,
    };
    Ok(Task {
        times,
        connections: portion(load.shape.connections() as u64, share) as usize,
        schedule,
        requests,
        expect: Expect::new(load.expect.status, spec.expected_body()?),
        spin_margin_ns: (pacing_of(spec) == Some(Pacing::Precise)).then_some(margin::LEAST_NS),
    })
}

/// What falls to one worker when `whole` is dealt out evenly.
fn portion(whole: u64, share: Share) -> u64 {
    whole / share.workers + u64::from(share.worker < whole % share.workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn t33_portions_make_up_the_whole(whole in 0u64..10_000, workers in 1u64..64) {
            let sum: u64 = (0..workers).map(|worker| portion(whole, Share { worker, workers })).sum();
            prop_assert_eq!(sum, whole);
        }
    }
}

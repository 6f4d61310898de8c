//! What a worker is to do: its share of the load, in its own terms.

use super::margin;
use super::opening::Opening;
use crate::cpu;
use crate::expect::Expect;
use crate::record::recorder::Flight;
use crate::schedule::{ConnectionPlan, Constant, Dealt, Poisson, Schedule, Stages};
use crate::spec::Share;
use crate::spec::{dealt, Arrivals, Loop, Pacing, Spec, Stop};
use crate::wire::redirect::Redirects;
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
    /// The longest that it waits for a connection, where its time-out is for its reply alone.
    pub connect_timeout_ns: Option<u64>,
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
            connect_timeout_ns: load.connect_timeout_ns,
            grace_ns: load.grace_ns,
        };
        opening
            .open_ns()
            .map_or(times, |open_ns| times.opening_at(open_ns))
    }

    /// The longest that a connection takes to be there, or that a request waits for one.
    pub fn wait_ns(&self) -> u64 {
        self.connect_timeout_ns.unwrap_or(self.timeout_ns)
    }

    /// When a request without a connection is given up. Of one that is sent again, the time of its reply goes on.
    pub fn connected_by_ns<R>(&self, flight: &Flight<R>) -> u64 {
        match (self.connect_timeout_ns, flight.sent_ns) {
            (Some(_), Some(sent_ns)) => sent_ns + self.timeout_ns,
            _ => flight.intended_ns + self.wait_ns(),
        }
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

/// When a connection ends that could go on.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// With so many replies; the largest number: never.
    pub requests: u64,
    /// With the first reply when it is so old; the largest number: never.
    pub age_ns: u64,
}

impl Lifetime {
    fn of(spec: &Spec) -> Self {
        Self {
            requests: spec.workload.connection_requests.unwrap_or(u64::MAX),
            age_ns: spec.workload.connection_age_ns.unwrap_or(u64::MAX),
        }
    }

    /// Whether connections end for their age.
    pub fn has_age(&self) -> bool {
        self.age_ns != u64::MAX
    }
}

/// One worker's share.
pub struct Task {
    /// When things happen.
    pub times: Times,
    /// When the window opens, which all workers agree on.
    pub opening: Arc<Opening>,
    /// Requests at once on each connection.
    pub streams: usize,
    /// The places for requests at once, as many as its connections have streams: exactly (closed loop) or at most (open loop).
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
    /// How redirects are followed; null: they are not.
    pub redirects: Option<Redirects>,
    /// When connections end.
    pub lifetime: Lifetime,
    /// Whose requests these are, by their place in the specification; null: all users are alike.
    pub group: Option<usize>,
    /// How much longer a request takes for them than it takes here.
    pub delay_ns: u64,
    /// How long before a due time sleeping ends and spinning begins; null: it only sleeps.
    pub spin_margin_ns: Option<u64>,
}

/// How many workers there will be here.
pub fn worker_count(spec: &Spec) -> usize {
    worker_counts(spec).into_iter().sum()
}

/// How many workers each group has, or all users who are alike: at least one, none without a connection or a request, and none with
/// more connections than a table has descriptors.
pub fn worker_counts(spec: &Spec) -> Vec<usize> {
    let weights = spec.weights();
    let portions = |whole: Option<u64>| match whole {
        Some(whole) => dealt(&weights, whole).into_iter().map(Some).collect(),
        None => vec![None; weights.len()],
    };
    let connections = portions(spec.own_connections().map(|whole| whole as u64));
    let requests = portions(spec.own_requests());
    let further = spec.threads.saturating_sub(weights.len()) as u64;
    let threads = dealt(&weights, further).into_iter().map(|threads| threads + 1);
    let each = threads.zip(connections.into_iter().zip(requests));
    each.map(|(threads, (connections, requests))| {
        let workers = threads
            .max(tables(connections.unwrap_or(1)))
            .min(connections.unwrap_or(u64::MAX))
            .min(requests.unwrap_or(u64::MAX));
        workers.max(1) as usize
    })
    .collect()
}

/// How many tables of descriptors so many connections need: each worker may have one of its own.
fn tables(connections: u64) -> u64 {
    connections.div_ceil(
        cpu::descriptor_limit()
            .saturating_sub(cpu::SPARE_DESCRIPTORS)
            .max(1),
    )
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
    /// Which of all generators this one is.
    part: Share,
    /// Of each worker.
    seats: Vec<Seat>,
}

/// Where a worker stands: in which group, and as which of its workers.
#[derive(Debug, Clone, Copy)]
struct Seat {
    group: usize,
    own: Share,
    /// What its group has, and the groups before it.
    connections: u64,
    first_connection: u64,
    requests: Option<u64>,
}

fn seats(spec: &Spec, connections: usize) -> Vec<Seat> {
    let weights = spec.weights();
    let connections = dealt(&weights, connections as u64);
    let requests = spec.own_requests().map(|whole| dealt(&weights, whole));
    let seats = |(group, workers): (usize, usize)| {
        let seat = Seat {
            group,
            own: Share {
                worker: 0,
                workers: workers as u64,
            },
            connections: connections[group],
            first_connection: connections[..group].iter().sum(),
            requests: requests.as_ref().map(|each| each[group]),
        };
        let own = move |worker| Share { worker, ..seat.own };
        (0..seat.own.workers).map(move |worker| Seat {
            own: own(worker),
            ..seat
        })
    };
    worker_counts(spec)
        .into_iter()
        .enumerate()
        .flat_map(seats)
        .collect()
}

impl Common {
    /// Of a run that starts at `epoch_ns`, with so many connections.
    pub fn new(spec: &Spec, epoch_ns: u64, connections: usize) -> Self {
        let seats = seats(spec, connections);
        let workers = seats.len();
        let opening = Opening::new(spec, epoch_ns, workers);
        Self {
            times: Times::new(spec, epoch_ns, &opening),
            opening: Arc::new(opening),
            workers,
            connections,
            part: spec.part(),
            seats,
        }
    }

    /// The share of a worker in what all generators have in common, as far as it is of its group: arrivals, stages, the order of a mix.
    pub fn share(&self, worker: usize) -> Share {
        self.part.within(self.seats[worker].own)
    }

    /// The place of a worker's group; 0 where all users are alike.
    pub fn group(&self, worker: usize) -> usize {
        self.seats[worker].group
    }
}

/// The arrivals of a share; null in a closed loop.
fn arrivals(spec: &Spec, share: Share) -> Option<Box<dyn Schedule + Send>> {
    let load = &spec.workload;
    match load.shape {
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
    }
}

/// The arrivals of a worker: its share of all, or of those that fall to its group.
fn schedule(spec: &Spec, common: &Common, worker: usize) -> Option<Box<dyn Schedule + Send>> {
    if spec.workload.groups.is_empty() {
        return arrivals(spec, common.share(worker));
    }
    let all = arrivals(spec, common.part)?;
    let own = common.seats[worker];
    Some(Box::new(Dealt::new(all, &spec.weights(), own.group, own.own)))
}

/// The share of one worker.
pub fn task(spec: &Spec, common: &Common, worker: usize) -> Result<Task, crate::Error> {
    let load = &spec.workload;
    // Counts are dealt out to generators, groups and workers in turn, which comes to the same.
    let (seat, share) = (common.seats[worker], common.share(worker));
    let group = spec.workload.groups.get(seat.group);
    let delay_ns = group.map_or(0, |group| group.delay_ns);
    let mut times = common.times;
    // Who is farther away waits for the way too, and as long in all.
    times.timeout_ns -= delay_ns;
    Ok(Task {
        times,
        opening: Arc::clone(&common.opening),
        streams: spec.target.wire.streams(),
        connections: seat.own.portion(seat.connections) as usize * spec.target.wire.streams(),
        plan: match &load.shape {
            Loop::Closed { stages, .. } if !stages.is_empty() => Some(ConnectionPlan::new(stages, share)),
            _ => None,
        },
        first: (seat.first_connection + seat.own.first_of(seat.connections)) as usize,
        schedule: schedule(spec, common, worker),
        requests: seat.requests.map(|requests| seat.own.portion(requests)),
        expect: Expect::new(&load.expect)?,
        redirects: Redirects::of(spec, seat.group)?,
        lifetime: Lifetime::of(spec),
        group: group.map(|_| seat.group),
        delay_ns,
        spin_margin_ns: (pacing_of(spec) == Some(Pacing::Precise)).then_some(margin::LEAST_NS),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::mix::Draw;
    use proptest::prelude::*;
    use serde_json::{json, Value};

    fn spec(load: &Value, stop: &Value, threads: usize, part: Option<(u64, u64)>) -> Spec {
        let mut spec = json!({
            "target": {"host": "127.0.0.1", "port": 80},
            "workload": {
                "loop": load, "stop": stop, "warmup_ns": 300_000_000, "timeout_ns": 1, "grace_ns": 0,
                "request": {"method": "GET", "path": "/", "headers": [], "body": null, "keep_alive": true},
                "expect": {"status": null, "body": null}
            },
            "threads": threads, "cpus": null, "pacing": "economical"
        });
        if let Some((index, of)) = part {
            spec["share"] = json!({"index": index, "of": of});
        }
        Spec::from_json(&spec.to_string()).unwrap()
    }

    fn duration(duration_ns: u64) -> Value {
        json!({"kind": "duration", "duration_ns": duration_ns})
    }

    /// The tasks of all workers of a generator.
    fn tasks(spec: &Spec) -> Vec<Task> {
        let common = Common::new(spec, 0, spec.own_connections().unwrap_or(1_000));
        (0..common.workers)
            .map(|worker| task(spec, &common, worker).unwrap())
            .collect()
    }

    /// Those of all generators, the n-th of which has `threads[n]`.
    fn of_all(load: &Value, stop: &Value, threads: &[usize]) -> Vec<Task> {
        let of = threads.len() as u64;
        let each =
            |(index, threads): (usize, &usize)| tasks(&spec(load, stop, *threads, Some((index as u64, of))));
        threads.iter().enumerate().flat_map(each).collect()
    }

    /// Everything that is due before `end_ns`, by time.
    fn dues(tasks: Vec<Task>, end_ns: u64) -> Vec<u64> {
        let of = |task: Task| {
            let mut schedule = task.schedule.unwrap();
            std::iter::from_fn(move || Some(schedule.next_due())).take_while(move |&due_ns| due_ns < end_ns)
        };
        let mut all: Vec<u64> = tasks.into_iter().flat_map(of).collect();
        all.sort_unstable();
        all
    }

    /// Of one second, with its warm-up; in stages where there are any.
    fn open_loops() -> impl Strategy<Value = Value> {
        let stage = (0.0f64..3e3, 0.0f64..3e3);
        let stages = prop_oneof![Just(Vec::new()), proptest::collection::vec(stage, 1..4)];
        let arrivals = prop_oneof![Just("constant"), Just("poisson")];
        (1.0f64..3e3, arrivals, any::<u32>(), stages).prop_map(|(rate, arrivals, seed, ends)| {
            let stage = |&(from, to): &(f64, f64)| json!({"duration_ns": 1_000_000_000 / ends.len() as u64, "from_per_s": from, "to_per_s": to});
            let stages: Vec<Value> = ends.iter().map(stage).collect();
            let highest = ends.iter().flat_map(|&(from, to)| [from, to]).reduce(f64::max);
            let rate = highest.unwrap_or(rate);
            json!({"kind": "open", "rate_per_s": rate, "arrivals": arrivals, "seed": seed, "stages": stages})
        })
    }

    fn length_ns(load: &Value) -> u64 {
        let stages = load["stages"].as_array().map_or(0, Vec::len) as u64;
        1_000_000_000 / stages.max(1) * stages.max(1)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_due_at_all_generators_together_is_due_at_one_alone(load in open_loops(), threads in proptest::collection::vec(1usize..4, 1..7)) {
            let stop = duration(length_ns(&load));
            let alone = dues(tasks(&spec(&load, &stop, 1, None)), 1_300_000_000);
            prop_assert_eq!(dues(of_all(&load, &stop, &threads), 1_300_000_000), alone);
        }

        #[test]
        fn connections_and_requests_of_all_generators_make_up_the_whole(connections in 1usize..400, requests in 1u64..400, threads in proptest::collection::vec(1usize..4, 1..7)) {
            prop_assume!(threads.len() <= connections && threads.len() as u64 <= requests);
            let load = json!({"kind": "closed", "connections": connections});
            let all = of_all(&load, &json!({"kind": "requests", "requests": requests}), &threads);
            prop_assert!(all.iter().all(|task| task.connections > 0 && task.requests > Some(0)));
            prop_assert_eq!(all.iter().map(|task| task.connections).sum::<usize>(), connections);
            prop_assert_eq!(all.iter().filter_map(|task| task.requests).sum::<u64>(), requests);
        }

        #[test]
        fn request_k_asks_for_the_same_path_whichever_generator_has_it(seed: u64, weight in 0.1f64..10.0, threads in proptest::collection::vec(1usize..4, 1..7)) {
            let mix = Draw::new([weight, 1.0].into_iter(), seed);
            let mut whole = mix.clone();
            let alone: Vec<usize> = (0..600).map(|_| whole.next_path()).collect();
            let load = json!({"kind": "closed", "connections": 100});
            let of = threads.len() as u64;
            for (index, &threads) in threads.iter().enumerate() {
                let spec = spec(&load, &duration(1_000), threads, Some((index as u64, of)));
                let common = Common::new(&spec, 0, 100);
                for worker in 0..common.workers {
                    let (mut own, share) = (mix.clone(), common.share(worker));
                    own.take_share(share);
                    for number in (share.worker..600).step_by(share.workers as usize) {
                        prop_assert_eq!(own.next_path(), alone[number as usize]);
                    }
                }
            }
        }

        #[test]
        fn connections_in_stages_are_those_of_all_generators_at_any_time(from in 6usize..90, to in 0usize..90, at_ns in 0u64..2_000_000_000, threads in proptest::collection::vec(1usize..4, 1..7)) {
            let load = json!({"kind": "closed", "connections": from.max(to), "stages": [{"duration_ns": 1_000_000_000, "from_connections": from, "to_connections": to}]});
            let stop = duration(1_000_000_000);
            let at = |tasks: Vec<Task>| tasks.iter().filter_map(|task| Some(task.plan.as_ref()?.at(at_ns))).sum::<usize>();
            let alone = at(tasks(&spec(&load, &stop, 1, None)));
            prop_assert_eq!(at(of_all(&load, &stop, &threads)), alone);
            // Nor does a worker ever have more than it has room for.
            let rooms = of_all(&load, &stop, &threads);
            prop_assert!(rooms.iter().all(|task| task.plan.as_ref().is_some_and(|plan| plan.at(at_ns) <= task.connections)));
        }
    }
}

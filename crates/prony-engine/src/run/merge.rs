//! What one worker did as a Recording, and the window of all.

use crate::clock::{Clock, Monotonic};
use crate::record::generator::{Generator, Thread};
use crate::record::recorder::Recorder;
use crate::record::recording::{
    self, Answered, Completed, Connections, Engine, LoopKind, RawLatencies, Recording, Streams, Window,
};
use crate::socket::{self, Addresses};
use crate::spec::{Spec, Stop};
use crate::wire::Protocol;
use crate::worker::{pacing_of, Times, Worker};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// One worker's Recording.
pub(super) fn report<P: Protocol, D: socket::Streams>(
    spec: Spec,
    worker: &mut Worker<P, D, Monotonic>,
    thread: Thread,
    drained_ns: u64,
) -> Recording {
    let answered = answered(worker.answered());
    let followed = std::mem::take(&mut worker.followed);
    let ends_connections =
        spec.workload.connection_requests.is_some() || spec.workload.connection_age_ns.is_some();
    let queue = worker.queue_figures();
    let has_plan = worker.has_plan();
    let redirected_to = worker.redirected_to();
    let tls = worker.handshakes();
    let figures = worker.stream_figures().unwrap_or_default();
    let by_count = matches!(spec.workload.stop, Stop::Requests { .. });
    let recorder = &mut worker.recorder;
    let open_ns = recorder.first_sent_ns.unwrap_or(u64::MAX);
    Recording {
        format: recording::FORMAT,
        engine: Engine {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: D::NAME.to_owned(),
            threads: 1,
            pacing: pacing_of(&spec),
        },
        shape: if spec.workload.shape.is_open() {
            LoopKind::Open
        } else {
            LoopKind::Closed
        },
        spec,
        window: Window {
            open_ns,
            close_ns: recorder.last_ended_ns,
            drained_ns,
            open_unix_ns: u64::MAX,
            interrupted: false,
        },
        account: recorder.account.clone(),
        completed: completed(recorder, by_count),
        connections: Connections {
            opened: worker.counts.opened,
            reconnects: worker.counts.reconnects,
            connect_failures: worker.counts.failures,
            retried: worker.counts.retried,
            surplus: worker.counts.surplus,
            requests_sent: Some(worker.counts.requests_sent),
            added: has_plan.then_some(worker.counts.added),
            taken_away: has_plan.then_some(worker.counts.taken_away),
            retired: ends_connections.then_some(worker.counts.retired),
            by_address: BTreeMap::new(),
            answered,
        },
        bytes: recorder.bytes.clone(),
        queue,
        distributions: recorder.distributions.clone(),
        tls,
        streams: recorder.streams.take().map(|times| Streams::of(&times, figures)),
        series: recorder.seconds.finish(),
        raw_latencies: recorder.raw.take().map(|raw| RawLatencies {
            lost: raw.finish(),
            ..RawLatencies::default()
        }),
        stages: recorder
            .stages
            .take()
            .map_or_else(Vec::new, |stages| stages.records),
        paths: recorder.paths.take().map_or_else(Vec::new, |paths| paths.records),
        statuses: recorder.statuses.finish(),
        groups: Vec::new(),
        generator: Generator {
            sent_in_window: recorder.sent_in_window,
            start_late_ns: recorder.start_late_ns,
            threads: vec![thread],
            ..Generator::default()
        },
        little: recorder.little(),
        redirected_to,
        followed,
        error_samples: std::mem::take(&mut recorder.error_samples),
    }
}

/// The connections to each of several addresses; none where there is one.
pub(super) fn by_address(addresses: &Addresses, opened: &[u64]) -> BTreeMap<String, u64> {
    let names = addresses.names();
    if names.len() == 1 {
        return BTreeMap::new();
    }
    names.into_iter().zip(opened.iter().copied()).collect()
}

/// A count's window is made of its own requests; a duration's takes whatever ends in it.
pub(super) fn completed(recorder: &Recorder, by_count: bool) -> Completed {
    if by_count {
        Completed {
            ok: recorder.account.ok,
            failed: recorder.account.ended() - recorder.account.ok,
        }
    } else {
        recorder.completed
    }
}

pub(super) fn answered(counts: impl Iterator<Item = u64>) -> Answered {
    let counts: Vec<u64> = counts.collect();
    Answered {
        connections: counts.len() as u64,
        without_reply: counts.iter().filter(|&&count| count == 0).count() as u64,
        min: counts.iter().copied().min().unwrap_or(0),
        max: counts.iter().copied().max().unwrap_or(0),
    }
}

/// The window of the whole run: by the plan where time ends it, by the first sending and the last end where a count does.
pub(super) fn whole_window(measured: Window, spec: &Spec, times: Times, interrupted: bool) -> Window {
    let (open_ns, close_ns) = match spec.workload.stop {
        Stop::Duration { .. } if interrupted => (
            times.open_ns,
            measured.drained_ns.clamp(times.open_ns, times.close_ns),
        ),
        Stop::Duration { .. } => (times.open_ns, times.close_ns),
        Stop::Requests { .. } if measured.open_ns == u64::MAX => (times.open_ns, times.open_ns),
        Stop::Requests { .. } => (measured.open_ns, measured.close_ns.max(measured.open_ns)),
    };
    let wall_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |wall| wall.as_nanos() as u64);
    let open_unix_ns = wall_ns.saturating_sub(Monotonic.now().saturating_sub(open_ns));
    Window {
        open_ns,
        close_ns,
        drained_ns: measured.drained_ns.max(close_ns),
        open_unix_ns,
        interrupted,
    }
}

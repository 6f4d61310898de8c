//! The events of a run.

use crate::distribution::Distribution;
use crate::run::limits::Limit;
use serde::Serialize;

/// One event; the JSON form is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Before the first connection: how many there may be.
    Started {
        /// Of this run.
        limit: Limit,
        /// Of this machine; null: nothing known limits it.
        machine: Option<Limit>,
    },
    /// Connections are open, and the warm-up is over.
    WindowOpen {
        /// CLOCK_MONOTONIC.
        monotonic_ns: u64,
    },
    /// Four times a second.
    Progress {
        /// The part of the run.
        phase: Phase,
        /// Since the phase began.
        elapsed_ns: u64,
        /// Requests of the window so far.
        ok: u64,
        /// Requests of the window so far, all classes but `ok`.
        failed: u64,
        /// Sent and not ended.
        in_flight: u64,
        /// Due and not sent.
        queued: u64,
        /// Connections that have been open.
        connected: u64,
        /// How long requests took of late; null before the first second is over.
        last_second: Option<LastSecond>,
    },
    /// The window is over; the drain begins.
    WindowClose {
        /// CLOCK_MONOTONIC.
        monotonic_ns: u64,
    },
}

/// Latencies of the last whole second, for a live display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LastSecond {
    /// Counted from the opening of the window.
    pub second: u64,
    /// Requests answered as expected in it.
    pub ok: u64,
    /// Their median.
    pub p50_ns: u64,
    /// Null when fewer than ten of them lie above it.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

impl LastSecond {
    /// Of the latencies that the workers had in that second; null when there are none.
    pub fn of<'d>(second: u64, latencies: impl Iterator<Item = &'d Distribution>) -> Option<Self> {
        let mut all = Distribution::default();
        latencies.for_each(|one| all.merge(one));
        Some(Self {
            second,
            ok: all.count(),
            p50_ns: all.quantile_ns(0.5)?,
            p99_ns: all.quantile_ns(0.99).filter(|_| all.count() >= LEAST_FOR_P99),
            max_ns: all.max_ns()?,
        })
    }
}

// A hundredth of them is ten.
const LEAST_FOR_P99: u64 = 1000;

/// The part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Connections are opened; those that are open load, unrecorded.
    Opening,
    /// Load that is not recorded.
    Warmup,
    /// Load that is.
    Window,
    /// No new requests; answers are waited for.
    Drain,
}

//! The events of a run.

use crate::limit::Limit;
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
    },
    /// The window is over; the drain begins.
    WindowClose {
        /// CLOCK_MONOTONIC.
        monotonic_ns: u64,
    },
}

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

//! What is said while a run goes on.

use super::control::SLICE;
use super::crew::Member;
use super::event::{Event, LastSecond, Phase};

use crate::clock::{Clock, Monotonic, NS_PER_S};
use crate::record::recording::Window;
use crate::worker::{Common, Gauges, Opening, Times};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

const OPENING_SLICE: Duration = Duration::from_millis(5);
// Four times a second.
pub(super) const PROGRESS_EVERY_NS: u64 = 250_000_000;

/// Sends the events that are due, from the clock and the gauges.
pub(super) struct Watch {
    pub(super) times: Times,
    pub(super) opening: Arc<Opening>,
    pub(super) next_progress_ns: u64,
    pub(super) opened: bool,
    pub(super) closed: bool,
}

impl Watch {
    pub(super) fn new(common: Common) -> Self {
        Self {
            times: common.times,
            opening: common.opening,
            next_progress_ns: 0,
            opened: false,
            closed: false,
        }
    }

    pub(super) fn look(&mut self, crew: &[Member], on_event: &mut dyn FnMut(&Event)) {
        let now_ns = Monotonic.now();
        if let Some(open_ns) = self.opening.open_ns() {
            self.times = self.times.opening_at(open_ns);
        }
        if !self.opened && now_ns >= self.times.open_ns {
            self.opened = true;
            on_event(&Event::WindowOpen {
                monotonic_ns: self.times.open_ns,
            });
        }
        if !self.closed && now_ns >= self.times.close_ns {
            self.closed = true;
            on_event(&Event::WindowClose {
                monotonic_ns: self.times.close_ns,
            });
        }
        if now_ns >= self.next_progress_ns {
            self.next_progress_ns = now_ns + PROGRESS_EVERY_NS;
            on_event(&self.progress(crew, now_ns));
        }
    }

    /// To the next event, at most a slice.
    pub(super) fn pause(&self) -> Duration {
        let now_ns = Monotonic.now();
        [self.times.open_ns, self.times.close_ns, self.next_progress_ns]
            .into_iter()
            .filter(|&at_ns| at_ns > now_ns)
            .map(|at_ns| Duration::from_nanos(at_ns - now_ns))
            .fold(self.longest_pause(), Duration::min)
    }

    /// Who follows the run wants to know of the opening before it comes, and that may be soon.
    pub(super) fn longest_pause(&self) -> Duration {
        match self.opening.open_ns() {
            Some(_) => SLICE,
            None => OPENING_SLICE,
        }
    }

    /// A run that ended before its window opened has an empty one.
    pub(super) fn times_after(&self, ended_ns: u64) -> Times {
        match self.opening.open_ns() {
            Some(open_ns) => self.times.opening_at(open_ns),
            None => self.times.opening_at(ended_ns),
        }
    }

    pub(super) fn progress(&self, crew: &[Member], now_ns: u64) -> Event {
        let sum = |gauge: fn(&Gauges) -> &std::sync::atomic::AtomicU64| {
            crew.iter()
                .map(|member| gauge(&member.gauges).load(Ordering::Relaxed))
                .sum()
        };
        let (phase, since_ns) = match (self.opened, self.closed) {
            (false, _) if self.opening.open_ns().is_none() => (Phase::Opening, self.times.epoch_ns),
            (false, _) => (Phase::Warmup, self.opening.warm_up_from_ns(self.times.open_ns)),
            (true, false) => (Phase::Window, self.times.open_ns),
            (true, true) => (Phase::Drain, self.times.close_ns),
        };
        Event::Progress {
            phase,
            elapsed_ns: now_ns.saturating_sub(since_ns),
            ok: sum(|gauges| &gauges.ok),
            failed: sum(|gauges| &gauges.failed),
            in_flight: sum(|gauges| &gauges.in_flight),
            queued: sum(|gauges| &gauges.queued),
            connected: sum(|gauges| &gauges.connected),
            last_second: last_second(crew, now_ns.saturating_sub(self.times.open_ns)),
        }
    }

    /// A run that ends by count or by cancellation closes its window when it is over.
    pub(super) fn finish(&mut self, window: &Window, on_event: &mut dyn FnMut(&Event)) {
        if !self.opened {
            on_event(&Event::WindowOpen {
                monotonic_ns: window.open_ns,
            });
        }
        if !self.closed {
            on_event(&Event::WindowClose {
                monotonic_ns: window.close_ns,
            });
        }
    }
}

// What is older says nothing about now.
pub(super) const SHOWN_FOR_SECONDS: u64 = 3;

/// The latencies of the last second that any worker has ended, `elapsed_ns` after the opening.
pub(super) fn last_second(crew: &[Member], elapsed_ns: u64) -> Option<LastSecond> {
    let latest = || crew.iter().filter_map(|member| member.ledger.latest());
    let second = latest().map(|one| one.second).max()?;
    let own = latest()
        .filter(|one| one.second == second)
        .map(|one| &*one.latency);
    (elapsed_ns / NS_PER_S <= second + SHOWN_FOR_SECONDS)
        .then(|| LastSecond::of(second, own))
        .flatten()
}

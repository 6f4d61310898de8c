//! Nanoseconds since the server was started, from CLOCK_MONOTONIC.

use std::time::Instant;

/// One origin for all workers of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            origin: Instant::now(),
        }
    }

    /// The time since the origin. A `u64` of nanoseconds lasts 584 years.
    pub(crate) fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

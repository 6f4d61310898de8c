//! Time, injected: the real clock, and one for tests that moves on request.

use std::cell::Cell;
use std::rc::Rc;

/// A source of time.
pub trait Clock {
    /// Nanoseconds since a fixed moment; never goes back.
    fn now(&self) -> u64;
}

/// CLOCK_MONOTONIC: the clock of the schedule, of the timers and of every stamp.
#[derive(Debug, Clone, Copy, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is valid for writes, and CLOCK_MONOTONIC always exists on Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
    }
}

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A clock that stands still until it is moved; clones share their time.
#[derive(Debug, Clone, Default)]
pub struct Simulated(Rc<Cell<u64>>);

impl Simulated {
    /// Moves time forward to `now_ns`; a step back is ignored.
    pub fn advance_to(&self, now_ns: u64) {
        self.0.set(self.0.get().max(now_ns));
    }
}

impl Clock for Simulated {
    fn now(&self) -> u64 {
        self.0.get()
    }
}

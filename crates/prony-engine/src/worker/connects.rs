//! Which connections are begun in a step of the worker, and how many.
//!
//! A `connect()` takes as long as several requests, for over loopback it runs the server's side of the handshake too. So a step begins
//! a batch of them at most, and between two batches the worker looks at its clock, deadlines, ready sockets and cancellation.

use super::Worker;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::protocol::Protocol;

/// Attempts of a step in which nothing else happened: about a quarter of a millisecond.
const LEAST_PER_STEP: usize = 8;
// A `connect()` costs about three times what a request does: so connects get as much time as the sockets that were ready.
const READY_PER_ATTEMPT: usize = 3;
/// After this time the batch ends in any case: where ports are scarce, the search for one takes milliseconds.
const MOST_NS: u64 = 5_000_000;

impl<P: Protocol, D: Driver, C: Clock> Worker<P, D, C> {
    /// Begins the connections that are wanted, as far as one step may.
    pub(super) fn open_some(&mut self) {
        let mut began_ns = None;
        let most = LEAST_PER_STEP.max(self.handled / READY_PER_ATTEMPT);
        for _ in 0..most {
            let Some(slot) = self.next_to_open() else { return };
            let now_ns = self.clock.now();
            self.open(slot, now_ns);
            if now_ns >= *began_ns.get_or_insert(now_ns) + MOST_NS {
                return;
            }
        }
    }

    /// Whether a connection is to be begun that the last step had no time for.
    pub(super) fn has_more_to_open(&self) -> bool {
        let waits = if self.is_open_loop() {
            self.attempts < self.queue.len()
        } else {
            true
        };
        !self.repeats.is_empty() || (waits && !self.closed.is_empty())
    }

    /// Requests to be sent once more come first: their clocks run on. Then in a closed loop every slot without a connection, who waits
    /// longest first; in an open loop as many as requests wait, while slots last.
    fn next_to_open(&mut self) -> Option<usize> {
        if let Some(slot) = self.repeats.pop_front() {
            return Some(slot);
        }
        if self.is_open_loop() {
            return (self.attempts < self.queue.len())
                .then(|| self.closed.pop_back())
                .flatten();
        }
        self.closed.pop_front()
    }

    /// Each attempt has its own stamp, taken here, right before its `connect()`.
    fn open(&mut self, slot: usize, now_ns: u64) {
        if self.is_open_loop() || self.connections[slot].flight.is_some() {
            self.connect(slot, now_ns);
        } else {
            self.begin(slot, now_ns);
        }
    }
}

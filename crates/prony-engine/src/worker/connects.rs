//! Which connections are begun in a step of the worker, and how many.
//!
//! A `connect()` takes as long as several requests, for over loopback it runs the server's side of the handshake too. So a step begins
//! a batch of them at most, and between two batches the worker looks at its clock, deadlines, ready sockets and cancellation.

use super::{State, Worker};
use crate::clock::Clock;
use crate::socket::Streams;
use crate::wire::Protocol;

/// Attempts of a step in which nothing else happened: about a quarter of a millisecond.
const LEAST_PER_STEP: usize = 8;
// A `connect()` costs about three times what a request does: so what is begun gets as much time as the sockets that were ready.
const REQUESTS_PER_ATTEMPT: usize = 3;
/// After this time the batch ends in any case: where ports are scarce, the search for one takes milliseconds.
const MOST_NS: u64 = 5_000_000;

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// Begins the connections that are wanted, as far as one step may.
    pub(super) fn open_some(&mut self) {
        let mut began_ns = None;
        let mut left = self.handled.max(LEAST_PER_STEP * REQUESTS_PER_ATTEMPT);
        while left > 0 {
            let Some(slot) = self.next_to_open() else { return };
            let is_open = matches!(self.connections[slot].state, State::Idle { .. });
            left = left.saturating_sub(if is_open { 1 } else { REQUESTS_PER_ATTEMPT });
            let now_ns = self.clock.now();
            self.open(slot, now_ns);
            if now_ns >= *began_ns.get_or_insert(now_ns) + MOST_NS {
                return;
            }
        }
    }

    /// Whether a connection is to be begun that the last step had no time for.
    pub(super) fn has_more_to_open(&self) -> bool {
        let wanted = if self.is_open_loop() {
            self.attempts < self.queue.len() && self.has_free_slot()
        } else {
            !self.closed.is_empty() && self.has_room_to_open()
        };
        wanted || !self.repeats.is_empty()
    }

    fn has_free_slot(&self) -> bool {
        !self.closed.is_empty() || self.connections.len() < self.task.connections
    }

    /// Requests to be sent once more come first: their clocks run on. Then in a closed loop every slot without a connection, who waits
    /// longest first; in an open loop as many as requests wait, while slots last.
    fn next_to_open(&mut self) -> Option<usize> {
        if let Some(slot) = self.repeats.pop_front() {
            return Some(slot);
        }
        if !self.is_open_loop() {
            return self.has_room_to_open().then(|| self.closed.pop_front()).flatten();
        }
        if self.attempts >= self.queue.len() {
            return None;
        }
        let slot = self.closed.pop_back().or_else(|| self.new_slot());
        if slot.is_none() {
            self.note_bound();
        }
        slot
    }

    fn new_slot(&mut self) -> Option<usize> {
        let slot = self.connections.len();
        (slot < self.task.connections).then(|| {
            self.add_slot();
            slot
        })
    }

    /// A request of the window waits for the end of another one: from now on the server sets the pace, as in a closed loop.
    fn note_bound(&mut self) {
        let is_new = self.queue_figures.bound_at_ns.is_none();
        if is_new
            && self
                .queue
                .back()
                .is_some_and(|flight| self.recorder.is_own(flight))
        {
            let since_ns = self.clock.now().saturating_sub(self.task.times.open_ns);
            self.queue_figures.bound_at_ns = Some(since_ns);
        }
    }

    /// Each attempt has its own stamp, taken here, right before its `connect()`.
    fn open(&mut self, slot: usize, now_ns: u64) {
        if self.is_open_loop() || self.connections[slot].flight.is_some() {
            self.connect(slot, now_ns);
        } else {
            self.connections[slot].listed = false;
            self.begin(slot, now_ns);
        }
    }
}

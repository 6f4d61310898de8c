//! The connections of a closed loop in stages: added and taken away while the load runs, as its plan says.
//!
//! A connection that is taken away ends its request first, whatever becomes of that, and is closed then: no request is lost, and none is
//! counted twice. One that is wanted again before that just goes on.

use super::connection::State;
use super::Worker;
use crate::clock::Clock;
use crate::socket::Streams;
use crate::wire::Protocol;

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// Whether the number of connections changes in the window.
    pub(crate) fn has_plan(&self) -> bool {
        self.task.plan.is_some()
    }

    /// The opening of the window is known: its stages begin with it.
    pub(super) fn begin_plan(&mut self) {
        self.next_change_ns = self.task.plan.as_ref().map(|_| self.task.times.open_ns);
    }

    /// Adds connections and takes them away, when the plan says so.
    pub(super) fn follow_plan(&mut self, now_ns: u64) {
        let is_due = self.next_change_ns.is_some_and(|at_ns| at_ns <= now_ns);
        let Some(plan) = self.task.plan.as_ref().filter(|_| is_due) else {
            return;
        };
        let open_ns = self.task.times.open_ns;
        let since_ns = now_ns - open_ns;
        self.next_change_ns = plan.next_change_ns(since_ns).map(|at_ns| open_ns + at_ns);
        let wanted = plan.at(since_ns) * self.task.streams;
        let before = std::mem::replace(&mut self.wanted, wanted);
        (before..wanted).for_each(|slot| self.add(slot));
        if wanted < before {
            (wanted..before).for_each(|slot| self.take_away(slot));
            let connections = &self.connections;
            self.closed
                .retain(|&slot| connections[slot].state != State::Parked);
        }
    }

    pub(super) fn is_wanted(&self, slot: usize) -> bool {
        slot < self.wanted
    }

    /// What the plan adds later has no connection in the beginning.
    pub(super) fn park_the_unwanted(&mut self) {
        let later = self.wanted.min(self.connections.len());
        for connection in &mut self.connections[later..] {
            connection.state = State::Parked;
        }
    }

    fn add(&mut self, slot: usize) {
        if self.connections[slot].state == State::Parked {
            self.counts.added += u64::from(self.is_first_of_connection(slot));
            self.connections[slot].state = State::Closed;
            self.closed.push_back(slot);
        }
    }

    /// At once where there is no request on it; else when that has ended, or after the wait that follows a failed attempt.
    fn take_away(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        let is_free = matches!(connection.state, State::Closed | State::Idle { .. });
        if is_free && connection.flight.is_none() {
            self.park(slot);
        }
    }

    /// The slot has no request, and is not wanted.
    pub(super) fn park(&mut self, slot: usize) {
        self.counts.taken_away += u64::from(self.is_first_of_connection(slot));
        self.disconnect(slot);
        let connection = &mut self.connections[slot];
        connection.state = State::Parked;
        connection.listed = false;
    }
}

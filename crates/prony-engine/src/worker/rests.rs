//! How far users rest in a closed loop: a reply is on its way to them, and their next request on its way here.
//!
//! Here is where requests reach the server, and their replies leave it. So what the way adds is no time of a connection that is busy: it
//! lies between a reply and the next request. The recorder adds it to each time.

use super::Worker;
use crate::clock::Clock;
use crate::socket::Streams;
use crate::wire::Protocol;
use std::cmp::Reverse;
use std::collections::VecDeque;

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// Whether a slot rests between two requests.
    pub(super) fn has_rests(&self) -> bool {
        !self.is_open_loop() && self.task.delay_ns > 0
    }

    /// The slots begin one after the other over one rest: else all would go on together for ever.
    pub(super) fn rest_first(&mut self) {
        if !self.has_rests() {
            return;
        }
        let (epoch_ns, delay_ns) = (self.task.times.epoch_ns, self.task.delay_ns);
        let slots: VecDeque<usize> = std::mem::take(&mut self.closed);
        let count = slots.len() as u64;
        for (place, slot) in slots.into_iter().enumerate() {
            let part_ns = u128::from(delay_ns) * place as u128 / u128::from(count);
            self.connections[slot].listed = true;
            self.rests.push(Reverse((epoch_ns + part_ns as u64, slot)));
        }
    }

    /// A redirect that its request followed is another way there and back.
    pub(super) fn rest(&mut self, slot: usize, now_ns: u64) {
        let ways = 1 + u64::from(self.hops(slot));
        self.connections[slot].listed = true;
        self.rests
            .push(Reverse((now_ns + ways * self.task.delay_ns, slot)));
    }

    pub(super) fn end_rests(&mut self, now_ns: u64) {
        while let Some(&Reverse((_, slot))) = self.rests.peek().filter(|one| one.0 .0 <= now_ns) {
            self.rests.pop();
            self.closed.push_back(slot);
        }
    }
}

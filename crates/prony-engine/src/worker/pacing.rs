//! How a worker waits: until the next thing falls due, or something is ready.

use super::opening::LOOK_EVERY_NS;
use super::{Worker, MAX_WAIT_NS};
use crate::clock::Clock;
use crate::socket::Streams;
use crate::wire::Protocol;
use std::cmp::Reverse;

// A look at the sockets that finds nothing takes about a microsecond. What took longer was the time of others, who had the CPU.
const LONGEST_LOOK_NS: u64 = 20_000;

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// Sleeps until something is ready or due. Precise pacing ends the sleep shortly before a request is due and spins the rest away,
    /// still taking answers; what it spins is measured, so that it is never counted as work. Returns when it was done.
    pub(super) fn wait(&mut self) -> std::io::Result<u64> {
        let now_ns = self.clock.now();
        let wake_ns = self.wake_ns(now_ns);
        let spin_from_ns = match (self.task.spin_margin_ns, self.next_due_ns) {
            (Some(margin_ns), Some(due_ns)) => due_ns.saturating_sub(margin_ns),
            _ => u64::MAX,
        };
        let mut woke_ns = now_ns;
        if now_ns < spin_from_ns {
            let sleep_ns = wake_ns.min(spin_from_ns).saturating_sub(now_ns);
            self.driver.wait(sleep_ns, &mut self.ready)?;
            woke_ns = self.clock.now();
        }
        // A sleep may have ended early: for an answer, a time-out or the edge of the window.
        if self.ready.is_empty() && spin_from_ns <= woke_ns {
            woke_ns = self.spin_until(wake_ns)?;
        }
        Ok(woke_ns)
    }

    /// Looks at the sockets until something is ready or `wake_ns` has come, at least once. A look that finds something is work, and so
    /// is one at a time when something is due already. Returns when it stopped looking.
    fn spin_until(&mut self, wake_ns: u64) -> std::io::Result<u64> {
        let mut now_ns = self.clock.now();
        loop {
            self.driver.wait(0, &mut self.ready)?;
            let looked_ns = self.clock.now();
            if !self.ready.is_empty() || self.driver.has_work() {
                return Ok(looked_ns);
            }
            self.spin_ns += looked_ns.min(wake_ns).saturating_sub(now_ns).min(LONGEST_LOOK_NS);
            if looked_ns >= wake_ns {
                return Ok(looked_ns);
            }
            now_ns = looked_ns;
        }
    }

    fn wake_ns(&self, now_ns: u64) -> u64 {
        let times = &self.task.times;
        let edges = [times.open_ns, times.close_ns]
            .into_iter()
            .filter(|&edge| edge > now_ns);
        let own = [
            self.next_due_ns,
            self.deadlines.first().map(|(at_ns, _)| at_ns),
            self.queue.front().map(|flight| times.connected_by_ns(flight)),
            self.back_offs.peek().map(|&Reverse((at_ns, _))| at_ns),
            self.rests.peek().map(|&Reverse((at_ns, _))| at_ns),
            self.next_change_ns,
            self.drain_end_ns(now_ns),
            self.has_more_to_open().then_some(now_ns),
            (!self.unread.is_empty()).then_some(now_ns),
            self.driver.has_work().then_some(now_ns),
            self.is_opening().then_some(now_ns + LOOK_EVERY_NS),
        ];
        own.into_iter()
            .flatten()
            .chain(edges)
            .chain([now_ns + MAX_WAIT_NS])
            .min()
            .unwrap_or(now_ns)
    }
}

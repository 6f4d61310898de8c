//! How a worker waits: until the next thing falls due, or something is ready.

use super::opening::LOOK_EVERY_NS;
use super::plan::SPIN_NS;
use super::{Worker, MAX_WAIT_NS};
use crate::clock::Clock;
use crate::driver::Driver;
use crate::protocol::Protocol;
use crate::spec::Pacing;
use std::cmp::Reverse;

impl<P: Protocol, D: Driver, C: Clock> Worker<P, D, C> {
    /// Sleeps until something is ready or due. Precise pacing sleeps to shortly before a due request and spins the rest away, still
    /// taking answers; what it spins is measured, so that it is never counted as work.
    pub(super) fn wait(&mut self) -> std::io::Result<()> {
        let now_ns = self.clock.now();
        let wake_ns = self.wake_ns(now_ns);
        let spins = self.task.pacing == Pacing::Precise && self.next_due_ns == Some(wake_ns);
        let margin_ns = if spins { SPIN_NS } else { 0 };
        let sleep_ns = wake_ns.saturating_sub(now_ns).saturating_sub(margin_ns);
        self.driver.wait(sleep_ns, &mut self.ready)?;
        if spins && self.ready.is_empty() {
            self.spin_until(wake_ns)?;
        }
        Ok(())
    }

    fn spin_until(&mut self, wake_ns: u64) -> std::io::Result<()> {
        let began_ns = self.clock.now();
        // A sleep that a distant due time cut short at its cap is no reason to spin.
        if wake_ns > began_ns + SPIN_NS {
            return Ok(());
        }
        let mut now_ns = began_ns;
        while now_ns < wake_ns && self.ready.is_empty() {
            self.driver.wait(0, &mut self.ready)?;
            now_ns = self.clock.now();
        }
        self.spin_ns += now_ns - began_ns;
        Ok(())
    }

    fn wake_ns(&self, now_ns: u64) -> u64 {
        let times = &self.task.times;
        let edges = [times.open_ns, times.close_ns]
            .into_iter()
            .filter(|&edge| edge > now_ns);
        let own = [
            self.next_due_ns,
            self.deadlines.first().map(|(at_ns, _)| at_ns),
            self.queue
                .front()
                .map(|flight| flight.intended_ns + times.timeout_ns),
            self.back_offs.peek().map(|&Reverse((at_ns, _))| at_ns),
            self.drain_end_ns(now_ns),
            self.has_more_to_open().then_some(now_ns),
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

//! How long others kept a worker from its CPU, one wait at a time, and which replies lay there meanwhile.
//!
//! The kernel only sums waits up, and a sum hides what matters: thousands of waits of 10 us are the price of waking up, ten of 3 ms are
//! in the p99. So the worker looks at the sum after each round that is long enough to hide a long wait. That is outside the path of a
//! request, and takes 0.8 us.

use super::Round;
use crate::cpu::{Queued, RunQueue};
use crate::distribution::Distribution;

/// A shorter wait is not looked for. Another task keeps the CPU for its slice, 0.7 ms and more (kernel documentation,
/// scheduler/sched-eevdf.rst).
pub const LONG_NS: u64 = 200_000;
// What a turn on the CPU may wait for it and still be usual: 1 us where nobody else wants the CPU, up to 14 us on average where a virtual
// CPU had halted.
const USUAL_NS: u64 = 30_000;
// A sum that is looked at this often holds few turns beside a long wait.
const LOOK_EVERY_NS: u64 = 1_000_000;

/// The long waits of one worker since the opening of the window.
#[derive(Debug, Default)]
pub struct Waits {
    run_queue: RunQueue,
    seen: Queued,
    seen_at_ns: u64,
    // A wait that came after the sockets were looked at: what came meanwhile is taken in the next round.
    before_next_ns: u64,
    /// How many there were.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Of each reply that was taken after one, how long the wait was.
    pub late_replies: Distribution,
}

impl Waits {
    /// None yet; to be made on the worker's own thread.
    pub fn of_this_thread() -> Self {
        Self {
            run_queue: RunQueue::of_this_thread(),
            ..Self::default()
        }
    }

    /// From now on they count.
    pub fn begin(&mut self) {
        self.seen = self.run_queue.queued();
    }

    /// Looks whether a round held a long wait.
    #[inline]
    pub fn round(&mut self, round: &Round) {
        let is_long = round.length_ns() >= LONG_NS;
        if is_long || self.before_next_ns > 0 || round.ended_ns >= self.seen_at_ns + LOOK_EVERY_NS {
            self.look(round, self.run_queue.queued());
        }
    }

    /// Takes what the kernel has counted at the end of a round.
    fn look(&mut self, round: &Round, now: Queued) {
        let before_ns = std::mem::take(&mut self.before_next_ns);
        let own_ns = self.long_wait_ns(now).min(round.length_ns());
        (self.seen, self.seen_at_ns) = (now, round.ended_ns);
        let mut late_ns = before_ns;
        if own_ns >= LONG_NS {
            self.count += 1;
            self.total_ns += own_ns;
            if round.worked_ns() >= own_ns {
                self.before_next_ns = own_ns;
            } else {
                late_ns = late_ns.max(own_ns);
            }
        }
        if late_ns > 0 {
            self.late_replies.record_n(late_ns, round.replies);
        }
    }

    /// What the turns since the last look waited for beyond the usual.
    fn long_wait_ns(&self, now: Queued) -> u64 {
        let since = now.since(&self.seen);
        // The long one is a turn too.
        let usual_ns = since.turns.saturating_sub(1) * USUAL_NS;
        since.ns.saturating_sub(usual_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// A round that begins at zero, sleeps and works so long, and takes four replies.
    fn round(slept_ns: u64, worked_ns: u64) -> Round {
        Round {
            began_ns: 0,
            woke_ns: slept_ns,
            ended_ns: slept_ns + worked_ns,
            replies: 4,
        }
    }

    fn queued(ns: u64, turns: u64) -> Queued {
        Queued { ns, turns }
    }

    fn late(waits: &Waits) -> (u64, Option<u64>) {
        (waits.late_replies.count(), waits.late_replies.max_ns())
    }

    #[test]
    fn a_long_wait_before_the_sockets_are_looked_at_makes_the_replies_of_its_round_late() {
        let mut waits = Waits::default();
        waits.look(&round(3 * MS, 50 * US), queued(2 * MS, 1));
        assert_eq!((waits.count, waits.total_ns), (1, 2 * MS));
        assert_eq!(late(&waits), (4, Some(2 * MS)));
        waits.look(&round(3 * MS, 50 * US), queued(2 * MS, 2));
        assert_eq!(late(&waits).0, 4);
    }

    #[test]
    fn a_long_wait_after_that_makes_the_replies_of_the_next_round_late() {
        let mut waits = Waits::default();
        waits.look(&round(50 * US, 3 * MS), queued(2 * MS, 1));
        assert_eq!(late(&waits).0, 0);
        waits.look(&round(50 * US, 50 * US), queued(2 * MS, 1));
        assert_eq!(late(&waits), (4, Some(2 * MS)));
        waits.look(&round(50 * US, 50 * US), queued(2 * MS, 1));
        assert_eq!(late(&waits).0, 4);
    }

    #[test]
    fn short_waits_are_no_long_one_however_many_there_are() {
        let mut waits = Waits::default();
        waits.look(&round(3 * MS, 50 * US), queued(100 * 14 * US, 100));
        assert_eq!((waits.count, late(&waits).0), (0, 0));
        waits.look(&round(3 * MS, 50 * US), queued(200 * 14 * US + MS, 200));
        assert_eq!(waits.count, 0);
        waits.look(&round(9 * MS, 50 * US), queued(210 * 14 * US + 5 * MS, 210));
        assert_eq!(waits.count, 1);
    }

    #[test]
    fn no_wait_is_longer_than_its_round() {
        let mut waits = Waits::default();
        waits.look(&round(300 * US, 0), queued(5 * MS, 1));
        assert_eq!(waits.total_ns, 300 * US);
        waits.look(&round(100 * US, 50 * US), queued(10 * MS, 2));
        assert_eq!(waits.count, 1);
    }
}

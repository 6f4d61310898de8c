//! Arrivals of independent users.

use super::Schedule;
use crate::random;
use crate::spec::Share;

/// Gaps are independent and exponential with mean `1 / rate`; the same seed gives the same arrivals.
///
/// Every worker walks the one common sequence and keeps its own share, so the arrivals do not depend on the number of workers.
#[derive(Debug)]
pub struct Poisson {
    mean_gap_ns: f64,
    state: u64,
    at_ns: u64,
    index: u64,
    share: Share,
}

impl Poisson {
    /// The share of a Poisson stream of `rate_per_s` requests per second.
    pub fn new(rate_per_s: f64, seed: u64, share: Share) -> Self {
        Self {
            mean_gap_ns: 1e9 / rate_per_s,
            state: seed,
            at_ns: 0,
            index: 0,
            share,
        }
    }

    /// The next number, in (0, 1).
    fn uniform(&mut self) -> f64 {
        // 53 bits, shifted by half a step: never 0, whose logarithm is infinite.
        ((random::next(&mut self.state) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

impl Schedule for Poisson {
    fn next_due(&mut self) -> u64 {
        loop {
            let gap = -self.uniform().ln() * self.mean_gap_ns;
            self.at_ns = self.at_ns.saturating_add(gap.round() as u64);
            let own = self.index % self.share.workers == self.share.worker;
            self.index += 1;
            if own {
                return self.at_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Share = Share {
        worker: 0,
        workers: 1,
    };

    fn gaps(seed: u64, count: usize) -> Vec<f64> {
        let mut schedule = Poisson::new(1000.0, seed, WHOLE);
        let mut last = 0;
        (0..count)
            .map(|_| {
                let due = schedule.next_due();
                let gap = (due - last) as f64;
                last = due;
                gap
            })
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        assert_eq!(gaps(7, 100), gaps(7, 100));
        assert_ne!(gaps(7, 100), gaps(8, 100));
    }

    /// Anderson and Darling's test against Exp(1 ms), all parameters known: the 1 % point is 3.857 (D'Agostino and Stephens, 1986,
    /// Goodness-of-Fit Techniques, table 4.2).
    #[test]
    fn t09_gaps_are_exponential() {
        let mut sorted = gaps(42, 20_000);
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let distribution = |gap: f64| (1.0 - (-gap / 1e6).exp()).clamp(1e-12, 1.0 - 1e-12);
        let sum: f64 = (0..n)
            .map(|i| {
                let weight = (2 * i + 1) as f64;
                weight * (distribution(sorted[i]).ln() + (1.0 - distribution(sorted[n - 1 - i])).ln())
            })
            .sum();
        let statistic = -(n as f64) - sum / n as f64;
        assert!(statistic < 3.857, "A2 = {statistic}");
    }
}

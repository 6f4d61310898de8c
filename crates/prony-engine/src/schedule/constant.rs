//! Evenly spaced arrivals.

use super::Schedule;
use crate::clock::NS_PER_S;
use crate::spec::Share;

// Rates are held in millionths of a request per second, so that 999.5/s is exact and an hour drifts by less than its last digit.
const RATE_UNIT: f64 = 1e6;

/// Request k is due at `k / rate`: computed from k each time, so that no rounding adds up.
#[derive(Debug)]
pub struct Constant {
    rate_millionths: u128,
    next: u64,
    step: u64,
}

impl Constant {
    /// The share of an even stream of `rate_per_s` requests per second.
    pub fn new(rate_per_s: f64, share: Share) -> Self {
        // Validated specifications have 0 < rate < 1e9, so this neither wraps nor is zero.
        let rate_millionths = ((rate_per_s * RATE_UNIT).round() as u128).max(1);
        Self {
            rate_millionths,
            next: share.worker,
            step: share.workers,
        }
    }
}

impl Schedule for Constant {
    fn next_due(&mut self) -> u64 {
        let due = u128::from(self.next) * u128::from(NS_PER_S) * (RATE_UNIT as u128) / self.rate_millionths;
        self.next += self.step;
        u64::try_from(due).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many are due before `end_ns`, over all workers.
    fn due_before(rate_per_s: f64, end_ns: u64, workers: u64) -> u64 {
        let of = |worker| {
            let mut schedule = Constant::new(rate_per_s, Share { worker, workers });
            std::iter::from_fn(|| Some(schedule.next_due()))
                .take_while(|&due_ns| due_ns < end_ns)
                .count() as u64
        };
        (0..workers).map(of).sum()
    }

    #[test]
    fn t08_exactly_as_many_are_due_as_the_rate_says() {
        for rate in [7.0, 78.0, 333.0, 999.5, 30_001.0, 1_234_567.0] {
            for (seconds, workers) in [(2, 1), (2, 3)] {
                assert_eq!(
                    due_before(rate, seconds * NS_PER_S, workers),
                    (rate * seconds as f64) as u64
                );
            }
        }
    }

    proptest! {
        #[test]
        fn t08_any_rate_has_its_count_in_any_window(thousandths in 1u64..2_000_000_000, end_ns in 0u64..50_000_000, workers in 1u64..5) {
            let rate_per_s = thousandths as f64 / 1e3;
            // Request k is due at k / rate, rounded down, and so before `end_ns` where k < end * rate.
            let exact = u128::from(end_ns) * u128::from(thousandths);
            let expected = exact.div_ceil(u128::from(NS_PER_S) * 1_000) as u64;
            prop_assert_eq!(due_before(rate_per_s, end_ns, workers), expected);
        }
    }

    /// Of all gaps of a constant stream none differs from the others by more than the rounding of its two ends.
    #[test]
    fn t09_gaps_are_even() {
        for rate in [333.0, 10_000.0, 30_001.0] {
            let share = Share {
                worker: 0,
                workers: 1,
            };
            let mut schedule = Constant::new(rate, share);
            let dues: Vec<u64> = (0..100_000).map(|_| schedule.next_due()).collect();
            let uneven = |pair: &[u64]| ((pair[1] - pair[0]) as f64 - 1e9 / rate).abs() > 1.0;
            assert_eq!(dues.windows(2).filter(|pair| uneven(pair)).count(), 0, "{rate}/s");
        }
    }

    #[test]
    fn t08_the_rate_does_not_drift() {
        for rate in [7.0, 78.0, 333.0, 999.5, 30_001.0, 1_234_567.0] {
            let mut schedule = Constant::new(
                rate,
                Share {
                    worker: 0,
                    workers: 1,
                },
            );
            let count = (rate * 60.0).min(300_000.0) as u64;
            let mut last = 0;
            for _ in 0..=count {
                last = schedule.next_due();
            }
            let achieved = count as f64 / (last as f64 / 1e9);
            assert!(
                (achieved / rate - 1.0).abs() < 1e-6,
                "{rate}/s came out as {achieved}/s"
            );
        }
    }
}

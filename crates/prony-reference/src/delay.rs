//! How long a request waits for its reply.

use serde::{Deserialize, Serialize};

/// The distribution of the time between a request's last byte and the first byte of its reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Delay {
    /// The reply goes out at once.
    #[default]
    None,
    /// Always the same time.
    Fixed {
        /// The time.
        ns: u64,
    },
    /// Exponentially distributed times.
    Exponential {
        /// Their mean.
        mean_ns: u64,
        /// Selects the sequence.
        seed: u64,
    },
    /// One of two times.
    Bimodal {
        /// The usual time.
        low_ns: u64,
        /// The other time.
        high_ns: u64,
        /// The probability of `high_ns`, 0 to 1.
        high_share: f64,
        /// Selects the sequence.
        seed: u64,
    },
}

impl Delay {
    /// The delay of the server's n-th request (the first is 1).
    ///
    /// It is a pure function of the number, so that a test can compute what the server will do, whatever the
    /// number of threads and connections.
    ///
    /// ```
    /// use prony_reference::Delay;
    /// let delay = Delay::Bimodal { low_ns: 1, high_ns: 9, high_share: 0.1, seed: 7 };
    /// let high = (1..=10_000).filter(|&n| delay.of_request_ns(n) == 9).count();
    /// assert!((900..1100).contains(&high));
    /// ```
    pub fn of_request_ns(&self, number: u64) -> u64 {
        match *self {
            Delay::None => 0,
            Delay::Fixed { ns } => ns,
            // Inverse transform; 1 - u lies in (0, 1], so that the logarithm is finite.
            Delay::Exponential { mean_ns, seed } => {
                (-(1.0 - uniform(seed, number)).ln() * mean_ns as f64) as u64
            }
            Delay::Bimodal {
                low_ns,
                high_ns,
                high_share,
                seed,
            } => {
                if uniform(seed, number) < high_share {
                    high_ns
                } else {
                    low_ns
                }
            }
        }
    }
}

/// A number in [0, 1) from the n-th output of SplitMix64, which can be computed without the ones before it.
///
/// Source: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, section 3.
fn uniform(seed: u64, number: u64) -> f64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // The upper 53 bits are what a double holds exactly.
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::Delay;

    #[test]
    fn an_exponential_delay_has_its_mean_and_its_quantiles() {
        let delay = Delay::Exponential {
            mean_ns: 1_000_000,
            seed: 42,
        };
        let n = 200_000;
        let mut delays: Vec<u64> = (1..=n).map(|number| delay.of_request_ns(number)).collect();
        let mean = delays.iter().sum::<u64>() as f64 / n as f64;
        // Four standard errors of the mean are 4 / sqrt(200,000) = 0.9 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.009, "{mean}");
        delays.sort_unstable();
        let p99 = delays[n as usize * 99 / 100] as f64;
        assert!((p99 / (1e6 * 100f64.ln()) - 1.0).abs() < 0.02, "{p99}");
    }

    #[test]
    fn the_same_seed_gives_the_same_delays_and_another_seed_others() {
        let delays = |seed| -> Vec<u64> {
            let delay = Delay::Exponential {
                mean_ns: 1_000_000,
                seed,
            };
            (1..100).map(|number| delay.of_request_ns(number)).collect()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }
}

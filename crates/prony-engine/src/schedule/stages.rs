//! Arrivals whose rate changes: steps and linear ramps, one stage after the other.

use super::{Poisson, Schedule};
use crate::clock::NS_PER_S;
use crate::spec::Share;
use crate::spec::{Arrivals, RateStage};

// Rates in millionths of a request per second, as in `Constant`.
const RATE_UNIT: f64 = 1e6;
// What arrives is counted in integers, with which a linear ramp begins and ends exactly: twice the rate in millionths, times
// nanoseconds. This is one request.
const REQUEST: u128 = 2 * 1_000_000 * NS_PER_S as u128;
// After the last stage nothing is due; far enough not to overflow when an epoch is added.
const NEVER_NS: u64 = u64::MAX / 4;

/// The rate over time. A request is due when the integral of the rate reaches its number, from 0: the first one at once.
///
/// *Definition*: within a stage of length T from rate a to rate b, the integral up to t is `a t + (b - a) t^2 / (2 T)`. Its inverse is
/// taken in closed form and then set right in integers, so that due times are exact to the nanosecond (rounded down) at any rate.
#[derive(Debug, Clone)]
struct Profile {
    pieces: Vec<Piece>,
}

/// One stage in integers.
#[derive(Debug, Clone, Copy)]
struct Piece {
    begin_ns: u64,
    length_ns: u64,
    from: u128,
    to: u128,
    /// What has arrived when it begins.
    before: u128,
}

impl Profile {
    fn new<'s>(stages: impl IntoIterator<Item = &'s RateStage>) -> Self {
        let (mut begin_ns, mut before) = (0, 0);
        let pieces = stages
            .into_iter()
            .map(|stage| {
                let piece = Piece {
                    begin_ns,
                    length_ns: stage.duration_ns,
                    from: millionths(stage.from_per_s),
                    to: millionths(stage.to_per_s),
                    before,
                };
                begin_ns += stage.duration_ns;
                before += piece.amount();
                piece
            })
            .collect();
        Self { pieces }
    }

    /// When so much has arrived, rounded down; null: never. At a pause, its end: then the next one comes.
    fn time_of(&self, amount: u128) -> Option<u64> {
        let place = self
            .pieces
            .partition_point(|piece| piece.before + piece.amount() <= amount);
        self.pieces.get(place).map(|piece| piece.time_of(amount))
    }
}

fn millionths(rate_per_s: f64) -> u128 {
    // Validated specifications have 0 <= rate <= 1e9.
    (rate_per_s * RATE_UNIT).round() as u128
}

impl Piece {
    fn amount(&self) -> u128 {
        (self.from + self.to) * u128::from(self.length_ns)
    }

    fn time_of(&self, amount: u128) -> u64 {
        let (own, length) = (amount - self.before, u128::from(self.length_ns));
        let within = if self.from <= self.to {
            Rise {
                from: self.from,
                by: self.to - self.from,
                length,
            }
            .last_with_at_most(own)
        } else {
            // From its end, where the rate is lowest: the square root loses nothing there.
            let reversed = Rise {
                from: self.to,
                by: self.from - self.to,
                length,
            };
            length - reversed.first_with_at_least(self.amount() - own)
        };
        self.begin_ns + within as u64
    }
}

/// A rate that does not fall: from `from` by `by` in `length` ns.
struct Rise {
    from: u128,
    by: u128,
    length: u128,
}

impl Rise {
    /// What arrives until t, whole and remainder over `length`.
    fn until(&self, t: u128) -> (u128, u128) {
        let slope = self.by * t;
        let (whole, rest) = (slope / self.length, slope % self.length * t);
        (
            2 * self.from * t + whole * t + rest / self.length,
            rest % self.length,
        )
    }

    fn is_at_most(&self, t: u128, amount: u128) -> bool {
        let (whole, rest) = self.until(t);
        whole < amount || (whole == amount && rest == 0)
    }

    /// The last t until which at most `amount` arrives.
    fn last_with_at_most(&self, amount: u128) -> u128 {
        let mut t = self.guess(amount);
        while t > 0 && !self.is_at_most(t, amount) {
            t -= 1;
        }
        while t < self.length && self.is_at_most(t + 1, amount) {
            t += 1;
        }
        t
    }

    /// The first t until which at least `amount` arrives.
    fn first_with_at_least(&self, amount: u128) -> u128 {
        let mut t = self.guess(amount);
        while t > 0 && self.until(t - 1).0 >= amount {
            t -= 1;
        }
        while t < self.length && self.until(t).0 < amount {
            t += 1;
        }
        t
    }

    /// The root of `by / length t^2 + 2 from t = amount`, in the form without cancellation: within a nanosecond or two.
    fn guess(&self, amount: u128) -> u128 {
        let (from, amount) = (self.from as f64, amount as f64);
        let slope = self.by as f64 / self.length as f64;
        // 0 / 0 at the very beginning of a ramp from nothing is not a number, which converts to 0.
        let root = amount / (from + (from * from + slope * amount).sqrt());
        (root as u128).min(self.length)
    }
}

/// The share of the arrivals of a load in stages.
#[derive(Debug)]
pub struct Stages {
    profile: Profile,
    arrivals: Amounts,
}

/// What has arrived when each request of the share is due.
#[derive(Debug)]
enum Amounts {
    /// Evenly: whole requests, counted again from where the window opens, so that its stages begin with one.
    Even { next: u64, step: u64, warmup: u128 },
    /// At random, with the same mean: gaps of a Poisson stream of one request per second, in nanoseconds.
    Random(Poisson),
}

impl Stages {
    /// The arrivals of `stages`, after `warmup_ns` at the rate with which they begin.
    pub fn new(warmup_ns: u64, stages: &[RateStage], arrivals: Arrivals, seed: u64, share: Share) -> Self {
        let rate_per_s = stages.first().map_or(0.0, |stage| stage.from_per_s);
        let warmup = RateStage {
            duration_ns: warmup_ns,
            from_per_s: rate_per_s,
            to_per_s: rate_per_s,
        };
        let profile = Profile::new([&warmup].into_iter().filter(|_| warmup_ns > 0).chain(stages));
        let warmup = millionths(rate_per_s) * 2 * u128::from(warmup_ns);
        let arrivals = match arrivals {
            Arrivals::Constant => Amounts::Even {
                next: share.worker,
                step: share.workers,
                warmup,
            },
            Arrivals::Poisson => Amounts::Random(Poisson::new(1.0, seed, share)),
        };
        Self { profile, arrivals }
    }
}

impl Schedule for Stages {
    fn next_due(&mut self) -> u64 {
        let amount = match &mut self.arrivals {
            Amounts::Even { next, step, warmup } => {
                let (number, of_warmup) = (u128::from(*next), warmup.div_ceil(REQUEST));
                *next += *step;
                match number.checked_sub(of_warmup) {
                    None => number * REQUEST,
                    Some(number) => *warmup + number * REQUEST,
                }
            }
            Amounts::Random(unit) => u128::from(unit.next_due()) * (REQUEST / u128::from(NS_PER_S)),
        };
        self.profile.time_of(amount).unwrap_or(NEVER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Constant;
    use super::*;
    use proptest::prelude::*;

    const WHOLE: Share = Share {
        worker: 0,
        workers: 1,
    };
    const S: u64 = NS_PER_S;

    fn stage(duration_ns: u64, from_per_s: f64, to_per_s: f64) -> RateStage {
        RateStage {
            duration_ns,
            from_per_s,
            to_per_s,
        }
    }

    fn even(stages: &[RateStage], share: Share) -> Stages {
        Stages::new(0, stages, Arrivals::Constant, 0, share)
    }

    /// All due times of a share.
    fn dues(mut schedule: Stages) -> Vec<u64> {
        std::iter::from_fn(|| Some(schedule.next_due()).filter(|&due| due < NEVER_NS)).collect()
    }

    /// The integral of the rate over all stages, in requests.
    fn integral(stages: &[RateStage]) -> f64 {
        stages
            .iter()
            .map(|stage| (stage.from_per_s + stage.to_per_s) / 2.0 * stage.duration_ns as f64 / 1e9)
            .sum()
    }

    #[test]
    fn t11_the_requests_of_a_ramp_are_the_integral_of_its_rate() {
        let ramp = [stage(30 * S, 1000.0, 10_000.0)];
        let all = dues(even(&ramp, WHOLE));
        assert_eq!(all.len(), 165_000);
        let first_half = all.iter().filter(|&&due| due < 15 * S).count();
        assert_eq!(first_half, 48_750, "1,000 t + 300 t^2 / 2 at t = 15");
    }

    #[test]
    fn t11_a_ramp_down_mirrors_the_ramp_up() {
        let (up, down) = ([stage(7 * S, 3.0, 90.5)], [stage(7 * S, 90.5, 3.0)]);
        let (rising, falling) = (dues(even(&up, WHOLE)), dues(even(&down, WHOLE)));
        assert_eq!(rising.len(), falling.len());
        let gap = |dues: &[u64], at: usize| dues[at + 1] - dues[at];
        assert!(gap(&rising, 0) > 10 * gap(&rising, rising.len() - 2));
        assert!(gap(&falling, falling.len() - 2) > 10 * gap(&falling, 0));
    }

    #[test]
    fn a_stage_with_one_rate_is_the_constant_schedule() {
        for rate in [0.3, 7.0, 333.0, 999.5, 30_001.0] {
            let mut own = even(&[stage(3600 * S, rate, rate)], WHOLE);
            let mut constant = Constant::new(rate, WHOLE);
            for _ in 0..1000 {
                assert_eq!(own.next_due(), constant.next_due(), "{rate}");
            }
        }
    }

    #[test]
    fn in_a_pause_nothing_is_due_and_after_it_comes_the_next_request() {
        let all = dues(even(
            &[stage(S, 4.0, 4.0), stage(S, 0.0, 0.0), stage(S, 2.0, 2.0)],
            WHOLE,
        ));
        let expected = [0, S / 4, S / 2, 3 * S / 4, 2 * S, 5 * S / 2];
        assert_eq!(all, expected);
    }

    #[test]
    fn the_warm_up_has_the_first_rate_and_takes_no_request_from_the_stages() {
        let stages = [stage(S, 3.0, 3.0), stage(S, 5.0, 5.0)];
        let all = dues(Stages::new(S / 2, &stages, Arrivals::Constant, 0, WHOLE));
        let (warmup, window): (Vec<u64>, Vec<u64>) = all.iter().partition(|&&due| due < S / 2);
        assert_eq!(warmup, [0, S / 3]);
        assert_eq!((window.len(), window[0]), (8, S / 2));
    }

    #[test]
    fn a_load_that_begins_from_nothing_has_no_warm_up() {
        let all = dues(Stages::new(
            S,
            &[stage(S, 0.0, 8.0)],
            Arrivals::Constant,
            0,
            WHOLE,
        ));
        assert_eq!((all.len(), all[0]), (4, S));
    }

    #[test]
    fn random_arrivals_follow_the_stages_too() {
        let stages = [stage(10 * S, 100.0, 100.0), stage(10 * S, 1000.0, 3000.0)];
        let all = dues(Stages::new(0, &stages, Arrivals::Poisson, 5, WHOLE));
        let first = all.iter().filter(|&&due| due < 10 * S).count() as f64;
        let second = all.len() as f64 - first;
        // Counts of a Poisson process: within four standard deviations.
        for (found, mean) in [(first, 1000.0f64), (second, 20_000.0)] {
            assert!((found - mean).abs() < 4.0 * mean.sqrt(), "{found} of {mean}");
        }
    }

    fn some_stages() -> impl Strategy<Value = Vec<RateStage>> {
        let rate = prop_oneof![Just(0.0), 0.01f64..50.0, 1.0f64..3000.0];
        let one = (1u64..3 * S, rate.clone(), rate).prop_map(|(length, from, to)| stage(length, from, to));
        let steady = (1u64..3 * S, 0.0f64..500.0).prop_map(|(length, rate)| stage(length, rate, rate));
        proptest::collection::vec(prop_oneof![one, steady], 1..6)
    }

    proptest! {
        #[test]
        fn t11_due_times_never_decrease_and_their_number_is_the_integral(stages in some_stages()) {
            let all = dues(even(&stages, WHOLE));
            prop_assert!(all.is_sorted());
            // Each rate is a whole number of millionths: up to half of one a second is lost.
            let rounding = 1e-5;
            let exact = integral(&stages);
            prop_assert!((all.len() as f64) < exact + 1.0 + rounding && all.len() as f64 >= exact - rounding);
        }

        #[test]
        fn shares_of_the_workers_make_up_the_whole(stages in some_stages(), workers in 1u64..5, poisson: bool, warmup in 0u64..S) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let of = |share| dues(Stages::new(warmup, &stages, arrivals, 7, share));
            let mut together: Vec<u64> = (0..workers).flat_map(|worker| of(Share { worker, workers })).collect();
            together.sort_unstable();
            prop_assert_eq!(of(WHOLE), together);
        }

        #[test]
        fn a_due_time_is_the_last_nanosecond_before_the_integral_exceeds_its_number(
            length in 1u64..24 * 3600 * S, from in 0.0f64..1e6, to in 0.0f64..1e6, share in 0.0f64..1.0
        ) {
            let piece = Profile::new([&stage(length, from, to)]).pieces[0];
            prop_assume!(piece.amount() > 0);
            let amount = (piece.amount() as f64 * share) as u128;
            prop_assume!(amount < piece.amount());
            let t = u128::from(piece.time_of(amount));
            // The integral times the length, so that it is whole; the numbers fit into 128 bits at rates of up to 1e6.
            let exceeds = |t: u128, amount: u128| {
                let (whole, rest) = if piece.from <= piece.to {
                    Rise { from: piece.from, by: piece.to - piece.from, length: u128::from(length) }.until(t)
                } else {
                    let left = u128::from(length) - t;
                    let (whole, rest) = Rise { from: piece.to, by: piece.from - piece.to, length: u128::from(length) }.until(left);
                    (piece.amount() - whole - u128::from(rest > 0), u128::from(rest > 0))
                };
                whole > amount || (whole == amount && rest > 0)
            };
            prop_assert!(!exceeds(t, amount));
            prop_assert!(t == u128::from(length) || exceeds(t + 1, amount));
        }
    }
}

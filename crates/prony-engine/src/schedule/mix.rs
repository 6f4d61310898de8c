//! Which path the n-th request of a mix asks for: a function of its number and the seed, free of the server and of the clock.

use crate::random;
use crate::spec::Share;
use std::sync::Arc;

/// The paths of one worker's requests, by their numbers in the mix.
///
/// *Definition*: the unit interval is divided among the paths by their weights, and request k asks for the path in whose part its point
/// lies. Requests come in blocks of 256. Within a block the points are one in each 256th of the interval, at random in it, and in an order
/// that a Feistel network of four rounds (Luby and Rackoff, 1988) makes of the seed and the number of the block. So the order looks random,
/// and a path has its share of each block but for at most one request at either end of its part: far closer than independent draws.
///
/// Request k belongs to worker k mod `workers`, as with schedules, so the requests do not depend on the number of workers.
#[derive(Debug, Clone)]
pub struct Draw {
    /// Where the part of each path but the last one ends, in 2^64ths.
    ends: Arc<[u64]>,
    seed: u64,
    number: u64,
    step: u64,
}

const BLOCK_BITS: u32 = 8;
const HALF_BITS: u32 = BLOCK_BITS / 2;
const ROUNDS: usize = 4;

impl Draw {
    /// The whole sequence of paths with these weights.
    pub fn new(weights: impl Iterator<Item = f64> + Clone, seed: u64) -> Self {
        let (whole, count) = (weights.clone().sum::<f64>(), weights.clone().count());
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        // 2^64; what is beyond the last number becomes that.
        let ends = sums.map(|sum| (sum / whole * 18_446_744_073_709_551_616.0) as u64);
        Self {
            ends: ends.take(count - 1).collect(),
            seed,
            number: 0,
            step: 1,
        }
    }

    /// Begins the share of one worker.
    pub fn take_share(&mut self, share: Share) {
        (self.number, self.step) = (share.worker, share.workers);
    }

    /// The path of the next request.
    pub fn next_path(&mut self) -> usize {
        let point = point(self.seed, self.number);
        self.number = self.number.wrapping_add(self.step);
        self.ends.partition_point(|&end| end <= point)
    }
}

/// The point of a request, in 2^64ths.
fn point(seed: u64, number: u64) -> u64 {
    let (block, place) = (number >> BLOCK_BITS, number & ((1 << BLOCK_BITS) - 1));
    let mut state = random::scrambled(seed).wrapping_add(random::scrambled(block.wrapping_add(1)));
    let keys: [u64; ROUNDS] = std::array::from_fn(|_| random::next(&mut state));
    let within = random::scrambled(state ^ number);
    (shuffled(place, &keys) << (u64::BITS - BLOCK_BITS)) | (within >> BLOCK_BITS)
}

/// The place of a place within its block: a permutation. A key is a whole function of half the bits: sixteen numbers of four bits each.
fn shuffled(place: u64, keys: &[u64; ROUNDS]) -> u64 {
    let half = (1 << HALF_BITS) - 1;
    let (left, right) = keys
        .iter()
        .fold((place >> HALF_BITS, place & half), |(left, right), key| {
            (right, left ^ (key >> (u64::from(HALF_BITS) * right)) & half)
        });
    (left << HALF_BITS) | right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: usize = 1 << BLOCK_BITS;

    fn draw(seed: u64, weights: &[f64]) -> Draw {
        Draw::new(weights.iter().copied(), seed)
    }

    fn paths(mut draw: Draw, count: usize) -> Vec<usize> {
        (0..count).map(|_| draw.next_path()).collect()
    }

    fn counts(found: &[usize], paths: usize) -> Vec<f64> {
        let mut counts = vec![0.0; paths];
        found.iter().for_each(|&path| counts[path] += 1.0);
        counts
    }

    fn some_weights() -> impl Strategy<Value = Vec<f64>> {
        let one = prop_oneof![1e-4f64..1.0, 1.0f64..100.0, Just(1.0), Just(1e8)];
        proptest::collection::vec(one, 2..=100)
    }

    #[test]
    fn the_same_seed_gives_the_same_paths() {
        let of = |seed| paths(draw(seed, &[9.0, 1.0]), 1000);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// What studies of two years compare: another order would be another load.
    #[test]
    fn the_order_of_a_seed_stays_what_it_is() {
        let first: String = paths(draw(1, &[1.0, 1.0]), 40)
            .iter()
            .map(usize::to_string)
            .collect();
        assert_eq!(first, "1001011100110111110100111011000111001100");
    }

    #[test]
    fn a_block_has_every_place_once() {
        let mut state = 7;
        let keys: [u64; ROUNDS] = std::array::from_fn(|_| random::next(&mut state));
        let mut found: Vec<u64> = (0..BLOCK as u64).map(|place| shuffled(place, &keys)).collect();
        assert_ne!(found, (0..BLOCK as u64).collect::<Vec<u64>>());
        found.sort_unstable();
        assert_eq!(found, (0..BLOCK as u64).collect::<Vec<u64>>());
    }

    proptest! {
        #[test]
        fn each_block_has_the_share_of_each_path(seed: u64, weights in some_weights()) {
            let whole: f64 = weights.iter().sum();
            for block in paths(draw(seed, &weights), 8 * BLOCK).chunks(BLOCK) {
                for (count, weight) in counts(block, weights.len()).iter().zip(&weights) {
                    let expected = BLOCK as f64 * weight / whole;
                    prop_assert!((count - expected).abs() < 2.0, "{count} for {expected}");
                }
            }
        }

        /// Where the part of a path ends within a 256th, each block has one more or one less: at most a half in variance.
        #[test]
        fn a_long_load_has_the_shares_far_closer_than_independent_draws(seed: u64, weight in 0.01f64..100.0) {
            let blocks = 400;
            let found = counts(&paths(draw(seed, &[weight, 1.0]), blocks * BLOCK), 2);
            let expected = (blocks * BLOCK) as f64 * weight / (weight + 1.0);
            let bound = 6.0 * (blocks as f64 / 4.0).sqrt();
            prop_assert!((found[0] - expected).abs() <= bound, "{} for {expected}", found[0]);
        }

        #[test]
        fn what_follows_a_path_does_not_depend_on_it(seed: u64) {
            let count = 100 * BLOCK;
            let found = paths(draw(seed, &[1.0, 1.0]), count + 1);
            let both = found.windows(2).filter(|pair| pair == &[0, 0]).count() as f64;
            // Six deviations of pairs of independent draws; without replacement there are a 255th fewer.
            let (expected, bound) = (count as f64 / 4.0, 6.0 * (count as f64 * 3.0 / 16.0).sqrt());
            prop_assert!((both - expected).abs() < bound, "{both} for {expected}");
        }

        #[test]
        fn shares_of_the_workers_make_up_the_whole(seed: u64, weights in some_weights(), workers in 1u64..9) {
            let alone = paths(draw(seed, &weights), 600);
            for worker in 0..workers {
                let mut own = draw(seed, &weights);
                own.take_share(Share { worker, workers });
                for path in alone.iter().skip(worker as usize).step_by(workers as usize) {
                    prop_assert_eq!(own.next_path(), *path);
                }
            }
        }

        /// In a closed loop the workers are not equally fast: each of them has the shares.
        #[test]
        fn each_worker_has_the_shares(seed: u64, workers in 1u64..9, worker in 0u64..8) {
            let mut own = draw(seed, &[9.0, 1.0]);
            own.take_share(Share { worker: worker % workers, workers });
            let count = 20_000;
            let found = counts(&paths(own, count), 2);
            // Six deviations of independent draws.
            prop_assert!((found[1] - 2000.0).abs() < 6.0 * (count as f64 * 0.09).sqrt(), "{}", found[1]);
        }
    }
}

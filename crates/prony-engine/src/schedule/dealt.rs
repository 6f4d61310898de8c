//! The arrivals of one group of users: those of the load that fall to it.

use super::Schedule;
use crate::schedule::mix::Draw;
use crate::spec::Share;

/// Arrival k of the load is that of the group whose number the draw of all groups has at k, as with the paths of a mix. So the arrivals of
/// all groups together are those of the load, and each group has its share of every 256 of them but for one at either end of its part.
pub struct Dealt {
    all: Box<dyn Schedule + Send>,
    draw: Draw,
    group: usize,
    // Of the group's own arrivals, which of them is next, and the share of them that is meant.
    number: u64,
    share: Share,
}

impl Dealt {
    /// The share of one worker in the arrivals of a group; `all`: those of the load.
    pub fn new(all: Box<dyn Schedule + Send>, weights: &[f64], group: usize, share: Share) -> Self {
        Self {
            all,
            draw: Draw::new(weights.iter().copied(), SEED),
            group,
            number: 0,
            share,
        }
    }
}

// Any will do: arrivals have a seed of their own.
const SEED: u64 = 0;

impl Schedule for Dealt {
    fn next_due(&mut self) -> u64 {
        loop {
            let due_ns = self.all.next_due();
            if self.draw.next_path() != self.group {
                continue;
            }
            let number = self.number;
            self.number += 1;
            if number % self.share.workers == self.share.worker {
                return due_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Constant, Poisson};
    use proptest::prelude::*;

    const WHOLE: Share = Share {
        worker: 0,
        workers: 1,
    };

    /// What is due before `end_ns` at the workers of each group.
    fn dues(
        all: &dyn Fn() -> Box<dyn Schedule + Send>,
        weights: &[f64],
        workers: u64,
        end_ns: u64,
    ) -> Vec<Vec<u64>> {
        let of = |group: usize, worker: u64| {
            let mut own = Dealt::new(all(), weights, group, Share { worker, workers });
            std::iter::from_fn(move || Some(own.next_due())).take_while(move |&due_ns| due_ns < end_ns)
        };
        let group = |group: usize| (0..workers).flat_map(|worker| of(group, worker)).collect();
        (0..weights.len()).map(group).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_due_at_all_groups_together_is_due_at_users_who_are_alike(weights in proptest::collection::vec(0.1f64..10.0, 2..6), workers in 1u64..4, is_poisson: bool, rate in 100f64..5e3) {
            let all = || -> Box<dyn Schedule + Send> {
                if is_poisson { Box::new(Poisson::new(rate, 3, WHOLE)) } else { Box::new(Constant::new(rate, WHOLE)) }
            };
            let end_ns = 1_000_000_000;
            let mut alike = all();
            let alike: Vec<u64> = std::iter::from_fn(|| Some(alike.next_due())).take_while(|&due_ns| due_ns < end_ns).collect();
            let mut together: Vec<u64> = dues(&all, &weights, workers, end_ns).concat();
            together.sort_unstable();
            prop_assert_eq!(together, alike);
        }

        #[test]
        fn a_group_has_its_share_of_each_256_arrivals_but_for_two(weights in proptest::collection::vec(0.1f64..10.0, 2..6), blocks in 1u64..9) {
            let all = || -> Box<dyn Schedule + Send> { Box::new(Constant::new(256.0, WHOLE)) };
            let groups = dues(&all, &weights, 1, blocks * 1_000_000_000);
            let sum: f64 = weights.iter().sum();
            for (own, weight) in groups.iter().zip(&weights) {
                let share = weight / sum * 256.0 * blocks as f64;
                prop_assert!((own.len() as f64 - share).abs() <= 2.0 * blocks as f64, "{} {share}", own.len());
            }
        }
    }
}

//! When is the n-th request due: a closed form, free of the server and of the clock.

mod connections;
mod constant;
mod dealt;
mod poisson;
mod stages;

pub use connections::ConnectionPlan;
pub use constant::Constant;
pub use dealt::Dealt;
pub use poisson::Poisson;
pub use stages::Stages;

/// The due times of one worker's share of the arrivals.
pub trait Schedule {
    /// The next due time, in nanoseconds from the start of the schedule. Never decreases.
    fn next_due(&mut self) -> u64;
}

/// Which share of one common sequence is meant: request k belongs to worker k mod `workers`.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// This worker's number, from 0.
    pub worker: u64,
    /// How many there are.
    pub workers: u64,
}

impl Share {
    /// What falls to this worker when `whole` is dealt out evenly.
    pub fn portion(self, whole: u64) -> u64 {
        whole / self.workers + u64::from(self.worker < whole % self.workers)
    }

    /// Of this share, which is one generator's of all, the share of one of its own workers.
    ///
    /// Whatever numbers of workers the generators have, request k of all stays with generator k mod `workers`, and the k-th of a
    /// generator's own with its worker k mod `own.workers`.
    pub fn within(self, own: Share) -> Share {
        Share {
            worker: self.worker + self.workers * own.worker,
            workers: self.workers * own.workers,
        }
    }

    /// What falls to the workers before this one.
    pub fn first_of(self, whole: u64) -> u64 {
        whole / self.workers * self.worker + self.worker.min(whole % self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dues(schedule: &mut dyn Schedule, count: usize) -> Vec<u64> {
        (0..count).map(|_| schedule.next_due()).collect()
    }

    proptest! {
        #[test]
        fn t33_portions_make_up_the_whole(whole in 0u64..10_000, workers in 1u64..64) {
            let sum: u64 = (0..workers).map(|worker| Share { worker, workers }.portion(whole)).sum();
            prop_assert_eq!(sum, whole);
        }

        #[test]
        fn each_portion_begins_where_the_one_before_ends(whole in 0u64..10_000, workers in 2u64..64) {
            for worker in 1..workers {
                let (before, share) = (Share { worker: worker - 1, workers }, Share { worker, workers });
                prop_assert_eq!(share.first_of(whole), before.first_of(whole) + before.portion(whole));
            }
        }

        #[test]
        fn due_times_never_decrease(rate in 0.01f64..2e6, seed: u64) {
            let share = Share { worker: 0, workers: 1 };
            for schedule in [&mut Constant::new(rate, share) as &mut dyn Schedule, &mut Poisson::new(rate, seed, share)] {
                let times = dues(schedule, 500);
                prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            }
        }

        #[test]
        fn shares_of_the_workers_make_up_the_whole(rate in 1f64..1e5, seed: u64, workers in 1u64..5) {
            let whole = Share { worker: 0, workers: 1 };
            let mut alone = dues(&mut Poisson::new(rate, seed, whole), 60);
            alone.extend(dues(&mut Constant::new(rate, whole), 60));
            let mut together = Vec::new();
            for worker in 0..workers {
                let share = Share { worker, workers };
                let own = (0..60).filter(|k| k % workers == worker).count();
                together.extend(dues(&mut Poisson::new(rate, seed, share), own));
                together.extend(dues(&mut Constant::new(rate, share), own));
            }
            alone.sort_unstable();
            together.sort_unstable();
            prop_assert_eq!(alone, together);
        }
    }
}

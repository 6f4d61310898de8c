//! When is the n-th request due: a closed form, free of the server and of the clock.

mod connections;
mod constant;
mod dealt;
pub(crate) mod mix;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Share;
    use proptest::prelude::*;

    fn dues(schedule: &mut dyn Schedule, count: usize) -> Vec<u64> {
        (0..count).map(|_| schedule.next_due()).collect()
    }

    proptest! {
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

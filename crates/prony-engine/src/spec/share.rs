//! How a load is dealt out to workers and generators.

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
    }
}

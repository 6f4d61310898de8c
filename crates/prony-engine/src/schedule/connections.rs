//! How many connections a closed loop has over time: steps and linear ramps, one stage after the other.

use crate::spec::ConnectionStage;
use crate::spec::Share;

/// The connections of one worker over the window, counted in nanoseconds from its opening.
///
/// *Definition*: a ramp of length T from a to b connections has the whole number nearest to `a + (b - a) t / T`, so the k-th of its
/// changes comes at `(2 k - 1) T / (2 |b - a|)`, rounded up to the nanosecond, and the connections have the time of the line beneath
/// them. Each worker has its share of that number.
#[derive(Debug, Clone)]
pub struct ConnectionPlan {
    pieces: Vec<Piece>,
    share: Share,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    begin_ns: u64,
    length_ns: u64,
    from: usize,
    to: usize,
}

impl ConnectionPlan {
    /// Of at least one stage.
    pub fn new(stages: &[ConnectionStage], share: Share) -> Self {
        let pieces = stages.iter().scan(0, |next_ns, stage| {
            let begin_ns = *next_ns;
            *next_ns += stage.duration_ns;
            Some(Piece {
                begin_ns,
                length_ns: stage.duration_ns,
                from: stage.from_connections,
                to: stage.to_connections,
            })
        });
        Self {
            pieces: pieces.collect(),
            share,
        }
    }

    /// How many there are at that time; after the last stage as many as at its end.
    pub fn at(&self, at_ns: u64) -> usize {
        let whole = match self.piece_at(at_ns) {
            Some(piece) => piece.at(at_ns),
            None => self.pieces.last().map_or(0, |piece| piece.to),
        };
        self.share.portion(whole as u64) as usize
    }

    /// When the number may change next after that time; null: never again.
    pub fn next_change_ns(&self, at_ns: u64) -> Option<u64> {
        let piece = self.piece_at(at_ns)?;
        Some(piece.next_change_ns(at_ns).unwrap_or(piece.end_ns()))
    }

    fn piece_at(&self, at_ns: u64) -> Option<&Piece> {
        let place = self.pieces.partition_point(|piece| piece.end_ns() <= at_ns);
        self.pieces.get(place)
    }
}

impl Piece {
    fn end_ns(&self) -> u64 {
        self.begin_ns + self.length_ns
    }

    fn steps(&self) -> usize {
        self.from.abs_diff(self.to)
    }

    fn at(&self, at_ns: u64) -> usize {
        let done = self.steps_until(at_ns);
        if self.from <= self.to {
            self.from + done
        } else {
            self.from - done
        }
    }

    fn steps_until(&self, at_ns: u64) -> usize {
        let (since, length) = (u128::from(at_ns - self.begin_ns), u128::from(self.length_ns));
        ((2 * self.steps() as u128 * since + length) / (2 * length)) as usize
    }

    /// Within the stage.
    fn next_change_ns(&self, at_ns: u64) -> Option<u64> {
        let next = self.steps_until(at_ns) + 1;
        let halves = (2 * next as u128 - 1) * u128::from(self.length_ns);
        let since_ns = || halves.div_ceil(2 * self.steps() as u128) as u64;
        (next <= self.steps()).then(|| self.begin_ns + since_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: Share = Share {
        worker: 0,
        workers: 1,
    };
    const S: u64 = crate::clock::NS_PER_S;

    fn stage(duration_ns: u64, from_connections: usize, to_connections: usize) -> ConnectionStage {
        ConnectionStage {
            duration_ns,
            from_connections,
            to_connections,
        }
    }

    /// Each time at which the number may change, with what it is from then on.
    fn changes(plan: &ConnectionPlan) -> Vec<(u64, usize)> {
        let times = std::iter::successors(Some(0), |&at_ns| plan.next_change_ns(at_ns));
        times.map(|at_ns| (at_ns, plan.at(at_ns))).collect()
    }

    #[test]
    fn a_ramp_has_the_number_nearest_to_its_line() {
        let plan = ConnectionPlan::new(&[stage(3 * S, 1, 4), stage(S, 2, 2), stage(2 * S, 2, 0)], WHOLE);
        let halves = [1, 2, 2, 3, 3, 4, 2, 2, 2, 1, 1, 0, 0];
        let found: Vec<usize> = (0..13).map(|half| plan.at(half * S / 2)).collect();
        assert_eq!(found, halves);
    }

    #[test]
    fn a_step_changes_nothing_until_it_ends() {
        let plan = ConnectionPlan::new(&[stage(5 * S, 7, 7), stage(S, 9, 9)], WHOLE);
        assert_eq!(changes(&plan), [(0, 7), (5 * S, 9), (6 * S, 9)]);
    }

    fn some_stages() -> impl Strategy<Value = Vec<ConnectionStage>> {
        let one =
            (1u64..3 * S, 0usize..300, 0usize..300).prop_map(|(length, from, to)| stage(length, from, to));
        proptest::collection::vec(one, 1..6)
    }

    proptest! {
        #[test]
        fn connections_have_the_time_of_the_line_beneath_them(stages in some_stages()) {
            let all = changes(&ConnectionPlan::new(&stages, WHOLE));
            let held: u128 = all.windows(2).map(|pair| pair[0].1 as u128 * u128::from(pair[1].0 - pair[0].0)).sum();
            let twice: u128 = stages
                .iter()
                .map(|stage| (stage.from_connections + stage.to_connections) as u128 * u128::from(stage.duration_ns))
                .sum();
            // A change is late by less than a nanosecond; in a ramp of fewer nanoseconds than steps several come at once.
            let steps: usize = stages.iter().map(|stage| stage.from_connections.abs_diff(stage.to_connections)).sum();
            prop_assert!((2 * held).abs_diff(twice) <= 2 * steps as u128, "{held} for half of {twice}");
        }

        #[test]
        fn between_two_changes_the_number_stays_and_within_a_stage_it_goes_one_way(stages in some_stages(), share in 0.0f64..1.0) {
            let plan = ConnectionPlan::new(&stages, WHOLE);
            let all = changes(&plan);
            for pair in all.windows(2) {
                let between_ns = pair[0].0 + ((pair[1].0 - pair[0].0 - 1) as f64 * share) as u64;
                prop_assert_eq!(plan.at(between_ns), pair[0].1);
            }
            for piece in &plan.pieces {
                let own: Vec<usize> = all
                    .iter()
                    .filter(|(at_ns, _)| (piece.begin_ns..piece.end_ns()).contains(at_ns))
                    .map(|&(_, count)| count)
                    .collect();
                prop_assert_eq!(own[0], piece.from);
                let way = piece.to.cmp(&piece.from);
                let goes_its_way = own.windows(2).all(|pair| pair[1].cmp(&pair[0]) == way);
                prop_assert!(goes_its_way, "{own:?}");
            }
        }

        #[test]
        fn shares_of_the_workers_make_up_the_whole(stages in some_stages(), workers in 1u64..5, at_ns in 0u64..20 * S) {
            let of = |share| ConnectionPlan::new(&stages, share).at(at_ns);
            let together: usize = (0..workers).map(|worker| of(Share { worker, workers })).sum();
            prop_assert_eq!(of(WHOLE), together);
        }
    }
}

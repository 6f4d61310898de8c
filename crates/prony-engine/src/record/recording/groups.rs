//! What became of the requests of each group of users. All groups together are the whole.

use super::{figures, require_same, Bytes, Distributions};
use crate::account::Account;
use crate::error::Error;
use serde::{Deserialize, Serialize};

/// What became of the requests of one group; `connections`: exactly so many (closed loop), or at most (open loop).
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // defined in `docs/reference/engine-wire.md`
pub struct GroupRecord {
    pub name: String,
    pub connections: u64,
    pub account: Account,
    pub bytes: Bytes,
    pub distributions: Distributions,
}

impl GroupRecord {
    fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.account.merge(&other.account);
        self.bytes.merge(&other.bytes);
        self.distributions.merge(&other.distributions);
    }
}

/// Adds others, each to that of its name.
pub fn merge(own: &mut Vec<GroupRecord>, more: &[GroupRecord]) {
    for record in more {
        match own.iter_mut().find(|one| one.name == record.name) {
            Some(one) => one.merge(record),
            None => own.push(record.clone()),
        }
    }
}

/// Checks that the groups make up the whole: each class of the account, all bytes, all latencies. None are no fault: users were alike.
///
/// # Errors
/// [`Error::Account`] with what differs.
pub fn check(
    groups: &[GroupRecord],
    account: &Account,
    bytes: &Bytes,
    latencies: &Distributions,
) -> Result<(), Error> {
    let Some((first, others)) = groups.split_first() else {
        return Ok(());
    };
    let mut sum = first.clone();
    others.iter().for_each(|one| sum.merge(one));
    require_same(
        "requests of all groups",
        sum.account == *account,
        &sum.account,
        account,
    )?;
    require_same("bytes of all groups", sum.bytes == *bytes, &sum.bytes, bytes)?;
    let (own, whole) = (times(&sum.distributions), times(latencies));
    require_same("latencies of all groups", own == whole, &own, &whole)
}

type Figures = (u64, Option<u64>, Option<u64>, u128);

fn times(of: &Distributions) -> [Figures; 8] {
    [
        figures(of.ok_response.as_ref()),
        figures(Some(&of.ok_service)),
        figures(of.carried_in_response.as_ref()),
        figures(Some(&of.carried_in_service)),
        figures(of.censored_response.as_ref()),
        figures(Some(&of.censored_service)),
        figures(of.send_lag.as_ref()),
        figures(Some(&of.connect)),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::account::Class;
    use crate::distribution::Distribution;
    use crate::record::recorder::{End, Flight, Recorder, Seconds};
    use crate::wire::Same;
    use proptest::prelude::*;

    /// A request: of which group, when it was due, how long it took, how it ended.
    type Sample = (usize, u64, u64, u8);

    const DELAYS_NS: [u64; 3] = [0, 70, 5_000];

    fn class(number: u8) -> Class {
        match number {
            0..=3 => Class::Ok,
            4 => Class::BadStatus(500),
            5 => Class::TimedOut,
            _ => Class::InFlightAtEnd,
        }
    }

    fn recorded(samples: &[Sample], group: usize, delay_ns: u64, is_open_loop: bool) -> Recorder {
        let mut recorder = Recorder::new(is_open_loop, Seconds::detached());
        recorder.set_window(100, 200, 0);
        recorder.delay_ns = delay_ns;
        for &(_, due_ns, took_ns, number) in samples.iter().filter(|sample| sample.0 == group) {
            let flight = Flight {
                request: Same,
                intended_ns: due_ns,
                sent_ns: Some(due_ns + took_ns / 2),
            };
            recorder.scheduled(&flight);
            recorder.sent(&flight, due_ns + took_ns / 2, due_ns);
            let end = End::without_reply(class(number), due_ns + took_ns, "");
            recorder.ended(&flight, &end);
        }
        recorder
    }

    fn record(group: usize, recorder: &Recorder) -> GroupRecord {
        GroupRecord {
            name: group.to_string(),
            connections: 1,
            account: recorder.account.clone(),
            bytes: recorder.bytes.clone(),
            distributions: recorder.distributions.clone(),
        }
    }

    fn kinds(of: &Distributions) -> [&Distribution; 3] {
        [&of.ok_service, &of.carried_in_service, &of.censored_service]
    }

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        proptest::collection::vec((0..3usize, 80u64..200, 0u64..60, 0u8..8), 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn groups_make_up_the_whole_exactly(samples in samples(), is_open_loop: bool) {
            let each = (0..3).map(|group| recorded(&samples, group, DELAYS_NS[group], is_open_loop));
            let each: Vec<Recorder> = each.collect();
            let mut groups = Vec::new();
            let (mut account, mut bytes, mut times) = (Account::default(), Bytes::default(), Distributions::default());
            for (group, one) in each.iter().enumerate() {
                merge(&mut groups, &[record(group, one)]);
                account.merge(&one.account);
                bytes.merge(&one.bytes);
                times.merge(&one.distributions);
            }
            check(&groups, &account, &bytes, &times).unwrap();
            merge(&mut groups, &[record(1, &each[1])]);
            prop_assert_eq!(groups.len(), 3);
            let is_idle = each[1].account.scheduled == 0 && each[1].account.carried_in.requests == 0;
            prop_assert_eq!(check(&groups, &account, &bytes, &times).is_ok(), is_idle);
        }

        #[test]
        fn a_delay_is_added_to_each_time_and_changes_no_count(samples in samples(), delay_ns in 1u64..1_000_000, is_open_loop: bool) {
            let samples: Vec<Sample> = samples.into_iter().map(|(_, due, took, end)| (0, due, took, end)).collect();
            let near = recorded(&samples, 0, 0, is_open_loop);
            let far = recorded(&samples, 0, delay_ns, is_open_loop);
            prop_assert_eq!(&near.account, &far.account);
            for (near, far) in kinds(&near.distributions).into_iter().zip(kinds(&far.distributions)) {
                prop_assert_eq!(near.count(), far.count());
                prop_assert_eq!(near.sum_ns() + u128::from(near.count()) * u128::from(delay_ns), far.sum_ns());
                prop_assert_eq!(near.max_ns().map(|ns| ns + delay_ns), far.max_ns());
            }
        }
    }
}

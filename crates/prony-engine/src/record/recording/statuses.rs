//! What became of requests by the status of their reply. All statuses together are the whole.

use super::{figures, merge_optional, require_same, Bytes, Distributions};
use crate::account::{Account, Class};
use crate::distribution::Distribution;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Under what a request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Status {
    /// The status of its reply, which was complete.
    Code(u16),
    /// The status of its reply, which is one of too many to keep apart.
    Others,
    /// It got no complete reply.
    None,
}

impl Status {
    /// Of a request that ended so.
    pub fn of(class: Class, status: u16) -> Self {
        match class {
            Class::BadStatus(code) => Self::Code(code),
            Class::Ok | Class::FailedValidation => Self::Code(status),
            _ => Self::None,
        }
    }
}

const OTHERS: &str = "others";
const NONE: &str = "none";

impl From<Status> for String {
    fn from(status: Status) -> Self {
        match status {
            Status::Code(code) => code.to_string(),
            Status::Others => OTHERS.to_owned(),
            Status::None => NONE.to_owned(),
        }
    }
}

impl TryFrom<String> for Status {
    type Error = std::num::ParseIntError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            OTHERS => Ok(Self::Others),
            NONE => Ok(Self::None),
            code => code.parse().map(Self::Code),
        }
    }
}

/// What became of the requests of one status: those of the window, those that were carried in, and the bytes of the bodies of the
/// former. `other` are times of complete replies with another status or body than expected, of both. Only kinds of time that there are.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // defined in `docs/reference/engine-wire.md`
pub struct StatusRecord {
    pub requests: u64,
    pub ok: u64,
    pub carried_in: u64,
    pub carried_in_ok: u64,
    pub body_received: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_service: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_in_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_in_service: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_response: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_service: Option<Distribution>,
}

/// Requests by status.
pub type Statuses = BTreeMap<Status, StatusRecord>;

impl StatusRecord {
    /// Counts the end of one request. `is_own`: of the window.
    pub fn count(&mut self, is_ok: bool, is_own: bool, body_bytes: u64) {
        if is_own {
            self.requests += 1;
            self.ok += u64::from(is_ok);
            self.body_received += body_bytes;
        } else {
            self.carried_in += 1;
            self.carried_in_ok += u64::from(is_ok);
        }
    }

    /// Adds another one; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.ok += other.ok;
        self.carried_in += other.carried_in;
        self.carried_in_ok += other.carried_in_ok;
        self.body_received += other.body_received;
        for (own, more) in self.times_mut().into_iter().zip(other.times()) {
            merge_optional(own, more);
        }
    }

    fn times(&self) -> [Option<&Distribution>; 6] {
        [
            self.ok_response.as_ref(),
            self.ok_service.as_ref(),
            self.carried_in_response.as_ref(),
            self.carried_in_service.as_ref(),
            self.other_response.as_ref(),
            self.other_service.as_ref(),
        ]
    }

    fn times_mut(&mut self) -> [&mut Option<Distribution>; 6] {
        [
            &mut self.ok_response,
            &mut self.ok_service,
            &mut self.carried_in_response,
            &mut self.carried_in_service,
            &mut self.other_response,
            &mut self.other_service,
        ]
    }
}

/// Adds others; associative and commutative. A status stays apart only if each side kept it apart, or kept all of its own apart:
/// a row is either all of its status, or there is none.
pub fn merge(own: &mut Statuses, more: &Statuses) {
    let is_whole = |side: &Statuses, status: &Status| {
        !matches!(status, Status::Code(_)) || side.contains_key(status) || !side.contains_key(&Status::Others)
    };
    let mut all = Statuses::new();
    for (status, record) in own.iter().chain(more) {
        let is_apart = is_whole(own, status) && is_whole(more, status);
        let kept = if is_apart { *status } else { Status::Others };
        all.entry(kept).or_default().merge(record);
    }
    *own = all;
}

/// Checks that the statuses make up the whole, and that each agrees with the account. None are no fault: other generators have none.
///
/// # Errors
/// [`Error::Account`] with what differs.
pub fn check(
    statuses: &Statuses,
    account: &Account,
    bytes: &Bytes,
    latencies: &Distributions,
) -> Result<(), Error> {
    if statuses.is_empty() {
        return Ok(());
    }
    for (status, record) in statuses {
        check_one(*status, record, account)?;
    }
    let mut sum = StatusRecord::default();
    statuses.values().for_each(|one| sum.merge(one));
    let carried = &account.carried_in;
    let own = [
        sum.requests,
        sum.ok,
        sum.carried_in,
        sum.carried_in_ok,
        sum.body_received,
    ];
    let whole = [
        account.scheduled,
        account.ok,
        carried.requests,
        carried.answered,
        bytes.body_received,
    ];
    require_same("requests and bytes of all statuses", own == whole, &own, &whole)?;
    let whole = [
        latencies.ok_response.as_ref(),
        Some(&latencies.ok_service),
        latencies.carried_in_response.as_ref(),
        Some(&latencies.carried_in_service),
    ];
    for (own, whole) in sum.times().into_iter().zip(whole) {
        let (own, whole) = (figures(own), figures(whole));
        require_same("latencies of all statuses", own == whole, &own, &whole)?;
    }
    Ok(())
}

/// A status that is kept apart has all requests that the account has of it.
fn check_one(status: Status, record: &StatusRecord, account: &Account) -> Result<(), Error> {
    let Status::Code(code) = status else {
        return Ok(());
    };
    let counted = |by_status: &BTreeMap<u16, u64>| by_status.get(&code).copied().unwrap_or(0);
    let (own, whole) = (
        [record.ok, record.carried_in_ok],
        [
            counted(&account.ok_status),
            counted(&account.carried_in.ok_status),
        ],
    );
    require_same(
        &format!("valid replies of status {code}"),
        own == whole,
        &own,
        &whole,
    )?;
    let (others, bad) = (record.requests - record.ok, counted(&account.bad_status));
    require_same(
        &format!("other replies of status {code}"),
        others >= bad,
        &others,
        &bad,
    )?;
    let replies = record.requests + record.carried_in;
    let timed = [
        &record.ok_service,
        &record.carried_in_service,
        &record.other_service,
    ];
    let timed = timed.into_iter().flatten().map(Distribution::count).sum::<u64>();
    require_same(
        &format!("times of status {code}"),
        timed == replies,
        &timed,
        &replies,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::recorder::{End, Flight, Recorder, Seconds};
    use crate::wire::Same;
    use proptest::prelude::*;

    const WORKERS: usize = 3;
    const OPEN_NS: u64 = 100;

    /// A request: of which worker, when it was due, how long it took, how it ended, with which status and bytes.
    type Sample = (usize, u64, u64, u8, u16, u64);

    fn class(number: u8, status: u16) -> Class {
        match number {
            0..=3 => Class::Ok,
            4 => Class::BadStatus(status),
            5 => Class::FailedValidation,
            6 => Class::ShortBody,
            7 => Class::TimedOut,
            _ => Class::InFlightAtEnd,
        }
    }

    /// What a worker records of its samples; they begin in their order, and some before the window.
    fn recorded(samples: &[Sample], worker: usize, is_open_loop: bool) -> Recorder {
        let mut recorder = Recorder::new(is_open_loop, Seconds::detached());
        recorder.set_window(OPEN_NS, 200, 0);
        for &(_, due_ns, took_ns, number, status, body_bytes) in
            samples.iter().filter(|sample| sample.0 == worker)
        {
            let flight = Flight {
                request: Same,
                intended_ns: due_ns,
                sent_ns: Some(due_ns + took_ns / 2),
            };
            recorder.scheduled(&flight);
            recorder.sent(&flight, due_ns + took_ns / 2, due_ns);
            let mut end = End::without_reply(class(number, status), due_ns + took_ns, "");
            (end.status, end.body_bytes) = (status, body_bytes);
            recorder.ended(&flight, &end);
        }
        recorder
    }

    /// All workers together, in the order that is given.
    fn together(workers: &mut [Recorder]) -> (Statuses, Account, Bytes, Distributions) {
        let mut all = (
            Statuses::new(),
            Account::default(),
            Bytes::default(),
            Distributions::default(),
        );
        for one in workers {
            let statuses = one.statuses.finish();
            check(&statuses, &one.account, &one.bytes, &one.distributions).unwrap();
            if all.0.is_empty() {
                all.0 = statuses;
            } else {
                merge(&mut all.0, &statuses);
            }
            all.1.merge(&one.account);
            all.2.merge(&one.bytes);
            all.3.merge(&one.distributions);
        }
        all
    }

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let status = prop_oneof![9 => 200u16..203, 1 => 200u16..240];
        let one = (0..WORKERS, 80u64..200, 0u64..60, 0u8..9, status, 0u64..9);
        proptest::collection::vec(one, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn statuses_make_up_the_whole_exactly_in_any_order(samples in samples(), is_open_loop: bool) {
            let workers = || (0..WORKERS).map(|worker| recorded(&samples, worker, is_open_loop));
            let (statuses, account, bytes, latencies) = together(&mut workers().collect::<Vec<_>>());
            check(&statuses, &account, &bytes, &latencies).unwrap();
            let mut reversed = together(&mut workers().rev().collect::<Vec<_>>()).0;
            prop_assert_eq!(serde_json::to_value(&statuses).unwrap(), serde_json::to_value(&reversed).unwrap());
            if let Some(first) = reversed.values_mut().next() {
                first.body_received += 1;
                prop_assert!(check(&reversed, &account, &bytes, &latencies).is_err());
            }
        }
    }

    #[test]
    fn of_too_many_statuses_the_rest_is_counted_together() {
        let samples: Vec<Sample> = (200..230).map(|status| (0, 120, 10, 0, status, 3)).collect();
        let mut recorder = recorded(&samples, 0, false);
        let statuses = recorder.statuses.finish();
        assert_eq!(statuses.len(), 17);
        assert_eq!(statuses[&Status::Code(215)].requests, 1);
        let others = &statuses[&Status::Others];
        assert_eq!((others.requests, others.ok, others.body_received), (14, 14, 42));
        assert_eq!(serde_json::to_value(&statuses).unwrap()["200"]["ok"], 1);
        let mut few = recorded(&samples[20..22], 0, false).statuses.finish();
        merge(&mut few, &statuses);
        assert_eq!((few.len(), few[&Status::Others].requests), (17, 16));
    }

    #[test]
    fn what_got_no_whole_reply_has_no_status_whatever_it_began_with() {
        let mut recorder = recorded(&[(0, 120, 10, 6, 200, 5), (0, 90, 30, 4, 500, 7)], 0, true);
        let statuses = recorder.statuses.finish();
        let (none, bad) = (&statuses[&Status::None], &statuses[&Status::Code(500)]);
        assert_eq!((none.requests, none.ok, none.body_received), (1, 0, 5));
        assert_eq!((bad.requests, bad.carried_in, bad.body_received), (0, 1, 0));
    }
}

//! Where every request ends.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The one end of a request. `docs/reference/engine-wire.md` says when each applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the definitions
pub enum Class {
    Ok,
    BadStatus(u16),
    FailedValidation,
    ConnectRefused,
    ConnectTimedOut,
    ConnectUnreachable,
    Tls,
    Reset,
    Eof,
    ShortBody,
    Parse,
    StreamRefused,
    TimedOut,
    NotSentQueue,
    NotSentEnd,
    InFlightAtEnd,
    ClientNoAddress,
    ClientNoDescriptor,
    ClientNoBuffer,
    ClientOther,
}

impl Class {
    /// Whether the request was never answered: then its age is a lower bound of its latency, and it is a censored sample.
    pub fn is_censored(self) -> bool {
        matches!(
            self,
            Self::ConnectTimedOut
                | Self::TimedOut
                | Self::NotSentQueue
                | Self::NotSentEnd
                | Self::InFlightAtEnd
        )
    }

    /// Whether this machine could not send the request: no failure of the server.
    pub fn is_of_this_side(self) -> bool {
        matches!(
            self,
            Self::ClientNoAddress | Self::ClientNoDescriptor | Self::ClientNoBuffer | Self::ClientOther
        )
    }

    /// The name in the account.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::BadStatus(_) => "bad_status",
            Self::FailedValidation => "failed_validation",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::ConnectUnreachable => "connect_unreachable",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Eof => "eof",
            Self::ShortBody => "short_body",
            Self::Parse => "parse",
            Self::StreamRefused => "stream_refused",
            Self::TimedOut => "timed_out",
            Self::NotSentQueue => "not_sent_queue",
            Self::NotSentEnd => "not_sent_end",
            Self::InFlightAtEnd => "in_flight_at_end",
            Self::ClientNoAddress => "client_no_address",
            Self::ClientNoDescriptor => "client_no_descriptor",
            Self::ClientNoBuffer => "client_no_buffer",
            Self::ClientOther => "client_other",
        }
    }

    /// The name, of a status with its code.
    fn key(self) -> String {
        match self {
            Self::BadStatus(code) => format!("{} {code}", self.name()),
            _ => self.name().to_owned(),
        }
    }
}

/// What all requests of a class have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A reply as expected.
    Ok,
    /// A complete reply, with another status or body.
    OtherReply,
    /// Failed after it was sent, without a complete reply.
    Broken,
    /// Failed before it was sent: there was no connection.
    Unconnected,
    /// Never answered: its age is a lower bound of its latency.
    Unanswered,
    /// This side could not send it.
    Client,
    /// Failed, and nobody says how: only generators that report less than this engine have it.
    Unspecified,
}

impl Kind {
    /// The name outside of the engine.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OtherReply => "other reply",
            Self::Broken => "broken",
            Self::Unconnected => "unconnected",
            Self::Unanswered => "unanswered",
            Self::Client => "client",
            Self::Unspecified => "unspecified",
        }
    }
}

/// Every class that an account may have, its own and those of other generators, with its kind.
pub const CLASSES: [(&str, Kind); 22] = [
    ("ok", Kind::Ok),
    ("bad_status", Kind::OtherReply),
    ("failed_validation", Kind::OtherReply),
    ("connect_refused", Kind::Unconnected),
    ("connect_timed_out", Kind::Unanswered),
    ("connect_unreachable", Kind::Unconnected),
    ("dns", Kind::Unconnected),
    ("tls", Kind::Unconnected),
    ("reset", Kind::Broken),
    ("eof", Kind::Broken),
    ("short_body", Kind::Broken),
    ("parse", Kind::Broken),
    ("stream_refused", Kind::Broken),
    ("timed_out", Kind::Unanswered),
    ("not_sent_queue", Kind::Unanswered),
    ("not_sent_end", Kind::Unanswered),
    ("in_flight_at_end", Kind::Unanswered),
    ("client_no_address", Kind::Client),
    ("client_no_descriptor", Kind::Client),
    ("client_no_buffer", Kind::Client),
    ("client_other", Kind::Client),
    ("unspecified", Kind::Unspecified),
];

/// How many requests ended how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // as in `Class`
pub struct Account {
    pub scheduled: u64,
    pub ok: u64,
    /// By status code.
    pub bad_status: BTreeMap<u16, u64>,
    pub failed_validation: u64,
    pub connect_refused: u64,
    pub connect_timed_out: u64,
    pub connect_unreachable: u64,
    pub dns: u64,
    pub tls: u64,
    pub reset: u64,
    pub eof: u64,
    pub short_body: u64,
    pub parse: u64,
    pub stream_refused: u64,
    pub timed_out: u64,
    pub not_sent_queue: u64,
    pub not_sent_end: u64,
    pub in_flight_at_end: u64,
    pub client_no_address: u64,
    pub client_no_descriptor: u64,
    pub client_no_buffer: u64,
    pub client_other: u64,
    /// Those that are `ok`, by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ok_status: BTreeMap<u16, u64>,
    /// Those of all whose reply was as expected, and complete before they were sent in full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered_early: u64,
    pub carried_in: CarriedIn,
}

/// Requests that were begun before the window opened and were open then, and how they ended.
///
/// They are a class of their own: left out, a server that stops to answer in the warm-up would lose nothing; among the window's own,
/// they would be more than were due in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedIn {
    /// How many there were.
    pub requests: u64,
    /// Those that got a reply as expected.
    pub answered: u64,
    /// The same by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ok_status: BTreeMap<u16, u64>,
    /// Those that failed, by class; a status is named with its code.
    pub failed: BTreeMap<String, u64>,
    /// Those that got no reply, by class.
    pub unanswered: BTreeMap<String, u64>,
}

impl CarriedIn {
    /// Counts the end of one request. There are few: the name of its class may be allocated.
    pub fn count(&mut self, class: Class, status: u16) {
        match class {
            Class::Ok => {
                self.answered += 1;
                *self.ok_status.entry(status).or_default() += 1;
            }
            _ if class.is_censored() => *self.unanswered.entry(class.key()).or_default() += 1,
            _ => *self.failed.entry(class.key()).or_default() += 1,
        }
    }

    /// All that have ended.
    pub fn ended(&self) -> u64 {
        self.answered + self.failed.values().chain(self.unanswered.values()).sum::<u64>()
    }

    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        add_by_status(&mut self.ok_status, &other.ok_status);
        for (own, more) in [
            (&mut self.failed, &other.failed),
            (&mut self.unanswered, &other.unanswered),
        ] {
            for (name, count) in more {
                *own.entry(name.clone()).or_default() += count;
            }
        }
    }
}

impl Account {
    /// Counts the end of one request of the window; `status`: of its reply, if it got one.
    pub fn count(&mut self, class: Class, status: u16) {
        if class == Class::Ok {
            *self.ok_status.entry(status).or_default() += 1;
        }
        *match class {
            Class::Ok => &mut self.ok,
            Class::BadStatus(code) => self.bad_status.entry(code).or_default(),
            Class::FailedValidation => &mut self.failed_validation,
            Class::ConnectRefused => &mut self.connect_refused,
            Class::ConnectTimedOut => &mut self.connect_timed_out,
            Class::ConnectUnreachable => &mut self.connect_unreachable,
            Class::Tls => &mut self.tls,
            Class::Reset => &mut self.reset,
            Class::Eof => &mut self.eof,
            Class::ShortBody => &mut self.short_body,
            Class::Parse => &mut self.parse,
            Class::StreamRefused => &mut self.stream_refused,
            Class::TimedOut => &mut self.timed_out,
            Class::NotSentQueue => &mut self.not_sent_queue,
            Class::NotSentEnd => &mut self.not_sent_end,
            Class::InFlightAtEnd => &mut self.in_flight_at_end,
            Class::ClientNoAddress => &mut self.client_no_address,
            Class::ClientNoDescriptor => &mut self.client_no_descriptor,
            Class::ClientNoBuffer => &mut self.client_no_buffer,
            Class::ClientOther => &mut self.client_other,
        } += 1;
    }

    /// Adds another account; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        add_by_status(&mut self.bad_status, &other.bad_status);
        add_by_status(&mut self.ok_status, &other.ok_status);
        self.answered_early += other.answered_early;
        for (own, more) in self.singles_mut().into_iter().zip(other.singles()) {
            *own += more;
        }
        self.carried_in.merge(&other.carried_in);
    }

    /// All of the window that have ended.
    pub fn ended(&self) -> u64 {
        self.bad_status.values().sum::<u64>() + self.singles().iter().sum::<u64>()
    }

    /// Checks that every request ended in exactly one class: those of the window, and those that were carried into it; and that every
    /// valid reply has its status.
    ///
    /// # Errors
    /// [`Error::Account`] with both sides.
    pub fn check(&self) -> Result<(), Error> {
        let carried = &self.carried_in;
        let (ended, carried_ended) = (self.ended(), carried.ended());
        let valid = self.ok + carried.answered;
        let with_status: u64 = self.ok_status.values().chain(carried.ok_status.values()).sum();
        ((ended, carried_ended, with_status) == (self.scheduled, carried.requests, valid))
            .then_some(())
            .ok_or_else(|| {
                Error::Account(format!(
                    "{} scheduled, {ended} ended; {valid} ok, {with_status} with a status; {} carried in, {carried_ended} of them ended: {self:?}",
                    self.scheduled, carried.requests
                ))
            })
    }

    fn singles(&self) -> [u64; 20] {
        let mut copy = self.clone();
        copy.singles_mut().map(|count| *count)
    }

    fn singles_mut(&mut self) -> [&mut u64; 20] {
        [
            &mut self.ok,
            &mut self.failed_validation,
            &mut self.connect_refused,
            &mut self.connect_timed_out,
            &mut self.connect_unreachable,
            &mut self.dns,
            &mut self.tls,
            &mut self.reset,
            &mut self.eof,
            &mut self.short_body,
            &mut self.parse,
            &mut self.stream_refused,
            &mut self.timed_out,
            &mut self.not_sent_queue,
            &mut self.not_sent_end,
            &mut self.in_flight_at_end,
            &mut self.client_no_address,
            &mut self.client_no_descriptor,
            &mut self.client_no_buffer,
            &mut self.client_other,
        ]
    }
}

/// Whether a count need not be said.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn add_by_status(own: &mut BTreeMap<u16, u64>, more: &BTreeMap<u16, u64>) {
    for (&code, &count) in more {
        *own.entry(code).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ALL: [Class; 20] = [
        Class::Ok,
        Class::BadStatus(503),
        Class::FailedValidation,
        Class::ConnectRefused,
        Class::ConnectTimedOut,
        Class::ConnectUnreachable,
        Class::Tls,
        Class::Reset,
        Class::Eof,
        Class::ShortBody,
        Class::Parse,
        Class::StreamRefused,
        Class::TimedOut,
        Class::NotSentQueue,
        Class::NotSentEnd,
        Class::InFlightAtEnd,
        Class::ClientNoAddress,
        Class::ClientNoDescriptor,
        Class::ClientNoBuffer,
        Class::ClientOther,
    ];

    #[test]
    fn every_class_is_counted_under_its_name_and_enters_the_sum() {
        for class in ALL {
            let mut account = Account {
                scheduled: 1,
                ..Account::default()
            };
            account.count(class, 200);
            account.check().unwrap();
            let json = serde_json::to_value(&account).unwrap();
            assert_ne!(json[class.name()], serde_json::json!(0), "{class:?}");
        }
    }

    #[test]
    fn the_names_of_kinds_are_those_that_the_reading_side_knows() {
        let mut names: Vec<&str> = CLASSES.iter().map(|(_, kind)| kind.name()).collect();
        names.dedup();
        let expected = [
            "ok",
            "other reply",
            "unconnected",
            "unanswered",
            "unconnected",
            "broken",
            "unanswered",
            "client",
            "unspecified",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_classes_are_those_of_the_account_and_one_of_other_generators() {
        let json = serde_json::to_value(Account::default()).unwrap();
        let mut counted: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let apart = ["scheduled", "carried_in", "ok_status", "answered_early"];
        counted.retain(|name| !apart.contains(name));
        counted.push("unspecified");
        let mut listed = CLASSES.map(|(name, _)| name);
        listed.sort_unstable();
        counted.sort_unstable();
        assert_eq!(counted, listed);
    }

    #[test]
    fn what_is_censored_is_of_the_unanswered_kind() {
        for class in ALL {
            let kind = CLASSES.iter().find(|(name, _)| *name == class.name()).unwrap().1;
            assert_eq!(class.is_censored(), kind == Kind::Unanswered, "{class:?}");
        }
    }

    #[test]
    fn what_was_carried_in_is_answered_failed_or_unanswered_by_its_class() {
        let mut carried = CarriedIn {
            requests: ALL.len() as u64,
            ..CarriedIn::default()
        };
        for class in ALL {
            carried.count(class, 302);
            let place = if class.is_censored() {
                &carried.unanswered
            } else {
                &carried.failed
            };
            assert_eq!(place.contains_key(&class.key()), class != Class::Ok, "{class:?}");
        }
        assert_eq!((carried.answered, carried.unanswered.len()), (1, 5));
        assert_eq!(carried.failed["bad_status 503"], 1);
        let account = Account {
            carried_in: carried,
            ..Account::default()
        };
        account.check().unwrap();
    }

    #[test]
    fn a_request_that_was_carried_in_and_has_no_end_is_a_fault() {
        let mut account = Account::default();
        account.carried_in.requests = 2;
        account.carried_in.count(Class::Ok, 200);
        let error = account.check().unwrap_err().to_string();
        assert!(error.contains("2 carried in, 1 of them ended"), "{error}");
    }

    #[test]
    fn what_is_of_this_side_is_of_the_clients_kind() {
        for class in ALL {
            let kind = CLASSES.iter().find(|(name, _)| *name == class.name()).unwrap().1;
            assert_eq!(class.is_of_this_side(), kind == Kind::Client, "{class:?}");
        }
    }

    #[test]
    fn a_request_without_an_end_is_a_fault() {
        let account = Account {
            scheduled: 2,
            ok: 1,
            ok_status: [(200, 1)].into(),
            ..Account::default()
        };
        assert!(account
            .check()
            .unwrap_err()
            .to_string()
            .contains("2 scheduled, 1 ended"));
    }

    #[test]
    fn merging_adds_every_class() {
        let (mut all, mut sum) = (Account::default(), Account::default());
        for class in ALL {
            let mut one = Account::default();
            one.count(class, 200);
            one.carried_in.count(class, 200);
            all.count(class, 200);
            all.carried_in.count(class, 200);
            sum.merge(&one);
        }
        assert_eq!(all, sum);
    }
}

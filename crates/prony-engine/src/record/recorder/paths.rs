//! What one worker records of each path of a mix: everything that it records of the whole, so that the paths make up the whole.

use super::stages::note;
use super::{End, Flight};
use crate::account::Class;
use crate::record::recording::PathRecord;
use crate::spec::Workload;
use crate::wire::Asks;

/// The paths so far.
#[derive(Debug)]
pub struct PathLedger {
    /// In the order of the mix.
    pub records: Vec<PathRecord>,
}

impl PathLedger {
    /// An empty one; null of a load without a mix.
    pub fn of(load: &Workload) -> Option<Self> {
        let records = PathRecord::of(load);
        (!records.is_empty()).then_some(Self { records })
    }

    /// A request is due or begun; `is_own`: in the window.
    pub fn scheduled<Q: Asks>(&mut self, flight: &Flight<Q>, is_own: bool) {
        let account = &mut self.at(flight).account;
        if is_own {
            account.scheduled += 1;
        } else {
            account.carried_in.requests += 1;
        }
    }

    /// One that was begun before the window ended before it.
    pub fn forget<Q: Asks>(&mut self, flight: &Flight<Q>) {
        self.at(flight).account.carried_in.requests -= 1;
    }

    /// Bytes of its requests, and of their replies.
    pub fn moved<Q: Asks>(&mut self, flight: &Flight<Q>, sent: u64, received: u64) {
        let bytes = &mut self.at(flight).bytes;
        bytes.sent += sent;
        bytes.received += received;
    }

    /// A request was answered before it was sent in full.
    pub fn answered_early<Q: Asks>(&mut self, flight: &Flight<Q>) {
        self.at(flight).account.answered_early += 1;
    }

    /// A request has ended.
    pub fn ended<Q: Asks>(&mut self, flight: &Flight<Q>, end: &End<'_>, is_own: bool) {
        let record = self.at(flight);
        if is_own {
            record.account.count(end.class, end.status);
            record.bytes.body_received += end.body_bytes;
        } else {
            record.account.carried_in.count(end.class, end.status);
        }
        let (response_ns, service_ns) = (end.response_ns(flight), end.service_ns(flight));
        let (responses, services) = match end.class {
            Class::Ok if is_own => (&mut record.ok_response, &mut record.ok_service),
            Class::Ok => (&mut record.carried_in_response, &mut record.carried_in_service),
            class if class.is_censored() => (&mut record.censored_response, &mut record.censored_service),
            _ => return,
        };
        note(responses, response_ns);
        note(services, service_ns.unwrap_or_else(|| end.wait_ns(flight)));
    }

    fn at<Q: Asks>(&mut self, flight: &Flight<Q>) -> &mut PathRecord {
        &mut self.records[flight.request.path()]
    }
}

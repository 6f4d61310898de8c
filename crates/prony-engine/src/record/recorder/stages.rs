//! What one worker records of each stage: of the requests that were due or begun in it, wherever they ended.

use super::{End, Flight};
use crate::account::Class;
use crate::distribution::Distribution;
use crate::record::recording::StageRecord;
use crate::spec::Loop;

/// The stages so far. A request belongs to the stage in which it was due (open loop) or begun (closed loop).
#[derive(Debug)]
pub struct StageLedger {
    open_ns: u64,
    /// When each ends, from the opening of the window.
    ends_ns: Vec<u64>,
    /// So far.
    pub records: Vec<StageRecord>,
}

impl StageLedger {
    /// An empty one; null of a load without stages. The first stage begins with the window.
    pub fn of(shape: &Loop) -> Option<Self> {
        let records = StageRecord::of(shape);
        let ends_ns = records
            .iter()
            .map(|record| record.begin_ns + record.duration_ns)
            .collect();
        (!records.is_empty()).then_some(Self {
            open_ns: 0,
            ends_ns,
            records,
        })
    }

    /// Sets when the first stage begins: before any of its requests.
    pub fn begin_at(&mut self, open_ns: u64) {
        self.open_ns = open_ns;
    }

    /// A request is due.
    pub fn scheduled<Q>(&mut self, flight: &Flight<Q>) {
        self.at(flight).scheduled += 1;
    }

    /// It is sent.
    pub fn sent<Q>(&mut self, flight: &Flight<Q>) {
        self.at(flight).sent += 1;
    }

    /// It has ended.
    pub fn ended<Q>(&mut self, flight: &Flight<Q>, end: &End<'_>) {
        let (response_ns, service_ns) = (end.response_ns(flight), end.service_ns(flight));
        let record = self.at(flight);
        if end.class == Class::Ok {
            record.ok += 1;
            note(&mut record.ok_response, response_ns);
            note(&mut record.ok_service, service_ns.unwrap_or(0));
        } else if end.class.is_censored() {
            note(&mut record.censored_response, response_ns);
            note(
                &mut record.censored_service,
                service_ns.unwrap_or_else(|| end.wait_ns(flight)),
            );
        } else {
            record.failed += 1;
        }
    }

    fn at<Q>(&mut self, flight: &Flight<Q>) -> &mut StageRecord {
        let at_ns = flight.intended_ns.saturating_sub(self.open_ns);
        let place = self.ends_ns.partition_point(|&end_ns| end_ns <= at_ns);
        // Whatever is recorded was due in the window, which ends with the last stage.
        let last = self.records.len() - 1;
        &mut self.records[place.min(last)]
    }
}

/// Records a time where such times are kept.
pub(super) fn note(times: &mut Option<Distribution>, time_ns: u64) {
    if let Some(times) = times {
        times.record(time_ns);
    }
}

//! What one worker records of each stage: of the requests that were due in it, wherever they ended.

use super::Flight;
use crate::account::Class;
use crate::recording::StageRecord;
use crate::spec::Stage;

/// The stages so far. A request belongs to the stage in which it was due.
#[derive(Debug)]
pub struct StageLedger {
    open_ns: u64,
    /// When each ends, from the opening of the window.
    ends_ns: Vec<u64>,
    /// So far.
    pub records: Vec<StageRecord>,
}

impl StageLedger {
    /// An empty one; the first stage begins with the window.
    pub fn new(open_ns: u64, stages: &[Stage]) -> Self {
        let records: Vec<StageRecord> = StageRecord::of(stages).collect();
        let ends_ns = records
            .iter()
            .map(|record| record.begin_ns + record.duration_ns)
            .collect();
        Self {
            open_ns,
            ends_ns,
            records,
        }
    }

    /// A request is due.
    pub fn scheduled<Q>(&mut self, flight: &Flight<Q>) {
        self.of(flight).scheduled += 1;
    }

    /// It is sent.
    pub fn sent<Q>(&mut self, flight: &Flight<Q>) {
        self.of(flight).sent += 1;
    }

    /// It has ended.
    pub fn ended<Q>(&mut self, flight: &Flight<Q>, class: Class, now_ns: u64) {
        let response_ns = now_ns.saturating_sub(flight.intended_ns);
        let record = self.of(flight);
        if class == Class::Ok {
            record.ok += 1;
            record.ok_response.record(response_ns);
        } else if class.is_censored() {
            record.censored_response.record(response_ns);
        } else {
            record.failed += 1;
        }
    }

    fn of<Q>(&mut self, flight: &Flight<Q>) -> &mut StageRecord {
        let at_ns = flight.intended_ns.saturating_sub(self.open_ns);
        let place = self.ends_ns.partition_point(|&end_ns| end_ns <= at_ns);
        // Whatever is recorded was due in the window, which ends with the last stage.
        let last = self.records.len() - 1;
        &mut self.records[place.min(last)]
    }
}

//! What one worker records by the status of replies: it is known when a request ends, so nothing is counted before.

use super::{End, Flight};
use crate::account::Class;
use crate::distribution::Distribution;
use crate::record::recording::{Status, StatusRecord, Statuses};

// Each may have six histograms, of 270 KB; a server that invents statuses must not take the memory.
const MOST: usize = 16;

/// The statuses so far.
#[derive(Debug, Default)]
pub struct StatusLedger {
    is_open_loop: bool,
    // Few, and nearly all requests end as the one before.
    records: Vec<(Status, StatusRecord)>,
    last: usize,
}

impl StatusLedger {
    /// An empty one. A closed loop has no response times.
    pub fn new(is_open_loop: bool) -> Self {
        Self {
            is_open_loop,
            ..Self::default()
        }
    }

    /// A request has ended; `is_own`: of the window.
    pub fn ended<Q>(&mut self, flight: &Flight<Q>, end: &End<'_>, is_own: bool) {
        let is_open_loop = self.is_open_loop;
        let record = self.at(Status::of(end.class, end.status));
        record.count(end.class == Class::Ok, is_own, end.body_bytes);
        let (responses, services) = match end.class {
            Class::Ok if is_own => (&mut record.ok_response, &mut record.ok_service),
            Class::Ok => (&mut record.carried_in_response, &mut record.carried_in_service),
            Class::BadStatus(_) | Class::FailedValidation => {
                (&mut record.other_response, &mut record.other_service)
            }
            _ => return,
        };
        if is_open_loop {
            note(responses, end.response_ns(flight));
        }
        note(services, end.service_ns(flight).unwrap_or(0));
    }

    /// All of them.
    pub fn finish(&mut self) -> Statuses {
        std::mem::take(&mut self.records).into_iter().collect()
    }

    fn at(&mut self, status: Status) -> &mut StatusRecord {
        let is_last = self.records.get(self.last).is_some_and(|(own, _)| *own == status);
        if !is_last {
            self.last = self.place(status);
        }
        &mut self.records[self.last].1
    }

    #[cold]
    fn place(&mut self, status: Status) -> usize {
        let place_of =
            |records: &[(Status, StatusRecord)], status| records.iter().position(|(own, _)| *own == status);
        if let Some(place) = place_of(&self.records, status) {
            return place;
        }
        let codes = self
            .records
            .iter()
            .filter(|(own, _)| matches!(own, Status::Code(_)));
        let is_one_too_many = matches!(status, Status::Code(_)) && codes.count() >= MOST;
        let kept = if is_one_too_many { Status::Others } else { status };
        place_of(&self.records, kept).unwrap_or_else(|| {
            self.records.push((kept, StatusRecord::default()));
            self.records.len() - 1
        })
    }
}

fn note(times: &mut Option<Distribution>, time_ns: u64) {
    times.get_or_insert_default().record(time_ns);
}

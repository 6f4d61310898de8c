//! What one worker records: the account, the latencies, the seconds, both sides of Little's law.
//!
//! On the path of a successful request it takes no lock, allocates nothing and makes no system call.

mod raw;
mod seconds;
mod stages;

pub use raw::{raw_rows, RawRows, RawWriter};
pub use seconds::{seconds, Ledger, SecondLatency, Seconds};
pub use stages::StageLedger;

use crate::account::{Account, Class};
use crate::distribution::Distribution;
use crate::recording::{Bytes, Completed, Distributions, ErrorSample, Little, SAMPLES_PER_CLASS};
use std::ops::Range;

/// A request in progress.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// Open loop: when it was due. Closed loop: when it was begun.
    pub intended_ns: u64,
    /// When it was first handed to the kernel; null before that.
    pub sent_ns: Option<u64>,
    /// Whether it belongs to the window.
    pub recorded: bool,
}

/// One worker's figures.
#[derive(Debug)]
pub struct Recorder {
    is_open_loop: bool,
    /// The account so far.
    pub account: Account,
    /// Bytes so far.
    pub bytes: Bytes,
    /// Latencies so far.
    pub distributions: Distributions,
    /// Failures in full, few of each class.
    pub error_samples: Vec<ErrorSample>,
    /// The per-second series.
    pub seconds: Seconds,
    /// Every request as a row; null unless asked for.
    pub raw: Option<RawRows>,
    /// What was due in each stage of the load; null where it has none.
    pub stages: Option<StageLedger>,
    /// When the first request of the window was sent; null before that.
    pub first_sent_ns: Option<u64>,
    /// Requests that were sent within the window, even if due before it.
    pub sent_in_window: u64,
    /// When the last one ended.
    pub last_ended_ns: u64,
    /// Requests that ended within the window, even if sent before it: the throughput.
    pub completed: Completed,
    window: Range<u64>,
    in_flight: InFlight,
    outstanding: u64,
}

/// Requests sent and not ended, and the time-integral of their number.
#[derive(Debug, Default)]
struct InFlight {
    count: u64,
    changed_ns: u64,
    integral_ns: u128,
    sojourn_sum_ns: u128,
}

impl InFlight {
    fn step(&mut self, now_ns: u64) {
        self.integral_ns += u128::from(self.count) * u128::from(now_ns.saturating_sub(self.changed_ns));
        // Stamps of one step of the worker may be a little older than those of the sendings within it.
        self.changed_ns = self.changed_ns.max(now_ns);
    }
}

impl Recorder {
    /// An empty one. A closed loop has no response times.
    pub fn new(is_open_loop: bool, seconds: Seconds) -> Self {
        let open_only = || is_open_loop.then(Distribution::default);
        let distributions = Distributions {
            ok_response: open_only(),
            censored_response: open_only(),
            send_lag: open_only(),
            ..Distributions::default()
        };
        Self {
            is_open_loop,
            account: Account::default(),
            bytes: Bytes::default(),
            distributions,
            error_samples: Vec::new(),
            seconds,
            raw: None,
            stages: None,
            first_sent_ns: None,
            sent_in_window: 0,
            last_ended_ns: 0,
            completed: Completed::default(),
            window: 0..u64::MAX,
            in_flight: InFlight::default(),
            outstanding: 0,
        }
    }

    /// Sets which ends belong to the window, and where its seconds begin.
    pub fn set_window(&mut self, open_ns: u64, close_ns: u64) {
        self.seconds.begin_at(open_ns);
        self.window = open_ns..close_ns;
    }

    /// A request of the window is due (open loop) or begun (closed loop).
    pub fn scheduled(&mut self, flight: &Flight) {
        if flight.recorded {
            self.account.scheduled += 1;
            self.outstanding += 1;
            self.seconds.scheduled(flight.intended_ns);
            if let Some(stages) = &mut self.stages {
                stages.scheduled(flight);
            }
        }
    }

    /// A request is handed to the kernel for the first time; the connection was free for it since `free_since_ns`.
    pub fn sent(&mut self, flight: &Flight, now_ns: u64, free_since_ns: u64) {
        self.sent_in_window += u64::from(self.window.contains(&now_ns));
        if !flight.recorded {
            return;
        }
        self.first_sent_ns.get_or_insert(now_ns);
        self.seconds.sent(now_ns);
        self.in_flight.step(now_ns);
        self.in_flight.count += 1;
        if let Some(stages) = &mut self.stages {
            stages.sent(flight);
        }
        if let Some(lag) = &mut self.distributions.send_lag {
            lag.record(now_ns.saturating_sub(flight.intended_ns.max(free_since_ns)));
        }
    }

    /// A request has ended that was on no connection; else as [`Self::ended_on`].
    pub fn ended(&mut self, flight: &Flight, class: Class, now_ns: u64, body_bytes: u64, detail: &str) {
        self.ended_on(None, flight, class, now_ns, body_bytes, detail);
    }

    /// A request has ended; `body_bytes` is the received part of the body, `detail` describes a failure.
    pub fn ended_on(
        &mut self,
        connection: Option<usize>,
        flight: &Flight,
        class: Class,
        now_ns: u64,
        body_bytes: u64,
        detail: &str,
    ) {
        if self.window.contains(&now_ns) {
            self.completed.count(class);
        }
        if !flight.recorded {
            return;
        }
        self.account.count(class);
        self.outstanding -= 1;
        self.last_ended_ns = self.last_ended_ns.max(now_ns);
        self.bytes.body_received += body_bytes;
        if let Some(sent_ns) = flight.sent_ns {
            self.in_flight.step(now_ns);
            self.in_flight.count -= 1;
            self.in_flight.sojourn_sum_ns += u128::from(now_ns.saturating_sub(sent_ns));
        }
        self.record_latency(flight, class, now_ns, body_bytes);
        if let Some(stages) = &mut self.stages {
            stages.ended(flight, class, now_ns);
        }
        if let Some(raw) = &mut self.raw {
            raw.ended(flight, self.window.start, connection, (class, now_ns, body_bytes));
        }
        if class != Class::Ok {
            self.keep_sample(class, now_ns, detail);
        }
    }

    /// Requests of the window that have not ended.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Requests of the window that are sent and have not ended.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.count
    }

    /// Both sides of Little's law.
    pub fn little(&self) -> Little {
        let InFlight {
            integral_ns,
            sojourn_sum_ns,
            ..
        } = self.in_flight;
        Little {
            in_flight_integral_ns: integral_ns,
            sojourn_sum_ns,
            residual: None,
        }
    }

    fn record_latency(&mut self, flight: &Flight, class: Class, now_ns: u64, body_bytes: u64) {
        let response_ns = now_ns.saturating_sub(flight.intended_ns);
        let service_ns = flight.sent_ns.map(|sent_ns| now_ns.saturating_sub(sent_ns));
        let latencies = &mut self.distributions;
        if class == Class::Ok {
            let service_ns = service_ns.unwrap_or(0);
            latencies.ok_service.record(service_ns);
            if let Some(responses) = &mut latencies.ok_response {
                responses.record(response_ns);
            }
            let shown_ns = if self.is_open_loop {
                response_ns
            } else {
                service_ns
            };
            self.seconds.answered(now_ns, shown_ns, body_bytes);
            return;
        }
        self.seconds.failed(now_ns, body_bytes);
        if class.is_censored() {
            if let Some(responses) = &mut latencies.censored_response {
                responses.record(response_ns);
            }
            if let Some(service_ns) = service_ns {
                latencies.censored_service.record(service_ns);
            }
        }
    }

    #[cold]
    fn keep_sample(&mut self, class: Class, at_ns: u64, detail: &str) {
        let name = class.name();
        if self
            .error_samples
            .iter()
            .filter(|sample| sample.class == name)
            .count()
            < SAMPLES_PER_CLASS
        {
            let detail = match class {
                Class::BadStatus(code) => format!("status {code}"),
                _ => detail.to_owned(),
            };
            self.error_samples.push(ErrorSample {
                class: name.to_owned(),
                detail,
                at_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(intended_ns: u64, sent_ns: u64) -> Flight {
        Flight {
            intended_ns,
            sent_ns: Some(sent_ns),
            recorded: true,
        }
    }

    #[test]
    fn t01_waiting_for_a_connection_is_in_the_response_time_and_not_in_the_service_time() {
        let mut recorder = Recorder::new(true, Seconds::detached());
        let late = flight(1_000, 9_000);
        recorder.scheduled(&late);
        recorder.sent(&late, 9_000, 8_500);
        recorder.ended(&late, Class::Ok, 10_000, 0, "");
        let latencies = &recorder.distributions;
        assert_eq!(
            latencies.ok_response.as_ref().and_then(Distribution::max_ns),
            Some(9_000)
        );
        assert_eq!(latencies.ok_service.max_ns(), Some(1_000));
        assert_eq!(
            latencies.send_lag.as_ref().and_then(Distribution::max_ns),
            Some(500)
        );
    }

    #[test]
    fn t03_the_unanswered_are_censored_at_their_age_and_the_failed_are_only_counted() {
        let mut recorder = Recorder::new(true, Seconds::detached());
        for (class, sent_ns) in [
            (Class::InFlightAtEnd, Some(2_000)),
            (Class::NotSentEnd, None),
            (Class::Reset, Some(2_000)),
        ] {
            let one = Flight {
                sent_ns,
                ..flight(1_000, 0)
            };
            recorder.scheduled(&one);
            if sent_ns.is_some() {
                recorder.sent(&one, 2_000, 0);
            }
            recorder.ended(&one, class, 5_000, 0, "");
        }
        let latencies = &recorder.distributions;
        assert_eq!(
            latencies.censored_response.as_ref().map(Distribution::count),
            Some(2)
        );
        assert_eq!(latencies.censored_service.max_ns(), Some(3_000));
        assert!(latencies.ok_service.is_empty());
        assert!(recorder.account.check().is_ok());
    }

    #[test]
    fn what_ends_in_the_window_is_throughput_whenever_it_was_begun() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        recorder.set_window(100, 200);
        let of_warmup = Flight {
            recorded: false,
            ..flight(90, 90)
        };
        recorder.ended(&of_warmup, Class::Ok, 110, 0, "");
        for ended_ns in [150, 250] {
            let own = flight(120, 120);
            recorder.scheduled(&own);
            recorder.sent(&own, 120, 120);
            recorder.ended(&own, Class::Ok, ended_ns, 0, "");
        }
        assert_eq!(recorder.completed, Completed { ok: 2, failed: 0 });
        assert_eq!(recorder.account.ok, 2);
    }

    #[test]
    fn t28_the_integral_of_requests_in_flight_is_the_sum_of_their_times() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        let (a, b) = (flight(0, 0), flight(10, 10));
        recorder.sent(&a, 0, 0);
        recorder.sent(&b, 10, 10);
        recorder.outstanding = 2;
        recorder.ended(&a, Class::Ok, 30, 0, "");
        recorder.ended(&b, Class::Ok, 100, 0, "");
        let little = recorder.little();
        assert_eq!((little.in_flight_integral_ns, little.sojourn_sum_ns), (120, 120));
    }

    #[test]
    fn of_each_class_three_failures_are_kept_with_what_they_were() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        let classes = [Class::BadStatus(503), Class::FailedValidation, Class::Reset];
        for class in [classes, classes, classes, classes].concat() {
            let one = flight(0, 0);
            recorder.scheduled(&one);
            recorder.sent(&one, 0, 0);
            recorder.ended(&one, class, 7, 0, "as the driver says");
        }
        let said = |class: &str| {
            let samples = recorder.error_samples.iter();
            let of_class = samples.filter(|sample| sample.class == class);
            of_class
                .map(|sample| (sample.detail.as_str(), sample.at_ns))
                .collect::<Vec<_>>()
        };
        assert_eq!(said("bad_status"), [("status 503", 7); 3]);
        assert_eq!(said("failed_validation"), [("as the driver says", 7); 3]);
        assert_eq!(said("reset"), [("as the driver says", 7); 3]);
    }
}

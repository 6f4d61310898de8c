//! What one worker records: the account, the latencies, the seconds, both sides of Little's law.
//!
//! A request belongs to the window that it was begun in. One that was begun before the window opened and is open then was carried in;
//! one that ended before is not recorded. Both are seen from the request's own time, so nothing needs to be marked at the opening.
//!
//! On the path of a successful request it takes no lock, allocates nothing and makes no system call.

mod paths;
mod raw;
mod seconds;
mod stages;
mod statuses;

pub use paths::PathLedger;
pub use raw::{raw_rows, RawRows, RawWriter};
pub use seconds::{seconds, Ledger, SecondLatency, Seconds};
pub use stages::StageLedger;
pub use statuses::StatusLedger;

use crate::account::{Account, Class};
use crate::distribution::Distribution;
use crate::record::recording::{
    Bytes, Completed, Distributions, ErrorSample, Little, StreamTimes, SAMPLES_PER_CLASS,
};
use crate::wire::Asks;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use std::ops::Range;

/// A request in progress.
#[derive(Debug, Clone, Copy)]
pub struct Flight<Q> {
    /// What it asks.
    pub request: Q,
    /// Open loop: when it was due. Closed loop: when it was begun.
    pub intended_ns: u64,
    /// When it was first handed to the kernel; null before that.
    pub sent_ns: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub struct End<'e> {
    /// As what.
    pub class: Class,
    /// When.
    pub at_ns: u64,
    /// The received part of the body.
    pub body_bytes: u64,
    /// Of its reply; 0 without one.
    pub status: u16,
    /// How the body of its reply is coded, where that may be why it is not as expected.
    pub coding: Option<&'static str>,
    /// What describes a failure.
    pub detail: &'e str,
    /// The first bytes of a reply that was a failure.
    pub received: &'e [u8],
    /// On which of the worker's connections; null: on none.
    pub connection: Option<usize>,
    /// Since when it waited for its connection, if that was before it was due.
    pub waited_from_ns: Option<u64>,
    /// How long it waited on its connection for a stream; null where there are none.
    pub waited_for_stream_ns: Option<u64>,
    /// How many redirects it followed.
    pub hops: u32,
    /// How much longer it took for its user, who is farther away; the recorder knows.
    delay_ns: u64,
}

impl<'e> End<'e> {
    /// Of a request that got not one byte.
    pub fn without_reply(class: Class, at_ns: u64, detail: &'e str) -> Self {
        Self {
            class,
            at_ns,
            body_bytes: 0,
            status: 0,
            coding: None,
            detail,
            received: &[],
            connection: None,
            waited_from_ns: None,
            waited_for_stream_ns: None,
            hops: 0,
            delay_ns: 0,
        }
    }

    /// The time of a request for its user, from when it was due.
    fn response_ns<Q>(&self, flight: &Flight<Q>) -> u64 {
        self.since(flight.intended_ns)
    }

    /// From when it was sent; null: it never was.
    fn service_ns<Q>(&self, flight: &Flight<Q>) -> Option<u64> {
        flight.sent_ns.map(|sent_ns| self.since(sent_ns))
    }

    /// How long a request waited that was never sent.
    fn wait_ns<Q>(&self, flight: &Flight<Q>) -> u64 {
        self.since(self.waited_from_ns.unwrap_or(flight.intended_ns))
    }

    fn since(&self, at_ns: u64) -> u64 {
        self.at_ns.saturating_sub(at_ns) + self.delay_ns
    }
}

/// One worker's figures.
#[derive(Debug)]
pub struct Recorder {
    is_open_loop: bool,
    /// What the way adds to each time, for users who are farther away than this machine.
    pub delay_ns: u64,
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
    /// What was asked of each path; null where there is one.
    pub paths: Option<PathLedger>,
    /// What came back, by status.
    pub statuses: StatusLedger,
    /// The parts of latencies; null where connections have no streams.
    pub streams: Option<StreamTimes>,
    /// When the first request of the window was sent; null before that.
    pub first_sent_ns: Option<u64>,
    /// Requests that were sent within the window, even if due before it.
    pub sent_in_window: u64,
    /// When the last of the window's requests ended.
    pub last_ended_ns: u64,
    /// How long after the agreed start this worker began; null where none was agreed.
    pub start_late_ns: Option<u64>,
    /// Requests that ended within the window, those that were carried in too: the throughput.
    pub completed: Completed,
    /// When the window opens, for all workers.
    opened_ns: u64,
    /// The part of it in which this worker's requests are its own: all of it, unless the worker learns too late that it has opened.
    window: Range<u64>,
    in_flight: InFlight,
    outstanding: u64,
}

/// Requests sent and not ended, and the time-integral of their number since the opening of the window.
#[derive(Debug, Default)]
struct InFlight {
    count: u64,
    // Never before the opening: what lies before it is no part of the integral.
    changed_ns: u64,
    integral_ns: u128,
    // The part of it before the window closes.
    within_ns: u128,
    close_ns: u64,
    sojourn_sum_ns: u128,
}

impl InFlight {
    fn step(&mut self, now_ns: u64) {
        let since = |now_ns: u64| u128::from(self.count) * u128::from(now_ns.saturating_sub(self.changed_ns));
        let (integral_ns, within_ns) = (since(now_ns), since(now_ns.min(self.close_ns)));
        self.integral_ns += integral_ns;
        self.within_ns += within_ns;
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
            carried_in_response: open_only(),
            censored_response: open_only(),
            send_lag: open_only(),
            due_lag: open_only(),
            ..Distributions::default()
        };
        Self {
            is_open_loop,
            delay_ns: 0,
            account: Account::default(),
            bytes: Bytes::default(),
            distributions,
            error_samples: Vec::new(),
            seconds,
            raw: None,
            stages: None,
            paths: None,
            statuses: StatusLedger::new(is_open_loop),
            streams: None,
            start_late_ns: None,
            first_sent_ns: None,
            sent_in_window: 0,
            last_ended_ns: 0,
            completed: Completed::default(),
            opened_ns: 0,
            window: 0..u64::MAX,
            in_flight: InFlight::default(),
            outstanding: 0,
        }
    }

    /// Sets which requests, and which ends, belong to the window, and where its seconds begin. What was begun by `now_ns` stays what it
    /// was counted as: begun before the window. So for a worker that is too busy to learn of the opening in time it begins later.
    pub fn set_window(&mut self, open_ns: u64, close_ns: u64, now_ns: u64) {
        self.seconds.begin_at(open_ns);
        if let Some(stages) = &mut self.stages {
            stages.begin_at(open_ns);
        }
        let own_from_ns = open_ns.max(now_ns.saturating_add(1));
        self.opened_ns = open_ns;
        self.window = own_from_ns..close_ns;
        self.in_flight.changed_ns = own_from_ns;
        self.in_flight.close_ns = close_ns;
    }

    /// From when on requests, and ends, belong to the window.
    pub fn own_from_ns(&self) -> u64 {
        self.window.start
    }

    /// Whether a moment lies in the window.
    pub fn is_in_window(&self, at_ns: u64) -> bool {
        self.window.contains(&at_ns)
    }

    /// Whether a request is one of the window's own; if not, it was begun before.
    pub fn is_own<Q>(&self, flight: &Flight<Q>) -> bool {
        flight.intended_ns >= self.window.start
    }

    /// A request is due (open loop) or begun (closed loop).
    pub fn scheduled<Q: Asks>(&mut self, flight: &Flight<Q>) {
        self.outstanding += 1;
        let is_own = self.is_own(flight);
        if let Some(paths) = &mut self.paths {
            paths.scheduled(flight, is_own);
        }
        if is_own {
            self.account.scheduled += 1;
            self.seconds.scheduled(flight.intended_ns);
            if let Some(stages) = &mut self.stages {
                stages.scheduled(flight);
            }
        } else {
            self.account.carried_in.requests += 1;
        }
    }

    /// A request was taken from the schedule: how late is the worker's own doing, whatever it then waits for.
    pub fn taken<Q>(&mut self, flight: &Flight<Q>, now_ns: u64) {
        let is_own = self.is_own(flight);
        if let (true, Some(lag)) = (is_own, &mut self.distributions.due_lag) {
            lag.record(now_ns.saturating_sub(flight.intended_ns));
        }
    }

    /// A request is handed to the kernel for the first time; the connection was free for it since `free_since_ns`.
    pub fn sent<Q>(&mut self, flight: &Flight<Q>, now_ns: u64, free_since_ns: u64) {
        self.in_flight.step(now_ns);
        self.in_flight.count += 1;
        self.sent_in_window += u64::from(self.is_in_window(now_ns));
        if !self.is_own(flight) {
            return;
        }
        self.first_sent_ns.get_or_insert(now_ns);
        self.seconds.sent(now_ns);
        if let Some(stages) = &mut self.stages {
            stages.sent(flight);
        }
        if let Some(lag) = &mut self.distributions.send_lag {
            lag.record(now_ns.saturating_sub(flight.intended_ns.max(free_since_ns)));
        }
    }

    /// The kernel took so many bytes of a request.
    pub fn took<Q: Asks>(&mut self, flight: &Flight<Q>, bytes: u64) {
        self.moved(flight, bytes, 0);
    }

    /// It gave so many bytes of a reply.
    pub fn gave<Q: Asks>(&mut self, flight: &Flight<Q>, bytes: u64) {
        self.moved(flight, 0, bytes);
    }

    fn moved<Q: Asks>(&mut self, flight: &Flight<Q>, sent: u64, received: u64) {
        if !self.is_own(flight) {
            return;
        }
        self.bytes.sent += sent;
        self.bytes.received += received;
        if let Some(paths) = &mut self.paths {
            paths.moved(flight, sent, received);
        }
    }

    /// A request has ended.
    pub fn ended<Q: Asks>(&mut self, flight: &Flight<Q>, end: &End<'_>) {
        let end = &End {
            // Each redirect was read there, and the next request came from there.
            delay_ns: self.delay_ns * (1 + u64::from(end.hops)),
            ..*end
        };
        let (class, now_ns) = (end.class, end.at_ns);
        self.outstanding -= 1;
        if let Some(sent_ns) = flight.sent_ns {
            self.in_flight.step(now_ns);
            self.in_flight.count -= 1;
            let since_ns = sent_ns.max(self.window.start);
            self.in_flight.sojourn_sum_ns += u128::from(now_ns.saturating_sub(since_ns));
        }
        let is_own = self.is_own(flight);
        if !is_own && now_ns < self.window.start {
            self.account.carried_in.requests -= 1;
            if let Some(paths) = &mut self.paths {
                paths.forget(flight);
            }
            return;
        }
        if self.is_in_window(now_ns) {
            self.completed.count(class);
        }
        if is_own {
            self.count_own(flight, end);
        } else {
            self.account.carried_in.count(class, end.status);
        }
        if let Some(paths) = &mut self.paths {
            paths.ended(flight, end, is_own);
        }
        self.statuses.ended(flight, end, is_own);
        self.record_latency(flight, end);
        if class != Class::Ok {
            self.keep_sample(end);
        }
    }

    fn count_own<Q>(&mut self, flight: &Flight<Q>, end: &End<'_>) {
        self.account.count(end.class, end.status);
        if end.class == Class::Ok {
            self.seconds.due_ok(flight.intended_ns);
        }
        self.last_ended_ns = self.last_ended_ns.max(end.at_ns);
        self.bytes.body_received += end.body_bytes;
        if let Some(stages) = &mut self.stages {
            stages.ended(flight, end);
        }
        if let Some(raw) = &mut self.raw {
            raw.ended(flight, self.opened_ns, end);
        }
    }

    /// A request was answered as expected before it was sent in full.
    pub fn answered_early<Q: Asks>(&mut self, flight: Option<&Flight<Q>>) {
        let Some(flight) = flight.filter(|flight| self.is_own(flight)) else {
            return;
        };
        self.account.answered_early += 1;
        if let Some(paths) = &mut self.paths {
            paths.answered_early(flight);
        }
    }

    /// Requests that have not ended, whenever they were begun.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Valid replies since the window opened, to whatever request.
    pub fn replies(&self) -> u64 {
        self.account.ok + self.account.carried_in.answered
    }

    /// Requests that have ended since the window opened: as expected, and otherwise.
    pub fn ended_so_far(&self) -> Completed {
        let (account, carried) = (&self.account, &self.account.carried_in);
        let ok = self.replies();
        let failed = account.scheduled + carried.requests - ok - self.outstanding;
        Completed { ok, failed }
    }

    /// Requests that are sent and have not ended.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.count
    }

    /// Both sides of Little's law.
    pub fn little(&self) -> Little {
        let InFlight {
            integral_ns,
            within_ns,
            sojourn_sum_ns,
            ..
        } = self.in_flight;
        Little {
            in_flight_integral_ns: integral_ns,
            window_integral_ns: Some(within_ns),
            sojourn_sum_ns,
            residual: None,
        }
    }

    fn record_latency<Q>(&mut self, flight: &Flight<Q>, end: &End<'_>) {
        let &End {
            class,
            at_ns: now_ns,
            body_bytes,
            ..
        } = end;
        let (response_ns, service_ns) = (end.response_ns(flight), end.service_ns(flight));
        let is_own = self.is_own(flight);
        let latencies = &mut self.distributions;
        if class == Class::Ok {
            let service_ns = service_ns.unwrap_or(0);
            if let (Some(streams), true) = (&mut self.streams, is_own) {
                streams.answered(response_ns, service_ns, end.waited_for_stream_ns);
            }
            let (responses, services) = if is_own {
                (&mut latencies.ok_response, &mut latencies.ok_service)
            } else {
                (
                    &mut latencies.carried_in_response,
                    &mut latencies.carried_in_service,
                )
            };
            services.record(service_ns);
            if let Some(responses) = responses {
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
            // A closed loop knows no other time than this one: what was never sent would be missing among its requests.
            let unsent_ns = || (!self.is_open_loop).then(|| end.wait_ns(flight));
            if let Some(age_ns) = service_ns.or_else(unsent_ns) {
                latencies.censored_service.record(age_ns);
            }
        }
    }

    #[cold]
    fn keep_sample(&mut self, end: &End<'_>) {
        let name = end.class.name();
        if self
            .error_samples
            .iter()
            .filter(|sample| sample.class == name)
            .count()
            < SAMPLES_PER_CLASS
        {
            let detail = match end.class {
                Class::BadStatus(code) if end.detail.is_empty() => format!("status {code}"),
                Class::BadStatus(code) => format!("status {code}: {}", end.detail),
                _ => match end.coding {
                    Some(coding) => format!("{}: the body has the Content-Encoding {coding}", end.detail),
                    None => end.detail.to_owned(),
                },
            };
            self.error_samples.push(ErrorSample {
                class: name.to_owned(),
                detail,
                at_ns: end.at_ns,
                received: (!end.received.is_empty()).then(|| STANDARD.encode(end.received)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Same;

    fn flight(intended_ns: u64, sent_ns: u64) -> Flight<Same> {
        Flight {
            request: Same,
            intended_ns,
            sent_ns: Some(sent_ns),
        }
    }

    #[test]
    fn t01_waiting_for_a_connection_is_in_the_response_time_and_not_in_the_service_time() {
        let mut recorder = Recorder::new(true, Seconds::detached());
        let late = flight(1_000, 9_000);
        recorder.scheduled(&late);
        recorder.sent(&late, 9_000, 8_500);
        recorder.ended(&late, &End::without_reply(Class::Ok, 10_000, ""));
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
            recorder.ended(&one, &End::without_reply(class, 5_000, ""));
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

    /// A recorder whose window is 100 to 200, and which has seen requests begin at 90 and 120 and end so.
    fn around_the_opening(ends: &[(u64, Class, u64)]) -> Recorder {
        let mut recorder = Recorder::new(false, Seconds::detached());
        recorder.set_window(100, 200, 0);
        for &(begun_ns, class, ended_ns) in ends {
            let one = flight(begun_ns, begun_ns);
            recorder.scheduled(&one);
            recorder.sent(&one, begun_ns, begun_ns);
            recorder.ended(&one, &End::without_reply(class, ended_ns, ""));
        }
        recorder
    }

    #[test]
    fn what_ends_in_the_window_is_throughput_whenever_it_was_begun() {
        let ends = [90, 120, 120].into_iter().zip([110, 150, 250]);
        let ends: Vec<_> = ends.map(|(begun, ended)| (begun, Class::Ok, ended)).collect();
        let recorder = around_the_opening(&ends);
        assert_eq!(recorder.completed, Completed { ok: 2, failed: 0 });
        assert_eq!(recorder.account.ok, 2);
    }

    #[test]
    fn t03_what_was_begun_before_the_window_and_ended_in_it_was_carried_in() {
        let recorder = around_the_opening(&[
            (90, Class::Ok, 99),
            (90, Class::Ok, 100),
            (90, Class::Reset, 150),
            (90, Class::TimedOut, 250),
            (120, Class::Ok, 150),
        ]);
        let (account, latencies) = (&recorder.account, &recorder.distributions);
        assert!(account.check().is_ok());
        let carried = &account.carried_in;
        assert_eq!((account.scheduled, account.ok, carried.requests), (1, 1, 3));
        assert_eq!((carried.answered, carried.ended()), (1, 3));
        let shown = [
            &latencies.ok_service,
            &latencies.carried_in_service,
            &latencies.censored_service,
        ];
        assert_eq!(shown.map(Distribution::max_ns), [Some(30), Some(10), Some(160)]);
        assert_eq!(recorder.ended_so_far(), Completed { ok: 2, failed: 2 });
    }

    #[test]
    fn what_a_worker_began_before_it_learned_of_the_opening_was_begun_before_the_window() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        recorder.set_window(u64::MAX, u64::MAX, 0);
        let begun = [90, 110, 130].map(|at_ns| flight(at_ns, at_ns));
        for one in &begun {
            recorder.scheduled(one);
            recorder.sent(one, one.intended_ns, one.intended_ns);
        }
        recorder.ended(&begun[1], &End::without_reply(Class::Ok, 120, ""));
        recorder.set_window(100, 200, 130);
        let own = flight(140, 140);
        recorder.scheduled(&own);
        recorder.sent(&own, 140, 140);
        for (one, ended_ns) in [(&begun[0], 150), (&begun[2], 160), (&own, 170)] {
            recorder.ended(one, &End::without_reply(Class::Ok, ended_ns, ""));
        }
        let account = &recorder.account;
        assert!(account.check().is_ok());
        assert_eq!(
            (account.scheduled, account.ok, account.carried_in.answered),
            (1, 1, 2)
        );
        assert_eq!(recorder.completed, Completed { ok: 3, failed: 0 });
        let little = recorder.little();
        assert_eq!(little.in_flight_integral_ns, little.sojourn_sum_ns);
    }

    #[test]
    fn t28_of_a_request_that_was_carried_in_both_sides_see_the_time_since_the_opening() {
        let recorder =
            around_the_opening(&[(90, Class::Ok, 95), (90, Class::Ok, 130), (130, Class::Ok, 150)]);
        let little = recorder.little();
        assert_eq!((little.in_flight_integral_ns, little.sojourn_sum_ns), (50, 50));
    }

    #[test]
    fn t28_the_integral_of_requests_in_flight_is_the_sum_of_their_times() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        let (a, b) = (flight(0, 0), flight(10, 10));
        recorder.scheduled(&a);
        recorder.sent(&a, 0, 0);
        recorder.scheduled(&b);
        recorder.sent(&b, 10, 10);
        recorder.ended(&a, &End::without_reply(Class::Ok, 30, ""));
        recorder.ended(&b, &End::without_reply(Class::Ok, 100, ""));
        let little = recorder.little();
        assert_eq!((little.in_flight_integral_ns, little.sojourn_sum_ns), (120, 120));
    }

    #[test]
    fn of_a_failure_the_bytes_that_came_are_kept_and_none_are_not_empty_ones() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        for received in [&b""[..], &b"HTP"[..]] {
            let one = flight(0, 0);
            recorder.scheduled(&one);
            recorder.sent(&one, 0, 0);
            let end = End {
                received,
                ..End::without_reply(Class::Reset, 7, "")
            };
            recorder.ended(&one, &end);
        }
        let kept = recorder
            .error_samples
            .iter()
            .map(|sample| sample.received.as_deref());
        assert_eq!(kept.collect::<Vec<_>>(), [None, Some("SFRQ")]);
    }

    #[test]
    fn of_each_class_three_failures_are_kept_with_what_they_were() {
        let mut recorder = Recorder::new(false, Seconds::detached());
        let classes = [Class::BadStatus(503), Class::FailedValidation, Class::Reset];
        for class in [classes, classes, classes, classes].concat() {
            let one = flight(0, 0);
            recorder.scheduled(&one);
            recorder.sent(&one, 0, 0);
            recorder.ended(&one, &End::without_reply(class, 7, "as the driver says"));
        }
        let said = |class: &str| {
            let samples = recorder.error_samples.iter();
            let of_class = samples.filter(|sample| sample.class == class);
            of_class
                .map(|sample| (sample.detail.as_str(), sample.at_ns))
                .collect::<Vec<_>>()
        };
        assert_eq!(said("bad_status"), [("status 503: as the driver says", 7); 3]);
        assert_eq!(said("failed_validation"), [("as the driver says", 7); 3]);
        assert_eq!(said("reset"), [("as the driver says", 7); 3]);
    }
}

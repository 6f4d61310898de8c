//! How workers agree on when the window opens, and what becomes of connections that are not open by then.
//!
//! The connections of a closed loop are opened before its window: those that are open load at once, unrecorded, and the warm-up counts
//! from when all are open. A connection that is not open after one time-out is a failed request of the window. Where exactly so many
//! requests are wanted and no warm-up, there is no such phase: the first request that reaches the server counts.

use super::connection::{Early, State};
use super::Worker;
use crate::account::Class;
use crate::clock::Clock;
use crate::record::recorder::{End, Flight};
use crate::socket::Streams;
use crate::spec::{Loop, Spec, Stop};
use crate::wire::Protocol;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// When the window opens, for all workers. Nobody waits for it: each looks when it passes by.
#[derive(Debug)]
pub struct Opening {
    // Workers whose connections are not open yet.
    waiting: AtomicUsize,
    // When the last of the others was done.
    last_ns: AtomicU64,
    lead_ns: u64,
    open_ns: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;
// A worker that waits looks at least this often, and the window opens later than that: so all know it in time.
pub(super) const LOOK_EVERY_NS: u64 = 5_000_000;
const LEAST_LEAD_NS: u64 = 4 * LOOK_EVERY_NS;

impl Opening {
    /// Of a run that starts at `epoch_ns`.
    pub fn new(spec: &Spec, epoch_ns: u64, workers: usize) -> Self {
        let warmup_ns = spec.workload.warmup_ns;
        let (lead_ns, open_ns) = if opens_first(spec) {
            (warmup_ns.max(LEAST_LEAD_NS), UNKNOWN)
        } else {
            (warmup_ns, epoch_ns + warmup_ns)
        };
        Self {
            waiting: AtomicUsize::new(workers),
            last_ns: AtomicU64::new(0),
            lead_ns,
            open_ns: AtomicU64::new(open_ns),
        }
    }

    /// When the warm-up began of a window that opens at `open_ns`.
    pub fn warm_up_from_ns(&self, open_ns: u64) -> u64 {
        open_ns.saturating_sub(self.lead_ns)
    }

    /// When the window opens; null while that is not known.
    pub fn open_ns(&self) -> Option<u64> {
        Some(self.open_ns.load(Ordering::Acquire)).filter(|&open_ns| open_ns != UNKNOWN)
    }

    /// One more worker need not be waited for; each says so once.
    pub(super) fn ready(&self, now_ns: u64) {
        self.last_ns.fetch_max(now_ns, Ordering::AcqRel);
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            let open_ns = self.last_ns.load(Ordering::Acquire) + self.lead_ns;
            self.open_ns.store(open_ns, Ordering::Release);
        }
    }
}

/// Whether the connections are opened before the window.
fn opens_first(spec: &Spec) -> bool {
    let load = &spec.workload;
    let is_counted = matches!(load.stop, Stop::Requests { .. });
    matches!(load.shape, Loop::Closed { .. }) && (!is_counted || load.warmup_ns > 0)
}

/// How far a worker's connections are.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Slots that have been open.
    pub(super) once: usize,
    // Slots that have not been and have failed to, and those of them that failed on this side.
    failed: usize,
    barred: usize,
    is_ready: bool,
    // First attempts, and those of them that have neither failed nor brought a reply.
    begun: usize,
    unaccepted: usize,
    // Further requests under way, and slots that wait for their turn to send one.
    loading: usize,
    resting: Vec<usize>,
}

// A listen queue often holds 128. When it is full, the kernel drops what comes, and repeats it after 1, 3 and 7 s.
const MOST_UNACCEPTED: usize = 100;
// Open connections load while others are opened, but do not keep the server from accepting those.
const MOST_LOADING: usize = 32;
// A server may accept few at a time: all are begun after this part of the time-out, so that it is the server who leaves them waiting.
const BEGUN_AFTER_PART: u128 = 4;

impl Opened {
    /// A slot is open for the first time; `failure`: of its last attempt, if one failed.
    pub(super) fn opened(&mut self, failure: Option<Class>) {
        self.once += 1;
        self.failed -= usize::from(failure.is_some());
        self.barred -= usize::from(failure.is_some_and(Class::is_of_this_side));
    }

    /// A slot that has never been open failed again.
    pub(super) fn failed(&mut self, before: Option<Class>, now: Class) {
        self.failed += usize::from(before.is_none());
        self.barred += usize::from(now.is_of_this_side());
        self.barred -= usize::from(before.is_some_and(Class::is_of_this_side));
    }

    /// A request that had to do with the opening is over.
    pub(super) fn ended(&mut self, early: Early) {
        match early {
            Early::No => {}
            Early::First => self.unaccepted -= 1,
            Early::Again => self.loading -= 1,
        }
    }

    /// Whether waiting on would open no more: all are open but those for which this machine lacks something, or the server refused
    /// every single one.
    fn is_over(&self, slots: usize) -> bool {
        self.once + self.barred == slots || self.failed == slots
    }
}

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    pub(super) fn is_opening(&self) -> bool {
        self.task.times.open_ns == UNKNOWN
    }

    /// Whether this worker's connections are being opened.
    fn is_pacing_itself(&self) -> bool {
        self.is_opening() && !self.opened.is_ready
    }

    /// Whether one more connection may be begun: as fast as the server accepts them, or at the rate that the time-out demands.
    pub(super) fn has_room_to_open(&self) -> bool {
        if !self.is_pacing_itself() || self.opened.unaccepted < MOST_UNACCEPTED {
            return true;
        }
        let times = &self.task.times;
        let elapsed_ns = u128::from(self.clock.now().saturating_sub(times.epoch_ns));
        let due = self.wanted as u128 * elapsed_ns * BEGUN_AFTER_PART;
        self.opened.begun as u128 * u128::from(times.wait_ns()) < due
    }

    /// A connection is about to be begun.
    pub(super) fn note_attempt(&mut self, slot: usize) {
        let is_pacing = self.is_pacing_itself();
        let connection = &mut self.connections[slot];
        let is_first = !connection.has_connected && connection.failure.is_none();
        if is_pacing && is_first && connection.early == Early::No {
            connection.early = Early::First;
            self.opened.begun += 1;
            self.opened.unaccepted += 1;
        }
    }

    /// Whether an open connection may send a further request now; if not, it rests until the others are open.
    pub(super) fn may_load(&mut self, slot: usize) -> bool {
        if !self.is_pacing_itself() {
            return true;
        }
        let connection = &mut self.connections[slot];
        let may = self.opened.loading < MOST_LOADING;
        if may {
            connection.early = Early::Again;
            self.opened.loading += 1;
        } else {
            connection.listed = true;
            self.opened.resting.push(slot);
        }
        may
    }

    /// While the opening of the window is not known: whether this worker still has to be waited for, and whether others have to.
    pub(super) fn look_at_opening(&mut self, now_ns: u64) {
        if !self.is_opening() {
            return;
        }
        let times = &self.task.times;
        let is_late = now_ns >= times.epoch_ns + times.wait_ns();
        if !self.opened.is_ready && (is_late || self.opened.is_over(self.wanted)) {
            self.opened.is_ready = true;
            self.closed.extend(self.opened.resting.drain(..));
            self.task.opening.ready(now_ns);
        }
        self.learn_opening(now_ns);
    }

    /// Within a long round, too: a worker with very many connections may need longer for one than the window's opening is ahead.
    pub(super) fn look_between_events(&mut self) {
        if self.is_opening() {
            self.learn_opening(self.clock.now());
        }
    }

    fn learn_opening(&mut self, now_ns: u64) {
        if let Some(open_ns) = self.task.opening.open_ns() {
            self.task.times = self.task.times.opening_at(open_ns);
            let times = &self.task.times;
            self.recorder.set_window(times.open_ns, times.close_ns, now_ns);
            self.begin_plan();
        }
    }

    /// The window opens: each connection that never was open is a failed request of it.
    pub(super) fn fail_unopened(&mut self, now_ns: u64) {
        // Where the window opened at once, nobody was waited for.
        if !self.opened.is_ready {
            return;
        }
        for slot in 0..self.wanted {
            if self.connections[slot].has_connected {
                continue;
            }
            if !self.take_from_budget() {
                return;
            }
            self.fail_one_unopened(slot, now_ns);
        }
    }

    fn fail_one_unopened(&mut self, slot: usize, now_ns: u64) {
        let open_ns = self.task.times.open_ns;
        let own_from_ns = self.recorder.own_from_ns();
        let flight = Flight {
            request: self.protocol.next(),
            intended_ns: own_from_ns,
            sent_ns: None,
        };
        self.recorder.scheduled(&flight);
        let connection = &mut self.connections[slot];
        let is_on_its_way = matches!(connection.state, State::Connecting { .. });
        let (class, why) = match connection.failure {
            Some(class) => (class, connection.why.as_str()),
            None if is_on_its_way => (Class::ConnectTimedOut, self.driver.too_late(Some(slot))),
            None => (Class::ClientOther, "its attempt had not begun"),
        };
        let detail = format!("not open when the window opened: {why}");
        let is_counted = connection.failure.is_some() || is_on_its_way;
        // All connections are wanted from the start on.
        let mut end = End::without_reply(class, now_ns.max(own_from_ns), &detail);
        end.waited_from_ns = Some(self.task.times.epoch_ns);
        self.recorder.ended(&flight, &end);
        self.counts.failures += u64::from(is_counted && self.is_first_of_connection(slot));
        if is_on_its_way {
            // The attempt before the window ends before it: the window's own has failed in its place.
            self.end(slot, class, open_ns - 1, "");
            self.attempt_failed(slot, class, &detail);
            self.back_off(slot, now_ns);
        }
    }
}

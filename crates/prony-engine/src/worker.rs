//! One thread of load: one loop, sharing nothing.
//!
//! *due requests -> time-outs -> wait -> ready sockets*, repeatedly. A closed loop begins a request on each connection that is
//! free; an open loop begins one when the schedule says so, on any connection that is idle, opens one more if none is, and queues the
//! request in order if it may open no more.

mod connection;
mod connects;
mod deadlines;
mod following;
pub mod margin;
mod meter;
mod opening;
mod pacing;
mod plan;
mod population;
mod rests;
#[cfg(test)]
mod tests;
pub(crate) mod throttle;
mod transfer;
mod waits;

pub use meter::Meter;
pub use opening::Opening;
pub use plan::{pacing_of, task, worker_count, worker_counts, Common, Task, Times};

use crate::account::Class;
use crate::clock::Clock;
use crate::record::recorder::{End, Flight, Recorder};
use crate::record::recording::Queue;
use crate::socket::handshakes::Handshakes;
use crate::socket::{Figures, Ready, Streams};
use crate::wire::{Protocol, Reader};
use connection::{Connection, State};
use deadlines::Deadlines;
use opening::Opened;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A worker's figures while it runs; the coordinator reads them.
#[derive(Debug, Default)]
pub struct Gauges {
    /// `ok` so far.
    pub ok: AtomicU64,
    /// Failed so far.
    pub failed: AtomicU64,
    /// Sent and not ended.
    pub in_flight: AtomicU64,
    /// Due and not sent.
    pub queued: AtomicU64,
    /// Connections that have been open.
    pub connected: AtomicU64,
}

/// Counts of connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub opened: u64,
    pub reconnects: u64,
    pub failures: u64,
    pub retried: u64,
    pub surplus: u64,
    /// Connections that ended with their requests, or their time.
    pub retired: u64,
    /// From the first connection on, and each time that a request is sent.
    pub requests_sent: u64,
    /// Connections that the plan of the load added, and that it took away.
    pub added: u64,
    pub taken_away: u64,
}

/// What a worker passes once in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The opening of the window.
    Open,
    /// Its close; where a count or a cancellation ends the load, the end of the run.
    Close,
}

/// What looks at a worker while it runs, from its own thread.
pub trait Watch {
    /// It passes an edge of the window; `spin_ns`: what it has spun so far.
    fn pass(&mut self, edge: Edge, spin_ns: u64);

    /// A round within the window is over.
    fn round(&mut self, round: &Round);
}

/// One round of a worker's loop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    /// When it began, with what was due.
    pub began_ns: u64,
    /// When it was done waiting for sockets.
    pub woke_ns: u64,
    /// When all that was ready had been taken.
    pub ended_ns: u64,
    /// Valid replies in it.
    pub replies: u64,
}

impl Round {
    /// From its beginning to its end.
    pub fn length_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }

    /// Taking what was ready.
    pub fn worked_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.woke_ns)
    }
}

/// A running worker.
pub struct Worker<P: Protocol, D, C> {
    protocol: P,
    driver: D,
    clock: C,
    task: Task,
    next_due_ns: Option<u64>,
    // The slots below this number are to have connections, which the plan changes then; null: it does not, or not yet.
    wanted: usize,
    next_change_ns: Option<u64>,
    opened: Opened,
    connections: Vec<Connection<P::Reader, P::Request>>,
    idle: Vec<usize>,
    closed: VecDeque<usize>,
    // Slots whose request is to be sent once more, on a new connection.
    repeats: VecDeque<usize>,
    // Connections on their way for whichever request waits first (one that a request owns is not among them).
    attempts: usize,
    queue: VecDeque<Flight<P::Request>>,
    deadlines: Deadlines,
    back_offs: BinaryHeap<Reverse<(u64, usize)>>,
    // Of far users in a closed loop: when the next request of a slot gets here.
    rests: BinaryHeap<Reverse<(u64, usize)>>,
    ready: Vec<Ready>,
    // How many sockets were ready in the last step.
    handled: usize,
    // Slots that may have more to read: an edge does not come again.
    unread: VecDeque<usize>,
    last_intended_ns: u64,
    pub(crate) recorder: Recorder,
    pub(crate) counts: Counts,
    queue_figures: Queue,
    /// Redirects that were followed, by status.
    pub(crate) followed: BTreeMap<u16, u64>,
    spin_ns: u64,
}

// A cancellation is seen within this time, whatever else is awaited.
const MAX_WAIT_NS: u64 = 50_000_000;

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    /// A worker before its first step.
    pub fn new(protocol: P, driver: D, clock: C, mut task: Task, mut recorder: Recorder) -> Self {
        // The slots of an open loop are made when they are needed.
        let slots = if task.schedule.is_some() {
            0
        } else {
            task.connections
        };
        let epoch_ns = task.times.epoch_ns;
        recorder.set_window(task.times.open_ns, task.times.close_ns, 0);
        recorder.delay_ns = task.delay_ns;
        let next_due_ns = task
            .schedule
            .as_mut()
            .map(|schedule| epoch_ns + schedule.next_due());
        let wanted = task
            .plan
            .as_ref()
            .map_or(task.connections, |plan| plan.at(0) * task.streams);
        let mut worker = Self {
            protocol,
            driver,
            clock,
            next_due_ns,
            wanted,
            next_change_ns: None,
            opened: Opened::default(),
            connections: Vec::with_capacity(slots),
            idle: Vec::with_capacity(1024),
            closed: (0..slots.min(wanted)).collect(),
            repeats: VecDeque::new(),
            attempts: 0,
            queue: VecDeque::with_capacity(1024),
            deadlines: Deadlines::default(),
            back_offs: BinaryHeap::new(),
            rests: BinaryHeap::new(),
            ready: Vec::with_capacity(1024),
            handled: 0,
            unread: VecDeque::with_capacity(slots.max(1024)),
            last_intended_ns: task.times.open_ns,
            task,
            recorder,
            counts: Counts::default(),
            queue_figures: Queue::default(),
            followed: BTreeMap::new(),
            spin_ns: 0,
        };
        for _ in 0..slots {
            worker.add_slot();
        }
        worker.park_the_unwanted();
        worker.rest_first();
        if worker.task.times.open_ns != u64::MAX {
            worker.begin_plan();
        }
        worker
    }

    fn add_slot(&mut self) {
        let mut reader = self.protocol.reader();
        reader.expect_headers(self.task.expect.headers());
        let connection = Connection::new(reader, self.task.expect.seen());
        self.connections.push(connection);
    }

    /// Runs to the end of the drain, or until `cancelled`, while `watch` looks on.
    ///
    /// # Errors
    /// When the driver cannot wait; failures of requests are counted, not returned.
    pub fn run(
        &mut self,
        cancelled: &AtomicBool,
        gauges: &Gauges,
        watch: &mut impl Watch,
    ) -> std::io::Result<()> {
        let mut passed = None;
        let mut round = Round::default();
        loop {
            let now_ns = self.clock.now();
            if passed == Some(Edge::Open) {
                round.ended_ns = now_ns;
                watch.round(&round);
            }
            self.look_at_opening(now_ns);
            if passed.is_none() && now_ns >= self.task.times.open_ns {
                passed = Some(Edge::Open);
                watch.pass(Edge::Open, self.spin_ns);
                self.fail_unopened(now_ns);
            }
            if passed == Some(Edge::Open) && now_ns >= self.task.times.close_ns {
                passed = Some(Edge::Close);
                watch.pass(Edge::Close, self.spin_ns);
            }
            if cancelled.load(Ordering::Relaxed) {
                self.task.times.close_ns = now_ns;
                break;
            }
            self.tick(now_ns);
            if self.is_done(now_ns) {
                break;
            }
            self.show(gauges);
            let replies = self.recorder.replies();
            let woke_ns = self.wait()?;
            self.handled = self.ready.len();
            self.handle_ready();
            self.read_on();
            self.driver.work(&mut self.ready);
            self.handle_ready();
            round = Round {
                began_ns: now_ns,
                woke_ns,
                ended_ns: woke_ns,
                replies: self.recorder.replies() - replies,
            };
        }
        if passed == Some(Edge::Open) {
            watch.pass(Edge::Close, self.spin_ns);
        }
        self.end_outstanding();
        self.show(gauges);
        Ok(())
    }

    /// Replies by connection, since the opening of the window.
    pub(crate) fn answered(&self) -> impl Iterator<Item = u64> + '_ {
        let each = self.connections.chunks(self.task.streams);
        each.map(|slots| slots.iter().map(|slot| slot.answered).sum())
    }

    /// Where the first redirect led.
    pub(crate) fn redirected_to(&self) -> Option<String> {
        self.connections.iter().find_map(|slot| slot.location.clone())
    }

    /// Whether a connection is counted with this slot, among those that share it.
    fn is_first_of_connection(&self, slot: usize) -> bool {
        slot % self.task.streams == 0
    }

    /// What was seen of streams; null where there are none.
    pub(crate) fn stream_figures(&self) -> Option<Figures> {
        self.driver.figures()
    }

    /// Its connections by the number of their address, from the first one on.
    pub(crate) fn opened_to(&self) -> &[u64] {
        self.driver.opened_to()
    }

    /// The handshakes of its connections; null without TLS.
    pub(crate) fn handshakes(&mut self) -> Option<Handshakes> {
        self.driver.handshakes()
    }

    /// What the queue of the open loop was, and the limit that its requests wait for.
    pub(crate) fn queue_figures(&self) -> Queue {
        let limit = self.is_open_loop().then_some(self.task.connections as u64);
        Queue {
            limit,
            ..self.queue_figures.clone()
        }
    }

    fn is_open_loop(&self) -> bool {
        self.task.schedule.is_some()
    }

    /// Counts of connections, and of what happens on them, are those since the opening of the window.
    fn is_counted(&self, at_ns: u64) -> bool {
        at_ns >= self.task.times.open_ns
    }

    /// Everything that falls due by itself.
    fn tick(&mut self, now_ns: u64) {
        self.follow_plan(now_ns);
        self.take_due(now_ns);
        self.expire_queue(now_ns);
        self.expire_slots(now_ns);
        self.end_back_offs(now_ns);
        self.end_rests(now_ns);
        self.open_some();
    }

    fn take_due(&mut self, now_ns: u64) {
        while let Some(due_ns) = self.next_due_ns.filter(|&due_ns| due_ns <= now_ns) {
            let is_own = self.recorder.is_in_window(due_ns);
            if due_ns >= self.task.times.close_ns || (is_own && !self.take_from_budget()) {
                self.next_due_ns = None;
                return;
            }
            self.last_intended_ns = due_ns;
            let flight = Flight {
                request: self.protocol.next(),
                intended_ns: due_ns,
                sent_ns: None,
            };
            self.recorder.taken(&flight, now_ns);
            self.arrive(flight);
            let epoch_ns = self.task.times.epoch_ns;
            self.next_due_ns = self
                .task
                .schedule
                .as_mut()
                .map(|schedule| epoch_ns + schedule.next_due());
        }
    }

    /// An arrival of the open loop: sent, or queued.
    fn arrive(&mut self, flight: Flight<P::Request>) {
        self.recorder.scheduled(&flight);
        match self.take_idle() {
            Some((slot, since_ns)) => self.send(slot, flight, since_ns),
            None => {
                self.queue.push_back(flight);
                if self.recorder.is_own(&flight) {
                    let figures = &mut self.queue_figures;
                    figures.waited += 1;
                    figures.max_length = figures.max_length.max(self.queue.len() as u64);
                }
            }
        }
    }

    fn take_idle(&mut self) -> Option<(usize, u64)> {
        while let Some(slot) = self.idle.pop() {
            self.connections[slot].listed = false;
            let State::Idle { since_ns } = self.connections[slot].state else {
                continue;
            };
            if !self.end_of_age(slot) {
                return Some((slot, since_ns));
            }
        }
        None
    }

    /// Ends an idle connection that is too old to be used again; whether it did.
    fn end_of_age(&mut self, slot: usize) -> bool {
        if !self.task.lifetime.has_age() {
            return false;
        }
        let now_ns = self.clock.now();
        let is_worn = self.connections[slot].is_worn(&self.task.lifetime, now_ns);
        if is_worn {
            self.counts.retired += u64::from(self.is_counted(now_ns));
            self.lose_idle(slot);
        }
        is_worn
    }

    /// Takes one request from the count that ends the run; true when no count ends it.
    fn take_from_budget(&mut self) -> bool {
        match &mut self.task.requests {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// A free connection of the closed loop begins its next request, unless the load is over.
    fn begin(&mut self, slot: usize, now_ns: u64) {
        let is_open = matches!(self.connections[slot].state, State::Idle { .. });
        if is_open && !self.may_load(slot) {
            return;
        }
        let is_own = self.recorder.is_in_window(now_ns);
        let may_begin = now_ns < self.task.times.close_ns && (!is_own || self.take_from_budget());
        if !may_begin {
            return;
        }
        let flight = Flight {
            request: self.protocol.next(),
            intended_ns: now_ns,
            sent_ns: None,
        };
        self.recorder.scheduled(&flight);
        match self.connections[slot].state {
            State::Idle { since_ns } => self.send(slot, flight, since_ns),
            _ => {
                let connection = &mut self.connections[slot];
                (connection.flight, connection.hop) = (Some(flight), None);
                self.connect(slot, now_ns);
            }
        }
    }

    fn expire_queue(&mut self, now_ns: u64) {
        while let Some(&first) = self.queue.front() {
            if self.task.times.connected_by_ns(&first) > now_ns {
                return;
            }
            self.queue.pop_front();
            let (class, detail) = match self.attempts {
                0 => (Class::NotSentQueue, "no connection was free before the time-out"),
                _ => (Class::ConnectTimedOut, self.driver.too_late(None)),
            };
            self.recorder
                .ended(&first, &End::without_reply(class, now_ns, detail));
        }
    }

    fn expire_slots(&mut self, now_ns: u64) {
        while let Some((at_ns, slot)) = self.deadlines.first() {
            if at_ns > now_ns {
                return;
            }
            let connecting = matches!(self.connections[slot].state, State::Connecting { .. });
            if connecting {
                let detail = self.driver.too_late(Some(slot));
                self.connect_failed(slot, Class::ConnectTimedOut, now_ns, detail);
            } else if self.connections[slot].early_verdict.is_some() {
                self.end_early(slot, true);
            } else {
                let (class, detail) = if self.take_back_unsent(slot) {
                    (Class::NotSentQueue, "no stream was free before the time-out")
                } else {
                    (Class::TimedOut, "no complete reply before the time-out")
                };
                self.end(slot, class, now_ns, detail);
                self.disconnect(slot);
                self.free(slot, now_ns);
            }
        }
    }

    /// Whether the slot's request was not sent after all: it waits for a stream, or is on its way from a connection that had none for it
    /// to another one.
    fn take_back_unsent(&mut self, slot: usize) -> bool {
        let is_unsent = self.driver.is_unsent(slot);
        self.counts.requests_sent -= u64::from(is_unsent);
        let connection = &self.connections[slot];
        let is_on_none = connection.state != State::Busy;
        (is_unsent || is_on_none) && !connection.was_sent
    }

    fn end_back_offs(&mut self, now_ns: u64) {
        while let Some(&Reverse((at_ns, slot))) = self.back_offs.peek() {
            if at_ns > now_ns {
                return;
            }
            self.back_offs.pop();
            self.connections[slot].state = State::Closed;
            if self.connections[slot].flight.is_some() {
                self.repeats.push_back(slot);
            } else {
                self.free(slot, now_ns);
            }
        }
    }

    /// The end of the wait for replies; null while more requests will be sent.
    fn drain_end_ns(&self, now_ns: u64) -> Option<u64> {
        let times = &self.task.times;
        let last_ns = match self.task.requests {
            None => (now_ns >= times.close_ns).then_some(times.close_ns)?,
            Some(0) if self.is_open_loop() => self.last_intended_ns,
            // A closed loop that counts has no schedule to fall behind: each of its requests ends by its own time-out.
            Some(0) => u64::MAX,
            Some(_) => return None,
        };
        Some(last_ns.saturating_add(times.grace_ns))
    }

    fn is_done(&self, now_ns: u64) -> bool {
        self.drain_end_ns(now_ns)
            .is_some_and(|end_ns| self.recorder.outstanding() == 0 || now_ns >= end_ns)
    }

    /// Accounts for all requests still in progress. Their connections close with the driver.
    fn end_outstanding(&mut self) {
        let now_ns = self.clock.now();
        for slot in 0..self.connections.len() {
            self.end_early(slot, true);
            let flight = self.connections[slot].flight;
            let class = match flight.and_then(|flight| flight.sent_ns) {
                Some(_) if !self.take_back_unsent(slot) => Class::InFlightAtEnd,
                _ => Class::NotSentEnd,
            };
            self.end(slot, class, now_ns, "the run ended");
        }
        while let Some(flight) = self.queue.pop_front() {
            let end = End::without_reply(Class::NotSentEnd, now_ns, "the run ended");
            self.recorder.ended(&flight, &end);
        }
    }

    fn show(&self, gauges: &Gauges) {
        let ended = self.recorder.ended_so_far();
        let waiting = self.recorder.outstanding() - self.recorder.in_flight();
        gauges.ok.store(ended.ok, Ordering::Relaxed);
        gauges.failed.store(ended.failed, Ordering::Relaxed);
        gauges
            .in_flight
            .store(self.recorder.in_flight(), Ordering::Relaxed);
        gauges.queued.store(waiting, Ordering::Relaxed);
        let connected = self.opened.once.div_ceil(self.task.streams);
        gauges.connected.store(connected as u64, Ordering::Relaxed);
    }
}

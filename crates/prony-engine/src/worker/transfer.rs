//! What happens on a slot: connect, send, receive, end.

use super::connection::{coding_of, Connection, State, Step, BACK_OFF_NS};
use super::Worker;
use crate::account::Class;
use crate::clock::{Clock, NS_PER_S};
use crate::expect::Verdict;
use crate::record::recorder::{End, Flight};
use crate::socket::transport::{connect_class, transfer_class};
use crate::socket::{Fault, OpenedAs, Ready, Streams};
use crate::wire::redirect::Next;
use crate::wire::{is_idempotent, EndOfStream, Protocol, Reader};
use std::cmp::Reverse;
use std::io::{self, ErrorKind};

// Of 64 KiB each. What takes longest to parse, chunks of one byte, takes some 0.2 ms.
const READS_PER_TURN: usize = 4;
// Of a connection that nothing can be sent on: what its peer said before is still there.
const LAST_READS: usize = 8;
// Whoever takes nothing for so long of a request that it has answered wants no more of it.
const UNWANTED_NS: u64 = NS_PER_S;
// The first wait before a request that was refused is sent again, and the longest.
const AGAIN_NS: (u64, u64) = (1_000_000, NS_PER_S);
// Of a request that found no stream on connections that were there: each takes one.
const MOST_ELSEWHERE: u32 = 8;

/// What becomes of a request whose connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ends,
    /// After so long.
    SentAgain {
        wait_ns: u64,
    },
    /// Nothing of it was sent before.
    SentElsewhere,
}

impl<P: Protocol, D: Streams, C: Clock> Worker<P, D, C> {
    pub(super) fn handle_ready(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        for event in &ready {
            self.look_between_events();
            self.connections[event.slot].hangup |= event.hangup;
            // An edge comes once: what arrived together with the connection must be read now.
            if event.writable && matches!(self.connections[event.slot].state, State::Connecting { .. }) {
                self.connect_ended(event);
            }
            match self.connections[event.slot].state {
                State::Busy => self.transfer(event),
                State::Idle { .. } if event.readable => self.look_at_idle(event),
                _ => {}
            }
        }
        self.ready = ready;
        self.ready.clear();
    }

    /// Begins a connection on a slot without a socket: for the slot's request, or for the queue.
    pub(super) fn connect(&mut self, slot: usize, now_ns: u64) {
        self.note_attempt(slot);
        let began = self.driver.connect(slot);
        self.connections[slot].hangup = false;
        self.connections[slot].first_bytes.clear();
        self.connections[slot].state = State::Connecting { since_ns: now_ns };
        let own = self.connections[slot].flight;
        self.attempts += usize::from(own.is_none());
        let times = &self.task.times;
        let by_ns = own.map_or(now_ns + times.wait_ns(), |flight| times.connected_by_ns(&flight));
        self.deadlines.set(slot, by_ns);
        match began {
            Ok(true) => self.connected(slot),
            Ok(false) => {}
            Err(error) => self.connect_failed(slot, connect_class(&error), now_ns, &error.to_string()),
        }
    }

    fn connect_ended(&mut self, event: &Ready) {
        let slot = event.slot;
        match self.driver.connect_result(slot) {
            Ok(()) if event.readable && self.take_unasked(slot).is_ok_and(|count| count > 0) => {
                let now_ns = self.clock.now();
                self.connect_failed(slot, Class::Parse, now_ns, "bytes came before a request was sent");
            }
            Ok(()) => self.connected(slot),
            Err(error) => {
                let now_ns = self.clock.now();
                self.connect_failed(slot, connect_class(&error), now_ns, &error.to_string());
            }
        }
    }

    fn connected(&mut self, slot: usize) {
        let now_ns = self.clock.now();
        let is_counted = self.is_counted(now_ns);
        let opened = self.driver.opened_as(slot);
        let connection = &mut self.connections[slot];
        let (is_new, is_again) = match opened {
            OpenedAs::Own => (true, connection.has_connected),
            OpenedAs::First { again } => (true, again),
            OpenedAs::Shared => (false, false),
        };
        if let (State::Connecting { since_ns }, true) = (connection.state, is_new) {
            self.recorder.distributions.connect.record(now_ns - since_ns);
        }
        if !connection.has_connected {
            self.opened.opened(connection.failure);
        }
        self.counts.opened += u64::from(is_counted && is_new);
        self.counts.reconnects += u64::from(is_counted && is_new && is_again);
        connection.state = State::Idle { since_ns: now_ns };
        connection.back_off_ns = BACK_OFF_NS.0;
        connection.begin_life(now_ns);
        let own = connection.flight.take();
        self.deadlines.remove(slot);
        match own {
            Some(flight) => self.send(slot, flight, now_ns),
            // Never used, so it goes to the top of the idle ones: a server that serves one connection at a time waits for its request.
            None => {
                self.attempts -= 1;
                self.serve_queue(slot, now_ns);
            }
        }
    }

    /// The request that this connection was opened for fails with it: the slot's own, or the oldest in the queue.
    pub(super) fn connect_failed(&mut self, slot: usize, class: Class, now_ns: u64, detail: &str) {
        self.attempt_failed(slot, class, detail);
        if self.connections[slot].flight.is_some() {
            self.end(slot, class, now_ns, detail);
        } else {
            self.attempts -= 1;
            self.fail_waiting(slot, class, now_ns, detail);
        }
        if self.is_open_loop() {
            self.closed.push_back(slot);
        } else {
            self.back_off(slot, now_ns);
        }
    }

    /// The slot's attempt has ended without a connection.
    pub(super) fn attempt_failed(&mut self, slot: usize, class: Class, why: &str) {
        if let State::Connecting { since_ns } = self.connections[slot].state {
            let is_first = self.driver.opened_as(slot) != OpenedAs::Shared;
            self.counts.failures += u64::from(is_first && self.is_counted(since_ns));
        }
        self.disconnect(slot);
        let connection = &mut self.connections[slot];
        if !connection.has_connected {
            let before = connection.failure.replace(class);
            why.clone_into(&mut connection.why);
            self.opened.failed(before, class);
        }
    }

    pub(super) fn back_off(&mut self, slot: usize, now_ns: u64) {
        let wait_ns = self.connections[slot].next_back_off_ns();
        self.connections[slot].state = State::BackOff;
        self.back_offs.push(Reverse((now_ns + wait_ns, slot)));
    }

    /// An attempt that timed out has outlived its request, which the queue's own time-out has ended.
    fn fail_waiting(&mut self, slot: usize, class: Class, now_ns: u64, detail: &str) {
        if class != Class::ConnectTimedOut {
            if let Some(flight) = self.queue.pop_front() {
                let mut end = End::without_reply(class, now_ns, detail);
                end.received = &self.connections[slot].first_bytes;
                self.recorder.ended(&flight, &end);
            }
        }
    }

    /// Sends a request on a connection that has been free since `free_since_ns`.
    pub(super) fn send(&mut self, slot: usize, mut flight: Flight<P::Request>, free_since_ns: u64) {
        let now_ns = self.clock.now();
        self.counts.requests_sent += 1;
        let connection = &mut self.connections[slot];
        match flight.sent_ns {
            None => {
                flight.sent_ns = Some(now_ns);
                (connection.repeats, connection.is_suspect) = (0, false);
                (connection.was_sent, connection.waited_ns) = (false, 0);
                connection.hop = None;
                self.recorder.sent(&flight, now_ns, free_since_ns);
            }
            // The connections before this one had no stream for it.
            Some(sent_ns) if !connection.was_sent => connection.waited_ns = now_ns - sent_ns,
            Some(_) => {}
        }
        let by_ns = self.answered_by_ns(slot, &flight);
        self.deadlines.set(slot, by_ns);
        let connection = &mut self.connections[slot];
        connection.early_verdict = None;
        connection.state = State::Busy;
        connection.flight = Some(flight);
        connection.reader.reset();
        let Connection { reader, buffer, .. } = connection;
        connection.is_buffered = self.protocol.begin(flight.request, reader, buffer);
        connection.seen.reset();
        connection.first_bytes.clear();
        (connection.written, connection.is_sent) = (0, false);
        self.write(slot);
    }

    /// When a request that is sent on a slot is given up. The ways that its redirects took are a part of its time.
    fn answered_by_ns(&self, slot: usize, flight: &Flight<P::Request>) -> u64 {
        let times = &self.task.times;
        let is_for_both = times.connect_timeout_ns.is_none();
        let from_ns = match flight.sent_ns {
            Some(sent_ns) if !(self.is_open_loop() && is_for_both) => sent_ns,
            _ => flight.intended_ns,
        };
        let ways_ns = u64::from(self.hops(slot)) * self.task.delay_ns;
        from_ns + times.timeout_ns.saturating_sub(ways_ns)
    }

    /// Writes until all is sent or the kernel takes no more: only then does an edge signal that there is room again.
    fn write(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let Some(flight) = connection.flight else { return };
        if connection.early_verdict.is_some() && !self.driver.wants_rest(slot) {
            return self.end_early(slot, false);
        }
        let before = connection.written;
        let bytes = match &connection.hop {
            None if connection.is_buffered => &connection.buffer,
            None => self.protocol.bytes(flight.request),
            Some(hop) => hop.bytes(),
        };
        while connection.written < bytes.len() {
            match self.driver.send(slot, &bytes[connection.written..]) {
                Ok(sent) => {
                    connection.written += sent;
                    connection.was_sent = true;
                    self.recorder.took(&flight, self.driver.framed_bytes(slot, sent));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if connection.early_verdict.is_some() && connection.written > before {
                        self.wait_for_rest(slot);
                    }
                    return;
                }
                Err(error) => return self.unsendable(slot, &error),
            }
        }
        connection.is_sent = true;
        if connection.early_verdict.is_some() {
            self.end_early(slot, false);
        }
    }

    /// Nothing more of a request can be sent. What the peer said before may be a whole reply, and no event says so again.
    fn unsendable(&mut self, slot: usize, error: &io::Error) {
        if self.connections[slot].early_verdict.is_some() {
            return self.end_early(slot, true);
        }
        let mut reads = if self.connections[slot].written > 0 {
            LAST_READS
        } else {
            0
        };
        while reads > 0 {
            reads -= 1;
            match self.read(slot) {
                Ok(Some((Step::More, _))) => {}
                Ok(Some((step, _))) => {
                    self.connections[slot].hangup = true;
                    return self.take_step(slot, step, false);
                }
                _ => break,
            }
        }
        self.failed(slot, error);
    }

    /// Reading goes first: a server may answer, and close, before it has taken the whole request.
    fn transfer(&mut self, event: &Ready) {
        // One that is to be read on has its turn then: a flood brings an edge with every packet.
        if event.readable && !self.connections[event.slot].unread {
            self.receive(event.slot);
        }
        if event.writable && self.connections[event.slot].state == State::Busy {
            self.write(event.slot);
        }
    }

    /// Reads on where more may be, a bounded number of times: then the clock, the cancellation and the others have their turn.
    pub(super) fn read_on(&mut self) {
        for _ in 0..self.unread.len().min(READS_PER_TURN) {
            let Some(slot) = self.unread.pop_front() else {
                return;
            };
            self.connections[slot].unread = false;
            if self.connections[slot].state == State::Busy {
                self.receive(slot);
            }
        }
    }

    /// Reads once. What may be there beyond that is read on, of a peer that has closed until the end.
    fn receive(&mut self, slot: usize) {
        if self.connections[slot].early_verdict.is_some() {
            if self.is_spent(slot) {
                self.end_early(slot, true);
            }
            return;
        }
        match self.read(slot) {
            Ok(Some((step, may_have_more))) => self.take_step(slot, step, may_have_more),
            Ok(None) => self.stream_ended(slot),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.stream_cut(slot),
            Err(error) => self.failed(slot, &error),
        }
    }

    /// A piece of the slot's reply, and whether there may be more; null at the end of the stream.
    fn read(&mut self, slot: usize) -> io::Result<Option<(Step, bool)>> {
        let received = self.driver.receive(slot)?;
        if received.bytes.is_empty() && !received.is_complete {
            return Ok(None);
        }
        let connection = &mut self.connections[slot];
        if let Some(flight) = &connection.flight {
            self.recorder.gave(flight, received.framed_bytes as u64);
        }
        let step = connection.take(received.bytes, received.is_complete, &self.task.expect);
        Ok(Some((step, received.may_have_more)))
    }

    fn take_step(&mut self, slot: usize, step: Step, may_have_more: bool) {
        match step {
            Step::More => {
                if may_have_more || self.connections[slot].hangup {
                    self.connections[slot].unread = true;
                    self.unread.push_back(slot);
                }
            }
            Step::Complete { verdict, surplus } => {
                // Bytes that answer nothing: what follows on this connection could be taken for another reply.
                self.counts.surplus += u64::from(surplus > 0);
                let is_over = surplus > 0 || self.connections[slot].hangup;
                let must_close = is_over || (may_have_more && self.is_spent(slot));
                self.completed(slot, verdict, must_close);
            }
            Step::Ended(end) => self.was_ended(slot, end),
            Step::Malformed(why) => self.lost(slot, Class::Parse, why),
        }
    }

    /// Takes bytes that no request has asked for off a connection: how many, none at its end.
    fn take_unasked(&mut self, slot: usize) -> io::Result<usize> {
        let received = self.driver.receive(slot)?;
        let count = received.bytes.len();
        self.connections[slot].keep_first(received.bytes);
        self.counts.surplus += u64::from(count > 0);
        Ok(count)
    }

    /// Whether a connection without a request can take none any more: it is over, or has what nothing asked for. A driver may need what came
    /// for itself, as TLS does.
    fn is_spent(&mut self, slot: usize) -> bool {
        let result = self.take_unasked(slot);
        result.map_or_else(|error| error.kind() != ErrorKind::WouldBlock, |_| true)
    }

    /// The stream ended without its peer's word that it is over: what only the end would complete may be cut (RFC 9112 section 9.8).
    fn stream_cut(&mut self, slot: usize) {
        match self.connections[slot].reader.end_of_stream() {
            EndOfStream::Complete => {
                let detail = "closed without the close_notify of TLS: the reply may be cut";
                self.lost(slot, Class::ShortBody, detail);
            }
            end => self.reply_ended(slot, end),
        }
    }

    fn stream_ended(&mut self, slot: usize) {
        let end = self.connections[slot].reader.end_of_stream();
        self.reply_ended(slot, end);
    }

    fn reply_ended(&mut self, slot: usize, end: EndOfStream) {
        match end {
            EndOfStream::Complete => {
                let verdict = self.connections[slot].judge(&self.task.expect);
                self.completed(slot, verdict, true);
            }
            EndOfStream::NoReply => self.lost(slot, Class::Eof, "closed before the reply"),
            EndOfStream::WithinHead => self.lost(slot, Class::Eof, "closed within the head of the reply"),
            EndOfStream::WithinBody => {
                self.lost(slot, Class::ShortBody, "closed within the body of the reply")
            }
            EndOfStream::Refused(why) => self.lost(slot, Class::StreamRefused, why),
        }
    }

    /// The peer said that the reply is over, and it is not complete: nothing was closed.
    fn was_ended(&mut self, slot: usize, end: EndOfStream) {
        match end {
            EndOfStream::Refused(why) => self.lost(slot, Class::StreamRefused, why),
            EndOfStream::WithinBody => {
                self.lost(slot, Class::ShortBody, "ended within the body of the reply")
            }
            _ => self.lost(
                slot,
                Class::Parse,
                "ended before the head of the reply was complete",
            ),
        }
    }

    /// A whole reply is there. What it grants before its request was sent in full has its other half to come, unless the server says that
    /// it takes no more (RFC 9112 section 9.5, RFC 9113 section 8.1); what it refuses so is over.
    fn completed(&mut self, slot: usize, verdict: Verdict, must_close: bool) {
        let connection = &mut self.connections[slot];
        let is_early = verdict.class == Class::Ok && !connection.is_sent;
        if is_early {
            self.recorder.answered_early(connection.flight.as_ref());
        }
        let goes_on = connection.reader.keeps_alive() && !must_close;
        if is_early && goes_on {
            connection.early_verdict = Some(verdict);
            self.wait_for_rest(slot);
            if !self.driver.wants_rest(slot) {
                self.end_early(slot, false);
            }
        } else {
            self.end_answered(slot, &verdict, must_close);
        }
    }

    /// The rest of a request that is answered has so long to be taken.
    fn wait_for_rest(&mut self, slot: usize) {
        if let Some(flight) = self.connections[slot].flight {
            let by_ns = self.answered_by_ns(slot, &flight);
            self.deadlines
                .set(slot, by_ns.min(self.clock.now() + UNWANTED_NS));
        }
    }

    /// A request that was answered early is over: its rest is sent, or nobody takes it.
    pub(super) fn end_early(&mut self, slot: usize, must_close: bool) {
        if let Some(verdict) = self.connections[slot].early_verdict.take() {
            self.end_answered(slot, &verdict, must_close);
        }
    }

    fn end_answered(&mut self, slot: usize, verdict: &Verdict, must_close: bool) {
        let now_ns = self.clock.now();
        let is_counted = self.is_counted(now_ns);
        let connection = &mut self.connections[slot];
        // The rest of a request that was answered early would be taken for the next one, where it is no stream of its own.
        let is_whole = connection.is_sent || !self.driver.wants_rest(slot);
        let keeps_alive = connection
            .flight
            .is_none_or(|flight| self.protocol.keeps_alive(flight.request));
        let goes_on = connection.reader.keeps_alive() && keeps_alive && is_whole && !must_close;
        connection.has_answered = true;
        connection.carried += 1;
        let stays = goes_on && !connection.is_worn(&self.task.lifetime, now_ns);
        self.counts.retired += u64::from(is_counted && goes_on && !stays);
        let mut why = verdict.why.as_deref().unwrap_or("");
        if self.task.redirects.is_some() {
            match self.next_hop(slot) {
                Next::Nothing => {}
                Next::Hop(hop) => return self.follow(slot, hop, stays),
                Next::Refused(reason) => why = reason,
            }
        }
        self.connections[slot].answered += u64::from(is_counted);
        self.end(slot, verdict.class, now_ns, why);
        if stays {
            self.connections[slot].state = State::Idle { since_ns: now_ns };
        } else {
            self.disconnect(slot);
        }
        self.free(slot, now_ns);
    }

    /// A connection failed, or a stream of it alone.
    fn failed(&mut self, slot: usize, error: &io::Error) {
        let fault = Fault::of(error);
        let is_unsent = fault == Some(Fault::Unsent) || self.driver.is_unsent(slot);
        self.counts.requests_sent -= u64::from(is_unsent);
        let class = fault.map_or_else(|| transfer_class(error), fault_class);
        match fault {
            None => self.lost(slot, class, &error.to_string()),
            // The server has not looked at the request: it is safe to send it again, whatever it asks.
            Some(Fault::Unprocessed | Fault::Refused) => {
                let fate = self.fate_of_refused(slot, fault == Some(Fault::Refused));
                self.over(slot, class, &error.to_string(), fate);
            }
            Some(Fault::Unsent) => {
                let connection = &self.connections[slot];
                let class = if connection.was_sent {
                    class
                } else {
                    Class::NotSentQueue
                };
                let fate = match connection.repeats {
                    ..MOST_ELSEWHERE => Fate::SentElsewhere,
                    _ => Fate::Ends,
                };
                self.over(slot, class, &error.to_string(), fate);
            }
            Some(_) => self.over(slot, class, &error.to_string(), Fate::Ends),
        }
    }

    /// A request that was not looked at is sent again, each time after twice the wait, while there is time for a reply. `is_full`: its
    /// server is there, and has no room; one that left has another connection at once, for the first time.
    fn fate_of_refused(&self, slot: usize, is_full: bool) -> Fate {
        let Connection { repeats, flight, .. } = &self.connections[slot];
        let waits = u64::from(*repeats) + u64::from(is_full);
        let wait_ns = match waits {
            0 => 0,
            waits => AGAIN_NS.1.min(AGAIN_NS.0 << (waits - 1).min(32)),
        };
        let again_ns = self.clock.now() + wait_ns;
        let has_time = flight.is_some_and(|flight| again_ns < self.answered_by_ns(slot, &flight));
        if has_time {
            Fate::SentAgain { wait_ns }
        } else {
            Fate::Ends
        }
    }

    /// The connection failed under its request: sent once more where that is safe, ended otherwise.
    fn lost(&mut self, slot: usize, class: Class, detail: &str) {
        let connection = &self.connections[slot];
        let has_answered = connection.has_answered || self.driver.has_answered(slot);
        let met_a_close = matches!(class, Class::Reset | Class::Eof)
            && has_answered
            && !connection.is_suspect
            && !connection.reader.has_begun();
        let may_retry = met_a_close && self.is_safe_to_repeat(slot);
        self.connections[slot].is_suspect |= may_retry;
        self.over(
            slot,
            class,
            detail,
            if may_retry {
                Fate::SentAgain { wait_ns: 0 }
            } else {
                Fate::Ends
            },
        );
    }

    fn is_safe_to_repeat(&self, slot: usize) -> bool {
        let connection = &self.connections[slot];
        match (&connection.hop, connection.flight) {
            (Some(hop), _) => is_idempotent(hop.method()),
            (None, flight) => flight.is_some_and(|flight| self.protocol.is_idempotent(flight.request)),
        }
    }

    /// A request that is sent once more goes on a new connection, not on another that was idle: that one may have been closed as well.
    fn over(&mut self, slot: usize, class: Class, detail: &str, fate: Fate) {
        let now_ns = self.clock.now();
        self.disconnect(slot);
        match fate {
            Fate::Ends => {
                self.end(slot, class, now_ns, detail);
                self.free(slot, now_ns);
            }
            Fate::SentAgain { wait_ns } => {
                self.counts.retried += u64::from(self.is_counted(now_ns));
                self.repeat(slot, now_ns, wait_ns);
            }
            Fate::SentElsewhere => self.repeat(slot, now_ns, 0),
        }
    }

    fn repeat(&mut self, slot: usize, now_ns: u64, wait_ns: u64) {
        self.connections[slot].repeats += 1;
        if wait_ns == 0 {
            self.repeats.push_back(slot);
        } else {
            self.connections[slot].state = State::BackOff;
            self.back_offs.push(Reverse((now_ns + wait_ns, slot)));
        }
    }

    /// Something came on a connection that had no request.
    fn look_at_idle(&mut self, event: &Ready) {
        if self.is_spent(event.slot) || event.hangup {
            self.lose_idle(event.slot);
        }
    }

    /// The server closed a connection that had no request, or sent what nothing asked for: a reconnect when one is needed, not an error.
    pub(super) fn lose_idle(&mut self, slot: usize) {
        self.disconnect(slot);
        // One that rests has its turn when the others are open.
        if self.is_open_loop() || !self.connections[slot].listed {
            self.closed.push_back(slot);
        }
    }

    /// The slot's request, if any, ends.
    pub(super) fn end(&mut self, slot: usize, class: Class, now_ns: u64, detail: &str) {
        self.deadlines.remove(slot);
        let connection = &mut self.connections[slot];
        let Some(flight) = connection.flight.take() else {
            return;
        };
        self.opened.ended(std::mem::take(&mut connection.early));
        let mut end = End::without_reply(class, now_ns, detail);
        end.hops = connection.hop.as_ref().map_or(0, |hop| hop.number());
        end.received = &connection.first_bytes;
        if class == Class::FailedValidation && self.task.expect.looks_at_body() {
            end.coding = coding_of(&connection.reader);
        }
        end.connection = Some(slot);
        let waited_ns = self.driver.waited_for_stream_ns(slot);
        end.waited_for_stream_ns = waited_ns.map(|ns| ns + connection.waited_ns);
        if flight.sent_ns.is_some() {
            end.body_bytes = connection.reader.body_bytes();
            end.status = connection.reader.status();
        }
        self.recorder.ended(&flight, &end);
    }

    pub(super) fn disconnect(&mut self, slot: usize) {
        self.driver.close(slot);
        self.deadlines.remove(slot);
        self.connections[slot].state = State::Closed;
    }

    /// The slot has no request any more: on to the next one, with the next step where that takes a new connection, or after a rest, unless
    /// the plan of the load took it away meanwhile.
    pub(super) fn free(&mut self, slot: usize, now_ns: u64) {
        if !self.is_wanted(slot) {
            self.park(slot);
        } else if self.has_rests() {
            self.rest(slot, now_ns);
        } else if self.connections[slot].state == State::Closed {
            self.closed.push_back(slot);
        } else if self.is_open_loop() {
            self.serve_queue(slot, now_ns);
        } else {
            self.begin(slot, now_ns);
        }
    }

    fn serve_queue(&mut self, slot: usize, now_ns: u64) {
        if let Some(flight) = self.queue.pop_front() {
            self.send(slot, flight, now_ns);
        } else if !self.connections[slot].listed {
            self.connections[slot].listed = true;
            self.idle.push(slot);
        }
    }
}

fn fault_class(fault: Fault) -> Class {
    match fault {
        Fault::Unprocessed | Fault::Refused | Fault::Unsent => Class::StreamRefused,
        Fault::Closed => Class::Eof,
        Fault::Reset(_) => Class::Reset,
        Fault::Short => Class::ShortBody,
        Fault::Broken(_) => Class::Parse,
    }
}

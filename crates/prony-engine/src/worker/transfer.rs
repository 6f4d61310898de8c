//! What happens on a slot: connect, send, receive, end.

use super::connection::{State, BACK_OFF_NS};
use super::Worker;
use crate::account::Class;
use crate::clock::Clock;
use crate::driver::{Driver, Ready};
use crate::protocol::{EndOfStream, Progress, Protocol, Reader};
use crate::recorder::Flight;
use crate::transport::{connect_class, transfer_class};
use std::cmp::Reverse;
use std::io::ErrorKind;

impl<P: Protocol, D: Driver, C: Clock> Worker<P, D, C> {
    pub(super) fn handle_ready(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        self.handled = ready.len();
        for event in &ready {
            // An edge comes once: what arrived together with the connection must be read now.
            if event.writable && matches!(self.connections[event.slot].state, State::Connecting { .. }) {
                self.connect_ended(event.slot);
            }
            match self.connections[event.slot].state {
                State::Busy => self.transfer(event),
                State::Idle { .. } if event.readable => self.lose_idle(event.slot),
                _ => {}
            }
        }
        self.ready = ready;
        self.ready.clear();
    }

    /// Begins a connection on a slot without a socket: for the slot's request, or for the queue.
    pub(super) fn connect(&mut self, slot: usize, now_ns: u64) {
        let began = self.driver.connect(slot);
        self.connections[slot].state = State::Connecting { since_ns: now_ns };
        let own = self.connections[slot].flight;
        self.attempts += usize::from(own.is_none());
        let base_ns = own.map_or(now_ns, |flight| flight.intended_ns);
        self.deadlines.set(slot, base_ns + self.task.times.timeout_ns);
        match began {
            Ok(true) => self.connected(slot),
            Ok(false) => {}
            Err(error) => self.connect_failed(slot, connect_class(&error), now_ns, &error.to_string()),
        }
    }

    fn connect_ended(&mut self, slot: usize) {
        match self.driver.connect_result(slot) {
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
        let connection = &mut self.connections[slot];
        if let State::Connecting { since_ns } = connection.state {
            self.recorder.distributions.connect.record(now_ns - since_ns);
        }
        if !connection.has_connected {
            self.opened.opened(connection.failure);
        }
        self.counts.opened += u64::from(is_counted);
        self.counts.reconnects += u64::from(is_counted && connection.has_connected);
        connection.state = State::Idle { since_ns: now_ns };
        connection.back_off_ns = BACK_OFF_NS.0;
        connection.has_answered = false;
        connection.has_connected = true;
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
        self.counts.failures += u64::from(self.is_counted(now_ns));
        self.disconnect(slot);
        let connection = &mut self.connections[slot];
        if !connection.has_connected {
            let before = connection.failure.replace(class);
            self.opened.failed(before, class);
        }
        if self.connections[slot].flight.is_some() {
            self.end(slot, class, now_ns, detail);
        } else {
            self.attempts -= 1;
            self.fail_waiting(class, now_ns, detail);
        }
        if self.is_open_loop() {
            self.closed.push_back(slot);
        } else {
            let wait_ns = self.connections[slot].next_back_off_ns();
            self.connections[slot].state = State::BackOff;
            self.back_offs.push(Reverse((now_ns + wait_ns, slot)));
        }
    }

    /// An attempt that timed out has outlived its request, which the queue's own time-out has ended.
    fn fail_waiting(&mut self, class: Class, now_ns: u64, detail: &str) {
        if class != Class::ConnectTimedOut {
            if let Some(flight) = self.queue.pop_front() {
                self.recorder.ended(&flight, class, now_ns, 0, detail);
            }
        }
    }

    /// Sends a request on a connection that has been free since `free_since_ns`.
    pub(super) fn send(&mut self, slot: usize, mut flight: Flight, free_since_ns: u64) {
        let now_ns = self.clock.now();
        if flight.sent_ns.is_none() {
            flight.sent_ns = Some(now_ns);
            self.recorder.sent(&flight, now_ns, free_since_ns);
        }
        let base_ns = if self.is_open_loop() {
            flight.intended_ns
        } else {
            flight.sent_ns.unwrap_or(now_ns)
        };
        self.deadlines.set(slot, base_ns + self.task.times.timeout_ns);
        let connection = &mut self.connections[slot];
        connection.state = State::Busy;
        connection.flight = Some(flight);
        connection.reader.reset();
        connection.seen.reset();
        connection.written = 0;
        self.write(slot);
    }

    /// Writes until all is sent or the kernel takes no more: only then does an edge signal that there is room again.
    fn write(&mut self, slot: usize) {
        while self.connections[slot].written < self.protocol.request().len() {
            let connection = &mut self.connections[slot];
            match self
                .driver
                .send(slot, &self.protocol.request()[connection.written..])
            {
                Ok(sent) => {
                    connection.written += sent;
                    if connection.flight.is_some_and(|flight| flight.recorded) {
                        self.recorder.bytes.sent += sent as u64;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.lost(slot, transfer_class(&error), &error.to_string()),
            }
        }
    }

    /// Reading goes first: a server may answer, and close, before it has taken the whole request.
    fn transfer(&mut self, event: &Ready) {
        if event.readable {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.receive(event.slot, event.hangup, &mut buffer);
            self.buffer = buffer;
        }
        if event.writable && self.connections[event.slot].state == State::Busy {
            self.write(event.slot);
        }
    }

    /// Reads until the reply is complete or nothing more is there. A short read means that, unless the peer has closed.
    fn receive(&mut self, slot: usize, hangup: bool, buffer: &mut [u8]) {
        while self.connections[slot].state == State::Busy {
            match self.driver.receive(slot, buffer) {
                Ok(0) => return self.stream_ended(slot),
                Ok(count) => {
                    let completed = self.take(slot, &buffer[..count], hangup);
                    if completed || (count < buffer.len() && !hangup) {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.lost(slot, transfer_class(&error), &error.to_string()),
            }
        }
    }

    /// Feeds bytes to the reader; true when that ended the request.
    fn take(&mut self, slot: usize, data: &[u8], hangup: bool) -> bool {
        let (connection, expect) = (&mut self.connections[slot], &self.task.expect);
        if connection.flight.is_some_and(|flight| flight.recorded) {
            self.recorder.bytes.received += data.len() as u64;
        }
        let seen = &mut connection.seen;
        match connection.reader.feed(data, &mut |piece| expect.see(seen, piece)) {
            Progress::More => false,
            Progress::Complete { surplus } => {
                // Bytes that answer nothing: what follows on this connection could be taken for another reply.
                self.completed(slot, hangup || surplus > 0);
                true
            }
            Progress::Ended(end) => {
                self.reply_ended(slot, end);
                true
            }
            Progress::Malformed(why) => {
                self.lost(slot, Class::Parse, why);
                true
            }
        }
    }

    fn stream_ended(&mut self, slot: usize) {
        let end = self.connections[slot].reader.end_of_stream();
        self.reply_ended(slot, end);
    }

    fn reply_ended(&mut self, slot: usize, end: EndOfStream) {
        match end {
            EndOfStream::Complete => self.completed(slot, true),
            EndOfStream::NoReply => self.lost(slot, Class::Eof, "closed before the reply"),
            EndOfStream::WithinHead => self.lost(slot, Class::Eof, "closed within the head of the reply"),
            EndOfStream::WithinBody => {
                self.lost(slot, Class::ShortBody, "closed within the body of the reply")
            }
            EndOfStream::Refused(why) => self.lost(slot, Class::Eof, why),
        }
    }

    fn completed(&mut self, slot: usize, must_close: bool) {
        let now_ns = self.clock.now();
        let connection = &mut self.connections[slot];
        let (status, unmet) = (connection.reader.status(), connection.reader.unmet_header());
        let verdict = self.task.expect.judge(status, unmet, &mut connection.seen);
        // The rest of a request that was answered early would be taken for the next one.
        let is_sent = connection.written == self.protocol.request().len();
        let stays = connection.reader.keeps_alive() && self.protocol.keeps_alive() && is_sent && !must_close;
        connection.has_answered = true;
        connection.answered += u64::from(connection.flight.is_some_and(|flight| flight.recorded));
        self.end(slot, verdict.class, now_ns, verdict.why.as_deref().unwrap_or(""));
        if stays {
            self.connections[slot].state = State::Idle { since_ns: now_ns };
        } else {
            self.disconnect(slot);
        }
        self.free(slot, now_ns);
    }

    /// The connection failed under its request: sent once more where that is safe, ended otherwise.
    fn lost(&mut self, slot: usize, class: Class, detail: &str) {
        let now_ns = self.clock.now();
        let connection = &mut self.connections[slot];
        let met_a_close = matches!(class, Class::Reset | Class::Eof)
            && connection.has_answered
            && !connection.reader.has_begun();
        let may_retry = met_a_close && self.protocol.is_idempotent();
        self.disconnect(slot);
        if may_retry {
            self.repeat(slot);
        } else {
            self.end(slot, class, now_ns, detail);
            self.free(slot, now_ns);
        }
    }

    /// On a new connection, not on another that was idle: that one may have been closed as well. A new one has answered nothing yet, so
    /// that no request is sent a third time.
    fn repeat(&mut self, slot: usize) {
        let is_recorded = self.connections[slot]
            .flight
            .is_some_and(|flight| flight.recorded);
        self.counts.retried += u64::from(is_recorded);
        self.repeats.push_back(slot);
    }

    /// The server closed a connection that had no request: a reconnect when one is needed, not an error.
    fn lose_idle(&mut self, slot: usize) {
        self.disconnect(slot);
        self.closed.push_back(slot);
    }

    /// The slot's request, if any, ends.
    pub(super) fn end(&mut self, slot: usize, class: Class, now_ns: u64, detail: &str) {
        self.deadlines.remove(slot);
        if let Some(flight) = self.connections[slot].flight.take() {
            let body_bytes = if flight.sent_ns.is_some() {
                self.connections[slot].reader.body_bytes()
            } else {
                0
            };
            self.recorder
                .ended_on(Some(slot), &flight, class, now_ns, body_bytes, detail);
        }
    }

    pub(super) fn disconnect(&mut self, slot: usize) {
        self.driver.close(slot);
        self.deadlines.remove(slot);
        self.connections[slot].state = State::Closed;
    }

    /// The slot has no request any more: on to the next one, with the next step where that takes a new connection.
    pub(super) fn free(&mut self, slot: usize, now_ns: u64) {
        if self.connections[slot].state == State::Closed {
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

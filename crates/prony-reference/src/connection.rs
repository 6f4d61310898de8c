//! One connection: reads requests, one reply at a time.

use std::io::{self, ErrorKind};
use std::rc::Rc;

use crate::channel::Channel;
use crate::desk::Desk;
use crate::reply::Reply;
use crate::request::{Progress, Request, RequestReader};
use crate::script::{fate, Ending, Fate};
use crate::system::{reset_on_close, work, Event, BROKEN, READABLE, WRITABLE};

/// Pipelined input beyond this is left in the kernel until replies have gone.
const INPUT_LIMIT_BYTES: usize = 1 << 20;

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Open,
    Ended,
}

/// A client's connection and where it is in its conversation.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) token: u64,
    /// The events that the poller watches for.
    pub(crate) interest: u32,
    reader: RequestReader,
    input: Vec<u8>,
    input_taken: usize,
    stage: Stage,
    replies: u64,
    peer_finished: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Reading,
    /// A timer will move it to `Sending`.
    Waiting(Outgoing),
    Sending(Outgoing),
    Silent,
}

#[derive(Debug)]
struct Outgoing {
    reply: Rc<Reply>,
    sent: usize,
    ending: Ending,
    error: bool,
}

impl Outgoing {
    fn end(&self) -> usize {
        if self.ending.cuts() {
            self.reply.cut_at
        } else {
            self.reply.bytes.len()
        }
    }

    /// The next piece to send: up to the next multiple of `write_bytes`.
    fn piece(&self, write_bytes: Option<u64>) -> &[u8] {
        let end = match write_bytes.map(|bytes| bytes as usize) {
            Some(bytes) => self.end().min((self.sent / bytes + 1).saturating_mul(bytes)),
            None => self.end(),
        };
        &self.reply.bytes[self.sent..end]
    }
}

enum Step {
    Again,
    Rest,
    End,
}

impl Connection {
    pub(crate) fn new(channel: Channel, token: u64) -> Connection {
        Connection {
            channel,
            token,
            interest: READABLE,
            reader: RequestReader::default(),
            input: Vec::new(),
            input_taken: 0,
            stage: Stage::Reading,
            replies: 0,
            peer_finished: false,
        }
    }

    /// Serves a connection that has become readable, writable or broken.
    pub(crate) fn on_event(&mut self, event: Event, desk: &mut Desk) -> Life {
        if self.peer_finished {
            // Its end was counted when it was read; broken now means that it will not read the reply either.
            if event.readiness & BROKEN != 0 {
                return Life::Ended;
            }
        } else if event.readiness & (READABLE | BROKEN) != 0 {
            let was_shaking = self.channel.is_shaking();
            let received = self.receive(desk);
            if was_shaking {
                self.count_handshake(desk, received.is_err() || self.peer_finished);
            }
            if received.is_err() {
                desk.counts.connections_closed_by_peer += 1;
                return Life::Ended;
            }
        }
        // What TLS has to send by itself; what cannot go now is asked for again.
        let _ = self.channel.flush();
        self.drive(desk)
    }

    fn count_handshake(&self, desk: &mut Desk, is_over: bool) {
        let counts = &mut desk.counts;
        if !self.channel.is_shaking() {
            counts.handshakes += 1;
            counts.handshakes_resumed += u64::from(self.channel.is_resumed());
        } else if is_over {
            counts.handshakes_failed += 1;
        }
    }

    /// Goes on after a delay.
    pub(crate) fn on_timer(&mut self, desk: &mut Desk) -> Life {
        if let Stage::Waiting(outgoing) = std::mem::take(&mut self.stage) {
            self.stage = Stage::Sending(outgoing);
        }
        self.drive(desk)
    }

    /// What the poller has to watch for now.
    pub(crate) fn wanted(&self) -> u32 {
        let room = self.input.len() - self.input_taken < INPUT_LIMIT_BYTES;
        let read = if room && !self.peer_finished { READABLE } else { 0 };
        let write = if matches!(self.stage, Stage::Sending(_)) || self.channel.wants_write() {
            WRITABLE
        } else {
            0
        };
        read | write
    }

    fn receive(&mut self, desk: &mut Desk) -> io::Result<()> {
        loop {
            match self.channel.read(&mut desk.scratch) {
                Ok(0) => {
                    self.peer_finished = true;
                    desk.counts.connections_closed_by_peer += 1;
                    return Ok(());
                }
                Ok(length) => {
                    desk.counts.bytes_received += length as u64;
                    if !matches!(self.stage, Stage::Silent) {
                        self.input.extend_from_slice(&desk.scratch[..length]);
                    }
                }
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if !self.channel.holds_bytes() {
                return Ok(());
            }
        }
    }

    /// Goes as far as input, timers and socket allow.
    fn drive(&mut self, desk: &mut Desk) -> Life {
        loop {
            let step = match self.stage {
                Stage::Reading => self.read_request(desk),
                Stage::Sending(_) => self.send_piece(desk),
                Stage::Waiting(_) | Stage::Silent => Step::Rest,
            };
            match step {
                Step::Again => {}
                Step::Rest => break,
                Step::End => return Life::Ended,
            }
        }
        let idle = matches!(self.stage, Stage::Reading | Stage::Silent);
        if self.peer_finished && idle {
            return Life::Ended;
        }
        Life::Open
    }

    fn read_request(&mut self, desk: &mut Desk) -> Step {
        if self.input.is_empty() {
            return Step::Rest;
        }
        let (taken, progress) = self.reader.advance(&self.input[self.input_taken..]);
        self.input_taken += taken;
        if self.input_taken == self.input.len() {
            self.input.clear();
            self.input_taken = 0;
        }
        match progress {
            Progress::Complete(request) => self.answer(&request, desk),
            Progress::Invalid => self.refuse(desk),
            Progress::Incomplete => {
                self.input.drain(..self.input_taken);
                self.input_taken = 0;
                return Step::Rest;
            }
        }
        Step::Again
    }

    fn answer(&mut self, request: &Request, desk: &mut Desk) {
        let number = desk.count_request(request.body_bytes);
        work(desk.shared.config.work_ns);
        let Fate::Answered(variant, ending) = fate(&desk.shared.config, request, number, self.replies + 1)
        else {
            desk.counts.silent += 1;
            self.input = Vec::new();
            self.input_taken = 0;
            self.stage = Stage::Silent;
            return;
        };
        self.replies += 1;
        let reply = desk.replies.get(variant);
        let outgoing = Outgoing {
            reply,
            sent: 0,
            ending,
            error: variant.error,
        };
        self.stage = match desk.shared.config.delay.of_request_ns(number) {
            0 => Stage::Sending(outgoing),
            delay_ns => {
                desk.call_in(delay_ns, self.token);
                Stage::Waiting(outgoing)
            }
        };
    }

    fn refuse(&mut self, desk: &mut Desk) {
        desk.counts.requests_invalid += 1;
        let reply = desk.replies.invalid();
        self.stage = Stage::Sending(Outgoing {
            reply,
            sent: 0,
            ending: Ending::Refuse,
            error: false,
        });
    }

    fn send_piece(&mut self, desk: &mut Desk) -> Step {
        let Stage::Sending(outgoing) = &mut self.stage else {
            return Step::Rest;
        };
        let piece = outgoing.piece(desk.shared.config.write_bytes);
        let written = match piece.is_empty() {
            true => Ok(0),
            false => self.channel.write(piece),
        };
        if let Ok(length) = written {
            outgoing.sent += length;
            desk.counts.bytes_sent += length as u64;
        }
        match written.and_then(|_| self.channel.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Rest,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Step::Again,
            Err(_) => return self.lose_peer(desk),
        }
        if outgoing.sent == outgoing.end() {
            return self.finish_reply(desk);
        }
        self.pause_between_pieces(desk);
        Step::Again
    }

    fn pause_between_pieces(&mut self, desk: &mut Desk) {
        let gap_ns = desk.shared.config.write_gap_ns;
        if gap_ns == 0 {
            return;
        }
        if let Stage::Sending(outgoing) = std::mem::take(&mut self.stage) {
            desk.call_in(gap_ns, self.token);
            self.stage = Stage::Waiting(outgoing);
        }
    }

    fn lose_peer(&mut self, desk: &mut Desk) -> Step {
        if !self.peer_finished {
            desk.counts.connections_closed_by_peer += 1;
        }
        Step::End
    }

    fn finish_reply(&mut self, desk: &mut Desk) -> Step {
        let Stage::Sending(outgoing) = std::mem::take(&mut self.stage) else {
            return Step::Rest;
        };
        count_reply(&outgoing, desk);
        match outgoing.ending {
            Ending::KeepOpen => return Step::Again,
            Ending::Short => self.drain(desk),
            Ending::Close | Ending::Refuse => {
                if desk
                    .shared
                    .config
                    .tls
                    .as_ref()
                    .is_some_and(|tls| tls.close_notify)
                {
                    self.channel.close_notify();
                }
                self.drain(desk);
            }
            // Without the option the close sends a FIN: another failure than the one that was asked for.
            Ending::Reset => {
                desk.counts.resets += u64::from(reset_on_close(self.channel.socket()).is_ok());
            }
        }
        Step::End
    }

    /// Reads what has arrived: a close over unread input would send a RST instead of a FIN.
    fn drain(&mut self, desk: &mut Desk) {
        while let Ok(length @ 1..) = self.channel.read(&mut desk.scratch) {
            desk.counts.bytes_received += length as u64;
        }
    }
}

/// Counts a reply that was sent up to its end, or up to its cut (a reset is counted when it is sure).
fn count_reply(outgoing: &Outgoing, desk: &mut Desk) {
    let counts = &mut desk.counts;
    match outgoing.ending {
        Ending::Refuse => return,
        Ending::Reset => {}
        Ending::Short => counts.short += 1,
        Ending::KeepOpen | Ending::Close => {
            counts.responses_complete += 1;
            counts.responses_error_status += u64::from(outgoing.error);
            counts.closes += u64::from(outgoing.ending == Ending::Close);
        }
    }
    let reply = &outgoing.reply;
    counts.body_bytes_sent += if outgoing.ending.cuts() {
        reply.cut_body_bytes
    } else {
        reply.body_bytes
    };
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

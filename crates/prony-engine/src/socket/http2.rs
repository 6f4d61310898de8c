//! HTTP/2 over the connections of any other driver: a slot is a place for a stream, and several share a connection.
//!
//! Slots are counted through: the first connection has the first of them. A slot is open when its connection is; it takes one request at a
//! time, which waits here while the server takes no more streams. What is to be sent goes to the kernel before the next wait, the heads of
//! all requests that were begun meanwhile in one call.

use super::{Driver, OpenedAs, Ready, Received, Streams};
use crate::clock::{Clock, Monotonic, NS_PER_S};
use crate::socket::handshakes::Handshakes;
use crate::wire::http2::{Code, Connection, News};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};

/// Connections of another driver, with streams on them.
#[derive(Debug)]
pub struct Http2<D, C = Monotonic> {
    inner: D,
    clock: C,
    per_connection: usize,
    slots: Vec<Slot>,
    groups: Vec<Group>,
    // By the slots of the inner driver.
    links: Vec<Link>,
    free: Vec<usize>,
    events: VecDeque<Event>,
    fresh: Vec<Ready>,
    // Connections that may have more to read: an edge does not come again.
    unread: VecDeque<Event>,
    // Connections with something to send.
    owing: Vec<usize>,
    board: Board,
    given: Vec<u8>,
    figures: Figures,
}

/// What was seen of streams, from the first connection to the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections that the server announced to leave.
    pub goaways: u64,
    /// Requests that it said it had not looked at.
    pub refused: u64,
    /// Streams that it ended without a whole reply.
    pub resets: u64,
    /// The fewest streams at once that it took on a connection; null: as many as were wanted.
    pub limit: Option<u32>,
}

/// Slots that share a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The one that new streams are begun on.
    link: Option<usize>,
    has_opened: bool,
}

/// A connection. One that the server leaves stays until its last stream has ended, beside the next one.
#[derive(Debug)]
struct Link {
    // An event of a connection that was closed and replaced since must not be taken for one of the new connection.
    generation: u32,
    group: usize,
    stage: Stage,
    connection: Connection,
    /// Slots that are on it.
    slots: usize,
    /// Those of them whose requests wait for a stream, who waits longest first.
    waiting: VecDeque<usize>,
    is_new: bool,
    is_owing: bool,
    is_unread: bool,
    is_leaving: bool,
    hangup: bool,
    /// How often something has come.
    heard: u64,
    /// When the server was asked for a word, of which nothing has come since.
    asked_ns: Option<u64>,
}

#[derive(Debug)]
enum Stage {
    Closed,
    Connecting,
    Failed(io::Error),
    Open,
    /// It broke, so; this was reported to its slots, which have not asked yet.
    Lost(Ending),
}

#[derive(Debug, Clone, Copy)]
struct Event {
    ready: Ready,
    generation: u32,
}

/// A place for a stream.
#[derive(Debug, Default)]
struct Slot {
    link: Option<usize>,
    stream: Option<u32>,
    /// Since when its request waits for a stream.
    waits_since_ns: Option<u64>,
    /// How long its last request did.
    waited_ns: u64,
    /// How often something had come on the connection when its request was begun.
    heard: u64,
    inbox: Vec<u8>,
    received: usize,
    sent: u64,
    is_complete: bool,
    ending: Option<Ending>,
    is_readable: bool,
    is_writable: bool,
    is_listed: bool,
}

/// How a request ended without a whole reply.
#[derive(Debug)]
enum Ending {
    /// By the end of its connection.
    Eof,
    /// By an error of it.
    Error(io::Error),
    /// By itself.
    Stream(Fault),
}

/// Why a stream has no whole reply, though its connection may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It may be sent again, whatever it asks.
    #[error("refused: the server left the connection, and did not look at the request")]
    Unprocessed,
    /// So may it, when the server has room.
    #[error("refused: the server had no room for the stream")]
    Refused,
    /// Nothing of it was sent.
    #[error("refused: the server left the connection before the request had a stream")]
    Unsent,
    /// Nor was of this one: its connection ended as soon as it was there.
    #[error("closed before the request had a stream")]
    Closed,
    /// By the server.
    #[error("the server reset the stream: {}", .0.name())]
    Reset(Code),
    /// The server ended the reply too early.
    #[error("the server ended the reply before its announced length")]
    Short,
    /// The stream or its connection broke a rule of the protocol.
    #[error("{0}")]
    Broken(&'static str),
}

impl Ending {
    /// It once more, for a request that came too late to have a stream.
    fn error(&self) -> io::Error {
        match self {
            Self::Eof => Fault::Closed.error(),
            // Without its peer's word, which no request misses that was not sent.
            Self::Error(error) if error.kind() == ErrorKind::UnexpectedEof => Fault::Closed.error(),
            Self::Error(error) => copy(error),
            Self::Stream(fault) => fault.error(),
        }
    }
}

impl Fault {
    /// The fault that an error of [`Driver::receive`] or [`Driver::send`] is; null: it is one of the connection.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().copied()
    }

    fn error(self) -> io::Error {
        io::Error::other(self)
    }
}

/// Slots with news, and memory for what they receive.
#[derive(Debug, Default)]
struct Board {
    listed: Vec<usize>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

// So many slots have their turn before the next connections are read: the stamps of replies stay close to their coming.
const AT_ONCE: usize = 64;
const SPARE: usize = 256;
const SPARE_BYTES: usize = 1024 * 1024;
// Any server that is there answers a PING sooner, however slow its replies are.
const ANSWER_NS: u64 = NS_PER_S;
// Of a connection that nothing can be sent on: 512 KiB, beside which the others wait.
const LAST_READS: usize = 8;

impl Board {
    fn list(&mut self, number: usize, slot: &mut Slot) {
        if !slot.is_listed {
            slot.is_listed = true;
            self.listed.push(number);
        }
    }

    fn readable(&mut self, number: usize, slot: &mut Slot) {
        slot.is_readable = true;
        self.list(number, slot);
    }

    fn writable(&mut self, number: usize, slot: &mut Slot) {
        slot.is_writable = true;
        self.list(number, slot);
    }

    fn end(&mut self, number: usize, slot: &mut Slot, ending: Ending) {
        if slot.ending.is_none() && !slot.is_complete {
            slot.ending = Some(ending);
        }
        self.readable(number, slot);
    }

    fn keep(&mut self, slot: &mut Slot, bytes: &[u8]) {
        if slot.inbox.capacity() == 0 {
            slot.inbox = self.spare.pop().unwrap_or_default();
            self.spare_bytes -= slot.inbox.capacity();
        }
        slot.inbox.extend_from_slice(bytes);
    }

    fn take_back(&mut self, mut buffer: Vec<u8>) {
        let bytes = self.spare_bytes + buffer.capacity();
        if buffer.capacity() > 0 && self.spare.len() < SPARE && bytes <= SPARE_BYTES {
            buffer.clear();
            self.spare.push(buffer);
            self.spare_bytes = bytes;
        }
    }

    fn take(&mut self, number: usize, slot: &mut Slot, bytes: usize, news: News<'_>, figures: &mut Figures) {
        slot.received += bytes;
        match news {
            News::Bytes => {}
            News::Head(text) | News::Body(text) => {
                self.keep(slot, text);
                self.readable(number, slot);
            }
            News::Room => self.writable(number, slot),
            News::Complete => {
                slot.is_complete = true;
                self.readable(number, slot);
            }
            News::Unprocessed => {
                figures.refused += 1;
                self.end(number, slot, Ending::Stream(Fault::Unprocessed));
            }
            News::Refused => {
                figures.refused += 1;
                self.end(number, slot, Ending::Stream(Fault::Refused));
            }
            News::Unwanted => {
                slot.stream = None;
                self.writable(number, slot);
            }
            News::Reset(code) => {
                figures.resets += 1;
                self.end(number, slot, Ending::Stream(Fault::Reset(code)));
            }
            News::Short => self.end(number, slot, Ending::Stream(Fault::Short)),
            News::Broken(why) => self.end(number, slot, Ending::Stream(Fault::Broken(why))),
        }
    }
}

impl Link {
    fn is_joinable(&self) -> bool {
        match self.stage {
            Stage::Connecting => true,
            Stage::Open => self.is_usable(),
            _ => false,
        }
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable() && !self.is_leaving
    }

    fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// A request was given up; `has_stream`: under way. If nothing has come since it was begun, the server is asked for a word, once. True:
    /// it was, and it gives none.
    fn is_stuck(&mut self, heard: u64, has_stream: bool, clock: &impl Clock) -> bool {
        if let Some(asked_ns) = self.asked_ns {
            return clock.now().saturating_sub(asked_ns) >= ANSWER_NS;
        }
        let is_owed = has_stream || !self.connection.pending().is_empty();
        if self.heard == heard && is_owed {
            self.asked_ns = Some(clock.now());
            self.connection.ping();
        }
        false
    }

    /// Or was.
    fn has_opened(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Lost(_))
    }
}

impl<D: Driver, C: Clock> Http2<D, C> {
    /// Over a driver without sockets, with so many slots on each of its connections.
    pub fn new(inner: D, clock: C, per_connection: usize) -> Self {
        Self {
            inner,
            clock,
            per_connection,
            slots: Vec::new(),
            groups: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            events: VecDeque::new(),
            fresh: Vec::new(),
            unread: VecDeque::new(),
            owing: Vec::new(),
            board: Board::default(),
            given: Vec::new(),
            figures: Figures::default(),
        }
    }

    fn link_of(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot).and_then(|slot| slot.link)
    }

    /// The slots of a connection's group, as far as there are any.
    fn places(&self, number: usize) -> std::ops::Range<usize> {
        let first = self.links[number].group * self.per_connection;
        first..self.slots.len().min(first + self.per_connection)
    }

    /// Begins a connection for a group.
    fn open(&mut self, group: usize) -> io::Result<usize> {
        let number = self.free.pop().unwrap_or(self.links.len());
        let generation = self.links.get(number).map_or(0, |link| link.generation);
        let link = Link {
            generation,
            group,
            stage: Stage::Closed,
            connection: Connection::new(),
            slots: 0,
            waiting: VecDeque::new(),
            is_new: true,
            is_owing: false,
            is_unread: false,
            is_leaving: false,
            hangup: false,
            heard: 0,
            asked_ns: None,
        };
        if number == self.links.len() {
            self.links.push(link);
        } else {
            self.links[number] = link;
        }
        match self.inner.connect(number) {
            Ok(is_there) => {
                self.links[number].stage = Stage::Connecting;
                if is_there {
                    self.opened(number);
                }
                self.groups[group].link = Some(number);
                Ok(number)
            }
            Err(error) => {
                self.shut(number);
                Err(error)
            }
        }
    }

    fn opened(&mut self, number: usize) {
        self.links[number].stage = Stage::Open;
        self.owe(number);
        self.report_all(number, |board, place, slot| board.writable(place, slot));
    }

    fn failed(&mut self, number: usize, error: io::Error) {
        let link = &mut self.links[number];
        link.stage = Stage::Failed(error);
        let group = &mut self.groups[link.group];
        group.link = group.link.filter(|&current| current != number);
        self.report_all(number, |board, place, slot| board.writable(place, slot));
    }

    fn report_all(&mut self, number: usize, mut report: impl FnMut(&mut Board, usize, &mut Slot)) {
        for place in self.places(number) {
            let slot = &mut self.slots[place];
            if slot.link == Some(number) {
                report(&mut self.board, place, slot);
            }
        }
    }

    /// Frees a connection that no slot is on.
    fn shut(&mut self, number: usize) {
        let is_open = self.links[number].is_open();
        if is_open && !self.links[number].connection.pending().is_empty() {
            let _ = self.inner.send(number, self.links[number].connection.pending());
        }
        self.inner.close(number);
        let link = &mut self.links[number];
        link.stage = Stage::Closed;
        link.generation = link.generation.wrapping_add(1);
        let group = &mut self.groups[link.group];
        group.link = group.link.filter(|&current| current != number);
        self.free.push(number);
    }

    /// A connection is of no more use: what was under way ends so, and what waits for a stream was not sent.
    fn lost(&mut self, number: usize, mut ending: impl FnMut() -> Ending) {
        self.inner.close(number);
        self.links[number].stage = Stage::Lost(ending());
        self.turn_away(number);
        self.report_all(number, |board, place, slot| {
            if slot.stream.is_some() {
                board.end(place, slot, ending());
            } else {
                board.readable(place, slot);
            }
        });
        if self.links[number].slots == 0 {
            self.shut(number);
        }
    }

    /// The server takes no further streams on a connection, or is not there any more: those that wait go elsewhere, and so do slots without
    /// a request. One that no slot is on is closed.
    fn leave(&mut self, number: usize) {
        if std::mem::replace(&mut self.links[number].is_leaving, true) {
            return;
        }
        self.turn_away(number);
        self.report_all(number, |board, place, slot| {
            if slot.stream.is_none() {
                board.readable(place, slot);
            }
        });
        if self.links[number].slots == 0 {
            self.shut(number);
        }
    }

    /// A connection has no more streams: what waits for one was not sent, and is to be sent elsewhere in the same order.
    fn turn_away(&mut self, number: usize) {
        let Self {
            links,
            groups,
            slots,
            board,
            ..
        } = self;
        let link = &mut links[number];
        for place in link.waiting.drain(..) {
            let slot = &mut slots[place];
            slot.waits_since_ns = None;
            board.end(place, slot, Ending::Stream(Fault::Unsent));
        }
        let group = &mut groups[link.group];
        group.link = group.link.filter(|&current| current != number);
    }

    fn owe(&mut self, number: usize) {
        let link = &mut self.links[number];
        if !std::mem::replace(&mut link.is_owing, true) {
            self.owing.push(number);
        }
    }

    fn flush_all(&mut self) {
        while let Some(number) = self.owing.pop() {
            self.links[number].is_owing = false;
            self.flush(number);
        }
    }

    /// Sends what a connection has to send, as far as the kernel takes it: an event says when there is room again.
    fn flush(&mut self, number: usize) {
        let link = &mut self.links[number];
        while link.is_open() && !link.connection.pending().is_empty() {
            match self.inner.send(number, link.connection.pending()) {
                Ok(count) => link.connection.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return self.broke(number, &error),
            }
        }
        if !self.links[number].is_open() {
            return;
        }
        let Self {
            links,
            slots,
            board,
            figures,
            ..
        } = self;
        links[number].connection.find_room(&mut |place, bytes, news| {
            board.take(place, &mut slots[place], bytes, news, figures);
        });
        self.wake(number);
    }

    /// Nothing can be sent any more. What the server said before is still there, and no event says so again.
    fn broke(&mut self, number: usize, error: &io::Error) {
        let mut reads = 0;
        while reads < LAST_READS && self.read(number) {
            reads += 1;
        }
        if self.links[number].is_open() {
            self.lost(number, || Ending::Error(copy(error)));
        }
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, number: usize) -> bool {
        let Self {
            inner,
            links,
            slots,
            board,
            figures,
            ..
        } = self;
        let link = &mut links[number];
        let (taken, may_have_more) = match inner.receive(number) {
            Ok(received) if received.bytes.is_empty() => {
                self.lost(number, || Ending::Eof);
                return false;
            }
            Ok(received) => {
                let may_have_more = received.may_have_more;
                link.heard += 1;
                link.asked_ns = None;
                let mut on_news = |place: usize, bytes: usize, news: News<'_>| {
                    board.take(place, &mut slots[place], bytes, news, figures);
                };
                let taken = link.connection.take(received.bytes, &mut on_news);
                (taken, may_have_more)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => {
                self.lost(number, || Ending::Error(copy(&error)));
                return false;
            }
        };
        let is_more = may_have_more || link.hangup;
        if let Err(why) = taken {
            // Says why, if the server still listens.
            let _ = self.inner.send(number, self.links[number].connection.pending());
            self.lost(number, || Ending::Stream(Fault::Broken(why)));
            return false;
        }
        self.look_at(number);
        is_more && self.links[number].is_open()
    }

    /// What the server said changes what may be begun, and may want an answer.
    fn look_at(&mut self, number: usize) {
        let connection = &self.links[number].connection;
        let limit = connection.most_streams();
        let fits = limit.is_none_or(|limit| limit as usize >= self.per_connection);
        if !fits {
            self.figures.limit = self.figures.limit.into_iter().chain(limit).min();
        }
        let is_leaving = !connection.is_usable();
        if !connection.pending().is_empty() {
            self.owe(number);
        }
        if is_leaving {
            let was_announced = self.links[number].connection.going().is_some();
            self.figures.goaways += u64::from(was_announced && !self.links[number].is_leaving);
            self.leave(number);
        } else {
            self.wake(number);
        }
    }

    /// The requests that wait longest have their turn, as many as there are streams.
    fn wake(&mut self, number: usize) {
        let room = self.links[number].connection.room();
        self.wake_up_to(number, room);
    }

    /// The next one has, after one of them.
    fn wake_next(&mut self, number: usize) {
        let room = self.links[number].connection.room();
        self.wake_up_to(number, room.min(1));
    }

    fn wake_up_to(&mut self, number: usize, most: usize) {
        for &place in self.links[number].waiting.iter().take(most) {
            self.board.writable(place, &mut self.slots[place]);
        }
    }

    fn read_later(&mut self, number: usize) {
        let link = &mut self.links[number];
        if !std::mem::replace(&mut link.is_unread, true) {
            let ready = Ready {
                slot: number,
                writable: false,
                readable: true,
                hangup: false,
            };
            let generation = link.generation;
            self.unread.push_back(Event { ready, generation });
        }
    }

    fn handle(&mut self, event: Event) {
        let Event { ready, generation } = event;
        let number = ready.slot;
        if self.links[number].generation != generation {
            return;
        }
        if ready.writable && matches!(self.links[number].stage, Stage::Connecting) {
            match self.inner.connect_result(number) {
                Ok(()) => self.opened(number),
                Err(error) => return self.failed(number, error),
            }
        }
        self.links[number].hangup |= ready.hangup;
        if ready.writable && self.links[number].is_open() {
            self.flush(number);
        }
        // One that is to be read on has its turn then.
        if ready.readable
            && self.links[number].is_open()
            && !self.links[number].is_unread
            && self.read(number)
        {
            self.read_later(number);
        }
    }

    fn take_events(&mut self) {
        let before = self.unread.len();
        while self.board.listed.len() < AT_ONCE {
            let Some(event) = self.events.pop_front() else {
                break;
            };
            self.handle(event);
        }
        for _ in 0..before {
            if self.board.listed.len() >= AT_ONCE {
                return;
            }
            let Some(event) = self.unread.pop_front() else {
                return;
            };
            let link = &mut self.links[event.ready.slot];
            if link.generation == event.generation {
                link.is_unread = false;
                self.handle(event);
            }
        }
    }

    /// Reports slots with news to the worker.
    fn hand_over(&mut self, ready: &mut Vec<Ready>) {
        for number in self.board.listed.drain(..) {
            let slot = &mut self.slots[number];
            slot.is_listed = false;
            // A slot that was closed since has none.
            let Some(link) = slot.link.map(|link| &self.links[link]) else {
                continue;
            };
            let is_of_no_use = match link.stage {
                Stage::Open => !link.is_usable(),
                Stage::Connecting => false,
                _ => true,
            };
            let is_free = slot.is_complete || slot.ending.is_some() || slot.stream.is_none();
            ready.push(Ready {
                slot: number,
                writable: std::mem::take(&mut slot.is_writable),
                readable: std::mem::take(&mut slot.is_readable),
                hangup: is_of_no_use && is_free,
            });
        }
    }

    /// Begins the stream of a request, or lets it wait for one.
    fn begin(&mut self, number: usize, place: usize, request: &[u8]) -> io::Result<usize> {
        let (link, slot) = (&mut self.links[number], &mut self.slots[place]);
        match &link.stage {
            Stage::Lost(ending) => return Err(ending.error()),
            Stage::Open if link.is_joinable() => {}
            _ => return Err(Fault::Unsent.error()),
        }
        let is_next = match slot.waits_since_ns {
            Some(_) => link.waiting.front() == Some(&place),
            None => link.waiting.is_empty(),
        };
        if !is_next || link.connection.room() == 0 {
            if slot.waits_since_ns.is_none() {
                slot.heard = link.heard;
                slot.waits_since_ns = Some(self.clock.now());
                link.waiting.push_back(place);
            }
            return Err(ErrorKind::WouldBlock.into());
        }
        slot.waited_ns = match slot.waits_since_ns.take() {
            Some(since_ns) => {
                link.waiting.pop_front();
                self.clock.now().saturating_sub(since_ns)
            }
            None => 0,
        };
        slot.heard = link.heard;
        let before = link.connection.pending().len();
        let (stream, taken) = link.connection.begin_rendered(place, request);
        slot.stream = stream;
        slot.sent += (link.connection.pending().len() - before) as u64;
        self.owe(number);
        self.wake_next(number);
        Ok(taken)
    }

    /// Sends what may be sent of the rest of a body.
    fn go_on(&mut self, number: usize, place: usize, id: u32, rest: &[u8]) -> io::Result<usize> {
        let (link, slot) = (&mut self.links[number], &mut self.slots[place]);
        let before = link.connection.pending().len();
        let taken = if link.is_open() {
            link.connection.send(id, rest)
        } else {
            0
        };
        slot.sent += (link.connection.pending().len() - before) as u64;
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        if !link.connection.has(id) {
            slot.stream = None;
        }
        self.owe(number);
        Ok(taken)
    }

    /// Takes a slot off its connection; a request that is under way there is cancelled. A connection on which nothing comes any more is
    /// left.
    fn detach(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let Some(number) = slot.link.take() else {
            return self.shut_if_lonely(place);
        };
        let link = &mut self.links[number];
        let is_busy = slot.stream.is_some() || slot.waits_since_ns.is_some();
        if slot.waits_since_ns.take().is_some() {
            link.waiting.retain(|&other| other != place);
        }
        let (stream, heard) = (slot.stream.take(), slot.heard);
        (slot.is_complete, slot.ending) = (false, None);
        (slot.received, slot.sent) = (0, 0);
        (slot.is_readable, slot.is_writable) = (false, false);
        self.board.take_back(std::mem::take(&mut slot.inbox));
        link.slots -= 1;
        if is_busy && link.is_open() {
            if let Some(id) = stream {
                link.connection.cancel(id);
            }
            if link.is_stuck(heard, stream.is_some(), &self.clock) && !link.is_leaving {
                return self.leave(number);
            }
            self.owe(number);
        }
        let link = &self.links[number];
        let stays = link.is_open() && link.is_usable() && is_busy;
        if link.slots == 0 && !stays {
            self.shut(number);
        } else if link.is_open() {
            self.wake_next(number);
        }
    }

    /// A slot that has no connection is closed once more: it is not wanted back, and neither is a connection that was kept for it.
    fn shut_if_lonely(&mut self, place: usize) {
        let link = self.groups[place / self.per_connection].link;
        if let Some(number) = link.filter(|&number| self.links[number].slots == 0) {
            self.shut(number);
        }
    }
}

/// An error of a socket once more, for each of those whom it concerns.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => crate::socket::handshakes::copy(error),
    }
}

fn not_connected() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTCONN)
}

impl<D: Driver, C: Clock> Driver for Http2<D, C> {
    const NAME: &'static str = D::NAME;

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Slot::default);
            let groups = slot / self.per_connection + 1;
            self.groups
                .resize(groups.max(self.groups.len()), Group::default());
        }
        if self.slots[slot].link.is_some() {
            self.detach(slot);
        }
        let group = slot / self.per_connection;
        let current = self.groups[group]
            .link
            .filter(|&number| self.links[number].is_joinable());
        let number = match current {
            Some(number) => number,
            None => self.open(group)?,
        };
        self.slots[slot].link = Some(number);
        self.links[number].slots += 1;
        Ok(self.links[number].is_open())
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        let number = self.link_of(slot).ok_or_else(not_connected)?;
        match &self.links[number].stage {
            // What became of it since, its request meets.
            Stage::Open | Stage::Lost(_) => Ok(()),
            Stage::Failed(error) => Err(copy(error)),
            _ => Err(not_connected()),
        }
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let number = self.link_of(slot).ok_or_else(not_connected)?;
        if self.slots[slot].ending.is_some() {
            // Its news are on the way.
            return Err(ErrorKind::WouldBlock.into());
        }
        match self.slots[slot].stream {
            None => self.begin(number, slot, bytes),
            Some(id) => self.go_on(number, slot, id, bytes),
        }
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let number = self.link_of(slot).ok_or_else(not_connected)?;
        let place = &mut self.slots[slot];
        if place.inbox.is_empty() && !place.is_complete {
            return match place.ending.take() {
                None => Err(ErrorKind::WouldBlock.into()),
                Some(Ending::Eof) => Ok(Received::of(&[], false)),
                Some(Ending::Error(error)) => Err(error),
                Some(Ending::Stream(fault)) => Err(fault.error()),
            };
        }
        let is_complete = std::mem::take(&mut place.is_complete);
        if is_complete {
            let connection = &self.links[number].connection;
            place.stream = place.stream.filter(|&id| connection.has(id));
        }
        let received = std::mem::take(&mut place.inbox);
        let before = std::mem::replace(&mut self.given, received);
        self.board.take_back(before);
        Ok(Received {
            is_complete,
            framed_bytes: std::mem::take(&mut place.received),
            ..Received::of(&self.given, place.ending.is_some())
        })
    }

    fn close(&mut self, slot: usize) {
        if slot < self.slots.len() {
            self.detach(slot);
        }
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.flush_all();
        if self.events.is_empty() {
            let has_work = !self.unread.is_empty() || !self.board.listed.is_empty();
            let timeout_ns = if has_work { 0 } else { timeout_ns };
            self.inner.wait(timeout_ns, &mut self.fresh)?;
            self.collect();
        }
        self.take_events();
        self.hand_over(ready);
        Ok(())
    }

    fn work(&mut self, ready: &mut Vec<Ready>) {
        self.inner.work(&mut self.fresh);
        if !self.fresh.is_empty() {
            self.collect();
            self.take_events();
            self.hand_over(ready);
        }
    }

    fn has_work(&self) -> bool {
        let own = self.events.len() + self.unread.len() + self.board.listed.len() + self.owing.len();
        own > 0 || self.inner.has_work()
    }

    fn too_late(&self, slot: Option<usize>) -> &'static str {
        self.inner.too_late(slot.and_then(|slot| self.link_of(slot)))
    }

    fn opened_to(&self) -> &[u64] {
        self.inner.opened_to()
    }

    fn handshakes(&mut self) -> Option<Handshakes> {
        self.inner.handshakes()
    }
}

impl<D: Driver, C: Clock> Streams for Http2<D, C> {
    fn opened_as(&mut self, slot: usize) -> OpenedAs {
        let Some(number) = self.link_of(slot) else {
            return OpenedAs::Own;
        };
        let link = &mut self.links[number];
        if !std::mem::take(&mut link.is_new) {
            return OpenedAs::Shared;
        }
        let group = &mut self.groups[link.group];
        let again = group.has_opened;
        group.has_opened |= link.has_opened();
        OpenedAs::First { again }
    }

    fn framed_bytes(&mut self, slot: usize, _: usize) -> u64 {
        self.slots
            .get_mut(slot)
            .map_or(0, |slot| std::mem::take(&mut slot.sent))
    }

    fn wants_rest(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.stream.is_some())
    }

    fn has_answered(&self, slot: usize) -> bool {
        self.link_of(slot)
            .is_some_and(|number| self.links[number].connection.has_answered())
    }

    fn is_unsent(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| {
            let is_turned_away = matches!(slot.ending, Some(Ending::Stream(Fault::Unsent)));
            let link = slot.link.map(|number| &self.links[number]);
            let is_too_late = link.is_some_and(|link| matches!(link.stage, Stage::Lost(_)));
            slot.waits_since_ns.is_some() || is_turned_away || (is_too_late && slot.stream.is_none())
        })
    }

    fn waited_for_stream_ns(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot).map(|slot| slot.waited_ns)
    }

    fn figures(&self) -> Option<Figures> {
        Some(self.figures)
    }
}

impl<D: Driver, C: Clock> Http2<D, C> {
    fn collect(&mut self) {
        for ready in self.fresh.drain(..) {
            let generation = self.links[ready.slot].generation;
            self.events.push_back(Event { ready, generation });
        }
    }
}

#[cfg(test)]
mod tests;

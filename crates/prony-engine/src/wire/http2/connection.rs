//! One connection of a client, without I/O.

use super::frame::{self, Code, Header, HEADER_BYTES, LARGEST_BYTES, LARGEST_STREAM};
use super::head::Head;
use super::hpack::{Decoder, EMPTY_TABLE, TABLE_BYTES};
use super::{free_if_large, KEPT_BYTES};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// What a connection reports of one of its requests, by the key that it was begun with.
///
/// Beside it stands how many bytes of the connection brought it: all of them together are those of the request's reply, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'d> {
    /// Bytes of frames that hold nothing for the reader of a reply.
    Bytes,
    /// A head, as HTTP/1 would write it; interim ones (1xx) too.
    Head(&'d [u8]),
    /// A piece of the body.
    Body(&'d [u8]),
    /// More of the request may be sent.
    Room,
    /// The reply is complete. This and what follows here end the request.
    Complete,
    /// The server ended the reply before the length that its head announced.
    Short,
    /// The server ended the stream, for this reason.
    Reset(Code),
    /// The server leaves the connection, and has not looked at the request: it may be sent again, whatever it asks (RFC 9113 section 8.7).
    Unprocessed,
    /// The server refused the stream alone, and has not looked at the request: it has no room for it now.
    Refused,
    /// The reply is complete already, and the server wants no more of the request.
    Unwanted,
    /// The reply breaks a rule; the stream was reset.
    Broken(&'static str),
}

/// Why a connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Violation(Code, &'static str);

/// What this side allows the server to send before it allows more: so that a body never waits for this side.
const OWN_WINDOW: i64 = (1 << 30) - 1;
const DEFAULT_WINDOW: i64 = 65_535;
const LARGEST_WINDOW: i64 = (1 << 31) - 1;
/// So many streams are begun before the server has said how many it takes (RFC 9113 section 6.5.2 advises no less).
const FIRST_STREAMS: u32 = 100;
/// All heads of one reply together, as they are decoded, and a single one as it is coded.
const HEADS_BYTES: usize = 64 * 1024;
/// Of a request's body, this much stands ready to be sent.
const MOST_PENDING: usize = 64 * 1024;
/// No stream is begun while more than this waits for a server that takes nothing.
const MOST_BEGUN: usize = 256 * 1024;
/// A server that asks for one more answer while so much waits asks for answers and takes none.
const MOST_OWED: usize = 512 * 1024;
const CANCELLED: usize = 256;

/// A request that has a stream, until both sides have ended it.
#[derive(Debug)]
struct Stream {
    key: usize,
    /// What was sent of the request's body, less what the server has allowed for it: what is left of the initial window may be sent.
    spent: i64,
    receive_window: i64,
    is_head: bool,
    /// The final head is there.
    has_head: bool,
    /// The bytes of heads so far, as they are decoded.
    head_bytes: usize,
    /// What is left of the announced length.
    length_left: Option<u64>,
    /// The request is sent in full.
    is_sent: bool,
    /// The reply is complete; only the request is not.
    is_over: bool,
    /// It waits for room to send.
    is_blocked: bool,
    /// When something of its body was taken last, or it was begun: who was served longest ago has the next turn.
    turn: u64,
}

/// Numbers of streams are even enough.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Streams = HashMap<u32, Stream, BuildHasherDefault<Spread>>;

/// Streams that this side reset: the server may have sent something for them before it knew.
#[derive(Debug, Default)]
struct Cancelled {
    last: VecDeque<u32>,
    /// Of those up to here it is not known any more which they were.
    forgotten: u32,
}

impl Cancelled {
    fn add(&mut self, id: u32) {
        if self.last.len() == CANCELLED {
            let oldest = self.last.pop_front().unwrap_or(0);
            self.forgotten = self.forgotten.max(oldest);
        }
        self.last.push_back(id);
    }

    fn may_be(&self, id: u32) -> bool {
        id <= self.forgotten || self.last.contains(&id)
    }
}

/// Where a frame's bytes go.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// They are the nine before it.
    Header,
    /// They are collected until all are there.
    Whole(Header),
    /// They are of a body.
    Body(Body),
    /// They are of a frame that means nothing here.
    Skipped(usize),
}

#[derive(Debug, Clone, Copy)]
struct Body {
    id: u32,
    left: usize,
    padding: usize,
    /// The length of the padding comes first.
    is_padded: bool,
    ends: bool,
}

/// A head that goes on in further frames.
#[derive(Debug, Clone, Copy)]
struct OpenHead {
    id: u32,
    ends: bool,
    frame_bytes: usize,
}

/// A client's connection: bytes in, news and bytes out.
///
/// It opens with [`Connection::pending`], which is to be sent. Whatever breaks a rule of the protocol ends it ([`Connection::take`]) or the
/// stream ([`News::Broken`]). Its memory is bounded by the number of its streams and the limits above.
#[derive(Debug)]
pub struct Connection {
    reading: Reading,
    raw: [u8; HEADER_BYTES],
    filled: usize,
    payload: Vec<u8>,
    decoder: Decoder,
    open_head: Option<OpenHead>,
    block: Vec<u8>,
    head: Head,
    // Coded bytes that `head` is made of, while they mean the same.
    known: Vec<u8>,
    is_known: bool,
    streams: Streams,
    cancelled: Cancelled,
    next_id: u32,
    most_streams: u32,
    initial_window: i64,
    // No stream has spent less; where one that had is over, some may all have spent more.
    least_spent: i64,
    table_bytes: u32,
    must_empty_table: bool,
    send_window: i64,
    receive_window: i64,
    blocked: usize,
    turns: u64,
    roomy: Vec<(u64, usize)>,
    out: Vec<u8>,
    sent: usize,
    has_settings: bool,
    last_processed: Option<u32>,
    going: Option<Code>,
    has_answered: bool,
    failure: Option<&'static str>,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// One that has just been opened.
    pub fn new() -> Self {
        let mut connection = Self {
            reading: Reading::Header,
            raw: [0; HEADER_BYTES],
            filled: 0,
            payload: Vec::new(),
            decoder: Decoder::new(TABLE_BYTES),
            open_head: None,
            block: Vec::new(),
            head: Head::default(),
            known: Vec::new(),
            is_known: false,
            streams: Streams::default(),
            cancelled: Cancelled::default(),
            next_id: 1,
            most_streams: FIRST_STREAMS,
            initial_window: DEFAULT_WINDOW,
            least_spent: 0,
            table_bytes: TABLE_BYTES as u32,
            must_empty_table: false,
            send_window: DEFAULT_WINDOW,
            receive_window: OWN_WINDOW,
            blocked: 0,
            turns: 0,
            roomy: Vec::new(),
            out: Vec::new(),
            sent: 0,
            has_settings: false,
            last_processed: None,
            going: None,
            has_answered: false,
            failure: None,
        };
        connection.greet();
        connection
    }

    fn greet(&mut self) {
        let settings = [
            (frame::ENABLE_PUSH, 0),
            (frame::INITIAL_WINDOW, OWN_WINDOW as u32),
            (frame::LIST_SIZE, super::hpack::LIST_BYTES as u32),
        ];
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value): &(u16, u32)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
            .collect();
        self.out.extend_from_slice(frame::PREFACE);
        frame::push(frame::SETTINGS, 0, 0, &payload, &mut self.out);
        let more = (OWN_WINDOW - DEFAULT_WINDOW) as u32;
        frame::push(frame::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), &mut self.out);
    }

    /// How many more streams may be begun now; none while the server takes nothing of what waits to be sent.
    pub fn room(&self) -> usize {
        if !self.is_usable() || self.pending().len() > MOST_BEGUN {
            return 0;
        }
        (self.most_streams as usize).saturating_sub(self.streams.len())
    }

    /// Whether streams may still be begun, at once or when others have ended.
    pub fn is_usable(&self) -> bool {
        self.failure.is_none() && self.going.is_none() && self.next_id <= LARGEST_STREAM
    }

    /// What the server has said of its going away; null: nothing.
    pub fn going(&self) -> Option<Code> {
        self.going
    }

    /// The most streams that the server takes at once; null while it has not said, or takes any number.
    pub fn most_streams(&self) -> Option<u32> {
        (self.has_settings && self.most_streams < u32::MAX).then_some(self.most_streams)
    }

    /// Whether it has brought a whole reply.
    pub fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Whether this stream is under way.
    pub fn has(&self, id: u32) -> bool {
        self.streams.contains_key(&id)
    }

    /// How many streams are under way.
    pub fn active(&self) -> usize {
        self.streams.len()
    }

    /// Bytes that are to be sent.
    pub fn pending(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// So many of them were.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            if self.out.capacity() > MOST_BEGUN {
                self.out = Vec::new();
            }
        } else if self.sent > MOST_PENDING {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Begins the stream of a request as [`super::Http2`] renders it, and takes what fits of its body: how many bytes of the request.
    pub fn begin_rendered(&mut self, key: usize, request: &[u8]) -> (Option<u32>, usize) {
        let (head, body) = super::parts(request);
        let id = self.begin(key, head, super::is_head(request), body.is_empty());
        let mut taken = request.len() - body.len();
        if let Some(id) = id.filter(|_| !body.is_empty()) {
            taken += self.send(id, body);
        }
        (id, taken)
    }

    /// Begins a stream; null where none is free. `block`: the coded head; `ends`: there is no body.
    pub fn begin(&mut self, key: usize, block: &[u8], is_head: bool, ends: bool) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let id = self.next_id;
        self.next_id += 2;
        if std::mem::take(&mut self.must_empty_table) {
            frame::push_head(&[&[EMPTY_TABLE], block].concat(), ends, id, &mut self.out);
        } else {
            frame::push_head(block, ends, id, &mut self.out);
        }
        self.turns += 1;
        let stream = Stream {
            key,
            spent: 0,
            receive_window: OWN_WINDOW,
            is_head,
            has_head: false,
            head_bytes: 0,
            length_left: None,
            is_sent: ends,
            is_over: false,
            is_blocked: false,
            turn: self.turns,
        };
        self.streams.insert(id, stream);
        Some(id)
    }

    /// Takes what may be sent now of the rest of a request's body, and returns how much that is. [`News::Room`] says when there is more.
    pub fn send(&mut self, id: u32, rest: &[u8]) -> usize {
        let room = MOST_PENDING.saturating_sub(self.pending().len());
        let Some(stream) = self.streams.get_mut(&id) else {
            return 0;
        };
        let window = self.send_window.min(self.initial_window - stream.spent).max(0);
        let count = rest.len().min(room).min(window as usize);
        let mut taken = 0;
        while taken < count {
            let piece = &rest[taken..count.min(taken + LARGEST_BYTES)];
            taken += piece.len();
            let flags = if taken == rest.len() { frame::END_STREAM } else { 0 };
            frame::push(frame::DATA, flags, id, piece, &mut self.out);
        }
        self.send_window -= count as i64;
        stream.spent += count as i64;
        if count > 0 {
            self.turns += 1;
            stream.turn = self.turns;
        }
        stream.is_sent = count == rest.len();
        if !stream.is_sent && !stream.is_blocked {
            stream.is_blocked = true;
            self.blocked += 1;
        }
        if stream.is_sent && stream.is_over {
            self.streams.remove(&id);
        }
        count
    }

    /// Ends a stream that nobody waits for any more.
    pub fn cancel(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(&id) {
            self.blocked -= usize::from(stream.is_blocked);
            self.push_reset(id, Code::CANCEL);
        }
    }

    /// Asks the server for a word, which any server gives at once (RFC 9113 section 6.7).
    pub fn ping(&mut self) {
        frame::push(frame::PING, 0, 0, &[0; 8], &mut self.out);
    }

    /// Reports to the streams that wait for it where there is room to send: first to who was served longest ago, for it may not be enough
    /// for all.
    pub fn find_room(&mut self, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let is_full = self.pending().len() > MOST_PENDING / 2 || self.send_window <= 0;
        if self.blocked == 0 || is_full {
            return;
        }
        for stream in self.streams.values_mut() {
            if stream.is_blocked && stream.spent < self.initial_window {
                stream.is_blocked = false;
                self.blocked -= 1;
                self.roomy.push((stream.turn, stream.key));
            }
        }
        self.roomy.sort_unstable();
        for (_, key) in self.roomy.drain(..) {
            on_news(key, 0, News::Room);
        }
    }

    /// Takes what was received, in any pieces.
    ///
    /// # Errors
    /// In words, where the server breaks a rule of the connection: it is of no more use then, and no stream of it will have further news.
    pub fn take(
        &mut self,
        bytes: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), &'static str> {
        let mut rest = bytes;
        while self.failure.is_none() && !rest.is_empty() {
            if let Err(Violation(code, why)) = self.step(&mut rest, on_news) {
                self.failure = Some(why);
                let last_id = 0u32.to_be_bytes();
                let payload = [last_id, code.0.to_be_bytes()].concat();
                frame::push(frame::GOAWAY, 0, 0, &payload, &mut self.out);
            }
        }
        match self.failure {
            Some(why) => Err(why),
            None => {
                self.find_room(on_news);
                Ok(())
            }
        }
    }

    fn step(
        &mut self,
        rest: &mut &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        match self.reading {
            Reading::Header => {
                let piece = split_off(rest, HEADER_BYTES - self.filled);
                self.raw[self.filled..self.filled + piece.len()].copy_from_slice(piece);
                self.filled += piece.len();
                if self.filled == HEADER_BYTES {
                    self.filled = 0;
                    self.begin_frame(Header::parse(self.raw), on_news)?;
                }
            }
            Reading::Whole(header) => self.collect(header, rest, on_news)?,
            Reading::Body(body) => self.take_body(body, rest, on_news)?,
            Reading::Skipped(left) => {
                let left = left - split_off(rest, left).len();
                self.reading = skipped(left);
            }
        }
        Ok(())
    }

    fn begin_frame(
        &mut self,
        header: Header,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        self.check_order(&header)?;
        if header.length > LARGEST_BYTES {
            return Err(too_long());
        }
        match header.kind {
            frame::DATA => self.begin_body(&header, on_news),
            frame::PUSH_PROMISE => Err(wrong(
                "a stream that the server began, which it was asked not to begin",
            )),
            frame::HEADERS
            | frame::CONTINUATION
            | frame::RST_STREAM
            | frame::SETTINGS
            | frame::PING
            | frame::GOAWAY
            | frame::WINDOW_UPDATE => {
                if header.length == 0 {
                    return self.frame(&header, &[], on_news);
                }
                self.reading = Reading::Whole(header);
                Ok(())
            }
            // Priorities are the server's own, and what is unknown is ignored (section 4.1).
            _ => {
                self.reading = skipped(header.length);
                Ok(())
            }
        }
    }

    /// SETTINGS come first, and nothing within a head but the rest of it.
    fn check_order(&mut self, header: &Header) -> Result<(), Violation> {
        if !self.has_settings {
            if self.raw.starts_with(b"HTTP/") {
                return Err(wrong("the server speaks HTTP/1 here"));
            }
            if header.kind != frame::SETTINGS || header.has(frame::ACK) {
                return Err(wrong("the server did not begin with its settings"));
            }
        }
        let goes_on = |open: OpenHead| header.kind == frame::CONTINUATION && header.stream == open.id;
        match self.open_head {
            Some(open) if !goes_on(open) => Err(wrong("another frame within a head")),
            None if header.kind == frame::CONTINUATION => Err(wrong("the rest of no head")),
            _ => Ok(()),
        }
    }

    fn collect(
        &mut self,
        header: Header,
        rest: &mut &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let piece = split_off(rest, header.length - self.payload.len());
        if piece.len() == header.length {
            self.reading = Reading::Header;
            return self.frame(&header, piece, on_news);
        }
        self.payload.extend_from_slice(piece);
        if self.payload.len() < header.length {
            return Ok(());
        }
        self.reading = Reading::Header;
        let mut payload = std::mem::take(&mut self.payload);
        let result = self.frame(&header, &payload, on_news);
        payload.clear();
        self.payload = payload;
        result
    }

    /// A whole frame that is not of a body.
    fn frame(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        match header.kind {
            frame::HEADERS => self.begin_head(header, payload, on_news),
            frame::CONTINUATION => self.go_on_with_head(header, payload, on_news),
            frame::RST_STREAM => self.was_reset(header, payload, on_news),
            frame::SETTINGS => self.take_settings(header, payload),
            frame::PING => self.answer_ping(header, payload),
            frame::GOAWAY => self.take_goaway(header, payload, on_news),
            _ => self.take_window(header, payload, on_news),
        }
    }

    fn begin_body(
        &mut self,
        header: &Header,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let (id, length) = (header.stream, header.length as i64);
        self.check_known(id)?;
        self.receive_window -= length;
        if self.receive_window < 0 {
            return Err(overflow("more of bodies than this side allows"));
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            if stream.is_over {
                return Err(closed());
            }
            stream.receive_window -= length;
            if stream.receive_window < 0 {
                return Err(overflow("more of a body than this side allows"));
            }
            on_news(stream.key, HEADER_BYTES, News::Bytes);
            if !stream.has_head {
                self.break_stream(id, Code::PROTOCOL_ERROR, "a body before its head", on_news);
            }
        }
        let body = Body {
            id,
            left: header.length,
            padding: 0,
            is_padded: header.has(frame::PADDED),
            ends: header.has(frame::END_STREAM),
        };
        if body.is_padded && header.length == 0 {
            return Err(too_short());
        }
        self.go_on_with_body(body, on_news);
        Ok(())
    }

    fn take_body(
        &mut self,
        mut body: Body,
        rest: &mut &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let mut other_bytes = 0;
        if body.is_padded {
            body.padding = usize::from(split_off(rest, 1)[0]);
            body.is_padded = false;
            let left = (body.left - 1).checked_sub(body.padding);
            body.left = left.ok_or(wrong("a body's frame with more padding than it has bytes"))?;
            other_bytes += 1;
        }
        let piece = split_off(rest, body.left);
        body.left -= piece.len();
        self.hand_on(body.id, piece, on_news);
        if body.left == 0 {
            let padding = split_off(rest, body.padding).len();
            body.padding -= padding;
            other_bytes += padding;
        }
        if let Some(stream) = self.streams.get(&body.id).filter(|_| other_bytes > 0) {
            on_news(stream.key, other_bytes, News::Bytes);
        }
        self.go_on_with_body(body, on_news);
        Ok(())
    }

    fn hand_on(&mut self, id: u32, piece: &[u8], on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let Some(stream) = self.streams.get_mut(&id).filter(|_| !piece.is_empty()) else {
            return;
        };
        let most = stream.length_left.unwrap_or(u64::MAX);
        let fits = usize::try_from(most).map_or(piece.len(), |most| most.min(piece.len()));
        if let Some(left) = &mut stream.length_left {
            *left -= fits as u64;
        }
        if fits > 0 {
            on_news(stream.key, fits, News::Body(&piece[..fits]));
        }
        if fits < piece.len() {
            let why = "a body that is longer than its head announced";
            self.break_stream(id, Code::PROTOCOL_ERROR, why, on_news);
        }
    }

    /// Where the frame is over, the windows are opened again.
    fn go_on_with_body(&mut self, body: Body, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        if body.is_padded || body.left + body.padding > 0 {
            self.reading = Reading::Body(body);
            return;
        }
        self.reading = Reading::Header;
        if self.receive_window < OWN_WINDOW / 2 {
            let more = OWN_WINDOW - std::mem::replace(&mut self.receive_window, OWN_WINDOW);
            self.push_window(0, more);
        }
        if body.ends {
            return self.end_reply(body.id, on_news);
        }
        let Some(stream) = self.streams.get_mut(&body.id) else {
            return;
        };
        if stream.receive_window < OWN_WINDOW / 2 {
            let more = OWN_WINDOW - std::mem::replace(&mut stream.receive_window, OWN_WINDOW);
            self.push_window(body.id, more);
        }
    }

    fn begin_head(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        self.check_known(header.stream)?;
        let (begin, end) =
            frame::unpadded(header, payload).ok_or(wrong("a head with more padding than it has bytes"))?;
        let open = OpenHead {
            id: header.stream,
            ends: header.has(frame::END_STREAM),
            frame_bytes: HEADER_BYTES + payload.len(),
        };
        if header.has(frame::END_HEADERS) {
            return self.take_head(open, &payload[begin..end], on_news);
        }
        self.block.clear();
        self.block.extend_from_slice(&payload[begin..end]);
        self.open_head = Some(open);
        Ok(())
    }

    fn go_on_with_head(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let Some(mut open) = self.open_head.take() else {
            return Err(wrong("the rest of no head"));
        };
        self.block.extend_from_slice(payload);
        open.frame_bytes += HEADER_BYTES + payload.len();
        if self.block.len() > HEADS_BYTES || open.frame_bytes > 2 * HEADS_BYTES {
            return Err(Violation(Code::ENHANCE_YOUR_CALM, "a head is longer than 64 KiB"));
        }
        if !header.has(frame::END_HEADERS) {
            self.open_head = Some(open);
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        let result = self.take_head(open, &block, on_news);
        free_if_large(&mut block);
        self.block = block;
        result
    }

    /// A whole head: of an interim reply, of the reply, or behind its body.
    fn take_head(
        &mut self,
        open: OpenHead,
        block: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        if !self.streams.contains_key(&open.id) {
            return self.skip_head(block);
        }
        self.decode(block)?;
        self.give_head(open, on_news)?;
        if self.head.text.capacity() > KEPT_BYTES {
            self.head.text = Vec::new();
            self.is_known = false;
        }
        Ok(())
    }

    /// Hands on the head that was just read.
    fn give_head(
        &mut self,
        open: OpenHead,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.get_mut(&open.id) else {
            return Ok(());
        };
        if stream.is_over {
            return Err(closed());
        }
        on_news(stream.key, open.frame_bytes, News::Bytes);
        // A byte may stand for four thousand: what counts is what they come to.
        stream.head_bytes += self.head.text.len();
        if stream.head_bytes > HEADS_BYTES {
            let why = "the heads of a reply are longer than 64 KiB";
            self.break_stream(open.id, Code::ENHANCE_YOUR_CALM, why, on_news);
            return Ok(());
        }
        match checked(&self.head, stream.has_head, open.ends) {
            Err(why) => self.break_stream(open.id, Code::PROTOCOL_ERROR, why, on_news),
            Ok(None) => self.end_reply(open.id, on_news),
            Ok(Some(status)) => {
                on_news(stream.key, 0, News::Head(&self.head.text));
                if status >= 200 {
                    stream.has_head = true;
                    stream.length_left = body_length(status, stream.is_head, self.head.length);
                }
                if open.ends {
                    self.end_reply(open.id, on_news);
                }
            }
        }
        Ok(())
    }

    /// Reads a head. What came before and did not change the table means the same again: most heads are those of the reply before.
    fn decode(&mut self, block: &[u8]) -> Result<(), Violation> {
        if self.is_known && self.known == block {
            return Ok(());
        }
        let (before, head) = (self.decoder.changes(), &mut self.head);
        head.clear();
        self.decoder
            .decode(block, &mut |name, value| head.field(name, value))
            .map_err(unreadable)?;
        head.finish();
        self.is_known = self.decoder.changes() == before && block.len() <= KEPT_BYTES;
        self.known.clear();
        if self.is_known {
            self.known.extend_from_slice(block);
        }
        Ok(())
    }

    /// A head that nobody waits for: only the table follows it.
    fn skip_head(&mut self, block: &[u8]) -> Result<(), Violation> {
        let before = self.decoder.changes();
        self.decoder.decode(block, &mut |_, _| {}).map_err(unreadable)?;
        self.is_known &= self.decoder.changes() == before;
        Ok(())
    }

    fn end_reply(&mut self, id: u32, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.is_over = true;
        let is_short = stream.length_left.is_some_and(|left| left > 0);
        self.has_answered |= !is_short;
        on_news(stream.key, 0, if is_short { News::Short } else { News::Complete });
        if stream.is_sent {
            self.streams.remove(&id);
        }
    }

    fn was_reset(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        let id = header.stream;
        self.check_begun(id)?;
        if payload.len() != 4 {
            return Err(too_short());
        }
        let Some(stream) = self.streams.remove(&id) else {
            return Ok(());
        };
        self.blocked -= usize::from(stream.is_blocked);
        let code = Code(frame::number_at(payload, 0));
        let is_untouched = code == Code::REFUSED_STREAM && !stream.has_head;
        // A reply that is complete stays so (section 8.1).
        let news = match stream.is_over {
            true => News::Unwanted,
            false if is_untouched => News::Refused,
            false => News::Reset(code),
        };
        on_news(stream.key, HEADER_BYTES + payload.len(), news);
        Ok(())
    }

    fn take_settings(&mut self, header: &Header, payload: &[u8]) -> Result<(), Violation> {
        if header.stream != 0 {
            return Err(wrong("settings of a stream"));
        }
        if payload.len() % 6 != 0 || (header.has(frame::ACK) && !payload.is_empty()) {
            return Err(too_short());
        }
        if header.has(frame::ACK) {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_settings, true) {
            self.most_streams = u32::MAX;
        }
        for one in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([one[0], one[1]]);
            self.take_setting(name, frame::number_at(one, 2))?;
        }
        self.push_answer(frame::SETTINGS, &[])
    }

    fn take_setting(&mut self, name: u16, value: u32) -> Result<(), Violation> {
        match name {
            // Whoever keeps a table for this side learns that it stays empty.
            frame::TABLE_SIZE if value != self.table_bytes => {
                self.table_bytes = value;
                self.must_empty_table = true;
            }
            frame::ENABLE_PUSH if value != 0 => return Err(wrong("a server that allows to be pushed to")),
            frame::MOST_STREAMS => self.most_streams = value,
            // Also for what is under way; a window may be below 0 then (section 6.9.2).
            frame::INITIAL_WINDOW => {
                self.initial_window = i64::from(value);
                if self.has_too_large_a_window() {
                    return Err(overflow(TOO_LARGE));
                }
            }
            frame::FRAME_SIZE if !(LARGEST_BYTES as u32..1 << 24).contains(&value) => {
                return Err(wrong("a size of frames that may not be"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the initial window makes any stream's larger than it may be. All of them are looked at only when one had so large a window
    /// since they were last.
    fn has_too_large_a_window(&mut self) -> bool {
        if self.initial_window - self.least_spent > LARGEST_WINDOW {
            let spent = self.streams.values().map(|stream| stream.spent);
            self.least_spent = spent.min().unwrap_or(0).min(0);
        }
        self.initial_window - self.least_spent > LARGEST_WINDOW
    }

    fn answer_ping(&mut self, header: &Header, payload: &[u8]) -> Result<(), Violation> {
        if header.stream != 0 {
            return Err(wrong("a ping on a stream"));
        }
        if payload.len() != 8 {
            return Err(too_short());
        }
        if header.has(frame::ACK) {
            return Ok(());
        }
        self.push_answer(frame::PING, payload)
    }

    fn take_goaway(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        if header.stream != 0 {
            return Err(wrong("the end of a connection on a stream"));
        }
        if payload.len() < 8 {
            return Err(too_short());
        }
        let last = frame::number_at(payload, 0) & LARGEST_STREAM;
        if self.last_processed.is_some_and(|before| last > before) {
            return Err(wrong("the last stream that will be processed became later"));
        }
        self.last_processed = Some(last);
        let code = Code(frame::number_at(payload, 4));
        self.going = Some(code);
        // In the order in which they were begun: so they are begun again.
        let mut left: Vec<u32> = self.streams.keys().copied().filter(|&id| id > last).collect();
        left.sort_unstable();
        for id in left {
            self.give_back(id, code, on_news);
        }
        Ok(())
    }

    /// A stream that the server does not process any more.
    fn give_back(&mut self, id: u32, code: Code, on_news: &mut impl FnMut(usize, usize, News<'_>)) {
        let Some(stream) = self.streams.remove(&id) else {
            return;
        };
        self.blocked -= usize::from(stream.is_blocked);
        let news = match (stream.is_over, stream.has_head) {
            (true, _) => News::Unwanted,
            (false, true) => News::Reset(code),
            (false, false) => News::Unprocessed,
        };
        on_news(stream.key, 0, news);
    }

    fn take_window(
        &mut self,
        header: &Header,
        payload: &[u8],
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) -> Result<(), Violation> {
        if payload.len() != 4 {
            return Err(too_short());
        }
        let (id, more) = (
            header.stream,
            i64::from(frame::number_at(payload, 0) & LARGEST_STREAM),
        );
        const NOTHING: &str = "a window that grows by nothing";
        if id == 0 {
            self.send_window += more;
            return match more {
                0 => Err(wrong(NOTHING)),
                _ if self.send_window > LARGEST_WINDOW => Err(overflow(TOO_LARGE)),
                _ => Ok(()),
            };
        }
        self.check_begun(id)?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.spent -= more;
            let window = self.initial_window - stream.spent;
            self.least_spent = self.least_spent.min(stream.spent);
            if more == 0 {
                self.break_stream(id, Code::PROTOCOL_ERROR, NOTHING, on_news);
            } else if window > LARGEST_WINDOW {
                self.break_stream(id, Code::FLOW_CONTROL_ERROR, TOO_LARGE, on_news);
            }
        }
        Ok(())
    }

    /// A stream that this side has begun.
    fn check_begun(&self, id: u32) -> Result<(), Violation> {
        if id % 2 == 0 || id >= self.next_id {
            return Err(wrong("a frame of a stream that nobody began"));
        }
        Ok(())
    }

    /// One that is not over, or that this side has reset.
    fn check_known(&self, id: u32) -> Result<(), Violation> {
        self.check_begun(id)?;
        // What was not processed is reset, in effect, by the server itself.
        let is_unprocessed = self.last_processed.is_some_and(|last| id > last);
        if self.streams.contains_key(&id) || self.cancelled.may_be(id) || is_unprocessed {
            return Ok(());
        }
        Err(closed())
    }

    /// The reply breaks a rule; others on the connection go on.
    fn break_stream(
        &mut self,
        id: u32,
        code: Code,
        why: &'static str,
        on_news: &mut impl FnMut(usize, usize, News<'_>),
    ) {
        if let Some(stream) = self.streams.remove(&id) {
            self.blocked -= usize::from(stream.is_blocked);
            self.push_reset(id, code);
            let news = if stream.is_over {
                News::Unwanted
            } else {
                News::Broken(why)
            };
            on_news(stream.key, 0, news);
        }
    }

    fn push_reset(&mut self, id: u32, code: Code) {
        self.cancelled.add(id);
        frame::push(frame::RST_STREAM, 0, id, &code.0.to_be_bytes(), &mut self.out);
    }

    fn push_window(&mut self, id: u32, more: i64) {
        let more = more as u32;
        frame::push(frame::WINDOW_UPDATE, 0, id, &more.to_be_bytes(), &mut self.out);
    }

    fn push_answer(&mut self, kind: u8, payload: &[u8]) -> Result<(), Violation> {
        if self.pending().len() > MOST_OWED {
            let why = "the server asks for answers and takes none";
            return Err(Violation(Code::ENHANCE_YOUR_CALM, why));
        }
        frame::push(kind, frame::ACK, 0, payload, &mut self.out);
        Ok(())
    }
}

/// The status of a reply's head; null of trailers.
fn checked(head: &Head, has_head: bool, ends: bool) -> Result<Option<u16>, &'static str> {
    if let Some(fault) = head.fault {
        return Err(fault);
    }
    match head.status {
        Some(_) if has_head => Err("a second head"),
        Some(101) => Err("the status 101, which HTTP/2 does not have"),
        Some(100..=199) if ends => Err("an interim reply that ends the stream"),
        Some(status) => Ok(Some(status)),
        None if !has_head => Err("a head without a status"),
        None if !ends => Err("trailers that do not end the reply"),
        None => Ok(None),
    }
}

/// What the body must come to; null: any length. Such replies have none, whatever their heads say (RFC 9110 section 6.4.1).
fn body_length(status: u16, is_head: bool, announced: Option<u64>) -> Option<u64> {
    if is_head || matches!(status, 204 | 304) {
        return Some(0);
    }
    announced
}

fn skipped(left: usize) -> Reading {
    if left == 0 {
        Reading::Header
    } else {
        Reading::Skipped(left)
    }
}

fn wrong(why: &'static str) -> Violation {
    Violation(Code::PROTOCOL_ERROR, why)
}

const TOO_LARGE: &str = "a window that is larger than any may be";

fn overflow(why: &'static str) -> Violation {
    Violation(Code::FLOW_CONTROL_ERROR, why)
}

fn unreadable(why: &'static str) -> Violation {
    Violation(Code::COMPRESSION_ERROR, why)
}

fn closed() -> Violation {
    Violation(Code::STREAM_CLOSED, "more of a reply that was complete")
}

fn too_short() -> Violation {
    Violation(
        Code::FRAME_SIZE_ERROR,
        "a frame of another length than its kind has",
    )
}

fn too_long() -> Violation {
    Violation(Code::FRAME_SIZE_ERROR, "a frame of more than 16 KiB")
}

/// Takes at most `limit` bytes off `rest`.
fn split_off<'d>(rest: &mut &'d [u8], limit: usize) -> &'d [u8] {
    let (piece, after) = rest.split_at(limit.min(rest.len()));
    *rest = after;
    piece
}

#[cfg(test)]
mod tests;

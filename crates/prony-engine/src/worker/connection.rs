//! One slot: a connection, its state, and the request on it.

use super::plan::Lifetime;
use crate::account::Class;
use crate::expect::{Expect, Seen, Verdict};
use crate::record::recorder::Flight;
use crate::record::recording::SAMPLE_BYTES;
use crate::wire::redirect::Hop;
use crate::wire::{Asks, EndOfStream, Progress, Reader};

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket.
    Closed,
    /// No socket until a failed attempt may be repeated (closed loop), or a refused request sent again.
    BackOff,
    /// A socket on its way since then.
    Connecting {
        /// When the attempt began.
        since_ns: u64,
    },
    /// A connection without a request, since then.
    Idle {
        /// When it became free.
        since_ns: u64,
    },
    /// A request is on it.
    Busy,
    /// Taken away by the plan of the load: no socket until it is added again.
    Parked,
}

/// What a request has to do with the opening of connections before the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Early {
    /// Nothing.
    #[default]
    No,
    /// It is the first of its connection: with its reply the server has accepted that.
    First,
    /// A further one, while others are opened.
    Again,
}

/// One of the worker's connections, over all the sockets that it has had.
#[derive(Debug)]
pub struct Connection<R, Q> {
    /// What it is doing.
    pub state: State,
    /// The request on it, or waiting for it to connect.
    pub flight: Option<Flight<Q>>,
    /// What a redirect has led its request to; null: to nothing yet.
    pub hop: Option<Box<Hop>>,
    /// Reads its replies.
    pub reader: R,
    /// When this socket was open, and how many replies it has brought.
    pub opened_ns: u64,
    /// Likewise.
    pub carried: u64,
    /// What its reply has of what is expected.
    pub seen: Seen,
    /// Its request, where that is not one of those that are always the same: `is_buffered`.
    pub buffer: Vec<u8>,
    /// Likewise.
    pub is_buffered: bool,
    /// Bytes of the request that the kernel has taken.
    pub written: usize,
    /// Whether it has taken all of them.
    pub is_sent: bool,
    /// Whether any socket has taken a byte of the request.
    pub was_sent: bool,
    /// How long the request was given to connections that had no stream for it.
    pub waited_ns: u64,
    /// Whether this socket has brought a reply before.
    pub has_answered: bool,
    /// Whether a connection has ended at its request, which was sent once more.
    pub is_suspect: bool,
    /// The verdict on a complete reply that came before its request was sent in full: the rest is under way.
    pub early_verdict: Option<Verdict>,
    /// How often its request was begun once more on another one.
    pub repeats: u32,
    /// Whether the slot has had a socket before.
    pub has_connected: bool,
    /// How the last attempt failed of a slot that has had none.
    pub failure: Option<Class>,
    /// In words.
    pub why: String,
    /// Replies since the opening of the window.
    pub answered: u64,
    /// The wait before the next attempt after a failed one.
    pub back_off_ns: u64,
    /// Whether it stands in the list of idle ones, or rests until the others are open.
    pub listed: bool,
    /// What its request has to do with the opening.
    pub early: Early,
    /// Whether it stands in the list of those that are to be read on.
    pub unread: bool,
    /// Whether the peer has closed its side of this socket: it is read to the end.
    pub hangup: bool,
    /// Where its first redirect led.
    pub location: Option<String>,
    /// The first bytes of a reply that did not come as expected in one piece, for a sample.
    pub first_bytes: Vec<u8>,
}

/// What a piece of a reply made of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The reply goes on.
    More,
    /// It is complete, and the request ends so; `surplus` bytes lie behind it.
    Complete {
        /// What the reply is.
        verdict: Verdict,
        /// Bytes that nothing asked for.
        surplus: usize,
    },
    /// The peer said that it is over, and it is not complete.
    Ended(EndOfStream),
    /// It is no reply, for this reason.
    Malformed(&'static str),
}

/// The first wait after a failed attempt, and the longest.
pub const BACK_OFF_NS: (u64, u64) = (1_000_000, 1_000_000_000);

impl<R, Q> Connection<R, Q> {
    /// A slot without a socket.
    pub fn new(reader: R, seen: Seen) -> Self {
        Self {
            state: State::Closed,
            flight: None,
            hop: None,
            reader,
            opened_ns: 0,
            carried: 0,
            seen,
            buffer: Vec::new(),
            is_buffered: false,
            written: 0,
            is_sent: false,
            was_sent: false,
            waited_ns: 0,
            has_answered: false,
            is_suspect: false,
            early_verdict: None,
            repeats: 0,
            has_connected: false,
            failure: None,
            why: String::new(),
            answered: 0,
            back_off_ns: BACK_OFF_NS.0,
            listed: false,
            early: Early::No,
            unread: false,
            hangup: false,
            location: None,
            first_bytes: Vec::new(),
        }
    }

    /// A new socket is open.
    pub fn begin_life(&mut self, now_ns: u64) {
        (self.opened_ns, self.carried) = (now_ns, 0);
        (self.has_answered, self.has_connected) = (false, true);
    }

    /// Whether its socket has had its time, or its requests.
    pub fn is_worn(&self, lifetime: &Lifetime, now_ns: u64) -> bool {
        self.carried >= lifetime.requests || now_ns.saturating_sub(self.opened_ns) >= lifetime.age_ns
    }

    /// The wait before the next attempt; doubles each time until an attempt succeeds.
    pub fn next_back_off_ns(&mut self) -> u64 {
        let now_ns = self.back_off_ns;
        self.back_off_ns = (now_ns * 2).min(BACK_OFF_NS.1);
        now_ns
    }
}

impl<R: Reader, Q: Asks> Connection<R, Q> {
    /// Takes a piece of the reply. Its first bytes are kept unless the reply is complete and as expected.
    /// `is_over`: the peer has said that nothing follows.
    pub fn take(&mut self, piece: &[u8], is_over: bool, expect: &Expect) -> Step {
        let seen = &mut self.seen;
        let step = match self.reader.feed(piece, &mut |part| expect.see(seen, part)) {
            Progress::More if is_over => match self.reader.finish() {
                EndOfStream::Complete => Step::Complete {
                    verdict: self.judge(expect),
                    surplus: 0,
                },
                end => Step::Ended(end),
            },
            Progress::More => Step::More,
            Progress::Complete { surplus } => Step::Complete {
                verdict: self.judge(expect),
                surplus,
            },
            Progress::Ended(end) => Step::Ended(end),
            Progress::Malformed(why) => Step::Malformed(why),
        };
        let is_as_expected = matches!(&step, Step::Complete { verdict, .. } if verdict.class == Class::Ok);
        if self.location.is_none() && matches!(self.reader.status(), 300..=399) {
            let shown = |value: &[u8]| -> String {
                let text = String::from_utf8_lossy(value);
                text.chars().take(LONGEST_LOCATION).collect()
            };
            self.location = self.reader.field("location").map(shown);
        }
        if !is_as_expected {
            self.keep_first(piece);
        }
        step
    }

    /// What a complete reply is.
    pub fn judge(&mut self, expect: &Expect) -> Verdict {
        let (status, unmet) = (self.reader.status(), self.reader.unmet_header());
        let asked = self
            .flight
            .as_ref()
            .map_or(0, |flight| flight.request.expectation());
        expect.judge(asked, status, unmet, &mut self.seen)
    }

    /// Keeps the beginning of what came, for a sample of a failure.
    pub fn keep_first(&mut self, piece: &[u8]) {
        let room = SAMPLE_BYTES.saturating_sub(self.first_bytes.len());
        self.first_bytes
            .extend_from_slice(&piece[..room.min(piece.len())]);
    }
}

const LONGEST_LOCATION: usize = 200;
const CODINGS: [&str; 5] = ["gzip", "br", "deflate", "zstd", "compress"];

/// How the body is coded that the head of a reply announces; null: not at all, or as nobody knows.
pub fn coding_of(reader: &impl Reader) -> Option<&'static str> {
    let value = reader.field("content-encoding")?;
    CODINGS
        .into_iter()
        .find(|coding| value.eq_ignore_ascii_case(coding.as_bytes()))
}

//! One slot: a connection, its state, and the request on it.

use crate::account::Class;
use crate::expect::Seen;
use crate::recorder::Flight;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket.
    Closed,
    /// No socket until a failed attempt may be repeated (closed loop).
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
pub struct Connection<R> {
    /// What it is doing.
    pub state: State,
    /// The request on it, or waiting for it to connect.
    pub flight: Option<Flight>,
    /// Reads its replies.
    pub reader: R,
    /// What its reply has of what is expected.
    pub seen: Seen,
    /// Bytes of the request that the kernel has taken.
    pub written: usize,
    /// Whether this socket has brought a reply before.
    pub has_answered: bool,
    /// Whether the slot has had a socket before.
    pub has_connected: bool,
    /// How the last attempt failed of a slot that has had none.
    pub failure: Option<Class>,
    /// Replies to requests of the window.
    pub answered: u64,
    /// The wait before the next attempt after a failed one.
    pub back_off_ns: u64,
    /// Whether it stands in the list of idle ones, or rests until the others are open.
    pub listed: bool,
    /// What its request has to do with the opening.
    pub early: Early,
}

/// The first wait after a failed attempt, and the longest.
pub const BACK_OFF_NS: (u64, u64) = (1_000_000, 1_000_000_000);

impl<R> Connection<R> {
    /// A slot without a socket.
    pub fn new(reader: R, seen: Seen) -> Self {
        Self {
            state: State::Closed,
            flight: None,
            reader,
            seen,
            written: 0,
            has_answered: false,
            has_connected: false,
            failure: None,
            answered: 0,
            back_off_ns: BACK_OFF_NS.0,
            listed: false,
            early: Early::No,
        }
    }

    /// The wait before the next attempt; doubles each time until an attempt succeeds.
    pub fn next_back_off_ns(&mut self) -> u64 {
        let now_ns = self.back_off_ns;
        self.back_off_ns = (now_ns * 2).min(BACK_OFF_NS.1);
        now_ns
    }
}

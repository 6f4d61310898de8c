//! How bytes reach the kernel: one slot a connection.

mod addresses;
mod epoll;
pub mod handshakes;
mod http2;
mod sources;
mod tls;
pub(crate) mod transport;
mod tunnel;

pub use addresses::Addresses;
pub use epoll::Epoll;
pub use http2::{Fault, Figures, Http2};
pub use sources::{Sources, PER_SOURCE};
pub use tls::Tls;
pub use tunnel::Tunnel;

use handshakes::Handshakes;
use std::io;

/// What can be done with a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The connection's slot.
    pub slot: usize,
    /// It can be written, or its connection attempt has ended.
    pub writable: bool,
    /// It can be read.
    pub readable: bool,
    /// The peer has closed its side, or the connection is broken: read on to the end.
    pub hangup: bool,
}

/// The most that is received at once: usual replies take one call.
pub const RECEIVE_BYTES: usize = 64 * 1024;

/// What a slot received, in the driver's own memory.
#[derive(Debug, Clone, Copy)]
pub struct Received<'d> {
    /// The bytes; none at the end of the stream.
    pub bytes: &'d [u8],
    /// Whether more may be there already. If not, an event says when there is.
    pub may_have_more: bool,
    /// Whether the peer said, beside these bytes, that the reply is over.
    pub is_complete: bool,
    /// How many bytes of the connection brought them.
    pub framed_bytes: usize,
}

impl<'d> Received<'d> {
    /// Bytes as they came.
    pub fn of(bytes: &'d [u8], may_have_more: bool) -> Self {
        Self {
            bytes,
            may_have_more,
            is_complete: false,
            framed_bytes: bytes.len(),
        }
    }
}

/// What a slot that has been opened, or failed to, has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedAs {
    /// A connection of its own.
    Own,
    /// One that it shares, and is the first to ask for.
    First {
        /// Whether those who share it have had another before.
        again: bool,
    },
    /// One that another slot has asked for already.
    Shared,
}

/// Sockets by slot. Nothing blocks but `wait`; `WouldBlock` says so.
///
/// Shaped by completions, though [`Epoll`] has none, so that a driver that has them takes one file (`docs/design.md`, "Why epoll
/// alone?"). What was received is the driver's memory until the next call, and may be what the kernel has filled before. What is sent is
/// the caller's, and stays where it is until the request has ended: it can be copied at the call, or have been handed to the kernel.
pub trait Driver {
    /// The name in the Recording.
    const NAME: &'static str;
    /// Begins a connection; true: it is there already.
    fn connect(&mut self, slot: usize) -> io::Result<bool>;
    /// How the attempt ended.
    fn connect_result(&mut self, slot: usize) -> io::Result<()>;
    /// Sends what fits.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize>;
    /// What has come, of at most [`RECEIVE_BYTES`] from the kernel: whoever floods a connection keeps the others waiting for no longer than
    /// that takes. `WouldBlock`: nothing has; `UnexpectedEof`: the stream was cut, where its peer would have said that it is over.
    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>>;
    /// Closes the slot's socket, if it has one.
    fn close(&mut self, slot: usize);
    /// Waits at most `timeout_ns`, and appends what is ready.
    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()>;

    /// Does a bounded piece of the driver's own work, as that on connections that are not open yet, and appends what is ready by it.
    fn work(&mut self, _ready: &mut Vec<Ready>) {}

    /// Whether there is such work.
    fn has_work(&self) -> bool {
        false
    }

    /// What a connection waited for that was not open in time; null: one of those that are on their way.
    fn too_late(&self, _slot: Option<usize>) -> &'static str {
        "no connection before the time-out"
    }

    /// The handshakes of a driver that has any; they are taken off it.
    fn handshakes(&mut self) -> Option<Handshakes> {
        None
    }

    /// Connections from the first one on, by the number of their address.
    fn opened_to(&self) -> &[u64] {
        &[]
    }
}

/// Drivers in which slots may share connections, as streams: what it says of each. Where each slot has a connection of its own,
/// nothing is to be said.
pub trait Streams: Driver {
    /// What the slot has now that its attempt is over, so that a connection of several slots is counted once.
    fn opened_as(&mut self, _slot: usize) -> OpenedAs {
        OpenedAs::Own
    }

    /// How many bytes went, or will go, to the connection for the last `sent` ones of the slot's request.
    fn framed_bytes(&mut self, _slot: usize, sent: usize) -> u64 {
        sent as u64
    }

    /// Whether the slot's connection has brought a reply, to whichever of the slots that share it.
    fn has_answered(&self, _slot: usize) -> bool {
        false
    }

    /// Whether the peer still takes the rest of the slot's request, which it has answered.
    fn wants_rest(&self, _slot: usize) -> bool {
        true
    }

    /// Whether nothing of the slot's request was sent on its connection: it waits for a stream there, or will have none.
    fn is_unsent(&self, _slot: usize) -> bool {
        false
    }

    /// How long the slot's last request waited for a stream; null where there are none.
    fn waited_for_stream_ns(&self, _slot: usize) -> Option<u64> {
        None
    }

    /// What was seen of streams; null where there are none.
    fn figures(&self) -> Option<Figures> {
        None
    }
}

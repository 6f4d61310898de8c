//! How bytes reach the kernel: one slot a connection.

mod epoll;
mod sources;

pub use epoll::Epoll;
pub use sources::{Sources, PER_SOURCE};

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

/// Sockets by slot. Nothing blocks but `wait`; `WouldBlock` says so.
pub trait Driver {
    /// The name in the Recording.
    const NAME: &'static str;
    /// Begins a connection; true: it is there already.
    fn connect(&mut self, slot: usize) -> io::Result<bool>;
    /// How the attempt ended.
    fn connect_result(&mut self, slot: usize) -> io::Result<()>;
    /// Sends what fits.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize>;
    /// Receives what is there; 0 at the end of the stream.
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> io::Result<usize>;
    /// Closes the slot's socket, if it has one.
    fn close(&mut self, slot: usize);
    /// Waits at most `timeout_ns`, and appends what is ready.
    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()>;
}

//! By epoll, edge-triggered: a wait for several sockets, then one receive and one send each. A reply fits into the buffer, so one
//! receive takes all that is there.

use crate::{Load, Tally};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

const EVENTS: usize = 512;
const WAIT_MS: libc::c_int = 100;

/// Loads until the time is over; how many replies came.
pub fn run(load: &Load) -> io::Result<u64> {
    // SAFETY: no pointers are passed.
    let raw = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } as isize)?;
    // SAFETY: `raw` is a new descriptor that nothing else owns.
    let poll = unsafe { OwnedFd::from_raw_fd(raw as RawFd) };
    let sockets: Vec<RawFd> = load.sockets.iter().map(AsRawFd::as_raw_fd).collect();
    for (slot, &socket) in sockets.iter().enumerate() {
        register(poll.as_raw_fd(), socket, slot)?;
        send(socket, &load.request)?;
    }
    let mut tally = Tally::of(load);
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    let mut buffer = vec![0u8; 64 * 1024];
    while Instant::now() < load.until {
        let count = wait(poll.as_raw_fd(), &mut events)?;
        for event in &events[..count] {
            let slot = event.u64 as usize;
            let received = receive(sockets[slot], &mut buffer)?;
            if tally.take(slot, received)? {
                send(sockets[slot], &load.request)?;
            }
        }
    }
    Ok(tally.replies)
}

fn register(poll: RawFd, socket: RawFd, slot: usize) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: (libc::EPOLLIN | libc::EPOLLET) as u32,
        u64: slot as u64,
    };
    // SAFETY: `event` is valid for reads, and both descriptors are open.
    checked(unsafe { libc::epoll_ctl(poll, libc::EPOLL_CTL_ADD, socket, &raw mut event) } as isize)?;
    Ok(())
}

fn wait(poll: RawFd, events: &mut [libc::epoll_event]) -> io::Result<usize> {
    let most = events.len() as libc::c_int;
    // SAFETY: `events` has room for `most` of them.
    checked(unsafe { libc::epoll_wait(poll, events.as_mut_ptr(), most, WAIT_MS) } as isize)
}

fn send(socket: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `bytes` is valid for reads of its length.
    let sent =
        checked(unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::Error::other("a request did not fit"))
    }
}

fn receive(socket: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is valid for writes of its length.
    checked(unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

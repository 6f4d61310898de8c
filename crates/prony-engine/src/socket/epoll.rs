//! epoll, edge-triggered: a socket is registered once, when it is made, and never again.

use super::addresses::{Addresses, Known};
use super::{Driver, Ready, Received, Sources, Streams, RECEIVE_BYTES};
use crate::cpu;
use crate::socket::transport::{self, Address};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Sockets of one worker to one address, or to several in turn.
#[derive(Debug)]
pub struct Epoll {
    poll: OwnedFd,
    addresses: Addresses,
    known: Known,
    // By address, as they are known.
    opened: Vec<u64>,
    first: usize,
    sources: Sources,
    slots: Vec<Slot>,
    events: Vec<libc::epoll_event>,
    buffer: Vec<u8>,
    has_pwait2: bool,
}

#[derive(Debug, Default)]
struct Slot {
    socket: Option<OwnedFd>,
    // The number of the address that it is connected to.
    place: usize,
    // An event of a socket that was closed and replaced within one batch must not be taken for one of the new socket.
    generation: u32,
}

const EVENTS_PER_WAIT: usize = 512;
const INTEREST: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

impl Epoll {
    /// An instance without sockets, whose first slot is the `first` of all workers.
    ///
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub fn new(address: impl Into<Address>, first: usize) -> io::Result<Self> {
        Self::to(Addresses::from(address.into()), first)
    }

    /// As [`Epoll::new`], to several addresses: each connection has the next one.
    ///
    /// # Errors
    /// As [`Epoll::new`].
    pub fn to(addresses: Addresses, first: usize) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let raw = cpu::checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `raw` is a new descriptor that nothing else owns.
        let poll = unsafe { OwnedFd::from_raw_fd(raw) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_WAIT];
        Ok(Self {
            poll,
            sources: Sources::new(false, first),
            opened: Vec::new(),
            known: Known::default(),
            addresses,
            first,
            slots: Vec::new(),
            events,
            buffer: vec![0; RECEIVE_BYTES],
            has_pwait2: true,
        })
    }

    /// An instance without slots, which only sleeps.
    ///
    /// # Errors
    /// As [`Epoll::new`].
    pub fn idle() -> io::Result<Self> {
        Self::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)), 0)
    }

    fn register(&self, socket: &OwnedFd, slot: usize) -> io::Result<()> {
        let key = (u64::from(self.slots[slot].generation) << 32) | slot as u64;
        let mut event = libc::epoll_event {
            events: INTEREST as u32,
            u64: key,
        };
        // SAFETY: `event` is valid for reads, and both descriptors are open.
        cpu::checked(unsafe {
            libc::epoll_ctl(
                self.poll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                &raw mut event,
            )
        })?;
        Ok(())
    }

    /// The number of the address of a slot's next connection: another one than that of its last.
    fn place(&mut self, slot: usize) -> usize {
        if let Some(known) = self.addresses.after(&self.known) {
            self.sources = Sources::new(known.is_ipv4_loopback(), self.first);
            self.opened.resize(known.all.len(), 0);
            self.known = known;
        }
        let current = &self.known.current;
        let again = self.slots[slot].generation as usize;
        current[(self.first + slot + again) % current.len()]
    }

    fn socket(&self, slot: usize) -> io::Result<&OwnedFd> {
        socket_of(self.slots.get(slot))
    }

    /// The number of events, or an error; falls back to milliseconds on kernels before 5.11.
    fn poll(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let (poll, events, most) = (
            self.poll.as_raw_fd(),
            self.events.as_mut_ptr(),
            EVENTS_PER_WAIT as libc::c_int,
        );
        if self.has_pwait2 {
            let timeout = cpu::timespec(timeout_ns);
            // SAFETY: `events` has room for `most` events, `timeout` is valid for reads, and no signal mask is passed.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    poll,
                    events,
                    most,
                    &raw const timeout,
                    0usize,
                    8usize,
                )
            };
            match usize::try_from(count) {
                Ok(count) => return Ok(count),
                Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) => {
                    self.has_pwait2 = false
                }
                Err(_) => return Err(io::Error::last_os_error()),
            }
        }
        let timeout_ms = libc::c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
        // SAFETY: as above.
        let count = cpu::checked(unsafe { libc::epoll_wait(poll, events, most, timeout_ms) })?;
        Ok(count.unsigned_abs() as usize)
    }
}

fn socket_of(slot: Option<&Slot>) -> io::Result<&OwnedFd> {
    slot.and_then(|slot| slot.socket.as_ref())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTCONN))
}

impl Driver for Epoll {
    const NAME: &'static str = "epoll";

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Slot::default);
        }
        self.close(slot);
        let place = self.place(slot);
        let (socket, connected) = self.sources.connect(&self.known.all[place].1, slot)?;
        self.register(&socket, slot)?;
        self.slots[slot].socket = Some(socket);
        self.slots[slot].place = place;
        self.opened[place] += u64::from(connected);
        Ok(connected)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        transport::connect_result(self.socket(slot)?)?;
        self.opened[self.slots[slot].place] += 1;
        Ok(())
    }

    fn opened_to(&self) -> &[u64] {
        &self.opened
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        transport::send(self.socket(slot)?, bytes)
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        let count = transport::receive(socket_of(self.slots.get(slot))?, &mut self.buffer)?;
        // A short read has taken all that was there.
        let may_have_more = count == self.buffer.len();
        Ok(Received::of(&self.buffer[..count], may_have_more))
    }

    fn close(&mut self, slot: usize) {
        // Closing the descriptor takes it out of the epoll set as well.
        if let Some(slot) = self.slots.get_mut(slot).filter(|slot| slot.socket.is_some()) {
            slot.socket = None;
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let count = match self.poll(timeout_ns) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            result => result?,
        };
        for event in &self.events[..count] {
            let (key, flags) = (event.u64, { event.events } as i32);
            let (slot, generation) = ((key & 0xffff_ffff) as usize, (key >> 32) as u32);
            if self.slots[slot].generation == generation {
                let has = |mask: i32| flags & mask != 0;
                ready.push(Ready {
                    slot,
                    writable: has(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP),
                    readable: has(libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP),
                    hangup: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
                });
            }
        }
        Ok(())
    }
}

impl Streams for Epoll {}

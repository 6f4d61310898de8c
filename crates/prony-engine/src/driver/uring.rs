//! io_uring: a connection has one standing receive for all its replies, which go into buffers that the kernel takes from a ring, and
//! requests are handed over together, with the next wait. So a round takes a few system calls, however many connections were ready.
//!
//! A request of a few KiB counts as sent once it is handed over: with one at a time on a connection there is room for it, and if the
//! connection is broken its end says so. Larger ones are sent by calls, as far as they fit.

mod buffers;
mod requests;

use super::{Driver, Ready, Received, Sources, RECEIVE_BYTES};
use crate::transport::{self, Address};
use buffers::{Buffers, Chain, GROUP};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{cqueue, opcode, squeue, EnterFlags, IoUring};
use requests::Requests;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};

/// Sockets of one worker to one address.
pub struct Uring {
    // Closed before the memory that it uses is freed: fields are dropped in this order.
    ring: IoUring,
    buffers: Buffers,
    requests: Requests,
    address: Address,
    sources: Sources,
    slots: Vec<Slot>,
    // The one that was received last: its bytes are read now.
    lent: Option<u16>,
    gathered: Vec<u8>,
    // Slots with news of this wait.
    listed: Vec<usize>,
    // Slots whose receive has ended, though their stream has not; and those whose receive is to end.
    unarmed: Vec<Key>,
    flooded: Vec<Key>,
    // How much is queued since the kernel looked last, and sockets that it names though they are closed already.
    pushed: usize,
    has_requests: bool,
    round: u64,
    lingering: Vec<OwnedFd>,
    wait_flags: EnterFlags,
}

#[derive(Debug, Default)]
struct Slot {
    socket: Option<OwnedFd>,
    // A completion for a socket that was closed since must not be taken for one of the new socket.
    generation: u32,
    // When something was queued for it last.
    round: u64,
    // Its request was handed over, and nothing has come since.
    is_unanswered: bool,
    // The socket did not take all of a request that is sent by calls: nor may the rest of it go another way.
    is_by_call: bool,
    is_armed: bool,
    // It has brought more at once than there are buffers for: its replies are received by calls.
    is_flood: bool,
    is_room_awaited: bool,
    are_bytes_awaited: bool,
    received: Chain,
    // How its stream ended: 0, or an error.
    ended: Option<i32>,
    news: News,
}

/// What a wait has brought for a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct News {
    writable: bool,
    readable: bool,
    hangup: bool,
    failed: bool,
}

/// A connection, as long as it lives.
#[derive(Debug, Clone, Copy)]
struct Key {
    slot: usize,
    generation: u32,
}

/// What a completion is of. One of a connection that is gone is of no interest, as those of cancelling are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Receive,
    /// Only of one that failed.
    Send,
    Writable,
    Readable,
}

const SUBMISSIONS: u32 = 256;
const COMPLETIONS: u32 = 4_096;
/// What a socket takes at once whose peer has read what came before.
const MOST_BYTES: usize = 4096;
// The server has work while the rest of a round is handled; more calls would cost more than that is worth.
const AT_ONCE: usize = 32;
// Of one connection, twice what a turn of it takes. A flood must leave buffers to the others, and calls bring more at once.
const MOST_PIECES: usize = 2 * RECEIVE_BYTES / buffers::BYTES;
const GET_EVENTS: u32 = 1;
const BYTES: i16 = libc::POLLIN | libc::POLLRDHUP;
const FAILED: i16 = libc::POLLERR | libc::POLLHUP;

impl Kind {
    fn name(self, key: Key) -> u64 {
        (u64::from(key.generation) << 32) | ((key.slot as u64) << 2) | self as u64
    }

    fn of(name: u64) -> (Self, Key) {
        let kind = match name & 3 {
            0 => Self::Receive,
            1 => Self::Send,
            2 => Self::Writable,
            _ => Self::Readable,
        };
        let slot = ((name & 0xffff_ffff) >> 2) as usize;
        let generation = (name >> 32) as u32;
        (kind, Key { slot, generation })
    }
}

impl Uring {
    /// An instance without sockets, whose first slot is the `first` of all workers; it is for the thread that makes it.
    ///
    /// # Errors
    /// When the kernel has no io_uring (before 6.1), or does not let this process have one.
    pub fn new(address: impl Into<Address>, first: usize) -> io::Result<Self> {
        Self::with(address.into(), first, buffers::COUNT)
    }

    fn with(address: Address, first: usize, buffers: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let buffers = Buffers::new(&ring.submitter(), buffers)?;
        // Waiting for replies is not waiting for a disk.
        let wait_flags = if ring.params().is_feature_no_iowait() {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        Ok(Self {
            ring,
            buffers,
            requests: Requests::default(),
            sources: Sources::new(address.is_ipv4_loopback(), first),
            address,
            slots: Vec::new(),
            lent: None,
            gathered: Vec::new(),
            listed: Vec::new(),
            unarmed: Vec::new(),
            flooded: Vec::new(),
            pushed: 0,
            has_requests: false,
            round: 1,
            lingering: Vec::new(),
            wait_flags,
        })
    }

    /// An instance without slots, which only sleeps.
    ///
    /// # Errors
    /// As [`Uring::new`].
    pub fn idle() -> io::Result<Self> {
        Self::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)), 0)
    }

    /// Whether so many workers could have an instance at once.
    ///
    /// # Errors
    /// As [`Uring::new`].
    pub fn probe(workers: usize) -> io::Result<()> {
        let all: io::Result<Vec<Self>> = (0..workers).map(|_| Self::idle()).collect();
        all.map(|_| ())
    }

    /// Queues something, which is handed over with the next wait, or when there is much of it.
    fn push(&mut self, entry: &squeue::Entry, slot: usize) -> io::Result<()> {
        loop {
            // SAFETY: a socket that it names stays open until the kernel has looked (`lingering`), and a request is where it is for ever.
            let pushed = unsafe { self.ring.submission().push(entry) };
            if pushed.is_ok() {
                break;
            }
            self.submit()?;
        }
        if let Some(place) = self.slots.get_mut(slot) {
            place.round = self.round;
        }
        self.pushed += 1;
        if self.pushed >= AT_ONCE {
            // What the kernel does not take now it takes with the next wait, which says what is wrong.
            let _ = self.submit();
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.buffers.publish();
        self.ring.submit()?;
        self.handed_over();
        Ok(())
    }

    /// The kernel has looked at what it was handed.
    fn handed_over(&mut self) {
        if self.ring.submission().is_empty() {
            self.pushed = 0;
            self.has_requests = false;
            self.round += 1;
            self.lingering.clear();
        }
    }

    /// Has the kernel receive what comes, until the stream ends, or say that something has come. What has come before is read first.
    fn arm(&mut self, slot: usize) -> io::Result<()> {
        let place = &mut self.slots[slot];
        if place.is_armed || place.ended.is_some() || !place.received.is_empty() {
            return Ok(());
        }
        if place.is_flood {
            return self.poll(slot, Kind::Readable, BYTES);
        }
        let descriptor = Fd(place.descriptor()?.as_raw_fd());
        place.is_armed = true;
        let name = Kind::Receive.name(place.key(slot));
        let entry = opcode::RecvMulti::new(descriptor, GROUP).build().user_data(name);
        self.push(&entry, slot)
    }

    /// Has the kernel say once when the socket is of interest, and how it is then.
    fn poll(&mut self, slot: usize, kind: Kind, interest: i16) -> io::Result<()> {
        let place = &mut self.slots[slot];
        let descriptor = Fd(place.descriptor()?.as_raw_fd());
        let name = kind.name(place.key(slot));
        if std::mem::replace(place.awaited(kind), true) {
            return Ok(());
        }
        let entry = opcode::PollAdd::new(descriptor, interest as u32)
            .build()
            .user_data(name);
        self.push(&entry, slot)
    }

    fn cancel(&mut self, kind: Kind, key: Key) {
        // By this name, of a connection before, nobody waits to hear that there was nothing to cancel.
        let nobody = Key {
            generation: key.generation.wrapping_sub(1),
            ..key
        };
        let entry = opcode::AsyncCancel::new(kind.name(key))
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(kind.name(nobody));
        // Where the kernel takes nothing any more, closing the ring ends it.
        let _ = self.push(&entry, key.slot);
    }

    /// The bytes that were received last have been read.
    fn take_back(&mut self) {
        if let Some(number) = self.lent.take() {
            self.buffers.give(number);
        }
    }

    /// Sends what fits, and has the kernel say when more does.
    fn send_by_call(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let place = &mut self.slots[slot];
        let sent = transport::send(place.descriptor()?, bytes);
        place.is_by_call = !matches!(sent, Ok(count) if count == bytes.len());
        let is_full = sent
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        self.arm(slot)?;
        if is_full {
            self.poll(slot, Kind::Writable, libc::POLLOUT)?;
        }
        sent
    }

    /// What is there of a socket that no receive stands for yet, as when bytes came together with the connection.
    fn receive_by_call(&mut self, slot: usize) -> io::Result<Received<'_>> {
        self.gathered.resize(RECEIVE_BYTES, 0);
        let place = &self.slots[slot];
        let received = transport::receive(place.descriptor()?, &mut self.gathered);
        let may_have_more = place.is_flood && matches!(received, Ok(RECEIVE_BYTES));
        if !may_have_more {
            self.arm(slot)?;
        }
        let count = received?;
        Ok(Received::of(&self.gathered[..count], may_have_more))
    }

    /// All pieces that have come, as far as they are no more than one call would bring.
    fn gather(&mut self, slot: usize) -> Received<'_> {
        let place = &mut self.slots[slot];
        self.gathered.clear();
        while !place.received.is_empty() && self.gathered.len() + buffers::BYTES <= RECEIVE_BYTES {
            let number = self.buffers.take(&mut place.received);
            self.gathered.extend_from_slice(self.buffers.bytes(number));
            self.buffers.give(number);
        }
        let may_have_more = !place.received.is_empty() || place.ended.is_some();
        Received::of(&self.gathered, may_have_more)
    }

    /// Begins receives again that have ended, and ends those of connections that bring more than is read.
    fn arm_again(&mut self) -> io::Result<()> {
        for key in std::mem::take(&mut self.flooded) {
            let place = &self.slots[key.slot];
            if place.generation == key.generation && place.is_armed {
                self.cancel(Kind::Receive, key);
            }
        }
        for key in std::mem::take(&mut self.unarmed) {
            let place = &self.slots[key.slot];
            if place.generation != key.generation {
                continue;
            }
            if place.received.is_empty() {
                self.arm(key.slot)?;
            } else {
                self.unarmed.push(key);
            }
        }
        Ok(())
    }

    /// Hands over, and waits until something has completed.
    fn enter(&mut self, timeout_ns: u64) -> io::Result<()> {
        let entered = if timeout_ns == 0 {
            let count = self.ring.submission().len() as u32;
            // SAFETY: nothing is passed beside numbers.
            unsafe {
                self.ring
                    .submitter()
                    .enter::<libc::sigset_t>(count, 0, GET_EVENTS, None)
            }
        } else {
            let timeout = Timespec::from(std::time::Duration::from_nanos(timeout_ns));
            let args = SubmitArgs::new().timespec(&timeout);
            self.ring
                .submitter()
                .submit_with_args_and_flags(1, &args, self.wait_flags)
        };
        self.handed_over();
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // EBUSY: there are completions to be taken first.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes all that has completed.
    fn take(&mut self) {
        let Self {
            ring,
            buffers,
            slots,
            listed,
            unarmed,
            flooded,
            ..
        } = self;
        for entry in ring.completion() {
            let (kind, key) = Kind::of(entry.user_data());
            let piece = cqueue::buffer_select(entry.flags());
            let place = &mut slots[key.slot];
            if place.generation != key.generation {
                piece.into_iter().for_each(|number| buffers.give(number));
                continue;
            }
            let before = place.news;
            match kind {
                Kind::Receive => {
                    let is_standing = cqueue::more(entry.flags());
                    place.is_armed = is_standing;
                    place.take(entry.result(), piece, buffers);
                    if !is_standing && place.ended.is_none() {
                        unarmed.push(key);
                    } else if place.received.pieces() == MOST_PIECES {
                        place.is_flood = true;
                        flooded.push(key);
                    }
                }
                // Only of one that failed; what was sent in part has no error of its own.
                Kind::Send if entry.result() < 0 => place.fail(-entry.result()),
                Kind::Send => place.fail(libc::EPIPE),
                Kind::Writable | Kind::Readable => place.polled(kind, entry.result()),
            }
            if before == News::default() && place.news != before {
                listed.push(key.slot);
            }
        }
    }
}

impl Slot {
    fn key(&self, slot: usize) -> Key {
        Key {
            slot,
            generation: self.generation,
        }
    }

    /// Whether a poll of this kind is under way.
    fn awaited(&mut self, kind: Kind) -> &mut bool {
        match kind {
            Kind::Writable => &mut self.is_room_awaited,
            _ => &mut self.are_bytes_awaited,
        }
    }

    fn descriptor(&self) -> io::Result<&OwnedFd> {
        self.socket.as_ref().ok_or_else(not_connected)
    }

    /// Takes what a receive has brought.
    fn take(&mut self, result: i32, piece: Option<u16>, buffers: &mut Buffers) {
        match (result, piece) {
            (bytes, Some(number)) if bytes > 0 => {
                buffers.append(&mut self.received, number, bytes.unsigned_abs());
                self.is_unanswered = false;
                self.news.readable = true;
                return;
            }
            (0, _) => self.fail(0),
            // No buffer was free, or it was this side that ended it: what comes is still there.
            (error, _) if [-libc::ENOBUFS, -libc::ECANCELED].contains(&error) => {}
            (error, _) => self.fail(-error),
        }
        piece.into_iter().for_each(|number| buffers.give(number));
    }

    /// The stream has ended, by an error or without one (0).
    fn fail(&mut self, error: i32) {
        self.ended.get_or_insert(error);
        (self.news.readable, self.news.hangup) = (true, true);
    }

    /// Takes how a socket is: the kernel's mask, or an error, of which the socket itself knows more.
    fn polled(&mut self, kind: Kind, result: i32) {
        let mask = if result < 0 { FAILED } else { result as i16 };
        let has = |bits: i16| mask & bits != 0;
        *self.awaited(kind) = false;
        self.news.failed |= has(FAILED);
        self.news.writable |= has(libc::POLLOUT | FAILED);
        if !self.is_armed {
            self.news.readable |= has(BYTES | FAILED);
            self.news.hangup |= has(libc::POLLRDHUP | FAILED);
        }
    }
}

fn not_connected() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTCONN)
}

impl Driver for Uring {
    const NAME: &'static str = "io_uring";

    fn connect(&mut self, slot: usize) -> io::Result<bool> {
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Slot::default);
        }
        self.close(slot);
        // Beginning many connections takes a while, which requests that are queued must not wait for.
        if self.has_requests {
            let _ = self.submit();
        }
        let (socket, connected) = self.sources.connect(&self.address, slot)?;
        self.slots[slot].socket = Some(socket);
        if connected {
            self.arm(slot)?;
        } else {
            self.poll(slot, Kind::Writable, libc::POLLOUT | BYTES)?;
        }
        Ok(connected)
    }

    fn connect_result(&mut self, slot: usize) -> io::Result<()> {
        let place = self.slots.get(slot).ok_or_else(not_connected)?;
        let news = place.news;
        if news.failed {
            transport::connect_result(place.descriptor()?)?;
        }
        // What came together with the connection is looked for by a call.
        if news.readable {
            return Ok(());
        }
        self.arm(slot)
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<usize> {
        let place = self.slots.get(slot).ok_or_else(not_connected)?;
        if bytes.len() > MOST_BYTES || place.is_by_call {
            return self.send_by_call(slot, bytes);
        }
        let descriptor = Fd(place.descriptor()?.as_raw_fd());
        self.arm(slot)?;
        let place = &mut self.slots[slot];
        place.is_unanswered = true;
        let name = Kind::Send.name(place.key(slot));
        self.has_requests = true;
        let entry = opcode::Send::new(descriptor, self.requests.kept(bytes), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(name);
        self.push(&entry, slot)?;
        Ok(bytes.len())
    }

    fn receive(&mut self, slot: usize) -> io::Result<Received<'_>> {
        self.take_back();
        let place = self.slots.get_mut(slot).ok_or_else(not_connected)?;
        if place.received.pieces() == 1 {
            let number = self.buffers.take(&mut place.received);
            self.lent = Some(number);
            let may_have_more = place.ended.is_some();
            return Ok(Received::of(self.buffers.bytes(number), may_have_more));
        }
        if !place.received.is_empty() {
            return Ok(self.gather(slot));
        }
        match place.ended {
            Some(0) => Ok(Received::of(&[], false)),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None if place.is_armed => Err(ErrorKind::WouldBlock.into()),
            None => self.receive_by_call(slot),
        }
    }

    fn close(&mut self, slot: usize) {
        let Some(place) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(socket) = place.socket.take() else {
            return;
        };
        let key = place.key(slot);
        let last_round = place.round;
        let fresh = Slot {
            generation: place.generation.wrapping_add(1),
            ..Slot::default()
        };
        let mut old = std::mem::replace(place, fresh);
        while !old.received.is_empty() {
            let number = self.buffers.take(&mut old.received);
            self.buffers.give(number);
        }
        // Who waits in the kernel keeps the connection open there.
        if old.is_armed {
            self.cancel(Kind::Receive, key);
        }
        if old.is_room_awaited {
            self.cancel(Kind::Writable, key);
        }
        if old.are_bytes_awaited {
            self.cancel(Kind::Readable, key);
        }
        if old.is_unanswered {
            self.cancel(Kind::Send, key);
        }
        // The kernel has not looked yet at what was queued for it, which names the socket by its number.
        if last_round == self.round {
            self.lingering.push(socket);
        }
    }

    fn wait(&mut self, timeout_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.take_back();
        self.buffers.publish();
        self.arm_again()?;
        for &slot in &self.listed {
            self.slots[slot].news = News::default();
        }
        self.listed.clear();
        self.enter(timeout_ns)?;
        self.take();
        for &slot in &self.listed {
            let news = self.slots[slot].news;
            ready.push(Ready {
                slot,
                writable: news.writable,
                readable: news.readable,
                hangup: news.hangup,
            });
        }
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // What was counted as sent is sent.
        let _ = self.ring.submit();
        Buffers::withdraw(&self.ring.submitter());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn t34_what_finds_no_free_buffer_is_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::from(listener.local_addr().unwrap());
        // Where the kernel has none there is nothing to run out.
        let Ok(mut driver) = Uring::with(address, 0, 4) else {
            return;
        };
        let mut ready = Vec::new();
        assert!(!driver.connect(0).unwrap());
        let (mut peer, _) = listener.accept().unwrap();
        while ready.is_empty() {
            driver.wait(10_000_000, &mut ready).unwrap();
        }
        driver.connect_result(0).unwrap();
        let sent: Vec<u8> = (0..64 * 1024).map(|k| (k * 7 % 251) as u8).collect();
        peer.write_all(&sent).unwrap();
        let mut came = Vec::new();
        for _ in 0..1_000 {
            driver.wait(10_000_000, &mut ready).unwrap();
            while let Ok(received) = driver.receive(0) {
                came.extend_from_slice(received.bytes);
            }
            if came.len() >= sent.len() {
                break;
            }
        }
        assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
    }
}

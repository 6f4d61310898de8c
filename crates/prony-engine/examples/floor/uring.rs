//! By io_uring: one receive for all replies of a connection, into buffers that the kernel takes from a ring; requests
//! are submitted together with the wait.

use crate::{Load, Tally};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{cqueue, opcode, squeue, IoUring, SubmissionQueue, Submitter};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

const BUFFERS: u16 = 4096;
const BUFFER_BYTES: usize = 2048;
const GROUP: u16 = 0;
const SUBMISSIONS: u32 = 4096;
const PAGE: usize = 4096;
// The lowest bit of a completion's name: a send, of which only failures come back.
const SEND: u64 = 1;

/// Whether the kernel has what this needs.
pub fn probe() -> io::Result<()> {
    let ring = ring(1)?;
    Buffers::new(&ring.submitter()).map(|_| ())
}

fn ring(connections: usize) -> io::Result<IoUring> {
    let completions = (connections as u32 * 4).clamp(SUBMISSIONS * 2, 65_536);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(completions)
        .build(SUBMISSIONS)
}

/// Buffers for what is received, shared with the kernel.
struct Buffers {
    entries: *mut BufRingEntry,
    layout: Layout,
    bytes: Vec<u8>,
    tail: u16,
}

impl Buffers {
    fn new(submitter: &Submitter<'_>) -> io::Result<Self> {
        let size = usize::from(BUFFERS) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(size, PAGE).map_err(io::Error::other)?;
        // SAFETY: the layout has a size above 0.
        let entries = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if entries.is_null() {
            handle_alloc_error(layout);
        }
        let bytes = vec![0; usize::from(BUFFERS) * BUFFER_BYTES];
        let mut own = Self {
            entries,
            layout,
            bytes,
            tail: 0,
        };
        (0..BUFFERS).for_each(|number| own.give(number));
        own.publish();
        // SAFETY: the entries are page-aligned, as many as said, and are freed only when the program is done with the ring.
        unsafe { submitter.register_buf_ring_with_flags(entries as u64, BUFFERS, GROUP, 0) }?;
        Ok(own)
    }

    /// Gives a buffer to the kernel, with the next `publish`.
    fn give(&mut self, number: u16) {
        let place = usize::from(self.tail & (BUFFERS - 1));
        let start = usize::from(number) * BUFFER_BYTES;
        // SAFETY: `place` lies within the entries, and the kernel reads this one only once the tail is beyond it.
        let entry = unsafe { &mut *self.entries.add(place) };
        entry.set_addr(self.bytes[start..].as_mut_ptr() as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies within the first entry, is aligned for 16 bits, and is written here only.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the ring has been closed, or nothing is received any more.
        unsafe { dealloc(self.entries.cast(), self.layout) };
    }
}

/// Submissions of one round.
struct Sender<'r> {
    submitter: Submitter<'r>,
    queue: SubmissionQueue<'r>,
    request: &'r [u8],
    sockets: Vec<Fd>,
}

impl Sender<'_> {
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the request and the buffers live as long as the ring.
            if unsafe { self.queue.push(entry) }.is_ok() {
                return Ok(());
            }
            self.queue.sync();
            self.submitter.submit()?;
            self.queue.sync();
        }
    }

    fn send(&mut self, slot: usize) -> io::Result<()> {
        let entry = opcode::Send::new(
            self.sockets[slot],
            self.request.as_ptr(),
            self.request.len() as u32,
        )
        .flags(libc::MSG_NOSIGNAL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data((slot as u64) << 1 | SEND);
        self.push(&entry)
    }

    fn receive(&mut self, slot: usize) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(self.sockets[slot], GROUP)
            .build()
            .user_data((slot as u64) << 1);
        self.push(&entry)
    }
}

/// Loads until the time is over; how many replies came.
pub fn run(load: &Load) -> io::Result<u64> {
    let mut ring = ring(load.sockets.len())?;
    let mut buffers = Buffers::new(&ring.submitter())?;
    let (submitter, queue, mut completions) = ring.split();
    let sockets = load.sockets.iter().map(|socket| Fd(socket.as_raw_fd()));
    let mut sender = Sender {
        submitter,
        queue,
        request: &load.request,
        sockets: sockets.collect(),
    };
    for slot in 0..load.sockets.len() {
        sender.receive(slot)?;
        sender.send(slot)?;
    }
    let mut tally = Tally::of(load);
    while Instant::now() < load.until {
        sender.queue.sync();
        sender.submitter.submit_and_wait(1)?;
        sender.queue.sync();
        completions.sync();
        for entry in &mut completions {
            take(&entry, &mut sender, &mut buffers, &mut tally)?;
        }
        buffers.publish();
    }
    Ok(tally.replies)
}

fn take(
    entry: &cqueue::Entry,
    sender: &mut Sender<'_>,
    buffers: &mut Buffers,
    tally: &mut Tally,
) -> io::Result<()> {
    let (name, slot) = (entry.user_data(), (entry.user_data() >> 1) as usize);
    match entry.result() {
        // All buffers are taken: the receive has ended, and its bytes are still there.
        result if result == -libc::ENOBUFS && name & SEND == 0 => {}
        result if result < 0 => return Err(io::Error::from_raw_os_error(-result)),
        _ if name & SEND == SEND => return Err(io::Error::other("a request did not fit")),
        count => {
            if let Some(number) = cqueue::buffer_select(entry.flags()) {
                buffers.give(number);
            }
            if tally.take(slot, count as usize)? {
                sender.send(slot)?;
            }
        }
    }
    if cqueue::more(entry.flags()) {
        Ok(())
    } else {
        sender.receive(slot)
    }
}

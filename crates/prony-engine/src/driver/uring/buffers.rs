//! Memory for what is received: the kernel takes a buffer from a ring for each piece, and gets it back when it was read.

use io_uring::types::BufRingEntry;
use io_uring::Submitter;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// The group that receives take their buffers from.
pub const GROUP: u16 = 0;

/// What each of them holds: a usual reply takes one.
pub const BYTES: usize = 2048;

/// How many there are: a power of two, as the kernel wants it.
pub const COUNT: u16 = 4096;

const PAGE: usize = 4096;
const NONE: u16 = u16::MAX;

/// Buffers shared with the kernel.
#[derive(Debug)]
pub struct Buffers {
    entries: *mut BufRingEntry,
    layout: Layout,
    count: u16,
    memory: Vec<u8>,
    tail: u16,
    // By the number of a buffer: how much is in it, and which one of the same connection came after it.
    filled: Vec<u32>,
    after: Vec<u16>,
}

/// Those with bytes of one connection, in order.
#[derive(Debug, Clone, Copy)]
pub struct Chain {
    first: u16,
    last: u16,
    pieces: u16,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
            pieces: 0,
        }
    }
}

impl Chain {
    pub fn is_empty(&self) -> bool {
        self.pieces == 0
    }

    /// How many there are.
    pub fn pieces(&self) -> usize {
        usize::from(self.pieces)
    }
}

impl Buffers {
    /// So many, a power of two, and all of them with the kernel, until [`Self::withdraw`].
    ///
    /// # Errors
    /// When the kernel has no such rings (before 5.19), or no memory for one.
    pub fn new(submitter: &Submitter<'_>, count: u16) -> io::Result<Self> {
        let size = usize::from(count) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(size, PAGE).map_err(io::Error::other)?;
        // SAFETY: the layout has a size above 0.
        let entries = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if entries.is_null() {
            handle_alloc_error(layout);
        }
        let mut own = Self {
            entries,
            layout,
            count,
            memory: vec![0; usize::from(count) * BYTES],
            tail: 0,
            filled: vec![0; usize::from(count)],
            after: vec![NONE; usize::from(count)],
        };
        (0..count).for_each(|number| own.give(number));
        own.publish();
        // SAFETY: the entries are aligned to a page and as many as said. They live until `own` is dropped, before which they are withdrawn.
        unsafe { submitter.register_buf_ring_with_flags(own.entries as u64, count, GROUP, 0) }?;
        Ok(own)
    }

    /// Takes them all from the kernel: it fills none of them any more.
    pub fn withdraw(submitter: &Submitter<'_>) {
        // The ring is about to be closed; what cannot be taken back then, closing it takes.
        let _ = submitter.unregister_buf_ring(GROUP);
    }

    /// Gives a buffer to the kernel, with the next [`Self::publish`].
    pub fn give(&mut self, number: u16) {
        let place = usize::from(self.tail & (self.count - 1));
        let start = usize::from(number) * BYTES;
        // SAFETY: `place` lies within the entries, and the kernel reads this one only once the tail is beyond it.
        let entry = unsafe { &mut *self.entries.add(place) };
        entry.set_addr(self.memory[start..].as_mut_ptr() as u64);
        entry.set_len(BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel see what it was given.
    pub fn publish(&self) {
        // SAFETY: the tail lies within the first entry, is aligned for 16 bits, and is written here only.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Appends a buffer that the kernel has put so many bytes into.
    pub fn append(&mut self, chain: &mut Chain, number: u16, bytes: u32) {
        let place = usize::from(number);
        (self.filled[place], self.after[place]) = (bytes, NONE);
        if chain.is_empty() {
            chain.first = number;
        } else {
            self.after[usize::from(chain.last)] = number;
        }
        chain.last = number;
        chain.pieces += 1;
    }

    /// Takes the first buffer of a chain, which is not empty; its bytes are there until it is given back.
    pub fn take(&self, chain: &mut Chain) -> u16 {
        let number = chain.first;
        chain.first = self.after[usize::from(number)];
        chain.pieces -= 1;
        number
    }

    /// What is in a buffer.
    pub fn bytes(&self, number: u16) -> &[u8] {
        let place = usize::from(number);
        &self.memory[place * BYTES..][..self.filled[place] as usize]
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and withdrawn from the kernel before.
        unsafe { dealloc(self.entries.cast(), self.layout) };
    }
}

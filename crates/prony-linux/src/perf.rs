//! Watches the context switches of threads, by the kernel's own records of them.
//!
//! An event for each thread and CPU, inherited by what that thread starts, writes into one ring for each CPU. No sample
//! is taken and no instruction is counted; a switch costs its thread well below a microsecond, and the reader its time.
//! That is too much beside a measurement, so that it belongs into a trial of its own.
//!
//! *Source*: `perf_event_open(2)`; Linux `include/uapi/linux/perf_event.h`, `kernel/events/core.c`.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::source::Source;
use crate::stat::Stat;
use crate::switches::{Accounts, Kind, Record, State, ThreadSchedule};
use crate::tree::threads_of;

// linux/perf_event.h
const TYPE_SOFTWARE: u32 = 1;
const COUNT_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK_ID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const SET_OUTPUT: u32 = 0x2405;
const RECORD_LOST: u32 = 2;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SWITCH: u32 = 14;
const SWITCHED_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
const HEADER_BYTES: usize = 8;
// Of struct perf_event_mmap_page.
const HEAD_AT: usize = 0x400;
const TAIL_AT: usize = 0x408;

/// Of a ring, at first; less where the kernel gives this user no more of memory that stays resident.
const MOST_RING_BYTES: usize = 256 << 10;
const LEAST_RING_BYTES: usize = 8 << 10;

/// `struct perf_event_attr` up to its fifth version; later kernels take it as it is.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    registers: u64,
    aux_watermark: u32,
    most_stack: u16,
    reserved: u16,
}

fn attributes() -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        bytes: size_of::<Attributes>() as u32,
        config: COUNT_DUMMY,
        sample_type: SAMPLE_TID | SAMPLE_TIME,
        // Without the kernel's own part: an ordinary user may not watch that, and switches are recorded all the same.
        flags: INHERIT
            | EXCLUDE_KERNEL
            | EXCLUDE_HYPERVISOR
            | TASK
            | SAMPLE_ID_ALL
            | USE_CLOCK_ID
            | CONTEXT_SWITCH,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// Watches the switches of threads on some CPUs.
///
/// ```no_run
/// let mut watch = prony_linux::SwitchWatch::new(&[0, 1]);
/// watch.add(std::process::id())?;
/// watch.begin();
/// watch.drain(); // some fifty times a second
/// let (threads, lost) = watch.finish();
/// # Ok::<(), prony_linux::Error>(())
/// ```
#[derive(Debug)]
pub struct SwitchWatch {
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    accounts: Accounts,
    pending: Vec<Record>,
    lost: u64,
    drained_ns: u64,
}

impl SwitchWatch {
    /// A watch of no thread yet. Only what runs on `cpus` is seen.
    pub fn new(cpus: &[u32]) -> SwitchWatch {
        SwitchWatch {
            cpus: cpus.to_vec(),
            rings: Vec::new(),
            events: Vec::new(),
            accounts: Accounts::default(),
            pending: Vec::new(),
            lost: 0,
            drained_ns: 0,
        }
    }

    /// Adds the threads of a process that are not watched yet; what they start later is watched, too. Returns how many
    /// it added: none where the process has ended.
    ///
    /// *Errors*: the kernel does not let this user watch them, or has no room.
    pub fn add(&mut self, pid: u32) -> Result<usize, Error> {
        let mut added = 0;
        for tid in threads_of(pid) {
            if !self.accounts.has(tid) && self.add_thread(pid, tid)? {
                added += 1;
            }
        }
        Ok(added)
    }

    /// Counts from now on.
    pub fn begin(&mut self) {
        self.drain();
        self.settle(u64::MAX);
        self.lost = 0;
        self.accounts.begin(now_ns());
    }

    /// Reads what was recorded; to be called before a ring is full, some fifty times a second.
    pub fn drain(&mut self) {
        let now = now_ns();
        for ring in &mut self.rings {
            self.lost += ring.read(&mut self.pending);
        }
        // A thread's records lie in the rings of several CPUs: those of before the last reading are all here.
        let until = std::mem::replace(&mut self.drained_ns, now);
        self.settle(until);
    }

    /// What every thread did since the begin, the busiest first, and how many records were lost.
    pub fn finish(&mut self) -> (Vec<ThreadSchedule>, u64) {
        let now = now_ns();
        self.drain();
        self.pending.retain(|record| record.time_ns <= now);
        self.settle(u64::MAX);
        let mut found = self.accounts.finish(now);
        for thread in &mut found {
            if let Some(name) = name_of(thread.pid, thread.tid) {
                thread.name = name;
            }
        }
        self.events.clear();
        self.rings.clear();
        (found, self.lost)
    }

    fn add_thread(&mut self, pid: u32, tid: u32) -> Result<bool, Error> {
        for place in 0..self.cpus.len() {
            let event = match open_event(tid, self.cpus[place]) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
                Err(error) => return Err(refused(error)),
            };
            match self.rings.get(place) {
                Some(ring) => redirect(&event, &ring.event).map_err(refused)?,
                None => {
                    let ring = Ring::of(event).map_err(refused)?;
                    self.rings.push(ring);
                    continue;
                }
            }
            self.events.push(event);
        }
        let state = if is_ready(pid, tid)? {
            State::Running
        } else {
            State::Blocked
        };
        let name = name_of(pid, tid).unwrap_or_default();
        self.accounts.open(pid, tid, name, state, now_ns());
        Ok(true)
    }

    fn settle(&mut self, until_ns: u64) {
        self.pending.sort_by_key(|record| record.time_ns);
        let ready = self.pending.partition_point(|record| record.time_ns < until_ns);
        for record in self.pending.drain(..ready) {
            self.accounts.take(record);
        }
    }
}

fn open_event(tid: u32, cpu: u32) -> io::Result<OwnedFd> {
    let attributes = attributes();
    // SAFETY: the structure lives until the call returns, and says how long it is.
    let found = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            tid as libc::pid_t,
            cpu as libc::c_int,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(found as libc::c_int) })
}

/// Lets an event write into the ring of another one.
fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open, and the call takes no pointer.
    let found = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, to.as_raw_fd()) };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Why the kernel refused, with the setting by which it decides.
fn refused(source: io::Error) -> Error {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    Error::Switches {
        paranoid: paranoid.trim().to_owned(),
        source,
    }
}

fn is_ready(pid: u32, tid: u32) -> Result<bool, Error> {
    let mut source = Source::default();
    let line = source.of_process(format_args!("/proc/{pid}/task/{tid}/stat"))?;
    Ok(line.and_then(Stat::parse).is_some_and(|stat| stat.state == 'R'))
}

fn name_of(pid: u32, tid: u32) -> Option<String> {
    let mut source = Source::default();
    let name = source
        .of_process(format_args!("/proc/{pid}/task/{tid}/comm"))
        .ok()??;
    Some(name.trim_end().to_owned())
}

fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives until the call returns; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The kernel's records of one CPU: a page of positions, and the ring behind it.
#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    start: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    tail: u64,
    record: Vec<u8>,
}

// SAFETY: the mapping is the ring's alone, and moves with it; nothing of it belongs to a thread.
unsafe impl Send for Ring {}
// SAFETY: nothing reads or writes the mapping through a shared reference.
unsafe impl Sync for Ring {}

impl Ring {
    /// Maps the ring of an event: a smaller one where this user may have no more.
    fn of(event: OwnedFd) -> io::Result<Ring> {
        // SAFETY: the call takes no pointer.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
        let mut data_bytes = MOST_RING_BYTES.max(page_bytes);
        loop {
            match map(&event, page_bytes + data_bytes) {
                Ok(start) => {
                    return Ok(Ring {
                        event,
                        start,
                        page_bytes,
                        data_bytes,
                        tail: 0,
                        record: Vec::new(),
                    })
                }
                Err(_) if data_bytes > LEAST_RING_BYTES.max(page_bytes) => data_bytes /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds the records since the last reading, and returns how many the kernel had no room for.
    fn read(&mut self, found: &mut Vec<Record>) -> u64 {
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let mut lost = 0;
        while self.tail < head {
            let mut header = [0; HEADER_BYTES];
            self.copy(self.tail, &mut header);
            let bytes = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if bytes < HEADER_BYTES {
                break;
            }
            let mut record = std::mem::take(&mut self.record);
            record.resize(bytes, 0);
            self.copy(self.tail, &mut record);
            match parse(&record) {
                Parsed::Of(one) => found.push(one),
                Parsed::Lost(count) => lost += count,
                Parsed::Nothing => {}
            }
            self.record = record;
            self.tail += bytes as u64;
        }
        // Also where a record was broken: what follows it cannot be read.
        self.tail = head;
        self.position(TAIL_AT).store(head, Ordering::Release);
        lost
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped for as long as the ring lives, and both positions are aligned words of it
        // that kernel and reader change as a whole.
        unsafe { self.start.add(at).cast::<AtomicU64>().as_ref() }
    }

    /// Copies bytes out of the ring, from a position that grows for ever.
    fn copy(&self, from: u64, to: &mut [u8]) {
        let begin = (from % self.data_bytes as u64) as usize;
        let first = to.len().min(self.data_bytes - begin);
        // SAFETY: both parts lie within the mapped data; the kernel does not write there before the tail has moved.
        unsafe {
            let data = self.start.add(self.page_bytes);
            data.add(begin)
                .copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), first);
            let rest = &mut to[first..];
            data.copy_to_nonoverlapping(NonNull::from(&mut *rest).cast(), rest.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this was mapped with this length, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

fn map(event: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let found = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if found == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(found.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Of(Record),
    Lost(u64),
    Nothing,
}

/// Reads one record with its header, in the machine's own order of bytes.
fn parse(record: &[u8]) -> Parsed {
    let (Some(kind), Some(misc)) = (word(record, 0), half(record, 4)) else {
        return Parsed::Nothing;
    };
    let found = match kind {
        RECORD_SWITCH => of_switch(record, misc),
        RECORD_FORK => of_task(record, Kind::Began),
        RECORD_EXIT => of_task(record, Kind::Ended),
        RECORD_LOST => return long(record, 16).map_or(Parsed::Nothing, Parsed::Lost),
        _ => None,
    };
    found.map_or(Parsed::Nothing, Parsed::Of)
}

fn of_switch(record: &[u8], misc: u16) -> Option<Record> {
    let kind = if misc & SWITCHED_OUT == 0 {
        Kind::In
    } else {
        Kind::Out {
            preempted: misc & PREEMPTED != 0,
        }
    };
    Some(Record {
        pid: word(record, 8)?,
        tid: word(record, 12)?,
        time_ns: long(record, 16)?,
        kind,
    })
}

/// Of a thread that began or ended: its process and its parent's, its own number and its parent's, the time.
fn of_task(record: &[u8], kind: Kind) -> Option<Record> {
    Some(Record {
        pid: word(record, 8)?,
        tid: word(record, 16)?,
        time_ns: long(record, 24)?,
        kind,
    })
}

fn half(record: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(record.get(at..at + 2)?.try_into().ok()?))
}

fn word(record: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?))
}

fn long(record: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?))
}

/// Whether this user may watch the switches of its own threads; why not, otherwise.
pub fn may_watch_switches() -> Result<(), Error> {
    // SAFETY: the call takes no pointer.
    let tid = unsafe { libc::gettid() } as u32;
    let event = open_event(tid, current_cpu()).map_err(refused)?;
    Ring::of(event).map(drop).map_err(refused)
}

fn current_cpu() -> u32 {
    // SAFETY: the call takes no pointer.
    unsafe { libc::sched_getcpu() }.max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::{parse, Attributes, Parsed, PREEMPTED, SWITCHED_OUT};
    use crate::switches::{Kind, Record};

    fn record(kind: u32, misc: u16, words: &[u32]) -> Vec<u8> {
        let bytes = 8 + 4 * words.len() as u16;
        let mut found = kind.to_ne_bytes().to_vec();
        found.extend(misc.to_ne_bytes());
        found.extend(bytes.to_ne_bytes());
        words.iter().for_each(|word| found.extend(word.to_ne_bytes()));
        found
    }

    fn time(ns: u64) -> [u32; 2] {
        let bytes = ns.to_ne_bytes();
        [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    }

    #[test]
    fn the_structure_is_as_long_as_the_kernels_fifth_version() {
        assert_eq!(size_of::<Attributes>(), 112);
    }

    #[test]
    fn a_switch_says_whose_when_and_whether_its_cpu_was_taken() {
        let [low, high] = time(5_000_000_000);
        let parsed = |misc| parse(&record(14, misc, &[7, 8, low, high]));
        let expected = |kind| {
            Parsed::Of(Record {
                pid: 7,
                tid: 8,
                time_ns: 5_000_000_000,
                kind,
            })
        };
        assert_eq!(parsed(0), expected(Kind::In));
        assert_eq!(parsed(SWITCHED_OUT), expected(Kind::Out { preempted: false }));
        assert_eq!(
            parsed(SWITCHED_OUT | PREEMPTED),
            expected(Kind::Out { preempted: true })
        );
    }

    #[test]
    fn a_begin_and_an_end_name_the_thread_itself_and_not_its_parent() {
        let [low, high] = time(9);
        let words = [7, 6, 8, 5, low, high, 0, 0, 0, 0];
        let expected = |kind| {
            Parsed::Of(Record {
                pid: 7,
                tid: 8,
                time_ns: 9,
                kind,
            })
        };
        assert_eq!(parse(&record(7, 0, &words)), expected(Kind::Began));
        assert_eq!(parse(&record(4, 0, &words)), expected(Kind::Ended));
    }

    #[test]
    fn lost_records_are_counted_and_others_are_left_out() {
        let [low, high] = time(12);
        assert_eq!(parse(&record(2, 0, &[1, 0, low, high])), Parsed::Lost(12));
        assert_eq!(parse(&record(3, 0, &[1, 2, 3, 4])), Parsed::Nothing);
        assert_eq!(parse(&record(14, 0, &[1])), Parsed::Nothing);
    }
}

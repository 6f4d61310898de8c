//! Watches the context switches of threads, or samples their stacks, by the kernel's own records of them.
//!
//! An event for each thread and CPU, inherited by what that thread starts, writes into one ring for each CPU. No sample
//! is taken and no instruction is counted; a switch costs its thread well below a microsecond, and the reader its time.
//! That is too much beside a measurement, so that it belongs into a trial of its own. Stacks are sampled a hundred times in
//! a second of CPU time: return addresses of the user's part, as frame pointers chain them.
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
const COUNT_CPU_CLOCK: u64 = 0;
const COUNT_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_STACK: u64 = 1 << 5;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_KERNEL_STACK: u64 = 1 << 21;
const USE_CLOCK_ID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const SET_OUTPUT: u32 = 0x2405;
const RECORD_LOST: u32 = 2;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const SWITCHED_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// From here on an address is a mark that says whose the next ones are.
const FIRST_MARK: u64 = -4095_i64 as u64;
const HEADER_BYTES: usize = 8;
// Of struct perf_event_mmap_page.
const HEAD_AT: usize = 0x400;
const TAIL_AT: usize = 0x408;

/// Of a ring, at first; less where the kernel gives this user no more of memory that stays resident.
const MOST_RING_BYTES: usize = 512 << 10;
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

/// Of CPU time, between two samples.
const SAMPLE_PERIOD_NS: u64 = 10_000_000;
/// Of a stack: three seconds of these fill half of a ring, so that nobody needs to read it meanwhile.
const MOST_FRAMES: u16 = 100;

/// Every 10 ms of CPU time the stack; without `kernel` only where that ends in the user's part.
fn of_stacks(kernel: bool) -> Attributes {
    let excluded = if kernel { 0 } else { EXCLUDE_KERNEL };
    Attributes {
        kind: TYPE_SOFTWARE,
        bytes: size_of::<Attributes>() as u32,
        config: COUNT_CPU_CLOCK,
        sample_period: SAMPLE_PERIOD_NS,
        sample_type: SAMPLE_TID | SAMPLE_STACK,
        flags: INHERIT | EXCLUDE_HYPERVISOR | EXCLUDE_KERNEL_STACK | excluded,
        most_stack: MOST_FRAMES,
        ..Attributes::default()
    }
}

fn of_switches() -> Attributes {
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
    watched: Watched,
    accounts: Accounts,
    pending: Vec<Record>,
    lost: u64,
    drained_ns: u64,
}

impl SwitchWatch {
    /// A watch of no thread yet. Only what runs on `cpus` is seen.
    pub fn new(cpus: &[u32]) -> SwitchWatch {
        SwitchWatch {
            watched: Watched::of(cpus),
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
        let pending = &mut self.pending;
        self.lost += self.watched.read(|record| pending.extend(switch_record(record)));
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
        self.watched.close();
        (found, self.lost)
    }

    fn add_thread(&mut self, pid: u32, tid: u32) -> Result<bool, Error> {
        if !self.watched.add(tid, &of_switches()).map_err(refused)? {
            return Ok(false);
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

/// Samples the stacks of threads on some CPUs, from when a process is added until it is finished.
///
/// ```no_run
/// let mut watch = prony_linux::StackWatch::new(&[0, 1]);
/// watch.add(std::process::id())?;
/// let (stacks, lost) = watch.finish(); // within some three seconds
/// # Ok::<(), prony_linux::Error>(())
/// ```
#[derive(Debug)]
pub struct StackWatch {
    watched: Watched,
    kernel: bool,
}

/// Whose stack was sampled, and its addresses, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Its process.
    pub pid: u32,
    /// Where it ran, and where each caller goes on.
    pub addresses: Vec<u64>,
}

impl StackWatch {
    /// A watch of no thread yet. Only what runs on `cpus` is sampled.
    pub fn new(cpus: &[u32]) -> StackWatch {
        StackWatch {
            watched: Watched::of(cpus),
            kernel: true,
        }
    }

    /// Samples the threads of a process, and what they start, from now on. Returns how many there are. A user who may
    /// not watch the kernel has samples of the user's part alone.
    ///
    /// *Errors*: the kernel does not let this user watch them, or has no room.
    pub fn add(&mut self, pid: u32) -> Result<usize, Error> {
        let mut added = 0;
        for tid in threads_of(pid) {
            added += usize::from(self.add_thread(tid).map_err(refused)?);
        }
        Ok(added)
    }

    /// The stacks since then, and for how many there was no room.
    pub fn finish(&mut self) -> (Vec<Stack>, u64) {
        let mut found = Vec::new();
        let lost = self.watched.read(|record| found.extend(stack_record(record)));
        self.watched.close();
        (found, lost)
    }

    fn add_thread(&mut self, tid: u32) -> io::Result<bool> {
        match self.watched.add(tid, &of_stacks(self.kernel)) {
            Err(error) if self.kernel && error.kind() == io::ErrorKind::PermissionDenied => {
                self.kernel = false;
                self.watched.add(tid, &of_stacks(false))
            }
            found => found,
        }
    }
}

/// The events of the threads that are watched, and a ring for each CPU.
#[derive(Debug)]
struct Watched {
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
}

impl Watched {
    fn of(cpus: &[u32]) -> Watched {
        Watched {
            cpus: cpus.to_vec(),
            rings: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Watches a thread; returns whether it was still there.
    fn add(&mut self, tid: u32, attributes: &Attributes) -> io::Result<bool> {
        for place in 0..self.cpus.len() {
            let event = match open_event(tid, self.cpus[place], attributes) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
                Err(error) => return Err(error),
            };
            if let Some(ring) = self.rings.get(place) {
                redirect(&event, &ring.event)?;
                self.events.push(event);
            } else {
                self.rings.push(Ring::of(event)?);
            }
        }
        Ok(true)
    }

    /// Gives away each record since the last reading, and returns how many the kernel had no room for.
    fn read(&mut self, mut take: impl FnMut(&[u8])) -> u64 {
        self.rings.iter_mut().map(|ring| ring.read(&mut take)).sum()
    }

    fn close(&mut self) {
        self.events.clear();
        self.rings.clear();
    }
}

fn open_event(tid: u32, cpu: u32, attributes: &Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the structure lives until the call returns, and says how long it is.
    let found = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
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
    Error::Refused {
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

    /// Gives away each record since the last reading, and returns how many the kernel had no room for.
    fn read(&mut self, take: &mut impl FnMut(&[u8])) -> u64 {
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
            match lost_in(&record) {
                Some(count) => lost += count,
                None => take(&record),
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

/// How many records were lost before this one, which says so; `None`: it says something else.
fn lost_in(record: &[u8]) -> Option<u64> {
    (word(record, 0)? == RECORD_LOST)
        .then(|| long(record, 16))
        .flatten()
}

/// Reads one record with its header, in the machine's own order of bytes.
fn switch_record(record: &[u8]) -> Option<Record> {
    match word(record, 0)? {
        RECORD_SWITCH => of_switch(record, half(record, 4)?),
        RECORD_FORK => of_task(record, Kind::Began),
        RECORD_EXIT => of_task(record, Kind::Ended),
        _ => None,
    }
}

/// Of a sample: its process and thread, how many addresses there are, and these.
fn stack_record(record: &[u8]) -> Option<Stack> {
    if word(record, 0)? != RECORD_SAMPLE {
        return None;
    }
    let count = long(record, 16)?.min(2 * u64::from(MOST_FRAMES)) as usize;
    let addresses = (0..count).map_while(|place| long(record, 24 + 8 * place));
    Some(Stack {
        pid: word(record, 8)?,
        addresses: addresses.filter(|address| *address < FIRST_MARK).collect(),
    })
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

#[cfg(test)]
mod tests {
    use super::{lost_in, stack_record, switch_record, Attributes, Stack, PREEMPTED, SWITCHED_OUT};
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
        let parsed = |misc| switch_record(&record(14, misc, &[7, 8, low, high]));
        let expected = |kind| {
            Some(Record {
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
            Some(Record {
                pid: 7,
                tid: 8,
                time_ns: 9,
                kind,
            })
        };
        assert_eq!(switch_record(&record(7, 0, &words)), expected(Kind::Began));
        assert_eq!(switch_record(&record(4, 0, &words)), expected(Kind::Ended));
    }

    #[test]
    fn lost_records_are_counted_and_others_are_left_out() {
        let [low, high] = time(12);
        assert_eq!(lost_in(&record(2, 0, &[1, 0, low, high])), Some(12));
        assert_eq!(lost_in(&record(3, 0, &[1, 0, low, high])), None);
        assert_eq!(switch_record(&record(3, 0, &[1, 2, 3, 4])), None);
        assert_eq!(switch_record(&record(14, 0, &[1])), None);
    }

    #[test]
    fn a_stack_has_its_addresses_without_marks_and_no_more_than_came() {
        let user = time(-512_i64 as u64);
        let words = |count: u64| [[7, 8], time(count), user, time(0x401_000), time(0x402_000)].concat();
        let expected = |addresses: &[u64]| {
            Some(Stack {
                pid: 7,
                addresses: addresses.to_vec(),
            })
        };
        assert_eq!(
            stack_record(&record(9, 0, &words(3))),
            expected(&[0x401_000, 0x402_000])
        );
        assert_eq!(stack_record(&record(9, 0, &words(2))), expected(&[0x401_000]));
        assert_eq!(
            stack_record(&record(9, 0, &words(u64::MAX))),
            expected(&[0x401_000, 0x402_000])
        );
        assert_eq!(stack_record(&record(14, 0, &words(3))), None);
        assert_eq!(stack_record(&record(9, 0, &[7, 8])), None);
    }
}

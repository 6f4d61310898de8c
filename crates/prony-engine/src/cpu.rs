//! Where a worker runs and what it costs: affinity, timer slack, CPU time, time spent waiting for the CPU.

use crate::clock::NS_PER_S;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A C result: negative is an error in errno.
pub fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Nanoseconds as a C time.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / NS_PER_S) as libc::time_t,
        tv_nsec: (ns % NS_PER_S) as libc::c_long,
    }
}

/// CPU time of the calling thread, and the time that it was runnable but did not run. Cumulative nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// On the run queue.
    pub queued: Queued,
}

/// How long a thread was runnable but did not run, and how often it was given the CPU. Cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queued {
    /// On the run queue.
    pub ns: u64,
    /// Turns on the CPU.
    pub turns: u64,
}

impl Queued {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            ns: self.ns.saturating_sub(earlier.ns),
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }
}

/// The kernel's count of a thread's time on the run queue, held open.
#[derive(Debug, Default)]
pub struct RunQueue(Option<File>);

impl RunQueue {
    /// Of the calling thread; one that the kernel does not count stays at zero.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Up to now.
    pub fn queued(&self) -> Queued {
        let mut buffer = [0; 96];
        let read = self.0.as_ref().map(|file| file.read_at(&mut buffer, 0));
        let length = read.and_then(Result::ok).unwrap_or(0);
        queued_in(&buffer[..length])
    }
}

/// The second and third field of schedstat (kernel documentation, scheduler/sched-stats.rst).
fn queued_in(text: &[u8]) -> Queued {
    let mut fields = text.split(u8::is_ascii_whitespace).skip(1).map(|field| {
        std::str::from_utf8(field)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    });
    Queued {
        ns: fields.next().unwrap_or(0),
        turns: fields.next().unwrap_or(0),
    }
}

impl Usage {
    /// Of the calling thread, up to now.
    pub fn of_this_thread() -> Self {
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writes.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let ns = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        // The kernel brings rusage up to date once in a tick, 4 ms; the thread's own clock is exact. Nearly all of it is the kernel's.
        let user_ns = ns(usage.ru_utime);
        Self {
            user_ns,
            system_ns: time_ns().saturating_sub(user_ns),
            queued: RunQueue::of_this_thread().queued(),
        }
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            queued: self.queued.since(&earlier.queued),
        }
    }
}

/// CPU time of the calling thread, to the nanosecond.
pub fn time_ns() -> u64 {
    let mut time = timespec(0);
    // SAFETY: `time` is valid for writes, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
}

/// Binds the calling thread to one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: all zeros is the empty set; the set is as large as the macro expects, and `cpu` is checked by the kernel.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= size_of::<libc::cpu_set_t>() * 8 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        libc::CPU_SET(cpu, &mut set);
        checked(libc::sched_setaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            &raw const set,
        ))?;
    }
    Ok(())
}

/// Lets timers of the calling thread fire when they are due, not up to 50 us later.
pub fn sharpen_timers() {
    // SAFETY: no pointers are passed; a kernel that refuses leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Gives the calling thread its own table of descriptors, so that the limit holds for it alone.
pub fn own_descriptors() -> io::Result<()> {
    // SAFETY: no pointers are passed; descriptors that this thread has open stay valid in its copy.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    Ok(())
}

/// Descriptors that are not connections: epoll, standard streams, the host program's files.
pub const SPARE_DESCRIPTORS: u64 = 64;

/// How many descriptors a table may hold.
pub fn descriptor_limit() -> u64 {
    descriptor_limits().rlim_cur
}

/// Lets this process hold as many descriptors as it may allow itself.
pub fn raise_descriptor_limit() {
    let mut limits = descriptor_limits();
    limits.rlim_cur = limits.rlim_max;
    // SAFETY: `limits` is valid for reads. Raising the soft limit to the hard one is always allowed.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
}

fn descriptor_limits() -> libc::rlimit {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is valid for writes.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) };
    limits
}

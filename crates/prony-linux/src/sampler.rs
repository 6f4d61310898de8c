//! Samples a process and its descendants.

use std::collections::HashSet;

use crate::error::Error;
use crate::source::{Source, Units};
use crate::stat::Stat;
use crate::tree::Method;

/// Identifies a process, also when its number is reused, until the machine is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process number.
    pub pid: u32,
    /// When it was started, in clock ticks since the machine was.
    pub start_time_ticks: u64,
}

/// One process at one moment. Times and faults are those since its start; all but `waited_ns` are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSample {
    /// Which process.
    pub identity: Identity,
    /// The number of its parent.
    pub parent_pid: u32,
    /// The command name, of at most 15 bytes; the process may have changed it.
    pub name: String,
    /// As in proc(5): `R` running, `S` sleeping, `D` waiting for a disk, `Z` ended but not waited for, `T` stopped.
    pub state: char,
    /// Its threads.
    pub threads: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// CPU time, user and system, of its children that have ended and were waited for, and of theirs.
    pub waited_ns: u64,
    /// Memory that is resident, shared pages counted in full; exact to some pages per thread.
    pub rss_bytes: u64,
    /// Address space.
    pub vsz_bytes: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
}

/// Samples the descendants of one process. Keeps its buffers, so that a sample costs little but the kernel's part.
#[derive(Debug)]
pub struct Sampler {
    root: u32,
    include_root: bool,
    method: Method,
    units: Units,
    source: Source,
    pids: Vec<u32>,
    seen: HashSet<u32>,
}

impl Sampler {
    /// A sampler of the descendants of `root`, without `root` itself.
    pub fn new(root: u32) -> Sampler {
        Sampler {
            root,
            include_root: false,
            method: Method::of_kernel(),
            units: Units::of_kernel(),
            source: Source::default(),
            pids: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Samples `root` too, as the first.
    pub fn including_root(self) -> Sampler {
        Sampler {
            include_root: true,
            ..self
        }
    }

    /// The processes that there are now, parents before their children. One that ends meanwhile is not among them.
    ///
    /// *Errors*: `/proc` is not there or has an unknown form.
    pub fn sample(&mut self) -> Result<Vec<ProcessSample>, Error> {
        self.method.begin(self.root, &mut self.source, &mut self.pids)?;
        let mut samples = Vec::with_capacity(self.pids.capacity());
        let mut next = 0;
        self.seen.clear();
        while let Some(&pid) = self.pids.get(next) {
            next += 1;
            // A thread that ends meanwhile leaves its children to another one, of which they are read again.
            if !self.seen.insert(pid) {
                continue;
            }
            let Some(sample) = self.sample_process(pid)? else {
                continue;
            };
            self.method
                .follow(pid, sample.threads, &mut self.source, &mut self.pids)?;
            if pid != self.root || self.include_root {
                samples.push(sample);
            }
        }
        Ok(samples)
    }

    fn sample_process(&mut self, pid: u32) -> Result<Option<ProcessSample>, Error> {
        let Some(line) = self.source.of_process(format_args!("/proc/{pid}/stat"))? else {
            return Ok(None);
        };
        let Some(stat) = Stat::parse(line) else {
            let line = line.to_owned();
            return Err(self.source.unknown_form(&line));
        };
        Ok(Some(to_sample(pid, &stat, self.units)))
    }
}

fn to_sample(pid: u32, stat: &Stat, units: Units) -> ProcessSample {
    ProcessSample {
        identity: Identity {
            pid,
            start_time_ticks: stat.start_time_ticks,
        },
        parent_pid: stat.parent,
        name: stat.name.to_owned(),
        state: stat.state,
        threads: stat.threads,
        user_ns: stat.user_ticks * units.tick_ns,
        system_ns: stat.system_ticks * units.tick_ns,
        waited_ns: (stat.waited_user_ticks + stat.waited_system_ticks) * units.tick_ns,
        rss_bytes: stat.rss_pages * units.page_bytes,
        vsz_bytes: stat.vsz_bytes,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
    }
}

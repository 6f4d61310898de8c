//! Facts of a process that are read only at both ends of the window, because they cost extra for each thread.

use crate::error::Error;
use crate::source::{Source, Units};
use crate::stat::Stat;
use crate::tree::{entries_of, threads_of};

/// One thread of a process. CPU time and switches are cumulative since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// Its number, of one namespace with processes' numbers.
    pub tid: u32,
    /// Its name, of at most 15 bytes.
    pub name: String,
    /// CPU time, user and system.
    pub cpu_ns: u64,
    /// How often it left a CPU by itself, to wait for something.
    pub voluntary_switches: u64,
    /// How often it had to leave a CPU to another thread.
    pub involuntary_switches: u64,
}

/// A process's peak of memory, its open files and its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The most memory that was ever resident, `VmHWM`; `None` for a process that has no memory any more.
    pub rss_peak_bytes: Option<u64>,
    /// Open descriptors; `None` where they may not be listed.
    pub descriptors: Option<u64>,
    /// The threads that it has now.
    pub threads: Vec<ThreadSample>,
}

/// Reads a process's detail; `None` when it has ended or may not be read.
pub fn detail(pid: u32) -> Result<Option<Detail>, Error> {
    let mut source = Source::default();
    let Some(status) = source.of_process(format_args!("/proc/{pid}/status"))? else {
        return Ok(None);
    };
    let rss_peak_bytes = value_of(status, "VmHWM:").map(|kilobytes| kilobytes * 1024);
    let mut threads = Vec::new();
    for tid in threads_of(pid) {
        threads.extend(thread(pid, tid, &mut source)?);
    }
    Ok(Some(Detail {
        rss_peak_bytes,
        descriptors: entries_of(&format!("/proc/{pid}/fd")),
        threads,
    }))
}

fn thread(pid: u32, tid: u32, source: &mut Source) -> Result<Option<ThreadSample>, Error> {
    let path = format!("/proc/{pid}/task/{tid}");
    let Some(line) = source.of_process(format_args!("{path}/stat"))? else {
        return Ok(None);
    };
    let Some(stat) = Stat::parse(line) else {
        let line = line.to_owned();
        return Err(source.unknown_form(&line));
    };
    let cpu_ns = (stat.user_ticks + stat.system_ticks) * Units::of_kernel().tick_ns;
    let name = stat.name.to_owned();
    let Some(status) = source.of_process(format_args!("{path}/status"))? else {
        return Ok(None);
    };
    Ok(Some(ThreadSample {
        tid,
        name,
        cpu_ns,
        voluntary_switches: value_of(status, "voluntary_ctxt_switches:").unwrap_or(0),
        involuntary_switches: value_of(status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
    }))
}

/// The number behind a key of `/proc/PID/status`, in its own unit.
fn value_of(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn a_key_is_not_taken_for_the_end_of_another() {
        let status =
            "Name:\tVmHWM: 9\nVmHWM:\t  300 kB\nnonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\n";
        assert_eq!(value_of(status, "VmHWM:"), Some(300));
        assert_eq!(value_of(status, "voluntary_ctxt_switches:"), Some(5));
        assert_eq!(value_of(status, "nonvoluntary_ctxt_switches:"), Some(7));
        assert_eq!(value_of(status, "VmPeak:"), None);
    }
}

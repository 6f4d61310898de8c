//! Finds the descendants of a process.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::source::Source;
use crate::stat::Stat;

/// How children are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// From `/proc/PID/task/TID/children`: costs by the size of the tree.
    Children,
    /// From the parent of each process there is: costs by the size of the machine.
    Scan,
}

impl Method {
    /// The cheaper one that the kernel has (`CONFIG_PROC_CHILDREN`).
    pub(crate) fn of_kernel() -> Method {
        let own = std::process::id();
        if Path::new(&format!("/proc/{own}/task/{own}/children")).exists() {
            Method::Children
        } else {
            Method::Scan
        }
    }

    /// Puts the processes that are known without looking at any into `found`, `root` first.
    pub(crate) fn begin(self, root: u32, source: &mut Source, found: &mut Vec<u32>) -> Result<(), Error> {
        found.clear();
        found.push(root);
        match self {
            Method::Children => Ok(()),
            Method::Scan => scan_parents(source, found),
        }
    }

    /// Adds the children of a process of so many threads to `found`, where a child may be there already.
    ///
    /// A process that starts or ends meanwhile may be missed, as may the children of one that ends: they have another
    /// parent by then.
    pub(crate) fn follow(
        self,
        pid: u32,
        threads: u64,
        source: &mut Source,
        found: &mut Vec<u32>,
    ) -> Result<(), Error> {
        match self {
            // The usual case spares the listing.
            Method::Children if threads == 1 => add_children(pid, pid, source, found),
            Method::Children => {
                threads_of(pid).try_for_each(|thread| add_children(pid, thread, source, found))
            }
            Method::Scan => Ok(()),
        }
    }
}

/// Children belong to the thread that made them.
fn add_children(pid: u32, thread: u32, source: &mut Source, found: &mut Vec<u32>) -> Result<(), Error> {
    if let Some(text) = source.of_process(format_args!("/proc/{pid}/task/{thread}/children"))? {
        found.extend(
            text.split_ascii_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
    }
    Ok(())
}

/// Adds all descendants of the processes in `found`.
fn scan_parents(source: &mut Source, found: &mut Vec<u32>) -> Result<(), Error> {
    let mut pairs = Vec::new();
    for pid in numeric_names("/proc") {
        let line = source.of_process(format_args!("/proc/{pid}/stat"))?;
        pairs.extend(line.and_then(Stat::parse).map(|stat| (stat.parent, pid)));
    }
    let mut known: HashSet<u32> = found.iter().copied().collect();
    // Each pass finds at least one generation. A child mostly has a greater number than its parent, so that one pass is
    // usual.
    loop {
        let before = found.len();
        pairs.retain(|&(parent, pid)| {
            let descends = known.contains(&parent);
            if descends && known.insert(pid) {
                found.push(pid);
            }
            !descends
        });
        if found.len() == before {
            return Ok(());
        }
    }
}

/// The threads of a process; none when it has ended.
pub(crate) fn threads_of(pid: u32) -> impl Iterator<Item = u32> {
    numeric_names(&format!("/proc/{pid}/task"))
}

/// How many entries a folder of descriptors has; `None` when it cannot be listed. Linux 6.2 says so at once: there may
/// be a million, in each of thousands of processes.
pub(crate) fn entries_of(folder: &str) -> Option<u64> {
    match fs::metadata(folder).ok()?.len() {
        0 => Some(fs::read_dir(folder).ok()?.count() as u64),
        known => Some(known),
    }
}

/// The entries of a folder that are numbers; none when it is gone.
fn numeric_names(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Method;
    use crate::source::Source;

    #[test]
    fn a_scan_finds_the_same_children_as_the_kernel_names() {
        let own = std::process::id();
        let mut child = Command::new("sh")
            .args(["-c", "sleep 100 & wait"])
            .spawn()
            .unwrap();
        let mut found = Vec::new();
        while found.len() < 3 {
            Method::Scan
                .begin(own, &mut Source::default(), &mut found)
                .unwrap();
        }
        assert_eq!((found[0], found[1]), (own, child.id()));
        // The shell's own: a small system has no program of that name.
        let kill = format!("kill {}", found[2]);
        Command::new("sh").args(["-c", &kill]).status().unwrap();
        child.wait().unwrap();
    }
}

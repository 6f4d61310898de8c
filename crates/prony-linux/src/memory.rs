//! What memory a process has for itself.

use crate::error::Error;
use crate::source::Source;

/// A process's memory, with what it shares divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Proportional set size: each page divided by the number of processes that map it. Sums over processes are right.
    pub pss_bytes: u64,
    /// Unique set size: pages that nobody else maps, which would be free if the process ended.
    pub uss_bytes: u64,
}

/// Reads `/proc/PID/smaps_rollup`; `None` when the process has ended or may not be read.
///
/// The kernel visits all pages of the process: some hundred microseconds for each call. Call it rarely.
pub fn memory(pid: u32) -> Result<Option<Memory>, Error> {
    let mut source = Source::default();
    let Some(text) = source.of_process(format_args!("/proc/{pid}/smaps_rollup"))? else {
        return Ok(None);
    };
    Ok(parse(text))
}

/// `None` for the empty text of a process that has no memory any more.
fn parse(text: &str) -> Option<Memory> {
    let kilobytes = |key: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let private = ["Private_Clean", "Private_Dirty", "Private_Hugetlb"];
    let uss_kilobytes: u64 = private.into_iter().filter_map(kilobytes).sum();
    Some(Memory {
        pss_bytes: kilobytes("Pss")? * 1024,
        uss_bytes: uss_kilobytes * 1024,
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, Memory};

    #[test]
    fn proportional_and_unique_memory_are_read_in_bytes() {
        let text =
            "55d-7ff ---p 00000000 00:00 0    [rollup]\nRss:  900 kB\nPss:   300 kB\nPss_Dirty:  7 kB\n\
            Private_Clean:  20 kB\nPrivate_Dirty:  30 kB\nPrivate_Hugetlb:  4 kB\n";
        assert_eq!(
            parse(text),
            Some(Memory {
                pss_bytes: 300 * 1024,
                uss_bytes: 54 * 1024
            })
        );
        assert_eq!(parse(""), None);
    }
}

//! How busy the machine's CPUs are.

use crate::error::Error;
use crate::source::{Source, Units};

/// Time since the machine was started, by what a CPU did.
///
/// `user_ns` includes guests' and low-priority work. `idle_ns` and `io_wait_ns` of one CPU are estimates and may step back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Programs.
    pub user_ns: u64,
    /// The kernel, for programs.
    pub system_ns: u64,
    /// Nothing.
    pub idle_ns: u64,
    /// Nothing, while some program waited for a disk.
    pub io_wait_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Deferred interrupt work, network packets among it.
    pub soft_irq_ns: u64,
    /// Another guest of the same host ran instead.
    pub steal_ns: u64,
}

/// All CPUs of the machine that are online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    /// Their sum.
    pub total: CpuTime,
    /// Each one with its number.
    pub cpus: Vec<(u32, CpuTime)>,
}

/// Reads `/proc/stat`.
pub fn machine_cpu() -> Result<MachineCpu, Error> {
    let mut source = Source::default();
    let units = Units::of_kernel();
    let text = source.of_machine(format_args!("/proc/stat"))?;
    match parse(text, units.tick_ns) {
        Some(cpu) => Ok(cpu),
        None => {
            let line = text.lines().next().unwrap_or_default().to_owned();
            Err(source.unknown_form(&line))
        }
    }
}

fn parse(text: &str, tick_ns: u64) -> Option<MachineCpu> {
    let mut total = None;
    let mut cpus = Vec::new();
    for line in text.lines() {
        let Some((name, ticks)) = line.strip_prefix("cpu").and_then(|line| line.split_once(' ')) else {
            continue;
        };
        let time = parse_time(ticks, tick_ns)?;
        if name.is_empty() {
            total = Some(time);
        } else {
            cpus.push((name.parse().ok()?, time));
        }
    }
    Some(MachineCpu { total: total?, cpus })
}

/// Columns as in proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guests are contained in user.
fn parse_time(ticks: &str, tick_ns: u64) -> Option<CpuTime> {
    let mut columns = ticks.split_ascii_whitespace();
    let mut next_ns = || -> Option<u64> { Some(columns.next()?.parse::<u64>().ok()? * tick_ns) };
    let (user_ns, nice_ns) = (next_ns()?, next_ns()?);
    Some(CpuTime {
        user_ns: user_ns + nice_ns,
        system_ns: next_ns()?,
        idle_ns: next_ns()?,
        io_wait_ns: next_ns()?,
        irq_ns: next_ns()?,
        soft_irq_ns: next_ns()?,
        steal_ns: next_ns()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, CpuTime};

    #[test]
    fn columns_become_nanoseconds() {
        let cpu = parse(
            "cpu  1 2 3 4 5 6 7 8 9 10\ncpu3 1 2 3 4 5 6 7 8 9 10\nintr 5\n",
            10,
        )
        .unwrap();
        let expected = CpuTime {
            user_ns: 30,
            system_ns: 30,
            idle_ns: 40,
            io_wait_ns: 50,
            irq_ns: 60,
            soft_irq_ns: 70,
            steal_ns: 80,
        };
        assert_eq!((cpu.total, cpu.cpus), (expected, vec![(3, expected)]));
    }

    #[test]
    fn another_form_is_none() {
        assert_eq!(parse("cpu  1 2 x\n", 10), None);
        assert_eq!(parse("intr 5\n", 10), None);
    }
}

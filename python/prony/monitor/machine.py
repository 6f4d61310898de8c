"""How busy all CPUs of the machine were, cumulative.

Must not know processes.

>>> read_machine_cpu().busy_ns > 0
True
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MachineCpu", "parse_machine_cpu", "read_machine_cpu"]

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class MachineCpu:
    """CPU time since boot, over all CPUs.

    ``idle`` holds the wait for disks too; ``steal`` went to other guests of the host.
    """

    busy_ns: int
    idle_ns: int
    steal_ns: int


def read_machine_cpu() -> MachineCpu:
    """Return the machine's CPU time as of now."""
    with _STAT.open() as file:
        return parse_machine_cpu(file.readline(), os.sysconf("SC_CLK_TCK"))


def parse_machine_cpu(line: str, ticks_per_s: int) -> MachineCpu:
    """Return what the first line of /proc/stat says.

    *Definition*: busy = user + nice + system + irq + softirq; guest time is part of user (proc(5)).

    >>> parse_machine_cpu("cpu 1 2 3 4 5 6 7 8 9 10", 100)
    MachineCpu(busy_ns=190000000, idle_ns=90000000, steal_ns=80000000)
    """
    user, nice, system, idle, io_wait, irq, soft_irq, steal = (int(field) for field in line.split()[1:9])
    tick_ns = 1_000_000_000 // ticks_per_s
    return MachineCpu(
        busy_ns=(user + nice + system + irq + soft_irq) * tick_ns,
        idle_ns=(idle + io_wait) * tick_ns,
        steal_ns=steal * tick_ns,
    )

"""CPU time by the clocks of processes, which the kernel's ticks do not round: of subjects side by side.

*Source*: clock_getcpuclockid(3): the clock of a process is the complement of its number, and 2.

>>> process_clock_ns(os.getpid()) > 0
True
"""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.monitor.machine import parse_cpu_times
from prony.monitor.native import CompiledSource

_STAT = Path("/proc/stat")

PidTimes = Mapping[int, int]
"""CPU time in ns by process."""


def process_clock_ns(pid: int) -> int | None:
    """Return the CPU time of a process and its ended threads; null: it is gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def clocks_of(pids: Iterable[int]) -> PidTimes:
    """Return the CPU times of those processes that are there."""
    read = ((pid, process_clock_ns(pid)) for pid in pids)
    return {pid: cpu_ns for pid, cpu_ns in read if cpu_ns is not None}


def used_ns(before: PidTimes, after: PidTimes) -> int:
    """Return what processes used between two readings; one that has ended by then counts for nothing.

    >>> used_ns({7: 100, 8: 5}, {7: 130, 9: 4})
    34
    """
    return sum(cpu_ns - before.get(pid, 0) for pid, cpu_ns in after.items())


@dataclass(frozen=True, slots=True)
class Clocks:
    """CPU times at one moment: of each subject by its number, of Prony with its generators, of the CPUs."""

    subjects: Mapping[int, PidTimes]
    prony: PidTimes
    busy_ns: int
    steal_ns: int


class ClockReader:
    """Reads the clocks of subjects, by the roots of their processes. ``cpus``: those that are watched."""

    def __init__(self, trees: Mapping[int, int], cpus: Collection[int]) -> None:
        self._sources = {number: CompiledSource(tree) for number, tree in trees.items()}
        self._own = CompiledSource(os.getpid(), include_root=True)
        self._cpus = tuple(cpus)

    def read(self) -> Clocks:
        """Return what all have used up to now."""
        subjects = {number: _times(source) for number, source in self._sources.items()}
        theirs = {pid for times in subjects.values() for pid in times}
        times = parse_cpu_times(_STAT.read_text(), self._cpus, os.sysconf("SC_CLK_TCK")).values()
        return Clocks(
            subjects,
            {pid: cpu_ns for pid, cpu_ns in _times(self._own).items() if pid not in theirs},
            sum(one.busy_ns for one in times),
            sum(one.steal_ns for one in times),
        )


def _times(source: CompiledSource) -> PidTimes:
    """Return CPU times with those of the children that each process has waited for."""
    processes = source.sample()
    clocks = clocks_of(process.pid for process in processes)
    return {one.pid: clocks[one.pid] + one.waited_ns for one in processes if one.pid in clocks}

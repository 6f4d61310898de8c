"""Cumulative figures of the machine: CPUs, pressure, network queues.

>>> read_machine_cpu().busy_ns > 0
True

The frequency of the server's CPUs. One gauge, ``frequency_khz``: the mean over the server's CPUs.

*Source*: kernel, Documentation/admin-guide/pm/cpufreq.rst, scaling_cur_freq.

>>> frequency_gauge(()).read()
{}

The memory of the machine.

Gauges: ``memory_bytes``, all of it; ``memory_available_bytes``, what programs could get without swapping.

*Source*: proc_meminfo(5): MemTotal, MemAvailable.

>>> sorted(memory_gauge().read())
['memory_available_bytes', 'memory_bytes']

What else happened on the machine during the window: other load, stolen time, pressure, heat, sleep.

Deltas over the window, in ns where the name says so:

- ``cpus.busy_ns``, ``cpus.interrupts_ns``, ``cpus.softirq_ns``, ``cpus.idle_ns``, ``cpus.steal_ns``: of the
  trial's CPUs, the server's and the generator's; ``cpus.softirq_most_ns``: of the CPU with the most
- ``generator_cpus.busy_ns``: of the generator's CPUs alone, where the server has others
- ``subject.cpu_ns``: all processes of the subject; ``subject.<part>.cpu_ns``: those below each started
  process; ``prony.cpu_ns``: Prony and the generator
- ``pressure.<cpu|memory|io>_<some|full>_ns``: how long tasks of the machine waited
- ``softnet.dropped``, ``softnet.squeezed``: the kernel's queues of packets
- ``machine.throttles``: how often a CPU was slowed down for heat; ``machine.suspended_ns``: time asleep
- ``machine.forks``: processes and threads that were started
- ``machine.huge_pages``: how often memory was put together into huge pages, or huge pages were split;
  ``machine.migrated_pages``: pages that went to another memory node

>>> sorted(EnvironmentCounters((), 1, 1).deltas()[0])
[]
"""

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from prony.core.units import MICROSECOND_NS, SECOND_NS
from prony.machine.cgroups import parse_meminfo
from prony.sandbox.watch.native import tree_cpu

_CPUS = Path("/sys/devices/system/cpu")
_FIELDS = {"memory_bytes": "MemTotal", "memory_available_bytes": "MemAvailable"}


class FileGauge:
    """Reads the gauges ``names`` from a file, or from several; after a failure it does not try again."""

    def __init__(self, names: Iterable[str], file: Path, read: Callable[[], dict[str, int]]) -> None:
        self._names, self._file, self._read = tuple(names), file, read
        self._reason: str | None = None

    def read(self) -> dict[str, int]:
        """Return the gauges."""
        try:
            return self._read() if self._reason is None else {}
        except OSError as error:
            self._reason = f"cannot read `{error.filename or self._file}`: {error.strerror}"
        except ValueError:
            self._reason = f"`{self._file}` does not say"
        except KeyError as error:
            self._reason = f"`{self._file}` does not say {error.args[0]}"
        return {}

    def close(self) -> None:
        """Do nothing."""

    def missing(self) -> dict[str, str]:
        """Return why they could not be read."""
        return {} if self._reason is None else dict.fromkeys(self._names, self._reason)


def memory_gauge(file: Path = Path("/proc/meminfo")) -> FileGauge:
    """Return the gauges of the machine's memory."""

    def read() -> dict[str, int]:
        sizes = parse_meminfo(file.read_text())
        return {name: sizes[field] for name, field in _FIELDS.items()}

    return FileGauge(_FIELDS, file, read)


def frequency_gauge(cpus: Sequence[int], folder: Path = _CPUS) -> FileGauge:
    """Return the gauge of the frequency of ``cpus``."""
    files = [folder / f"cpu{number}/cpufreq/scaling_cur_freq" for number in cpus]

    def read() -> dict[str, int]:
        each = [int(file.read_text()) for file in files]
        return {"frequency_khz": sum(each) // len(each)} if each else {}

    return FileGauge(("frequency_khz",), next(iter(files), folder), read)


_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class MachineCpu:
    """CPU time since boot, over all CPUs.

    ``idle`` includes waiting for disks; ``steal`` went to other guests of the host.
    """

    busy_ns: int
    idle_ns: int
    steal_ns: int


def read_machine_cpu() -> MachineCpu:
    """Return the machine's CPU time up to now."""
    with _STAT.open() as file:
        return parse_machine_cpu(file.readline(), os.sysconf("SC_CLK_TCK"))


def parse_machine_cpu(line: str, ticks_per_s: int) -> MachineCpu:
    """Return the CPU times of the first line of /proc/stat.

    *Definition*: busy = user + nice + system + irq + softirq; guest time is part of user (proc(5)).

    >>> parse_machine_cpu("cpu 1 2 3 4 5 6 7 8 9 10", 100)
    MachineCpu(busy_ns=190000000, idle_ns=90000000, steal_ns=80000000)
    """
    user, nice, system, idle, io_wait, irq, soft_irq, steal = (int(field) for field in line.split()[1:9])
    tick_ns = SECOND_NS // ticks_per_s
    return MachineCpu(
        busy_ns=(user + nice + system + irq + soft_irq) * tick_ns,
        idle_ns=(idle + io_wait) * tick_ns,
        steal_ns=steal * tick_ns,
    )


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """The times of one CPU since boot. ``busy_ns``: programs and their system calls, without interrupts."""

    busy_ns: int
    interrupts_ns: int
    softirq_ns: int
    idle_ns: int
    steal_ns: int


def parse_cpu_times(text: str, cpus: Collection[int], ticks_per_s: int) -> dict[int, CpuTimes]:
    """Return the times of each of ``cpus`` from /proc/stat.

    *Definition*: busy = user + nice + system; interrupts = irq + softirq; idle includes waiting for disks.

    >>> parse_cpu_times("cpu 0\\ncpu3 1 2 3 4 5 6 7 8 0 0\\nintr 9", {3}, 10**9)[3]
    CpuTimes(busy_ns=6, interrupts_ns=13, softirq_ns=7, idle_ns=9, steal_ns=8)
    """
    wanted = {f"cpu{number}": number for number in cpus}
    tick_ns = SECOND_NS // ticks_per_s
    found = {}
    for name, *fields in (line.split() for line in text.splitlines()):
        if name in wanted:
            user, nice, system, idle, io_wait, irq, softirq, steal = (
                int(field) * tick_ns for field in fields[:8]
            )
            found[wanted[name]] = CpuTimes(
                user + nice + system, irq + softirq, softirq, idle + io_wait, steal
            )
    return found


def parse_pressure(text: str) -> dict[str, int]:
    """Return for how long, in ns, some tasks waited for a resource (``some``), or all of them (``full``).

    *Source*: kernel, Documentation/accounting/psi.rst; totals are microseconds.

    >>> parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\\n")
    {'some': 7000}
    """
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[-1].removeprefix("total=")) * MICROSECOND_NS for row in rows if row}


def parse_network_queues(text: str) -> dict[str, int]:
    """Return from /proc/net/softnet_stat, over all CPUs: how many packets were dropped because the queue was
    full, and how often the kernel left packets waiting because its share of time was used up.

    *Source*: kernel, net/core/net-procfs.c, softnet_seq_show: columns 2 and 3, hexadecimal.

    >>> parse_network_queues("0000000a 00000001 00000002 0\\n0000000b 00000000 00000010 0\\n")
    {'dropped': 1, 'squeezed': 18}
    """
    rows = [line.split() for line in text.splitlines()]
    return {
        "dropped": sum(int(row[1], 16) for row in rows),
        "squeezed": sum(int(row[2], 16) for row in rows),
    }


# --- what else happened on the machine during the window --------------------------------------------------


_PROC = Path("/proc")

_PART = "subject.{}.cpu_ns"
_OF_ONE_CPU = "softirq of "
_OF_CPUS = ("busy", "interrupts", "softirq", "idle", "steal")
# Of the whole machine, `full` means nothing for CPUs (psi.rst).
_PRESSURE = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full")}

_Source = Callable[[], dict[str, int]]


class EnvironmentCounters:
    """Reads the machine at the start and at the end of the window.

    ``cpus`` are the trial's, ``generator_cpus`` those of them that the generator has alone; ``own_pid`` is
    Prony, ``subject_pid`` the parent of the subject's processes, ``parts`` those that were started, by name.
    """

    def __init__(
        self,
        cpus: Collection[int],
        own_pid: int,
        subject_pid: int,
        generator_cpus: Collection[int] = (),
        parts: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._parts = dict(parts)
        self._cpus, self._generator_cpus = tuple(cpus), frozenset(generator_cpus)
        self._own_pid, self._subject_pid = own_pid, subject_pid
        self._opened: Mapping[str, int] = {}
        self._closed: Mapping[str, int] = {}
        self._missing: dict[str, str] = {}

    def open_window(self) -> None:
        """Read the machine at the start of the window."""
        self._opened = self._read()

    def close_window(self) -> None:
        """Read the machine at the end of the window."""
        self._closed = self._read()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences, and the reason for each missing one."""
        if not (self._opened and self._closed):
            never = "the window did not open and close"
            return {}, {name: never for names in self._sources() for name in names}
        counted = {
            name: self._closed[name] - value for name, value in self._opened.items() if name in self._closed
        }
        most = [counted.pop(name) for name in tuple(counted) if name.startswith(_OF_ONE_CPU)]
        return (counted | {"cpus.softirq_most_ns": max(most)} if most else counted), dict(self._missing)

    def _sources(self) -> dict[tuple[str, ...], _Source]:
        """Return the readers, by the prefix of the counters that they give."""
        apart = ("generator_cpus.busy_ns",) if self._generator_cpus else ()
        return {
            (*(f"cpus.{name}_ns" for name in (*_OF_CPUS, "softirq_most")), *apart): self._times,
            ("subject.cpu_ns", "prony.cpu_ns", *map(_PART.format, self._parts)): self._processes,
            **{_pressures(name): partial(_pressure, name) for name in _PRESSURE},
            ("softnet.dropped", "softnet.squeezed"): _network_queues,
            ("machine.throttles",): _throttles,
            ("machine.suspended_ns",): _suspended,
            ("machine.forks",): _forks,
            ("machine.huge_pages", "machine.migrated_pages"): _moved_pages,
        }

    def _read(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for names, source in self._sources().items():
            try:
                found |= source()
            except OSError as error:
                reason = f"cannot read `{error.filename or names[0]}`: {error.strerror}"
                self._missing |= dict.fromkeys(names, reason)
        return found

    def _times(self) -> dict[str, int]:
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        times = parse_cpu_times((_PROC / "stat").read_text(), self._cpus, ticks_per_s)
        each = {f"{_OF_ONE_CPU}{number}": one.softirq_ns for number, one in times.items()}
        generator = [one for number, one in times.items() if number in self._generator_cpus]
        apart = {"generator_cpus.busy_ns": _sum(generator, "busy_ns")} if generator else {}
        return {f"cpus.{name}_ns": _sum(times.values(), f"{name}_ns") for name in _OF_CPUS} | each | apart

    def _processes(self) -> dict[str, int]:
        subject = tree_cpu(self._subject_pid)
        own = tree_cpu(self._own_pid)
        return {
            "subject.cpu_ns": sum(subject.values()),
            "prony.cpu_ns": sum(cpu_ns for process, cpu_ns in own.items() if process not in subject),
            **{_PART.format(name): sum(tree_cpu(pid).values()) for name, pid in self._parts.items()},
        }


def _sum(times: Collection[CpuTimes], name: str) -> int:
    return sum(getattr(one, name) for one in times)


def _pressures(resource: str) -> tuple[str, ...]:
    return tuple(f"pressure.{resource}_{kind}_ns" for kind in _PRESSURE[resource])


def _pressure(resource: str) -> dict[str, int]:
    totals = parse_pressure((_PROC / "pressure" / resource).read_text())
    found = zip(_pressures(resource), _PRESSURE[resource], strict=True)
    return {name: totals[kind] for name, kind in found if kind in totals}


def _network_queues() -> dict[str, int]:
    found = parse_network_queues((_PROC / "net/softnet_stat").read_text())
    return {f"softnet.{name}": value for name, value in found.items()}


def _throttles() -> dict[str, int]:
    files = sorted(_CPUS.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"))
    if not files:
        raise FileNotFoundError(2, "no such file", str(_CPUS / "cpu*/thermal_throttle"))
    return {"machine.throttles": sum(int(file.read_text()) for file in files)}


def _forks() -> dict[str, int]:
    counted = re.search(r"^processes (\d+)$", (_PROC / "stat").read_text(), re.MULTILINE)
    if counted is None:
        raise FileNotFoundError(2, "no such line", "processes in /proc/stat")
    return {"machine.forks": int(counted[1])}


# proc_vmstat(5). A kernel without huge pages, or with one node, does not count them: nothing moves there.
_MOVES = {
    "machine.huge_pages": ("thp_collapse_alloc", "thp_split_page"),
    "machine.migrated_pages": ("numa_pages_migrated",),
}


def _moved_pages() -> dict[str, int]:
    counted = dict(line.split() for line in (_PROC / "vmstat").read_text().splitlines())
    return {
        name: sum(int(counted[one]) for one in each if one in counted)
        for name, each in _MOVES.items()
        if any(one in counted for one in each)
    }


def _suspended() -> dict[str, int]:
    # The first clock runs while the machine sleeps, the second does not (clock_gettime(2)).
    asleep_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return {"machine.suspended_ns": asleep_ns}

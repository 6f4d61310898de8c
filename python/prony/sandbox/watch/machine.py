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
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.core.units import MICROSECOND_NS, SECOND_NS
from prony.machine.facts.cgroups import parse_meminfo

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

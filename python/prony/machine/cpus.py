"""The CPUs that this process may use, and the cores they belong to.

>>> Cpu(3, 1).core
1
"""

import os
from dataclasses import dataclass
from pathlib import Path

from prony.machine.read import found_in, read_text

_FOLDER = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Cpu:
    """One CPU as the kernel numbers them. CPUs of one ``core`` are hardware threads that share it.

    Cores of one ``kind`` differ only in their numbers: same package, last-level cache, speed and capacity.
    """

    number: int
    core: int
    kind: str = ""


def available_cpus(folder: Path = _FOLDER) -> tuple[Cpu, ...]:
    """Return the CPUs of this process's affinity; where cores are not known, each is a core of its own."""
    numbers = sorted(os.sched_getaffinity(0))
    return tuple(Cpu(number, _core(folder, number), _kind(folder, number)) for number in numbers)


def _core(folder: Path, number: int) -> int:
    """Return the lowest CPU of the core: unique on the machine, unlike core_id."""
    try:
        siblings = (folder / f"cpu{number}/topology/thread_siblings_list").read_text()
        return int(siblings.strip().replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return number


def _kind(folder: Path, number: int) -> str:
    """Return what the kernel reports about a CPU besides its number; empty where it reports nothing."""
    cpu = folder / f"cpu{number}"
    caches = found_in(cpu, "cache/index*")
    files = (
        cpu / "topology/physical_package_id",
        *(cache / "shared_cpu_list" for cache in caches[-1:]),
        cpu / "cpufreq/cpuinfo_max_freq",
        cpu / "cpu_capacity",
    )
    return "/".join(read_text(file) or "" for file in files)

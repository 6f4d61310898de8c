"""The CPUs that this process may use, and the cores they belong to.

Must not know who is to run there.

>>> Cpu(3, 1).core
1
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cpu", "available_cpus"]

_FOLDER = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Cpu:
    """One CPU as the kernel numbers them. CPUs of one ``core`` are hardware threads that share it."""

    number: int
    core: int


def available_cpus(folder: Path = _FOLDER) -> tuple[Cpu, ...]:
    """Return the CPUs of this process's affinity; each a core of its own where that is not known."""
    return tuple(Cpu(number, _core(folder, number)) for number in sorted(os.sched_getaffinity(0)))


def _core(folder: Path, number: int) -> int:
    """Return the lowest CPU of the core: unique on the machine, which core_id alone is not."""
    try:
        siblings = (folder / f"cpu{number}/topology/thread_siblings_list").read_text()
        return int(siblings.strip().replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return number

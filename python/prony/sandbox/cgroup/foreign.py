"""The control group of a process that Prony did not create: found and read, never changed.

Must not know who created it.

>>> ForeignGroup(()).counters().cpu_ns is None
True
"""

from dataclasses import dataclass
from pathlib import Path

from prony.sandbox.cgroup.base import Counters, CountersReading
from prony.sandbox.cgroup.files import CgroupFiles, KernelFiles
from prony.sandbox.cgroup.mounts import Hierarchy, find_hierarchies
from prony.sandbox.cgroup.sources import merge
from prony.sandbox.cgroup.v1 import read_v1
from prony.sandbox.cgroup.v2 import read_v2

__all__ = ["ForeignGroup"]

_KERNEL = KernelFiles()


@dataclass(frozen=True, slots=True)
class ForeignGroup:
    """A group, by the hierarchies in which it is."""

    hierarchies: tuple[Hierarchy, ...]

    @classmethod
    def of(cls, pid: int) -> "ForeignGroup":
        """Return the group that a process is in now.

        *Errors*: OSError when there is no such process.
        """
        mounts = Path("/proc/self/mountinfo").read_text()
        return cls(find_hierarchies(mounts, Path(f"/proc/{pid}/cgroup").read_text()))

    def counters(self, files: CgroupFiles = _KERNEL) -> Counters:
        """Return the kernel's counters of the group, and the reason for each missing one."""
        folders = {name: one.folder for one in self.hierarchies for name in one.controllers}
        v2 = next((one.folder for one in self.hierarchies if one.version == "v2"), None)
        readings: list[CountersReading] = [] if v2 is None else [read_v2(files, v2)]
        if folders:
            readings.append(read_v1(files, folders.get))
        return merge(readings)

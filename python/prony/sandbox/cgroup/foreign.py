"""The control group of a process that Prony did not create: found and read, never changed.

>>> ForeignGroup(()).counters().cpu_ns is None
True
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.sandbox.cgroup.files import CgroupFiles, Hierarchy, KernelFiles, find_hierarchies, merge
from prony.sandbox.cgroup.types import Counters, CountersReading
from prony.sandbox.cgroup.v1 import read_v1
from prony.sandbox.cgroup.v2 import read_v2

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


class ForeignGroups:
    """The groups of a subject's processes, by their names, where somebody else has put them into any.

    A hierarchy in which Prony is in the same group says nothing of the subject alone. Of a process that has
    ended, the group in which it was seen last counts on.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._groups: dict[str, ForeignGroup] = {}
        counted = self.counters()
        self._before = {self._groups[name]: one.oom_kills or 0 for name, one in counted.items()}

    def kills(self) -> dict[str, int]:
        """Return how many processes the kernel has killed for memory since this was made, by the names of
        ``counters``; of a group that processes were put into later, in its whole life.
        """
        killed = {
            name: (one.oom_kills or 0) - self._before.get(self._groups[name], 0)
            for name, one in self.counters().items()
        }
        return {name: count for name, count in killed.items() if count > 0}

    def counters(self) -> dict[str, Counters]:
        """Return the kernel's counters of each group, by its first process; nothing where they share Prony's
        own.
        """
        for name, pid in self._pids.items():
            with contextlib.suppress(OSError):
                own = ForeignGroup.of(os.getpid()).hierarchies
                alone = tuple(one for one in ForeignGroup.of(pid).hierarchies if one not in own)
                if alone:
                    self._groups[name] = ForeignGroup(alone)
        first = {group: name for name, group in reversed(self._groups.items())}
        return {name: group.counters() for group, name in first.items()}

"""The back end for cgroup v1: a subtree in the hierarchy of each controller.

*Source*: Documentation/admin-guide/cgroup-v1/.

>>> V1.version
'v1'
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from prony.core.units import SECOND_NS
from prony.sandbox.cgroup.files import (
    CgroupFiles,
    Hierarchy,
    Source,
    part_folder,
    read_sources,
    reason_of,
    write_cpus,
)
from prony.sandbox.cgroup.types import CountersReading, LimitName, NoCgroups

_LIMITED_BY: Mapping[LimitName, str] = {
    "cpus": "cpuset",
    "cpu_quota": "cpu",
    "memory": "memory",
    "pids": "pids",
}
USED = frozenset({*_LIMITED_BY.values(), "cpuacct", "freezer"})
_PERIOD_US = 100_000
_TICK_NS = SECOND_NS // os.sysconf("SC_CLK_TCK")
# How much swap a memory limit allows: with none, the kernel would reach the limit of memory plus swap first,
# and that one counts no hits (seen on Linux 6.18).
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PRESSURE = (
    "cpu_stalled_ns",
    "memory_stalled_ns",
    "memory_full_stalled_ns",
    "io_stalled_ns",
    "io_full_stalled_ns",
)

_SOURCES = (
    Source("cpuacct", "cpuacct.usage", {"cpu_ns": ("", 1)}),
    # Scaled so that both add up to the usage, unlike `cpuacct.usage_user`, which is sampled at each tick.
    Source(
        "cpuacct", "cpuacct.stat", {"cpu_user_ns": ("user", _TICK_NS), "cpu_system_ns": ("system", _TICK_NS)}
    ),
    Source(
        "cpu",
        "cpu.stat",
        {
            "periods": ("nr_periods", 1),
            "throttled_periods": ("nr_throttled", 1),
            "throttled_ns": ("throttled_time", 1),
        },
    ),
    Source("memory", "memory.usage_in_bytes", {"memory_current_bytes": ("", 1)}),
    Source("memory", "memory.max_usage_in_bytes", {"memory_peak_bytes": ("", 1)}),
    Source("memory", "memory.failcnt", {"memory_limit_hits": ("", 1)}),
    Source("memory", "memory.oom_control", {"oom_kills": ("oom_kill", 1)}),
    Source("pids", "pids.peak", {"pids_peak": ("", 1)}),
    Source("pids", "pids.events", {"pids_limit_hits": ("max", 1)}),
)


class V1:
    """Creates, limits and reads groups below Prony's subtree in the hierarchies of this version."""

    version: Final[Literal["v1"]] = "v1"

    def __init__(
        self, files: CgroupFiles, subtrees: Mapping[str, Path], missing: Mapping[LimitName, str]
    ) -> None:
        self._files = files
        self._subtrees = subtrees
        self.missing = missing

    @property
    def places(self) -> tuple[Path, ...]:
        """Prony's subtree in each hierarchy; one that several controllers share counts once."""
        return tuple(dict.fromkeys(self._subtrees.values()))

    def create(self, name: str) -> None:
        """Make the group; OSError."""
        for place in self.places:
            self._files.make(part_folder(place, name))
        if "cpuset" in self._subtrees:
            _inherit_cpus(self._files, part_folder(self._subtrees["cpuset"], name))

    def set_limit(self, name: str, limit: LimitName, value: int | float | tuple[int, ...]) -> None:
        """Set one limit of a group; OSError."""
        folder = part_folder(self._subtrees[_LIMITED_BY[limit]], name)
        match limit, value:
            case "cpus", tuple():
                write_cpus(self._files, folder, value, effective="cpuset.effective_cpus")
            case "cpu_quota", int() | float():
                self._files.write(folder / "cpu.cfs_period_us", str(_PERIOD_US))
                self._files.write(folder / "cpu.cfs_quota_us", str(round(value * _PERIOD_US)))
            case "memory", int():
                self._limit_memory(folder, value)
            case "pids", int():
                self._files.write(folder / "pids.max", str(value))

    def read(self, name: str) -> CountersReading:
        """Return the counters of a group."""

        def folder_of(controller: str) -> Path | None:
            place = self._subtrees.get(controller)
            return part_folder(place, name) if place else None

        return read_v1(self._files, folder_of)

    def leave(self) -> None:
        """Do nothing: nothing outside of the subtree was changed."""

    def _limit_memory(self, folder: Path, value: int) -> None:
        # The limit of memory plus swap must never be below that of memory: remove it first, then set both.
        with_swap = folder / "memory.memsw.limit_in_bytes"
        with contextlib.suppress(OSError):
            self._files.write(with_swap, "-1")
        self._files.write(folder / "memory.limit_in_bytes", str(value))
        try:
            self._files.write(with_swap, str(value + _PAGE_BYTES))
        except OSError:
            # Without `swapaccount=1` the file does not exist: then at least discourage swapping.
            self._files.write(folder / "memory.swappiness", "0")


def read_v1(files: CgroupFiles, folder_of: Callable[[str], Path | None]) -> CountersReading:
    """Return the counters of a group; its folder may differ by controller; None: no such controller."""
    found = read_sources(files, _SOURCES, folder_of)
    pressure = dict.fromkeys(_PRESSURE, "cgroup v1 has no pressure figures")
    return CountersReading(found.values, {**found.missing, **pressure})


def open_v1(
    files: CgroupFiles, hierarchies: Iterable[Hierarchy], name: str, made: list[Path]
) -> V1 | NoCgroups:
    """Create the subtree ``name`` in the hierarchies of v1, or return why that fails.

    Each subtree is added to ``made`` as soon as it exists.
    """
    folders = {one: each.folder for each in hierarchies if each.version == "v1" for one in each.controllers}
    subtrees: dict[str, Path] = {}
    reasons: dict[str, str] = {}
    tried: list[str] = []
    for controller in sorted(USED):
        folder = folders.get(controller)
        if folder is None:
            outside = controller in folders
            reasons[controller] = (
                f"the controller `{controller}` of cgroup v1 is not mounted"
                if not outside
                else f"Prony's own group of `{controller}` is outside of the mounted part of the tree"
            )
            continue
        try:
            if folder / name not in subtrees.values():
                files.make(folder / name)
                made.append(folder / name)
            if controller == "cpuset":
                _inherit_cpus(files, folder / name)
            subtrees[controller] = folder / name
        except OSError as error:
            reasons[controller] = reason_of(error, folder / name)
            tried.append(reasons[controller])
    missing = {limit: reasons[one] for limit, one in _LIMITED_BY.items() if one in reasons}
    if len(missing) == len(_LIMITED_BY):
        # A refused attempt explains more than a missing controller.
        return NoCgroups(next(iter([*tried, *missing.values()])))
    return V1(files, subtrees, missing)


def _inherit_cpus(files: CgroupFiles, folder: Path) -> None:
    """Copy the parent's values to a new CPU set: v1 creates it empty, and no process can enter that."""
    for name in ("cpuset.mems", "cpuset.cpus"):
        value = files.read(folder.parent / name).strip()
        if not value:
            raise OSError(errno.EINVAL, f"`{folder.parent / name}` is empty")
        files.write(folder / name, value)

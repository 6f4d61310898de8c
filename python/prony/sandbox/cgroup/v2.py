"""The back end for cgroup v2: one subtree, and in it a leaf for Prony if the kernel demands that.

Below a group other than the root, controllers can be switched on only while no process is in the group itself
("no internal processes"): so Prony moves into a leaf of its subtree, and back when it closes. Without
controllers (when they are on v1) it can still kill a whole group at once and read CPU time and pressure.

*Source*: Documentation/admin-guide/cgroup-v2.rst.

>>> V2.version
'v2'
"""

import contextlib
import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

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

LEAF = "prony"
_LIMITED_BY: Mapping[LimitName, str] = {
    "cpus": "cpuset",
    "cpu_quota": "cpu",
    "memory": "memory",
    "pids": "pids",
}
_PERIOD_US = 100_000
_SWITCHES = "cgroup.subtree_control"

# This controller always exists; counters that it lacks have no file in its folder.
_SOURCES = (
    Source(
        "cpu",
        "cpu.stat",
        {
            "cpu_ns": ("usage_usec", 1000),
            "cpu_user_ns": ("user_usec", 1000),
            "cpu_system_ns": ("system_usec", 1000),
            "periods": ("nr_periods", 1),
            "throttled_periods": ("nr_throttled", 1),
            "throttled_ns": ("throttled_usec", 1000),
        },
    ),
    Source("memory", "memory.current", {"memory_current_bytes": ("", 1)}),
    Source("memory", "memory.peak", {"memory_peak_bytes": ("", 1)}),
    Source("memory", "memory.events", {"memory_limit_hits": ("max", 1), "oom_kills": ("oom_kill", 1)}),
    Source("pids", "pids.peak", {"pids_peak": ("", 1)}),
    Source("pids", "pids.events", {"pids_limit_hits": ("max", 1)}),
    Source("cpu", "cpu.pressure", {"cpu_stalled_ns": ("some.total", 1000)}),
    Source(
        "memory",
        "memory.pressure",
        {"memory_stalled_ns": ("some.total", 1000), "memory_full_stalled_ns": ("full.total", 1000)},
    ),
    Source(
        "io",
        "io.pressure",
        {"io_stalled_ns": ("some.total", 1000), "io_full_stalled_ns": ("full.total", 1000)},
    ),
)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes outside of the subtree: controllers that were switched on, Prony's move to the leaf."""

    switched_on: tuple[str, ...] = ()
    moved: bool = False
    missing: Mapping[LimitName, str] = field(default_factory=dict)


class V2:
    """Creates, limits and reads groups below Prony's subtree in the hierarchies of this version."""

    version: Final[Literal["v2"]] = "v2"

    def __init__(self, files: CgroupFiles, place: Path, changes: _Changes) -> None:
        self._files = files
        self._place = place
        self._changes = changes

    @property
    def places(self) -> tuple[Path, ...]:
        """Prony's subtree."""
        return (self._place,)

    @property
    def missing(self) -> Mapping[LimitName, str]:
        """The limits that it cannot set, with the reasons."""
        return self._changes.missing

    def create(self, name: str) -> None:
        """Make the group; OSError."""
        self._files.make(part_folder(self._place, name))

    def set_limit(self, name: str, limit: LimitName, value: int | float | tuple[int, ...]) -> None:
        """Set one limit of a group; OSError."""
        folder = part_folder(self._place, name)
        match limit, value:
            case "cpus", tuple():
                write_cpus(self._files, folder, value, effective="cpuset.cpus.effective")
            case "cpu_quota", int() | float():
                self._files.write(folder / "cpu.max", f"{round(value * _PERIOD_US)} {_PERIOD_US}")
            case "memory", int():
                self._files.write(folder / "memory.max", str(value))
                # No such file in a kernel without swap.
                with contextlib.suppress(FileNotFoundError):
                    self._files.write(folder / "memory.swap.max", "0")
            case "pids", int():
                self._files.write(folder / "pids.max", str(value))

    def read(self, name: str) -> CountersReading:
        """Return the counters of a group."""
        folder = part_folder(self._place, name)
        return read_v2(self._files, folder)

    def leave(self) -> None:
        """Switch off the controllers, and move processes in the leaf back; OSError."""
        for controller in self._changes.switched_on:
            # Another Prony in the same group may need it by now: then leave it on.
            with contextlib.suppress(OSError):
                self._files.write(self._place / _SWITCHES, f"-{controller}")
                self._files.write(self._place.parent / _SWITCHES, f"-{controller}")
        if self._changes.moved:
            _move_back(self._files, self._place)


def read_v2(files: CgroupFiles, folder: Path) -> CountersReading:
    """Return the counters of a group."""
    return read_sources(files, _SOURCES, lambda _: folder)


def open_v2(
    files: CgroupFiles, hierarchies: Iterable[Hierarchy], name: str, made: list[Path]
) -> V2 | NoCgroups:
    """Create the subtree ``name`` in the hierarchy of v2, or return why that fails.

    It is added to ``made`` as soon as it exists.
    """
    own = [one for one in hierarchies if one.version == "v2"]
    if not own:
        return NoCgroups("cgroup v2 is not mounted")
    if own[0].folder is None:
        return NoCgroups("Prony's own group of cgroup v2 is outside of the mounted part of the tree")
    place = own[0].folder / name
    try:
        files.make(place)
        made.append(place)
        changes = _take_controllers(files, place)
        if changes.moved and len(changes.missing) == len(_LIMITED_BY):
            # For nothing: other processes are in the group.
            V2(files, place, changes).leave()
            changes = _Changes(missing=changes.missing)
        return V2(files, place, changes)
    except OSError as error:
        return NoCgroups(reason_of(error, place))


def _take_controllers(files: CgroupFiles, place: Path) -> _Changes:
    """Switch on the available controllers for the subtree, and return the changes."""
    above = place.parent
    there = set(files.read(above / "cgroup.controllers").split())
    wanted = [one for one in _LIMITED_BY.values() if one in there]
    on = files.read(above / _SWITCHES).split()
    off = [one for one in wanted if one not in on]
    # Only a group other than the root has a type.
    moved = bool(off) and _has(files, above / "cgroup.type")
    if moved:
        _move_to_leaf(files, place)
    failed = _switch_on(files, above, off)
    switched_on = tuple(one for one in off if one not in failed)
    failed |= _switch_on(files, place, [one for one in wanted if one not in failed])
    missing = {
        limit: failed.get(one, f"the group that Prony was started in has no controller `{one}`")
        for limit, one in _LIMITED_BY.items()
        if one in failed or one not in there
    }
    return _Changes(switched_on, moved, missing)


def _switch_on(files: CgroupFiles, folder: Path, controllers: list[str]) -> dict[str, str]:
    """Switch on each controller, and return the reason for each failure."""
    failed = {}
    for controller in controllers:
        try:
            files.write(folder / _SWITCHES, f"+{controller}")
        except OSError as error:
            failed[controller] = _switch_reason(error, folder, controller)
    return failed


def _switch_reason(error: OSError, folder: Path, controller: str) -> str:
    match error.errno:
        case errno.EBUSY:
            return f"other processes are in the group that Prony was started in, `{folder}`"
        case errno.EACCES | errno.EPERM:
            return f"the group `{folder}` is not delegated to this user"
        case _:
            return f"cannot switch on `{controller}` in `{folder}`: {error.strerror}"


def _move_to_leaf(files: CgroupFiles, place: Path) -> None:
    files.make(place / LEAF)
    files.write(place / LEAF / "cgroup.procs", str(os.getpid()))


def _move_back(files: CgroupFiles, place: Path) -> None:
    for pid in files.read(place / LEAF / "cgroup.procs").split():
        with contextlib.suppress(ProcessLookupError):
            files.write(place.parent / "cgroup.procs", pid)
    files.remove(place / LEAF)


def _has(files: CgroupFiles, path: Path) -> bool:
    try:
        files.read(path)
    except OSError:
        return False
    return True

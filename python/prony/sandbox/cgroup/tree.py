"""Prony's own subtree of the groups in which it was started, for both versions of cgroups.

Must not know subjects, trials or plans.

>>> isinstance(open_cgroups(Path("/nowhere")), NoCgroups)
True
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from prony.errors import HostError
from prony.sandbox.cgroup.base import (
    LIMITS,
    Backend,
    CgroupTree,
    ControlGroup,
    Counters,
    LimitName,
    Limits,
    NoCgroups,
)
from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import CgroupFiles, KernelFiles
from prony.sandbox.cgroup.mark import own_mark
from prony.sandbox.cgroup.mounts import Hierarchy, find_hierarchies
from prony.sandbox.cgroup.settings import part_folder
from prony.sandbox.cgroup.sources import merge
from prony.sandbox.cgroup.v1 import USED, open_v1
from prony.sandbox.cgroup.v2 import open_v2

_HINT = "run Prony as root, or in a group of cgroup v2 that its user owns and that holds no other process"
_PROC = Path("/proc/self")
_KERNEL = KernelFiles()


def open_cgroups(proc: Path = _PROC, files: CgroupFiles = _KERNEL) -> CgroupTree | NoCgroups:
    """Return Prony's own subtree, or why there is none.

    With v2 it may move the calling process into a leaf, so call it before children are started. A controller
    that v2 lacks is looked for on v1.
    """
    try:
        hierarchies = find_hierarchies((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
        name = str(own_mark())
    except OSError as error:
        return NoCgroups(f"cannot read `{error.filename}`: {error.strerror}")
    made: list[Path] = []
    opened = _open_mounted(files, hierarchies, name, made)
    backends = [one for one in opened if not isinstance(one, NoCgroups)]
    tree = _Tree(files, backends, made)
    if backends and len(tree.missing) < len(LIMITS):
        return tree
    tree.close()
    reasons = [*tree.missing.values(), *(one.reason for one in opened if isinstance(one, NoCgroups))]
    return NoCgroups("; ".join(dict.fromkeys(reasons)) or "no cgroups are mounted", _HINT)


def _open_mounted(
    files: CgroupFiles, hierarchies: tuple[Hierarchy, ...], name: str, made: list[Path]
) -> list[Backend | NoCgroups]:
    opened: list[Backend | NoCgroups] = []
    if any(one.version == "v2" for one in hierarchies):
        v2 = open_v2(files, hierarchies, name, made)
        if not isinstance(v2, NoCgroups) and not v2.missing:
            return [v2]
        opened.append(v2)
    if any(one.controllers & USED for one in hierarchies):
        opened.append(open_v1(files, hierarchies, name, made))
    return opened


class _Tree:
    """See ``CgroupTree``."""

    def __init__(self, files: CgroupFiles, backends: list[Backend], made: list[Path]) -> None:
        self._files = files
        self._backends = backends
        self._made = made

    @property
    def version(self) -> Literal["v1", "v2", "v1 and v2"]:
        """The versions of cgroups in use."""
        return "v1 and v2" if len(self._backends) > 1 else self._backends[0].version

    @property
    def places(self) -> tuple[Path, ...]:
        """The subtree in each hierarchy."""
        return tuple(place for backend in self._backends for place in backend.places)

    @property
    def missing(self) -> Mapping[LimitName, str]:
        """The limits that cannot be set on this machine, with the reasons."""
        return {
            limit: "; ".join(dict.fromkeys(one.missing[limit] for one in self._backends))
            for limit in LIMITS
            if self._backends and all(limit in one.missing for one in self._backends)
        }

    def create(self, name: str) -> ControlGroup:
        """Create a group for one part of a trial.

        *Errors*: HostError when that fails; ValueError for an invalid name.
        """
        folders = tuple(part_folder(place, name) for place in self.places)
        try:
            for backend in self._backends:
                backend.create(name)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                remove_all(self._files, folders)
            raise HostError(f"cannot create the cgroup `{name}`: {error.strerror}") from error
        return _Group(name, self._files, self._backends, folders)

    def close(self) -> str | None:
        """Kill all processes, remove all groups and the subtree; return null, or why something is left."""
        parts = [place / name for place in self._made for name in self._parts(place)]
        kill_all(self._files, parts)
        reasons = [remove_all(self._files, parts)]
        for backend in self._backends:
            try:
                backend.leave()
            except OSError as error:
                reasons.append(f"cannot leave the cgroup `{backend.places[0]}`: {error.strerror}")
        reasons.append(remove_all(self._files, self._made))
        return "; ".join(filter(None, reasons)) or None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _parts(self, place: Path) -> list[str]:
        # Prony's leaf is not one of them: processes in it are moved back, not killed.
        with contextlib.suppress(OSError):
            return [name for name in self._files.folders(place) if name.startswith("part-")]
        return []


class _Group:
    """See ``Group``."""

    def __init__(
        self, name: str, files: CgroupFiles, backends: list[Backend], folders: tuple[Path, ...]
    ) -> None:
        self.name = name
        self._files = files
        self._backends = backends
        self._folders = folders

    @property
    def join_paths(self) -> tuple[str, ...]:
        """The files into which a process writes ``0`` to enter: see ``join.join``."""
        return tuple(str(folder / "cgroup.procs") for folder in self._folders)

    def set_limits(self, limits: Limits) -> Mapping[LimitName, str]:
        """Set the given limits, and return the reason for each limit that could not be set."""
        refused: dict[LimitName, str] = {}
        for limit, value in limits.asked().items():
            backend = next((one for one in self._backends if limit not in one.missing), None)
            if backend is None:
                refused[limit] = "; ".join(dict.fromkeys(one.missing[limit] for one in self._backends))
                continue
            try:
                backend.set_limit(self.name, limit, value)
            except OSError as error:
                refused[limit] = f"the kernel refused `{value}`: {error.strerror}"
        return refused

    def members(self) -> tuple[int, ...]:
        """Return the processes in it, with their PIDs in this namespace."""
        return members(self._files, self._folders)

    def counters(self) -> Counters:
        """Return the kernel's counters of it."""
        return merge([backend.read(self.name) for backend in self._backends])

    def kill(self) -> int:
        """Kill all processes in it, and return how many there were."""
        return kill_all(self._files, self._folders)

    def remove(self) -> str | None:
        """Kill all processes in it and remove it; return null, or why it still exists."""
        self.kill()
        return remove_all(self._files, self._folders)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self.remove()

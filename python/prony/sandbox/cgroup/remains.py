"""Removes the subtrees that killed Pronys have left: by the mark in their names, and nothing else.

A Prony may have been started in any group, so it searches all mounted hierarchies. Must not know how groups
are created.

>>> Cleared("prony-1").processes_killed
0
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import CgroupFiles, KernelFiles
from prony.sandbox.cgroup.mark import parse_mark
from prony.sandbox.cgroup.mounts import find_hierarchies

_PROC = Path("/proc/self")
_KERNEL = KernelFiles()


@dataclass(frozen=True, slots=True)
class Cleared:
    """A subtree whose Prony is gone, and what was done about it. ``kept``: why it still exists."""

    name: str
    processes_killed: int = 0
    kept: str | None = None


def clear_subtrees(proc: Path = _PROC, files: CgroupFiles = _KERNEL) -> list[Cleared]:
    """Kill all processes in the subtrees of Pronys that are gone, remove the subtrees, and report them.

    A subtree of a living Prony, of another user, PID namespace or boot is left alone.
    """
    try:
        hierarchies = find_hierarchies((proc / "mountinfo").read_text(), (proc / "cgroup").read_text())
    except OSError:
        return []
    found: dict[str, list[Path]] = {}
    for mount in dict.fromkeys(one.mount for one in hierarchies):
        for place in _subtrees(files, mount):
            found.setdefault(place.name, []).append(place)
    cleared = (_clear(files, name, places) for name, places in sorted(found.items()))
    return [one for one in cleared if one is not None]


def _subtrees(files: CgroupFiles, top: Path) -> Iterator[Path]:
    """Yield the subtrees below a group; one inside of another belongs to the outer one."""
    try:
        names = files.folders(top)
    except OSError:
        return
    for name in names:
        if parse_mark(name) is not None:
            yield top / name
        else:
            yield from _subtrees(files, top / name)


def _clear(files: CgroupFiles, name: str, places: Iterable[Path]) -> Cleared | None:
    mark = parse_mark(name)
    own = [place for place in places if _is_ours(files, place)]
    if mark is None or not mark.is_gone() or not own:
        return None
    if os.getpid() in members(files, own):
        return Cleared(name, kept="this Prony was started in it")
    killed = kill_all(files, own)
    return Cleared(name, killed, remove_all(files, own))


def _is_ours(files: CgroupFiles, place: Path) -> bool:
    try:
        return files.owner(place) == os.geteuid()
    except OSError:
        return False

"""Cleans up what killed Pronys have left on this machine: stops and removes it, and reports that.

Processes and folders are found by the journal, control groups and containers by their marks; nothing else is
touched. Must not know who receives the report.

>>> clear_groups.__name__
'clear_groups'

A Prony may have been started in any group, so all mounted hierarchies are searched.

>>> Cleared("prony-1").processes_killed
0
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.errors import HostError
from prony.runas import RunAs
from prony.sandbox import journal
from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import CgroupFiles, KernelFiles, parse_mark
from prony.sandbox.cgroup.mounts import find_hierarchies
from prony.sandbox.containers.engine import working_engines


def clear_containers() -> list[str]:
    """Remove the containers of Pronys that are gone, and return what was done, in words."""
    told: list[str] = []
    # Only a Prony of root creates containers.
    for engine in working_engines() if os.geteuid() == 0 else ():
        # An engine that is not running has no running containers.
        with contextlib.suppress(HostError):
            for container, label in engine.containers().items():
                mark = parse_mark(label)
                if mark is not None and mark.is_gone():
                    kept = engine.remove(container)
                    told.append(
                        f"the container {container[:12]} is left alone: {kept}"
                        if kept
                        else f"removed a container of {engine.name} that a killed Prony had left"
                    )
    return told


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
    waiting = [top]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            below = [place / name for name in files.folders(place)]
            yield from (one for one in below if parse_mark(one.name) is not None)
            waiting += [one for one in below if parse_mark(one.name) is None]


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


def clear_and_report(user: RunAs, tell: Callable[[str], None]) -> None:
    """Stop and remove all that dead Pronys have left; report what ran and what could not be removed."""
    for one in journal.clear_remains(user):
        if one.kept:
            tell(f"the remains of run {one.run} are left alone: {one.kept}")
        elif one.processes_ended:
            tell(f"killed {one.processes_ended} processes that run {one.run} had left")
    for told in clear_groups():
        tell(told)


def clear_groups() -> list[str]:
    """Remove containers and control groups of dead Pronys, and return what was done, in words."""
    return [*clear_containers(), *(_words(one) for one in clear_subtrees())]


def _words(cleared: Cleared) -> str:
    if cleared.kept:
        return f"the control groups `{cleared.name}` are left alone: {cleared.kept}"
    ended = f", with {cleared.processes_killed} processes" if cleared.processes_killed else ""
    return f"removed control groups that a killed Prony had left{ended}"

"""Empties and removes groups: kills all processes in them, then removes them, and touches nothing else.

Works only on folders of Prony's subtrees, of either version.

>>> is_inside_a_subtree(Path("/sys/fs/cgroup/user.slice"))
False
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from prony.sandbox.cgroup.files import CgroupFiles, is_inside_a_subtree
from prony.sandbox.identity import Identity, end_process, identities_of

_KILL_TIMEOUT_S = 10.0
# A group becomes empty a moment after its last process is killed.
_REMOVE_TIMEOUT_S = 2.0
_PAUSE_S = 0.005


def members(files: CgroupFiles, folders: Iterable[Path]) -> tuple[int, ...]:
    """Return the processes in these groups and below; 0 stands for one of another PID namespace."""
    found: set[int] = set()
    for folder in _with_all_below(files, folders):
        with contextlib.suppress(OSError):
            found.update(map(int, files.read(folder / "cgroup.procs").split()))
    return tuple(sorted(found))


def kill_all(files: CgroupFiles, folders: Iterable[Path]) -> int:
    """Kill all processes in these groups and below, and return how many there were.

    *Errors*: ValueError for a group that is not Prony's.
    """
    own = _require_own(folders)
    killed = set(_others(members(files, own)))
    if not killed:
        return 0
    for folder in own:
        # One write kills all, without a race against forks (Linux 5.14); older kernels lack the file.
        _try_write(files, folder / "cgroup.kill", "1")
    deadline_s = time.monotonic() + _KILL_TIMEOUT_S
    while (left := _others(members(files, own))) and time.monotonic() < deadline_s:
        killed.update(left)
        time.sleep(_PAUSE_S)
        killed.update(_kill_frozen(files, own))
    return len(killed)


def remove_all(files: CgroupFiles, folders: Iterable[Path]) -> str | None:
    """Remove these groups and those below; return None when they are gone, else why not.

    *Errors*: ValueError for a group that is not Prony's.
    """
    own = _require_own(folders)
    deadline_s = time.monotonic() + _REMOVE_TIMEOUT_S
    while True:
        reasons = [reason for folder in own if (reason := _remove_tree(files, folder))]
        if not reasons:
            return None
        if time.monotonic() > deadline_s:
            inside = ", ".join(map(str, members(files, own)))
            return "; ".join(reasons) + (f"; processes in it: {inside}" if inside else "")
        time.sleep(_PAUSE_S)


def _require_own(folders: Iterable[Path]) -> tuple[Path, ...]:
    own = tuple(folders)
    for folder in own:
        if not is_inside_a_subtree(folder):
            raise ValueError(f"the cgroup `{folder}` is not Prony's")
    return own


def _others(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if pid != os.getpid()]


def _kill_frozen(files: CgroupFiles, folders: tuple[Path, ...]) -> list[int]:
    """Kill each member while the group is frozen, so that none can fork, exit or be replaced."""
    _freeze(files, folders)
    try:
        # 0 is not a PID but means "not in this PID namespace": kill(0) would hit Prony's own process group.
        found = identities_of(pid for pid in _others(members(files, folders)) if pid > 0)
        # If the PID is in the group now and was when it was identified, it is still the same process.
        still = set(members(files, folders))
        return [one.pid for one in found if one.pid in still and _end(one)]
    finally:
        _thaw(files, folders)


def _end(target: Identity) -> bool:
    try:
        return end_process(target)
    except PermissionError:
        return False


def _freeze(files: CgroupFiles, folders: tuple[Path, ...]) -> None:
    for folder in folders:
        _try_write(files, folder / "freezer.state", "FROZEN")
        _try_write(files, folder / "cgroup.freeze", "1")


def _thaw(files: CgroupFiles, folders: tuple[Path, ...]) -> None:
    # On v1 a frozen process dies when it is thawed.
    for folder in folders:
        _try_write(files, folder / "freezer.state", "THAWED")
        _try_write(files, folder / "cgroup.freeze", "0")


def _try_write(files: CgroupFiles, path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        files.write(path, text)


def _remove_tree(files: CgroupFiles, top: Path) -> str | None:
    reason = None
    # Descendants first.
    for folder in reversed(list(_with_all_below(files, [top]))):
        try:
            files.remove(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"cannot remove the cgroup `{folder}`: {error.strerror}"
    return reason


def _with_all_below(files: CgroupFiles, tops: Iterable[Path]) -> Iterator[Path]:
    # A subject with groups of its own may make them as deep as it likes.
    waiting = [*tops]
    while waiting:
        top = waiting.pop()
        yield top
        with contextlib.suppress(OSError):
            waiting += [top / name for name in files.folders(top)]

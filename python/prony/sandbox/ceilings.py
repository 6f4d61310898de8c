"""Ceilings: limits that nobody asked for, so that no subject can exhaust the machine.

They are so high that no figure of a healthy subject depends on them.

>>> PIDS
4096
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from prony.core.units import GIB
from prony.model.sandbox import Ceiling, LimitHolding, LimitState, SandboxChoice
from prony.sandbox.cgroup.types import LimitName

PIDS = 4096
"""Processes and threads of one process of a subject and its descendants."""

_MEMORY_SHARE = 0.8
_MOST_DISK_BYTES = 8 * GIB
_MOST_DISK_FILES = 200_000


def memory_bytes() -> int:
    """Return how much memory one process of a subject and its descendants may use: 80 % of the machine's."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * _MEMORY_SHARE)


def disk_bytes(folder: Path) -> int:
    """Return how large a trial's folder may become: 8 GiB, or half of what is free there."""
    found = _file_system(folder)
    return min(_MOST_DISK_BYTES, found.f_bavail * found.f_frsize // 2)


def disk_files(folder: Path) -> int:
    """Return of how many files and folders a trial's folder may consist: 200,000, or half of what is free."""
    found = _file_system(folder)
    # Where a file system counts none it has always room for one more, if it has space.
    return min(_MOST_DISK_FILES, found.f_favail // 2) if found.f_files else _MOST_DISK_FILES


def _file_system(folder: Path) -> os.statvfs_result:
    return os.statvfs(next(one for one in (folder, *folder.parents) if one.exists()))


def pids_of_user(uid: int, most: int = PIDS) -> int:
    """Return the ceiling where the kernel counts all processes and threads of a user (RLIMIT_NPROC).

    Those that the user has already come on top: else a busy desktop would end a server, and Prony would call
    it the server's fault.
    """
    return most + sum(_tasks(folder, uid) for folder in Path("/proc").glob("[0-9]*"))


def _tasks(folder: Path, uid: int) -> int:
    with contextlib.suppress(OSError):
        if folder.stat().st_uid == uid:
            return len(list((folder / "task").iterdir()))
    return 0


def with_ceilings(choice: SandboxChoice) -> SandboxChoice:
    """Return a choice of limits with a ceiling where it has none.

    >>> with_ceilings(SandboxChoice(memory_bytes=5)).memory_bytes, with_ceilings(SandboxChoice()).pids
    (5, 4096)
    """
    return replace(
        choice,
        memory_bytes=memory_bytes() if choice.memory_bytes is None else choice.memory_bytes,
        pids=PIDS if choice.pids is None else choice.pids,
    )


def ceilings(
    choice: SandboxChoice, folder: Path, states: Mapping[LimitName, LimitState]
) -> Mapping[str, Ceiling]:
    """Return the limits that ``choice`` leaves to Prony; ``states``: how far limits hold, by name."""
    watched = "the supervisor looks ten times a second, and ends what has outgrown it"
    found = {"disk": Ceiling(disk_bytes(folder), LimitHolding.ENFORCED, watched)}
    own: dict[LimitName, int | None] = {
        "memory": memory_bytes() if choice.memory_bytes is None else None,
        "pids": PIDS if choice.pids is None else None,
    }
    for name, at in own.items():
        if at is not None and name in states:
            found[name] = Ceiling(at, states[name].holding, states[name].reason)
    return found

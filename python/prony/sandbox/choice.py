"""Which kind of sandbox to use: what the user wants, compared with what this machine offers.

Pure: the caller passes in what is available.

>>> choose(Wish(), Available()).choice.kind
<SandboxKind.CGROUP: 'cgroup'>
>>> choose(Wish(), Available({SandboxKind.CGROUP: Absent("no cgroups are mounted")})).choice.kind
<SandboxKind.PROCESS: 'process'>

>>> gain_namespaces.__name__
'gain_namespaces'

Ceilings: limits that nobody asked for, so that no subject can exhaust the machine.

They are so high that no figure of a healthy subject depends on them.

>>> PIDS
4096
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.core.errors import HostError, UsageError, explained
from prony.core.units import GIB
from prony.model.sandbox import Ceiling, LimitHolding, LimitState, SandboxChoice, SandboxKind
from prony.sandbox import linux
from prony.sandbox.cgroup.types import LimitName

# What `auto` may choose. Not `container`: it needs an engine that runs as a service, and hides the host's
# files.
STRONGEST_FIRST: tuple[SandboxKind, ...] = (SandboxKind.CGROUP, SandboxKind.PROCESS)
_NAMES: Mapping[SandboxKind, str] = {
    SandboxKind.PROCESS: "CPUs by affinity",
    SandboxKind.CGROUP: "control groups",
    SandboxKind.CONTAINER: "containers",
}


@dataclass(frozen=True, slots=True)
class Absent:
    """Why a kind of sandbox is unavailable on this machine. ``hint``: how to get it."""

    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Available:
    """What this machine offers. ``absent``: the unavailable kinds; ``missing``: limits that its control
    groups cannot set, with the reasons.
    """

    absent: Mapping[SandboxKind, Absent] = field(default_factory=dict)
    missing: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user wants. ``kind`` null: the strongest available one. ``choice`` has everything except the
    kind; ``typed``: the limits that the user set and that therefore must hold, each as typed, such as
    ``--memory 512M``.
    """

    kind: SandboxKind | None = None
    choice: SandboxChoice = SandboxChoice()
    typed: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The result. ``reasons``: why nothing stronger was chosen; ``required``: the limits that must hold."""

    choice: SandboxChoice = SandboxChoice()
    reasons: tuple[str, ...] = ()
    required: frozenset[LimitName] = frozenset()


def choose(wish: Wish, available: Available) -> Chosen:
    """Return the sandbox of the wanted kind; by default the strongest available one.

    *Errors*: HostError for a kind, or a limit set by the user, that is unavailable on this machine;
    UsageError for a limit that the wanted kind never enforces.
    """
    kind = wish.kind or _strongest(available)
    if kind in available.absent:
        absent = available.absent[kind]
        raise HostError(
            f"`--sandbox {kind}` is not available, no {_NAMES[kind]}: {absent.reason}", absent.hint
        )
    _refuse_what_cannot_hold(wish, kind, available)
    stronger = STRONGEST_FIRST[: STRONGEST_FIRST.index(kind)] if wish.kind is None else ()
    reasons = tuple(f"no {_NAMES[one]} here: {available.absent[one].reason}" for one in stronger)
    return Chosen(replace(wish.choice, kind=kind), reasons, frozenset(wish.typed))


def _strongest(available: Available) -> SandboxKind:
    return next(kind for kind in STRONGEST_FIRST if kind not in available.absent)


def _refuse_what_cannot_hold(wish: Wish, kind: SandboxKind, available: Available) -> None:
    for limit, typed in wish.typed.items():
        if wish.kind is SandboxKind.PROCESS:
            raise UsageError(
                f"`{typed}`: the sandbox `process` cannot enforce limits; expected `cgroup` or `container`",
                hint=f"leave out `--sandbox process` or `{typed.split()[0]}`",
            )
        absent, reason = None, None
        if kind is SandboxKind.PROCESS:
            absent = available.absent.get(SandboxKind.CGROUP, Absent(""))
            reason = absent.reason
        elif kind is SandboxKind.CGROUP:
            reason = available.missing.get(limit)
        if reason:
            raise HostError(f"`{typed}` cannot be enforced here: {reason}", absent.hint if absent else None)


# --- how a Prony of an ordinary user gets namespaces for its subjects -------------------------------------


def gain_namespaces() -> None:
    """Move this process, unless root runs it, into a user namespace of its own, if the kernel allows that.

    Only there may its threads enter the networks of its subjects. Call it before any thread is started; if it
    fails, nothing changes, and the sandbox's facts have the reason.

    *Errors*: HostError as `can_isolate_networks`.
    """
    if not can_isolate_networks():
        with contextlib.suppress(OSError):
            linux.own_users()


@explained("cannot read the privileges of this process", "Prony measures only where /proc is mounted")
def can_isolate_networks() -> bool:
    """Return whether this process may enter the network namespaces that its supervisors create.

    *Errors*: HostError where the kernel shows no privileges.
    """
    return linux.may_enter_networks()


# --- limits that nobody asked for -------------------------------------------------------------------------


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

"""Which kind of sandbox is taken: what the user wants, held against what this machine has.

Pure: what there is, is passed in. Must not know how a sandbox is made.

>>> choose(Wish(), Available()).choice.kind
<SandboxKind.CGROUP: 'cgroup'>
>>> choose(Wish(), Available({SandboxKind.CGROUP: Absent("no cgroups are mounted")})).choice.kind
<SandboxKind.PROCESS: 'process'>
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from prony.errors import HostError, UsageError
from prony.model import SandboxChoice, SandboxKind
from prony.sandbox.cgroup.base import LimitName

__all__ = ["STRONGEST_FIRST", "Absent", "Available", "Chosen", "Wish", "choose"]

# What `auto` may take. Not `container`: its engine is another's service, and it closes the host's files.
STRONGEST_FIRST: tuple[SandboxKind, ...] = (SandboxKind.CGROUP, SandboxKind.PROCESS)
_NAMES: Mapping[SandboxKind, str] = {
    SandboxKind.PROCESS: "CPUs by affinity",
    SandboxKind.CGROUP: "control groups",
    SandboxKind.CONTAINER: "containers",
}


@dataclass(frozen=True, slots=True)
class Absent:
    """Why a kind of sandbox cannot be had here. ``hint``: what to type to have it."""

    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Available:
    """What this machine has. ``absent``: the kinds that it has not; ``missing``: limits that its control
    groups cannot set, with the reasons.
    """

    absent: Mapping[SandboxKind, Absent] = field(default_factory=dict)
    missing: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. ``kind`` null: the strongest that can be had. ``choice`` has all but the kind;
    ``typed``: the limits that the user has named and that therefore must hold, each as it was typed, such
    as ``--memory 512M``.
    """

    kind: SandboxKind | None = None
    choice: SandboxChoice = SandboxChoice()
    typed: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is taken. ``reasons``: why nothing stronger; ``required``: the limits that must hold."""

    choice: SandboxChoice = SandboxChoice()
    reasons: tuple[str, ...] = ()
    required: frozenset[LimitName] = frozenset()


def choose(wish: Wish, available: Available) -> Chosen:
    """Return the sandbox of the wanted kind, by default the strongest that can be had.

    *Errors*: HostError for a kind, or a limit that was typed, that cannot be had here; UsageError for a limit
    that the wanted kind never holds.
    """
    kind = wish.kind or _strongest(available)
    if kind in available.absent:
        absent = available.absent[kind]
        raise HostError(f"there are no {_NAMES[kind]} for `--sandbox {kind}`: {absent.reason}", absent.hint)
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
                f"`{typed}`: the sandbox `process` holds no limits; expected `cgroup` or `container`",
                hint=f"leave --sandbox process out, or {typed.split()[0]}",
            )
        absent, reason = None, None
        if kind is SandboxKind.PROCESS:
            absent = available.absent.get(SandboxKind.CGROUP, Absent(""))
            reason = absent.reason
        elif kind is SandboxKind.CGROUP:
            reason = available.missing.get(limit)
        if reason:
            raise HostError(f"`{typed}` cannot be enforced here: {reason}", absent.hint if absent else None)

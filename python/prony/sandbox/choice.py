"""Which kind of sandbox is taken: what the user wants, held against what this machine has.

Pure: what there is, is passed in. Must not know how a sandbox is made.

>>> choose(Wish(), Available()).choice.kind
'cgroup'
>>> choose(Wish(), Available({"cgroup": Absent("no cgroups are mounted")})).choice.kind
'process'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from prony.errors import HostError, UsageError
from prony.model import SandboxChoice
from prony.sandbox.cgroup.base import LimitName

__all__ = ["STRONGEST_FIRST", "Absent", "Available", "Chosen", "Kind", "Wish", "choose"]

Kind = Literal["process", "cgroup", "container"]
# What `auto` may take. Not `container`: its engine is another's service, and it closes the host's files.
STRONGEST_FIRST: tuple[Kind, ...] = ("cgroup", "process")
_NAMES: Mapping[Kind, str] = {
    "process": "CPUs by affinity",
    "cgroup": "control groups",
    "container": "containers",
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

    absent: Mapping[Kind, Absent] = field(default_factory=dict)
    missing: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. ``choice`` has all but the kind; ``typed``: the limits that the user has named and
    that therefore must hold, each as it was typed, such as ``--memory 512M``.
    """

    kind: Kind | Literal["auto"] = "auto"
    choice: SandboxChoice = SandboxChoice()
    typed: Mapping[LimitName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is taken. ``reasons``: why nothing stronger; ``required``: the limits that must hold."""

    choice: SandboxChoice = SandboxChoice()
    reasons: tuple[str, ...] = ()
    required: frozenset[LimitName] = frozenset()


def choose(wish: Wish, available: Available) -> Chosen:
    """Return the sandbox of the wanted kind, for ``auto`` the strongest that can be had.

    *Errors*: HostError for a kind, or a limit that was typed, that cannot be had here; UsageError for a limit
    that the wanted kind never holds.
    """
    kind = _strongest(available) if wish.kind == "auto" else wish.kind
    if kind in available.absent:
        absent = available.absent[kind]
        raise HostError(f"there are no {_NAMES[kind]} for `--sandbox {kind}`: {absent.reason}", absent.hint)
    _refuse_what_cannot_hold(wish, kind, available)
    stronger = STRONGEST_FIRST[: STRONGEST_FIRST.index(kind)] if wish.kind == "auto" else ()
    reasons = tuple(f"no {_NAMES[one]} here: {available.absent[one].reason}" for one in stronger)
    return Chosen(replace(wish.choice, kind=kind), reasons, frozenset(wish.typed))


def _strongest(available: Available) -> Kind:
    return next(kind for kind in STRONGEST_FIRST if kind not in available.absent)


def _refuse_what_cannot_hold(wish: Wish, kind: Kind, available: Available) -> None:
    for limit, typed in wish.typed.items():
        if wish.kind == "process":
            raise UsageError(
                f"`{typed}`: the sandbox `process` holds no limits; expected `cgroup` or `container`",
                hint=f"leave --sandbox process out, or {typed.split()[0]}",
            )
        absent = available.absent.get("cgroup", Absent("")) if kind == "process" else None
        reason = absent.reason if absent else available.missing.get(limit) if kind == "cgroup" else None
        if reason:
            raise HostError(f"`{typed}` cannot be enforced here: {reason}", absent.hint if absent else None)

"""The classes of the account by kind, as the engine names them: how a request with this end counts.

>>> kind_of("timed_out"), kind_of("reset")
(<ClassKind.UNANSWERED: 'unanswered'>, <ClassKind.BROKEN: 'broken'>)
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from prony.model.recording import Account

__all__ = [
    "ClassKind",
    "RequestClass",
    "Tally",
    "answered",
    "classes",
    "counts_by_class",
    "ending_named",
    "failed",
    "kind_of",
    "sent_and_failed",
    "tally",
    "together",
]

_BAD_STATUS = "bad_status"


class ClassKind(StrEnum):
    """What all requests of a class have in common (crates/prony-engine/src/account.rs).

    ``OTHER_REPLY``: answered, with another status or body. ``BROKEN``: sent, and no complete reply came.
    ``UNCONNECTED``: there was no connection to send it on. ``UNANSWERED``: its age is a lower bound of its
    latency. ``CLIENT``: the generator could not send it. ``UNSPECIFIED``: the generator does not report how
    it failed.
    """

    OK = "ok"
    OTHER_REPLY = "other reply"
    BROKEN = "broken"
    UNCONNECTED = "unconnected"
    UNANSWERED = "unanswered"
    CLIENT = "client"
    UNSPECIFIED = "unspecified"


_ANSWERED = (ClassKind.OK, ClassKind.OTHER_REPLY)
_SENT_AND_FAILED = (ClassKind.OTHER_REPLY, ClassKind.BROKEN)
_NOT_FAILED = (ClassKind.OK, ClassKind.UNANSWERED)


@cache
def classes() -> Mapping[str, ClassKind]:
    """Return every class that an account may have, in the engine's order."""
    # Loaded where it is used: most importers of this module need no class.
    from prony._engine import CLASSES

    return MappingProxyType({name: ClassKind(kind) for name, kind in CLASSES})


def kind_of(name: str) -> ClassKind:
    """Return the kind of a class; a class that this Prony does not know is an unspecified failure."""
    return classes().get(name, ClassKind.UNSPECIFIED)


def counts_by_class(account: Account) -> dict[str, int]:
    """Return how many requests ended in each class, in the engine's order, then those of later versions."""
    names = dict.fromkeys((*classes(), *account.others))
    return {name: account.count(name) for name in names}


def answered(account: Account) -> int:
    """Return how many requests got a complete reply, valid or not."""
    return sum(count for name, count in counts_by_class(account).items() if kind_of(name) in _ANSWERED)


def failed(account: Account) -> int:
    """Return how many requests failed, whether they were sent or not: infinite latencies of all requests."""
    return sum(count for name, count in counts_by_class(account).items() if kind_of(name) not in _NOT_FAILED)


def sent_and_failed(account: Account) -> int:
    """Return how many requests reached the server and failed."""
    return sum(count for name, count in counts_by_class(account).items() if kind_of(name) in _SENT_AND_FAILED)


# --- of several trials ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestClass:
    """How requests ended: a class of the account; of replies with another status, with that ``status`` as its
    generator names it.
    """

    name: str
    status: str | None = None

    @property
    def key(self) -> str:
        """Its name in JSON and in studies' claims.

        >>> RequestClass("bad_status", "503").key, RequestClass("reset").key
        ('bad_status 503', 'reset')
        """
        return self.name if self.status is None else f"{self.name} {self.status}"

    def includes(self, other: "RequestClass") -> bool:
        """Return whether ``other`` is this, or a status of this.

        >>> RequestClass("bad_status").includes(RequestClass("bad_status", "503"))
        True
        """
        return self.name == other.name and self.status in (None, other.status)


def ending_named(key: str) -> RequestClass:
    """Return what a claim names by its key.

    >>> ending_named("bad_status 503"), ending_named("reset")
    (RequestClass(name='bad_status', status='503'), RequestClass(name='reset', status=None))
    """
    name, _, status = key.partition(" ")
    return RequestClass(name, status) if name == _BAD_STATUS and status else RequestClass(key)


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests of one or of several trials: ``scheduled`` is the sum of ``ok`` and of ``failed``, in which no
    count is 0.
    """

    scheduled: int = 0
    ok: int = 0
    failed: Mapping[RequestClass, int] = field(default_factory=dict)

    @property
    def by_key(self) -> dict[str, int]:
        """The counts by key; empty where nothing was scheduled."""
        own = {ending.key: count for ending, count in self.failed.items()}
        return {"scheduled": self.scheduled, "ok": self.ok, **own} if self.scheduled else {}


def tally(account: Account) -> Tally:
    """Return the requests of an account by how they ended."""
    apart = ("ok", _BAD_STATUS)
    counts = {
        RequestClass(name): count for name, count in counts_by_class(account).items() if name not in apart
    }
    counts |= {RequestClass(_BAD_STATUS, code): count for code, count in account.bad_status.items()}
    return Tally(account.scheduled, account.ok, {one: count for one, count in counts.items() if count})


def together(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies."""
    scheduled = ok = 0
    failed: Counter[RequestClass] = Counter()
    for one in tallies:
        scheduled, ok = scheduled + one.scheduled, ok + one.ok
        failed.update(one.failed)
    return Tally(scheduled, ok, dict(failed))

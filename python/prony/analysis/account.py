"""The classes of the account by kind, as the engine names them: how a request with this end counts.

>>> kind_of("timed_out"), kind_of("reset")
(<ClassKind.UNANSWERED: 'unanswered'>, <ClassKind.BROKEN: 'broken'>)
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from prony.model.recording import Account

__all__ = ["ClassKind", "answered", "classes", "counts_by_class", "failed", "kind_of", "sent_and_failed"]


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

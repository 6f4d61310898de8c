"""The classes of the account by kind, as the engine names them: how a request with this end counts.

>>> kind_of("timed_out"), kind_of("reset")
(<ClassKind.UNANSWERED: 'unanswered'>, <ClassKind.BROKEN: 'broken'>)

Rates and ratios of a Recording. The denominator of every rate is the window.

The share of errors and the rate of errors are of one account, so that no page has two answers: all requests
of the window, and those that it found open.

>>> is_speed("ok_per_s"), is_speed("error_ratio")
(True, False)
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from prony.core.metrics import METRICS, Unit
from prony.core.units import SECOND_NS
from prony.model.recording import Account, CarriedIn, Recording
from prony.model.shown import INTERNAL, shown, shown_as

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
    """Return the kind of a class; any other is an unspecified failure."""
    return classes().get(name, ClassKind.UNSPECIFIED)


def counts_by_class(account: Account) -> dict[str, int]:
    """Return how many requests ended in each class, in the engine's order, then any others."""
    names = dict.fromkeys((*classes(), *account.others))
    return {name: account.count(name) for name in names}


def answered(account: Account) -> int:
    """Return how many requests of the window got a complete reply, valid or not."""
    return sum(count for name, count in counts_by_class(account).items() if kind_of(name) in _ANSWERED)


def failed(account: Account) -> int:
    """Return how many requests failed, whether they were sent or not: infinite latencies of all requests."""
    own = sum(count for name, count in counts_by_class(account).items() if kind_of(name) not in _NOT_FAILED)
    return own + sum(_carried_and_failed(account).values())


def sent_and_failed(account: Account) -> int:
    """Return how many requests reached the server and failed."""
    counts = (*counts_by_class(account).items(), *_carried_and_failed(account).items())
    return sum(count for key, count in counts if kind_of(ending_named(key).name) in _SENT_AND_FAILED)


def without_own_failures(account: Account) -> Account:
    """Return the account without those requests of the window that the generator itself could not send."""
    own = {name: count or 0 for name, count in account.others.items() if kind_of(name) is ClassKind.CLIENT}
    kept = {name: count for name, count in account.others.items() if name not in own}
    return replace(account, scheduled=account.scheduled - sum(own.values()), others=kept)


def _carried_and_failed(account: Account) -> Mapping[str, int]:
    return account.carried_in.failed if account.carried_in else {}


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
class Carried:
    """Requests that windows found open, and how many of them ended how."""

    requests: int = 0
    answered: int = 0
    failed: int = 0
    unanswered: int = 0

    def __add__(self, other: "Carried") -> "Carried":
        return Carried(
            self.requests + other.requests,
            self.answered + other.answered,
            self.failed + other.failed,
            self.unanswered + other.unanswered,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """All requests of one or of several trials: ``scheduled`` and ``carried_in`` are together the sum of
    ``ok`` and of ``failed``, in which no count is 0. ``carried_in`` null: the generator does not report them.
    """

    scheduled: int = field(default=0, metadata=INTERNAL)
    ok: int = field(default=0, metadata=INTERNAL)
    failed: Mapping[RequestClass, int] = field(default_factory=dict, metadata=INTERNAL)
    carried_in: Carried | None = None
    """Requests that windows found open; null where the generator does not report them."""
    carried_failed: Mapping[RequestClass, int] = field(default_factory=dict, metadata=INTERNAL)
    """How many of `failed` were carried in."""
    ok_status: Mapping[str, int] = field(default_factory=dict)
    """Valid replies by status code; empty where the generator does not report them."""

    @shown
    def requests(self) -> int:
        """All requests: the denominator of every share."""
        return self.scheduled + (self.carried_in.requests if self.carried_in else 0)

    @shown_as("errors")
    def lost(self) -> int:
        """Those without a valid reply."""
        return self.requests - self.ok

    @property
    def error_ratio(self) -> float | None:
        """The share of those without a valid reply; None where there were no requests."""
        return self.lost / self.requests if self.requests else None

    @shown_as("account")
    def by_key(self) -> dict[str, int | None]:
        """The counts by key; empty where there were no requests."""
        own = {ending.key: count for ending, count in self.failed.items()}
        carried = self.carried_in.requests if self.carried_in else None
        whole = {"scheduled": self.scheduled, "carried_in": carried, "ok": self.ok}
        return {**whole, **own} if self.requests else {}


def tally(account: Account) -> Tally:
    """Return the requests of an account by how they ended."""
    apart = ("ok", _BAD_STATUS)
    counts: Counter[RequestClass] = Counter(
        {RequestClass(name): count for name, count in counts_by_class(account).items() if name not in apart}
    )
    counts.update({RequestClass(_BAD_STATUS, code): count for code, count in account.bad_status.items()})
    ok, carried = account.ok, account.carried_in
    lost: Counter[RequestClass] = Counter()
    if carried:
        ok += carried.answered
        for kind in (carried.failed, carried.unanswered):
            lost.update({ending_named(key): count for key, count in kind.items()})
    counts.update(lost)
    failed, carried_failed = ({one: count for one, count in each.items() if count} for each in (counts, lost))
    carried_in = _carried(carried) if carried else None
    return Tally(account.scheduled, ok, failed, carried_in, carried_failed, account.valid_by_status)


def are_redirects(by_status: Mapping[str, int]) -> bool:
    """Return whether most replies lead elsewhere; 304 leads nowhere: the page has not changed.

    >>> are_redirects({"200": 5, "302": 6}), are_redirects({"200": 5, "304": 6})
    (True, False)
    """
    found = (count for status, count in by_status.items() if status.startswith("3") and status != "304")
    return 2 * sum(found) > sum(by_status.values())


def _carried(found: CarriedIn) -> Carried:
    failed, unanswered = sum(found.failed.values()), sum(found.unanswered.values())
    return Carried(found.requests, found.answered, failed, unanswered)


def together(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies."""
    scheduled = ok = 0
    carried: Carried | None = None
    failed: Counter[RequestClass] = Counter()
    lost: Counter[RequestClass] = Counter()
    statuses: Counter[str] = Counter()
    for one in tallies:
        scheduled, ok = scheduled + one.scheduled, ok + one.ok
        statuses.update(one.ok_status)
        failed.update(one.failed)
        lost.update(one.carried_failed)
        if one.carried_in:
            carried = one.carried_in + (carried or Carried())
    return Tally(scheduled, ok, dict(failed), carried, dict(lost), dict(sorted(statuses.items())))


# --- rates and ratios of a Recording ----------------------------------------------------------------------


QUALIFIED_ERROR_RATIO = 0.001
"""The largest error ratio with which a speed figure may be compared: beyond it, speed describes only the
successes.
"""


def is_speed(metric: str) -> bool:
    """Return whether a metric measures how fast a server is. It is not compared for a server that loses
    requests, and not given for one whose trials fail.
    """
    return METRICS[metric].unit in (Unit.RATE, Unit.DURATION) and metric != "error_per_s"


KEPT_RATE = 0.99
"""The least share of what was due that was sent in time where a rate was kept."""


def keeps_rate(recording: Recording) -> bool:
    """Return whether what was due in an open loop was sent within the window: then a generator's limit cannot
    have lowered the throughput.

    *Definition*: sent / due >= 0.99; of a generator that does not count what it sent, what was completed in
    the window / due.
    """
    due, sent = recording.account.scheduled, recording.generator.sent_in_window
    in_time = recording.completed.all if sent is None else sent
    return recording.is_open and due > 0 and in_time >= KEPT_RATE * due


def rates_of(recording: Recording) -> dict[str, float | None]:
    """Return the rate metrics by name; None where the window or the requests are missing.

    *Definition*: ``ok_per_s``: requests that were answered within the window, whenever they were begun /
    length of the window: what was done in this time. ``attempted_per_s``: requests that were due or begun in
    the window / its length. ``duration_ns_per_request``: length of the window / requests that ended within
    it. ``error_ratio``: requests of the window, and those that it found open, without a valid reply / all of
    them; ``error_per_s``: the same requests / length of the window.
    """
    found, completed, length_s = tally(recording.account), recording.completed, recording.window.duration_s

    def per_s(count: int) -> float | None:
        return None if length_s is None else count / length_s

    ended, closed = completed.all, not recording.is_open
    return {
        "duration_ns_per_request": SECOND_NS * length_s / ended if closed and length_s and ended else None,
        "ok_per_s": per_s(completed.ok),
        "attempted_per_s": per_s(found.scheduled),
        "error_per_s": per_s(found.lost),
        "success_ratio": found.ok / found.requests if found.requests else None,
        "error_ratio": found.error_ratio,
    }

"""The generators of a study whose loads several machines sent, or another machine than the server's.

>>> senders([])
()
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prony.model.facts import Fingerprint
from prony.model.limit import Limited, LimitKind
from prony.model.recording import GeneratorMachine


@dataclass(frozen=True, slots=True)
class Sender:
    """One generator over the trials of subjects."""

    name: str
    trials: int
    requests: int
    """Of its part of all accounts."""
    limited: int
    """In how many trials it was the limit, or perhaps."""
    certain: int
    """In how many of them without doubt."""
    limits: Mapping[LimitKind, int]
    """In how many by what, of which one trial may have several."""
    start_skew_ns: float | None
    """How far it began from a common start at most, to within `clock_bound_ns`; null: it was alone."""
    clock_bound_ns: int | None
    fingerprint: Fingerprint | None
    """Of its machine, as of the first of the trials."""
    as_root: bool
    """Whether it ran as root in any."""


def senders(trials: Iterable[Sequence[GeneratorMachine]]) -> tuple[Sender, ...]:
    """Return the generators of trials, each of which has its own, in the order in which they appear."""
    found: dict[str, list[GeneratorMachine]] = {}
    for machines in trials:
        for one in machines:
            found.setdefault(one.name, []).append(one)
    return tuple(_sender(name, each) for name, each in found.items())


def _sender(name: str, each: Sequence[GeneratorMachine]) -> Sender:
    skews = (abs(one.start_skew_ns) for one in each if one.start_skew_ns is not None)
    bounds = (one.clock_bound_ns for one in each if one.clock_bound_ns is not None)
    limited = [one for one in each if one.limited in (Limited.SUSPECT, Limited.YES)]
    return Sender(
        name=name,
        trials=len(each),
        requests=sum(one.requests or 0 for one in each),
        limited=len(limited),
        certain=sum(one.limited == Limited.YES for one in limited),
        limits=Counter(kind for one in limited for kind in {limit.kind for limit in one.evidence}),
        start_skew_ns=max(skews, default=None),
        clock_bound_ns=max(bounds, default=None),
        fingerprint=next((one.fingerprint for one in each if one.fingerprint is not None), None),
        as_root=any(one.as_root for one in each),
    )

"""The generators of a study whose loads several machines sent, or another machine than the server's.

>>> senders([])
()
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.model import Fingerprint, Limited
from prony.model.recording import GeneratorMachine

__all__ = ["Sender", "senders"]


@dataclass(frozen=True, slots=True)
class Sender:
    """One generator over the trials of subjects. ``limited``: in how many of them it was the limit, or
    perhaps; ``start_skew_ns``: how far it began from a common start at most, to within ``clock_bound_ns``;
    null: it was alone. ``fingerprint``: of its machine, as of the first of the trials.
    """

    name: str
    trials: int
    limited: int
    start_skew_ns: float | None
    clock_bound_ns: int | None
    fingerprint: Fingerprint | None


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
    return Sender(
        name=name,
        trials=len(each),
        limited=sum(one.limited in (Limited.SUSPECT, Limited.YES) for one in each),
        start_skew_ns=max(skews, default=None),
        clock_bound_ns=max(bounds, default=None),
        fingerprint=next((one.fingerprint for one in each if one.fingerprint is not None), None),
    )

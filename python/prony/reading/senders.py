"""The generators of a study whose loads several machines sent, or another machine than the server's.

>>> senders([])
()
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prony.figures.steady_state import warmup_ns
from prony.model.facts import Fingerprint, PilotStep
from prony.model.limit import Limited, LimitKind
from prony.model.plan import Plan
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


# --- what the pilot of a study found ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up of a cell: ``planned_ns``, and ``used_ns``, by the last of its looks at a fresh server."""

    cell_id: int
    subject: str
    planned_ns: int
    used_ns: int
    looks: tuple[PilotStep, ...]

    @property
    def last(self) -> PilotStep:
        """The look that decided."""
        return self.looks[-1]

    @property
    def is_longer(self) -> bool:
        """Whether its trials warm up longer than planned."""
        return self.used_ns > self.planned_ns


def warm_ups(plan: Plan, looks: Mapping[tuple[int, int], PilotStep]) -> tuple[WarmUp, ...]:
    """Return what the pilot found of each of the plan's cells; ``looks``: in their order, the last attempt at
    each.
    """
    found: dict[int, list[PilotStep]] = {}
    for step in looks.values():
        found.setdefault(step.cell_id, []).append(step)
    longest_ns = plan.design.pilot_ns or 0
    return tuple(
        _warm_up(cell.id, cell.subject.name, cell.workload.warmup_ns, longest_ns, found[cell.id])
        for cell in plan.cells
        if cell.id in found
    )


def _warm_up(
    cell_id: int, subject: str, planned_ns: int, longest_ns: int, looks: Sequence[PilotStep]
) -> WarmUp:
    used_ns = warmup_ns(planned_ns, longest_ns, looks[-1])
    return WarmUp(cell_id, subject, planned_ns, used_ns, tuple(looks))

"""What the pilot of a study found: how long each server warmed up before its trials' windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prony.analysis.warm_up import warmup_ns
from prony.model.facts import PilotStep
from prony.model.plan import Plan


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

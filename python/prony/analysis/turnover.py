"""Processes that were started and that ended while the window was open, by role.

*Source*: the sampler: a process is its number and the clock tick in which it was started.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.analysis.missing import Missing, Value
from prony.model import Sample

__all__ = ["Turnover", "turnover", "turnover_metrics"]

_NAMES = ("processes_started", "processes_ended", "restarts")


@dataclass(frozen=True, slots=True)
class Turnover:
    """How many processes of a role were started, and how many ended. One of each is a restart."""

    started: int
    ended: int

    @property
    def restarts(self) -> int:
        """How many ended and were replaced."""
        return min(self.started, self.ended)


def turnover(window: Sequence[Sample]) -> dict[str, Turnover]:
    """Return by role what came and went between the window's first sample and its last.

    *Definition*: started: seen, but not in the first sample; ended: seen, but not in the last.
    *Assumptions*: what lives for less than the time between two samples may not be seen at all.
    """
    if len(window) < 2:
        return {}
    seen = {identity: role for sample in window for identity, role in _roles(sample).items()}
    first, last = _roles(window[0]), _roles(window[-1])
    return {
        role: Turnover(
            started=sum(its == role and one not in first for one, its in seen.items()),
            ended=sum(its == role and one not in last for one, its in seen.items()),
        )
        for role in sorted(set(seen.values()))
    }


def turnover_metrics(window: Sequence[Sample], role: str | None = None) -> dict[str, Value]:
    """Return the counts by metric name, over all roles or of one; restarts are counted role by role."""
    if len(window) < 2:
        return dict.fromkeys(_NAMES, Missing("fewer than two samples of the processes in the window"))
    counted = [one for name, one in turnover(window).items() if role in (None, name)]
    sums = (
        sum(one.started for one in counted),
        sum(one.ended for one in counted),
        sum(one.restarts for one in counted),
    )
    return {name: float(value) for name, value in zip(_NAMES, sums, strict=True)}


def _roles(sample: Sample) -> dict[tuple[int, int], str]:
    return {(one.pid, one.start_time_ticks): one.role for one in sample.processes}

"""Whether the windows of cells show a steady state, and further results of their samples."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prony.analysis.listeners import SharedAddress
from prony.analysis.missing import Missing
from prony.analysis.steady_state import Kind, SteadyState
from prony.analysis.summary import CellSummary, Estimate

__all__ = ["Pace", "fullest_addresses", "is_nearly_full", "most", "pace_of", "unknown_pace"]

# From here on a burst of connections no longer fits.
_NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Pace:
    """How many trials of a cell were of a kind of pace, ``trials`` of ``of``; ``most``: more than half."""

    kind: Kind
    trials: int
    of: int

    @property
    def most(self) -> bool:
        """Whether most trials were of this kind: one trial alone may be chance."""
        return 2 * self.trials > self.of


def pace_of(cell: CellSummary) -> tuple[Pace, ...]:
    """Return how often each kind of pace was seen in a cell."""
    states = [trial.steady for trial in cell.counted]
    seen = Counter(state.kind for state in states if isinstance(state, SteadyState))
    return tuple(Pace(kind, seen[kind], cell.ok) for kind in Kind if seen[kind])


def unknown_pace(cells: Iterable[CellSummary]) -> str | None:
    """Return why the pace of no trial is known, the most frequent reason; null where it is of some trial."""
    states = [trial.steady for cell in cells for trial in cell.counted]
    unknown = Counter(state.reason for state in states if isinstance(state, Missing))
    return unknown.most_common(1)[0][0] if unknown and unknown.total() == len(states) else None


def most(cell: CellSummary, metric: str) -> float:
    """Return the highest value of a metric over the trials of a cell; 0 where it has none."""
    found = cell.metrics[metric]
    return found.max if isinstance(found, Estimate) else 0.0


def is_nearly_full(cell: CellSummary) -> bool:
    """Return whether an accept queue of the cell was full or nearly full in some trial."""
    return most(cell, "accept_queue_peak") >= _NEARLY_FULL


def fullest_addresses(cell: CellSummary) -> tuple[SharedAddress, ...]:
    """Return the listeners that share an address, by process, from the trial with the fullest queue."""
    fullest: dict[str, SharedAddress] = {}
    for one in (shared for trial in cell.counted for shared in trial.shared_addresses):
        known = fullest.get(one.process)
        if known is None or one.filled > known.filled:
            fullest[one.process] = one
    return tuple(fullest.values())

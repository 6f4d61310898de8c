"""What the windows of cells show beside their figures: whether they are steady, full queues, replacements."""

from collections import Counter
from collections.abc import Iterable
from math import inf

from prony.analysis.listeners import SharedAddress
from prony.analysis.missing import Missing
from prony.analysis.steadiness import Steadiness
from prony.analysis.summary import CellSummary, Estimate

# From here on a burst of connections no longer fits.
_NEARLY_FULL = 0.9


def coarsest(cells: Iterable[CellSummary], below_s: float = inf) -> tuple[CellSummary, Steadiness] | None:
    """Return, of the steady cells with windows of fewer seconds, the one that might hide the largest change;
    null without any.
    """
    found = [(cell, cell.steadiness) for cell in cells if not isinstance(cell.steadiness, Missing)]
    steady = [(cell, one) for cell, one in found if one.is_steady and one.seconds < below_s]
    return max(steady, key=lambda pair: pair[1].visible, default=None)


def unknown_pace(cells: Iterable[CellSummary]) -> str | None:
    """Return why it is not known of any cell whether it was steady, the most frequent reason; null where it
    is known of some cell.
    """
    states = [cell.steadiness for cell in cells if cell.ok]
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

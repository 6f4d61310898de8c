"""Whether the windows show a steady state, and what else their samples tell: remarks, subject by subject."""

from collections import Counter
from collections.abc import Iterator

from prony.analysis.missing import Missing
from prony.analysis.steady_state import Kind, SteadyState
from prony.analysis.summary import CellSummary, Estimate
from prony.reading.study import Reading
from prony.report.words import joined, load_words

__all__ = ["evidence_notes", "pace_notes"]

_SAID = {
    Kind.WARM_UP: "the warm-up spills over into the window: a longer one would show better figures",
    Kind.SLOWDOWN: "slower from some second of the window on: a longer window would show worse figures",
    Kind.NONE: "no steady state within the window: a longer one may show other figures",
}
# From here on a burst of connections no longer fits.
_NEARLY_FULL = 0.9


def pace_notes(reading: Reading) -> Iterator[str]:
    """Yield who was not steady in most of its trials, kind by kind: one trial alone may be chance.

    Where windows are too short to tell, that is said, once.
    """
    for kind, said in _SAID.items():
        found = [(cell, often) for cell in reading.cells if 2 * (often := _often(cell, kind)) > cell.ok]
        if found:
            named = [f"{_where(reading, cell)} ({often} of {cell.ok} trials)" for cell, often in found]
            yield f"{joined(named, most=6)}: {said}."
    states = [state for cell in reading.cells for state in _states(cell)]
    unknown = Counter(state.reason for state in states if isinstance(state, Missing))
    if unknown and unknown.total() == len(states):
        why = unknown.most_common(1)[0][0]
        yield f"Whether the pace was steady within the windows cannot be told: {why}."


def _states(cell: CellSummary) -> list[SteadyState | Missing]:
    return [trial.steady for trial in cell.counted]


def _often(cell: CellSummary, kind: Kind) -> int:
    return sum(isinstance(state, SteadyState) and state.kind is kind for state in _states(cell))


def _where(reading: Reading, cell: CellSummary) -> str:
    loads = len(reading.groups) > 1
    return f"{cell.name} at {load_words(cell.cell.workload)}" if loads else cell.name


def evidence_notes(reading: Reading) -> Iterator[str]:
    """Yield whose processes were replaced under load, and whose accept queue was full."""
    replaced = [(cell, most) for cell in reading.cells if (most := _most(cell, "restarts"))]
    if replaced:
        named = [f"{_where(reading, cell)} (up to {most:g})" for cell, most in replaced]
        yield f"Processes were replaced within the window: {joined(named, most=6)}."
    queues = [(cell, most) for cell in reading.cells if (most := _most(cell, "accept_queue_peak"))]
    full = [f"{_where(reading, cell)} ({most:.0%})" for cell, most in queues if most >= _NEARLY_FULL]
    if full:
        yield f"The accept queue was full or nearly so, by its limit: {joined(full, most=6)}."


def _most(cell: CellSummary, metric: str) -> float:
    found = cell.metrics[metric]
    return found.max if isinstance(found, Estimate) else 0.0

"""Cells of a study of several sessions, in which a session counts once: its figures stand where those of a
block stand elsewhere.

Blocks of one session share a machine's day, and what a day does to one subject and not to another is the same
for all of them: intervals that count blocks would shrink with their number, though the number of days stays.
Must not know groups or archives.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, log

from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.logs import ratio_of
from prony.analysis.missing import Missing, Value
from prony.analysis.summary import CellSummary, Estimate, Estimated, TrialFigures, estimate_over
from prony.metrics import METRICS

__all__ = ["in_sessions", "mean_of_sessions"]

_NONE = Missing("no trial of the session has it")


def in_sessions(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return cells whose units are sessions, and whose figures are means over these.

    *Definition*: a session's figure for comparisons is the geometric mean over the blocks that all cells have
    there, over its own where there are none such; 0 if one of them is. Means are those of the sessions'
    means. Their intervals are over sessions, from five on; with fewer there are none.
    *Assumptions*: sessions are independent of each other.
    """
    shared = _shared(cells)
    return [_in_sessions(cell, shared) for cell in cells]


# The session and the metric, and the blocks that all cells have there.
_Shared = Mapping[tuple[int, str], frozenset[int]]


def _shared(cells: Iterable[CellSummary]) -> _Shared:
    found: dict[tuple[int, str], frozenset[int]] = {}
    for cell in cells:
        for session, trials in _by_session(cell.counted).items():
            for metric in METRICS:
                own = frozenset(t.block for t in trials if not isinstance(t.metrics[metric], Missing))
                if own:
                    found[session, metric] = found.get((session, metric), own) & own
    return found


def _by_session(trials: Iterable[TrialFigures]) -> dict[int, list[TrialFigures]]:
    found: dict[int, list[TrialFigures]] = {}
    for trial in trials:
        found.setdefault(trial.session, []).append(trial)
    return found


def _in_sessions(cell: CellSummary, shared: _Shared) -> CellSummary:
    sessions = _by_session(cell.counted)
    return replace(
        cell,
        by_session={
            session: {name: _figure(trials, name, shared.get((session, name))) for name in METRICS}
            for session, trials in sessions.items()
        },
        metrics={
            name: mean_of_sessions(
                value, name, [[one.metrics[name] for one in each] for each in sessions.values()]
            )
            for name, value in cell.metrics.items()
        },
        roles={
            role: {
                name: mean_of_sessions(value, name, [_of_role(one, role, name) for one in sessions.values()])
                for name, value in metrics.items()
            }
            for role, metrics in cell.roles.items()
        },
    )


def _of_role(trials: Iterable[TrialFigures], role: str, name: str) -> list[Value]:
    return [trial.roles.get(role, {}).get(name, _NONE) for trial in trials]


def _known(values: Iterable[Value]) -> list[float]:
    return [value for value in values if not isinstance(value, Missing)]


def _figure(trials: Sequence[TrialFigures], name: str, shared: frozenset[int] | None) -> Value:
    """Return the geometric mean of a metric over a session's blocks."""
    values = _known(trial.metrics[name] for trial in trials if not shared or trial.block in shared)
    if not values:
        return _NONE
    return 0.0 if min(values) <= 0 else ratio_of(fsum(map(log, values)) / len(values))


def mean_of_sessions(value: Estimated, name: str, sessions: Iterable[Sequence[Value]]) -> Estimated:
    """Return an estimate with the mean of the sessions' means, and their interval where there are enough."""
    if not isinstance(value, Estimate):
        return value
    means = [fsum(known) / len(known) for one in sessions if (known := _known(one))]
    found = estimate_over(means, name)
    if found.count < LEAST_BLOCKS:
        return replace(value, mean=found.mean, low=None, high=None)
    return replace(value, mean=found.mean, low=found.low, high=found.high)

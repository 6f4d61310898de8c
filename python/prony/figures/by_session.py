"""Cells of a study of several sessions, in which a session counts once: its figures stand where those of a
block stand elsewhere.

Blocks of one session share a machine's day, and what a day does to one subject and not to another is the same
for all of them: intervals that count blocks would shrink with their number, though the number of days stays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from prony.core.metrics import METRICS
from prony.figures.missing import Missing, Value
from prony.figures.statistics.effects import geometric_mean
from prony.figures.statistics.failure_rates import (
    FailureComparison,
    Failures,
    compare_failures,
    compare_in_blocks,
)
from prony.figures.summary import CellSummary, Estimate, Estimated, TrialFigures, estimate_over
from prony.model.trial import Failed

_NONE = Missing("no trial of the session has it")
_NONE_IN_COMMON = Missing("the session has no block that all of them have")


def in_sessions(cells: Sequence[CellSummary], over: Sequence[CellSummary] | None = None) -> list[CellSummary]:
    """Return cells whose units are sessions, and whose figures are means over these.

    *Definition*: a session's figure for comparisons is the geometric mean over the blocks that all of the
    cells ``over`` have there, which are those that are compared (None: all); 0 if one of them is. Without
    such blocks it is missing: of different blocks the figures would differ because the blocks do. Means are
    those of the sessions' means. Their intervals are over sessions, from five on; with fewer there are none.
    *Assumptions*: sessions are independent of each other.
    """
    common = _common(_measured_blocks(cell) for cell in (cells if over is None else over))
    return [_in_sessions(cell, common) for cell in cells]


def is_failed(trial: TrialFigures) -> bool:
    """Return whether the server failed in a trial."""
    return isinstance(trial.outcome, Failed)


def more_often(
    first: CellSummary,
    second: CellSummary,
    is_one: Callable[[TrialFigures], bool],
    *,
    is_paired: bool = True,
) -> FailureComparison:
    """Return whether something is so in more trials of one of two cells, of those that say something about
    the server; where sessions count, in more of these, each of which counts once it is so in some trial.

    *Definition*: `failure_rates.compare_in_blocks` of the blocks that both have: a bad hour in which one
    alone ran is no difference, and more trials of a session are more chances. Of two archives, whose blocks
    have nothing to do with each other (``is_paired`` false), Fisher's exact test of all trials, or of the
    first ones of each session, as many as the session with the fewest has. A session without such trials does
    not count.
    """
    by_trial = first.by_session is None and second.by_session is None
    if is_paired:
        kept = judged_in_common(first, second)
    elif by_trial:
        kept = list(first.judged), list(second.judged)
    else:
        kept = _equally_many(first, second)
    mine, theirs = (_by_unit(trials, is_one, by_trial=by_trial) for trials in kept)
    if is_paired:
        return compare_in_blocks(mine, theirs)
    one, other = (Failures(sum(side.values()), len(side)) for side in (mine, theirs))
    return compare_failures(one, other)


def share_of(cell: CellSummary, is_one: Callable[[TrialFigures], bool]) -> float:
    """Return in which share of its trials, or sessions, something is so."""
    return more_often(cell, cell, is_one).first.share


def judged_in_common(
    first: CellSummary, second: CellSummary
) -> tuple[list[TrialFigures], list[TrialFigures]]:
    """Return of each of two cells the trials that say something about the server, of the blocks that both
    have.
    """
    mine, theirs = ({(one.session, one.block) for one in cell.judged} for cell in (first, second))
    both = mine & theirs
    one, other = (
        [trial for trial in cell.judged if (trial.session, trial.block) in both] for cell in (first, second)
    )
    return one, other


def _equally_many(first: CellSummary, second: CellSummary) -> tuple[list[TrialFigures], list[TrialFigures]]:
    by_cell = [_by_session(sorted(cell.judged, key=lambda one: one.block)) for cell in (first, second)]
    fewest = min((len(trials) for cell in by_cell for trials in cell.values()), default=0)
    one, other = ([one for trials in cell.values() for one in trials[:fewest]] for cell in by_cell)
    return one, other


def _by_unit(
    trials: Iterable[TrialFigures], is_one: Callable[[TrialFigures], bool], *, by_trial: bool
) -> dict[int, bool]:
    """Return by block, or by session, whether it is so in some trial."""
    found: dict[int, bool] = {}
    for trial in trials:
        unit = trial.block if by_trial else trial.session
        found[unit] = found.get(unit, False) or is_one(trial)
    return found


_Key = TypeVar("_Key")


def _common(own: Iterable[Mapping[_Key, frozenset[int]]]) -> dict[_Key, frozenset[int]]:
    """Return the blocks that all have, of those that have some."""
    found: dict[_Key, frozenset[int]] = {}
    for one in own:
        for key, blocks in one.items():
            if blocks:
                found[key] = found.get(key, blocks) & blocks
    return found


# The session and the metric, and the blocks that have it there.
_Blocks = Mapping[tuple[int, str], frozenset[int]]


def _measured_blocks(cell: CellSummary) -> _Blocks:
    return {
        (session, metric): frozenset(
            one.block for one in trials if not isinstance(one.metrics[metric], Missing)
        )
        for session, trials in _by_session(cell.counted).items()
        for metric in METRICS
    }


def _by_session(trials: Iterable[TrialFigures]) -> dict[int, list[TrialFigures]]:
    found: dict[int, list[TrialFigures]] = {}
    for trial in trials:
        found.setdefault(trial.session, []).append(trial)
    return found


def _in_sessions(cell: CellSummary, common: _Blocks) -> CellSummary:
    sessions = _by_session(cell.counted)
    return replace(
        cell,
        by_session={
            session: {name: _figure(trials, name, common.get((session, name))) for name in METRICS}
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


def _figure(trials: Sequence[TrialFigures], name: str, common: frozenset[int] | None) -> Value:
    """Return the geometric mean of a metric over those of a session's blocks; None: over all."""
    known = [trial for trial in trials if not isinstance(trial.metrics[name], Missing)]
    values = _known(trial.metrics[name] for trial in known if common is None or trial.block in common)
    if not values:
        return _NONE_IN_COMMON if known else _NONE
    return geometric_mean(values)


def mean_of_sessions(value: Estimated, name: str, sessions: Iterable[Sequence[Value]]) -> Estimated:
    """Return an estimate with the mean of the sessions' means, and their interval where there are enough."""
    if not isinstance(value, Estimate):
        return value
    means = [estimate_over(known, name).mean for one in sessions if (known := _known(one))]
    found = estimate_over(means, name)
    return replace(value, mean=found.mean, low=found.low, high=found.high)

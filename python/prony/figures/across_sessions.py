"""Subjects over several sessions: how much their figures differ between sessions, beside what holds over all.

Blocks of one session share a machine's day. What a day does to one subject and not to another is in no
interval of that session, so verdicts are those of cells in which a session counts once (`by_session`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, log, sqrt

from prony.figures.answer import Answer, log_values, mean_of
from prony.figures.missing import Missing
from prony.figures.statistics.all_pairs import Pair
from prony.figures.statistics.compare import NO_VERDICT, Comparison, Verdict
from prony.figures.summary import CellSummary
from prony.model.json_codec import INLINE


@dataclass(frozen=True, slots=True)
class OverRatio:
    """A subject against the first: over all sessions, and in each of them alone."""

    over: Comparison = field(metadata=INLINE)
    effects: tuple[float | None, ...]
    """`effects` and `verdicts`: of each session alone, null where it has none."""
    verdicts: tuple[Verdict | None, ...]
    within: float | None
    """`within` and `between`: standard deviations of a session's effect, by chance between its blocks, and
    beyond that; `between` is null for one session.
    """
    between: float | None
    changes: bool
    """The verdicts differ from each other, or from the one over all."""


@dataclass(frozen=True, slots=True)
class OverRow:
    """A subject over the sessions."""

    name: str
    values: tuple[float | None, ...]
    """The geometric mean in each session, null where it has none."""
    sessions: int
    mean: float
    """Of the values."""
    within: float | None
    """The standard deviation of a trial in its session."""
    between: float | None
    """Of the sessions, beyond what their trials explain; both relative."""
    letters: str
    """Two that share one are not separated; empty where nobody is."""
    ratio: OverRatio | None
    """To the first; null for the first, and for who is not compared."""


def over_rows(
    answer: Answer,
    cells: Sequence[CellSummary],
    sessions: Sequence[Mapping[Pair, Comparison]],
    letters: Mapping[str, str],
) -> tuple[OverRow, ...]:
    """Return the subjects that qualify over the sessions: the first, the others as they compare with it, and
    who has too few sessions. ``answer``: over ``cells``, in which sessions count; ``sessions``: the
    comparisons of all pairs within each.

    *Definition*: with s^2 the variance of a subject's (or a pair's) session figures and e^2 the mean square
    of their errors by blocks, between^2 is s^2 - e^2, or 0.
    *Assumptions*: sessions are independent, and equally many blocks long.
    *Source*: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM (2013), for variances
    at several levels.
    """
    metric, first = answer.metric, answer.first
    if metric is None or first is None:
        return ()
    of = {cell.name: cell for cell in cells if cell.unqualified is None and log_values(cell, metric)}
    names = dict.fromkeys((first, *answer.comparisons, *of))
    return tuple(
        _row(of[name], metric, len(sessions), letters.get(name, ""), _ratio(name, of, answer, sessions))
        for name in names
        if name in of
    )


_Logs = Mapping[int, Mapping[int, float]]


def _logs(cell: CellSummary, metric: str) -> _Logs:
    """Return ln of the metric by session and block."""
    found: dict[int, dict[int, float]] = {}
    for trial in cell.counted:
        value = trial.metrics[metric]
        if not isinstance(value, Missing) and value > 0:
            found.setdefault(trial.session, {})[trial.block] = log(value)
    return found


def _row(cell: CellSummary, metric: str, sessions: int, letters: str, ratio: OverRatio | None) -> OverRow:
    known = [list(one.values()) for one in _logs(cell, metric).values()]
    figures = log_values(cell, metric)
    values = (cell.units.get(k, {}).get(metric) for k in range(sessions))
    within = [variance for one in known if (variance := _variance(one)) is not None]
    return OverRow(
        name=cell.name,
        values=tuple(None if isinstance(one, Missing) else one for one in values),
        sessions=len(figures),
        mean=mean_of(cell, metric) or 0.0,
        within=sqrt(_mean(within)) if within else None,
        between=_between(list(figures.values()), known),
        letters=letters,
        ratio=ratio,
    )


def _ratio(
    name: str,
    of: Mapping[str, CellSummary],
    answer: Answer,
    sessions: Sequence[Mapping[Pair, Comparison]],
) -> OverRatio | None:
    over, first = answer.comparisons.get(name), answer.first or ""
    if over is None or over.effect is None:
        return None
    found = [one.get((first, name)) for one in sessions]
    verdicts = tuple(None if one is None else one.verdict for one in found)
    below, above = (_logs(of[one], answer.metric or "") for one in (first, name))
    blocks = [_differences(below[k], above[k]) for k in above.keys() & below.keys()]
    errors = [variance / len(one) for one in blocks if (variance := _variance(one)) is not None]
    differences = _differences(*(log_values(of[one], answer.metric or "") for one in (first, name)))
    told = {*verdicts, None if over.verdict in NO_VERDICT else over.verdict} - {None}
    return OverRatio(
        over=over,
        effects=tuple(None if one is None else one.effect for one in found),
        verdicts=verdicts,
        within=sqrt(_mean(errors)) if errors else None,
        between=_between(differences, blocks),
        changes=len(told) > 1,
    )


def _differences(below: Mapping[int, float], above: Mapping[int, float]) -> list[float]:
    return [above[k] - below[k] for k in above.keys() & below.keys()]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = _mean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _between(figures: Sequence[float], blocks: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation between sessions beyond what the errors of their figures explain."""
    errors = [variance / len(one) for one in blocks if (variance := _variance(one)) is not None]
    total = _variance(figures)
    return None if total is None or not errors else sqrt(max(0.0, total - _mean(errors)))

"""Subjects over several sessions: how much figures differ between sessions, and what holds in all of them.

Blocks of one session share a machine's day. What a day does to one subject and not to another is in no
interval of that session, so here a session counts as one observation. Must not know archives.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt

from prony.analysis.all_pairs import Pair
from prony.analysis.answer import Ranking, unbeaten
from prony.analysis.compare import LEAST_BLOCKS, Comparison, Terms, Verdict, compare_all
from prony.analysis.groups import letters
from prony.analysis.logs import ratio_of
from prony.metrics import Better

__all__ = ["LEAST_SESSIONS", "Across", "AcrossRatio", "AcrossRow", "SessionFigures", "across"]

LEAST_SESSIONS = LEAST_BLOCKS
"""With fewer sessions there is the range of what they show, and no interval."""


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """One session under one load: ``logs`` of the metric by subject and block, of those that qualify, and
    ``pairs``, the comparison of every ordered pair within the session.
    """

    logs: Mapping[str, Mapping[int, float]]
    pairs: Mapping[Pair, Comparison]


@dataclass(frozen=True, slots=True)
class AcrossRatio:
    """A subject against the first: second / first - 1.

    ``effects`` and ``verdicts``: of each session alone, null where it has none; ``effect``: of the mean over
    sessions; ``low`` and ``high``: its interval, null below five sessions; ``verdict``: over the sessions,
    null below five. ``within`` and ``between``: standard deviations of a session's effect, by chance between
    its blocks, and beyond that; ``between`` is null for one session.
    """

    effects: tuple[float | None, ...]
    verdicts: tuple[Verdict | None, ...]
    effect: float
    low: float | None
    high: float | None
    verdict: Verdict | None
    within: float | None
    between: float | None

    @property
    def least(self) -> float:
        """The least effect of a session."""
        return min(one for one in self.effects if one is not None)

    @property
    def most(self) -> float:
        """The largest effect of a session."""
        return max(one for one in self.effects if one is not None)

    @property
    def changes(self) -> bool:
        """Whether the sessions' verdicts differ from each other, or from the one over them."""
        return len({one for one in (*self.verdicts, self.verdict) if one is not None}) > 1


@dataclass(frozen=True, slots=True)
class AcrossRow:
    """A subject: its geometric mean in each session (null where it does not qualify) and over them.

    ``within``: the standard deviation of a trial within its session; ``between``: that of the sessions beyond
    what the trials explain; both relative. ``ratio``: to the first; null for the first. ``letters``: two
    that share one are not separated; empty with fewer than five sessions of its own, or where no other has
    five.
    """

    name: str
    values: tuple[float | None, ...]
    mean: float
    within: float | None
    between: float | None
    ratio: AcrossRatio | None
    letters: str = ""

    @property
    def sessions(self) -> int:
        """In how many sessions it qualifies."""
        return len([value for value in self.values if value is not None])

    @property
    def has_enough(self) -> bool:
        """Whether it has enough sessions to be compared."""
        return self.sessions >= LEAST_SESSIONS


@dataclass(frozen=True, slots=True)
class Across:
    """The subjects under one load over all sessions: those with the most sessions first, and of these the
    best; before all others the leader. ``leaders``: of each session alone.

    ``decided``: two have enough sessions to be compared, and the first leads; ``ties``: those of them that
    are not shown to be worse than it by more than the margin.
    """

    rows: tuple[AcrossRow, ...]
    leaders: tuple[str | None, ...]
    decided: bool = False
    ties: tuple[str, ...] = ()

    @property
    def leader(self) -> str | None:
        """Who leads over the sessions; null unless two have five."""
        return self.rows[0].name if self.decided else None

    @property
    def leader_changes(self) -> bool:
        """Whether not all sessions have the same leader."""
        return len(set(self.leaders)) > 1


def across(
    sessions: Sequence[SessionFigures],
    leaders: Sequence[str | None],
    better: Better,
    terms: Terms,
    heed: Callable[[Pair, Comparison], Comparison] = lambda _, found: found,
) -> Across:
    """Return subjects over sessions. ``heed`` gives a comparison without what its figures cannot show.

    *Definition*: a session's figure of a subject is the mean of its logarithms over the blocks that all of
    the session's subjects have. These take the place of blocks in ``compare_all``, so that intervals over
    five sessions and more hold together for all pairs, whoever leads. Of those with the most sessions the
    best mean is first, unless another with five is shown to be better; where two have five it leads, and of
    these the ones not shown to be worse are its ties. With s^2 the variance of a subject's (or a pair's)
    session figures and e^2 the mean square of their errors by blocks, between^2 is s^2 - e^2, or 0.
    *Assumptions*: sessions are independent, and equally many blocks long.
    *Source*: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM (2013), for variances
    at several levels.
    """
    means = [_means(one.logs) for one in sessions]
    names = list(dict.fromkeys(name for one in means for name in one))
    table = {name: {k: one[name] for k, one in enumerate(means) if name in one} for name in names}
    sign = -1.0 if better is Better.HIGHER else 1.0
    ranked = sorted(names, key=lambda name: (-len(table[name]), sign * _mean(list(table[name].values()))))
    compared = compare_all({name: table[name] for name in ranked}, terms) if len(ranked) > 1 else {}
    pooled = {pair: heed(pair, found) for pair, found in compared.items()}
    enough = [name for name in ranked if len(table[name]) >= LEAST_SESSIONS]
    first = unbeaten(enough or ranked, pooled, better) if ranked else ""
    ordered = sorted(ranked, key=lambda name: name != first)
    decided = len(enough) > 1
    known = _ranking(ordered, enough, better, pooled)
    shared = letters(known.names, known.separated) if decided else {}
    rows = (
        replace(_row(name, first, table[name], sessions, pooled), letters=shared.get(name, ""))
        for name in ordered
    )
    return Across(tuple(rows), tuple(leaders), decided, known.ties if decided else ())


def _ranking(
    ordered: Sequence[str], enough: Sequence[str], better: Better, pooled: Mapping[Pair, Comparison]
) -> Ranking:
    """Return the ranking of those with enough sessions: the others are compared with nobody."""
    pairs = {pair: found for pair, found in pooled.items() if set(pair) <= set(enough)}
    return Ranking(tuple(name for name in ordered if name in enough), better, pairs, LEAST_SESSIONS)


def _means(logs: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Return the mean of each subject over the blocks that all have; over its own where there are none."""
    known = {name: values for name, values in logs.items() if values}
    shared = set.intersection(*(set(values) for values in known.values())) if known else set()
    return {name: _mean([values[block] for block in shared or values]) for name, values in known.items()}


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = _mean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _row(
    name: str,
    first: str,
    table: Mapping[int, float],
    sessions: Sequence[SessionFigures],
    pooled: Mapping[Pair, Comparison],
) -> AcrossRow:
    values = [list(one.logs[name].values()) for one in sessions if one.logs.get(name)]
    found = [(len(one), _variance(one)) for one in values]
    own = [variance for _, variance in found if variance is not None]
    errors = [variance / count for count, variance in found if variance is not None]
    return AcrossRow(
        name=name,
        values=tuple(ratio_of(table[k]) if k in table else None for k in range(len(sessions))),
        mean=ratio_of(_mean(list(table.values()))),
        within=sqrt(_mean(own)) if own else None,
        between=_between(list(table.values()), errors),
        ratio=None if name == first else _ratio((first, name), sessions, pooled[first, name]),
    )


def _between(figures: Sequence[float], errors: Sequence[float]) -> float | None:
    """Return the standard deviation between sessions beyond what the errors of their figures explain."""
    total = _variance(figures)
    return None if total is None or not errors else sqrt(max(0.0, total - _mean(errors)))


def _ratio(pair: Pair, sessions: Sequence[SessionFigures], pooled: Comparison) -> AcrossRatio | None:
    found = [one.pairs.get(pair) for one in sessions]
    effects = tuple(None if one is None else one.effect for one in found)
    if pooled.effect is None or all(effect is None for effect in effects):
        return None
    is_enough = pooled.blocks >= LEAST_SESSIONS
    within = [_by_block(pair, one.logs) for one in sessions]
    errors = [variance / len(one) for one in within if (variance := _variance(one)) is not None]
    return AcrossRatio(
        effects=effects,
        verdicts=tuple(None if one is None else one.verdict for one in found),
        effect=pooled.effect,
        low=pooled.low if is_enough else None,
        high=pooled.high if is_enough else None,
        verdict=pooled.verdict if is_enough else None,
        within=sqrt(_mean(errors)) if errors else None,
        between=_between(_differences(pair, sessions), errors),
    )


def _by_block(pair: Pair, logs: Mapping[str, Mapping[int, float]]) -> list[float]:
    """Return the differences of a pair in the blocks of a session that both have."""
    first, second = (logs.get(name, {}) for name in pair)
    return [second[block] - first[block] for block in second if block in first]


def _differences(pair: Pair, sessions: Sequence[SessionFigures]) -> list[float]:
    means = [_means(one.logs) for one in sessions]
    return [one[pair[1]] - one[pair[0]] for one in means if pair[0] in one and pair[1] in one]

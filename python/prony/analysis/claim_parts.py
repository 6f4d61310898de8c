"""The verdict on a claim's parts: intervals of figures against bounds. Must not know claims' kinds.

>>> part = of_effect([0.7, 0.71, 0.69, 0.7, 0.72], "a to b")
>>> judged([part], Bounds(1.9, 2.2), Terms(), 5)[0].verdict
<ClaimVerdict.HOLDS: 'holds'>
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log, sqrt
from statistics import variance

from prony.analysis.at_least import Open
from prony.analysis.claim_needs import Lack
from prony.analysis.compare import LEAST_BLOCKS, Terms, few_sessions
from prony.analysis.dependence import dependence
from prony.analysis.effects import paired, student_t
from prony.analysis.logs import ratio_of

__all__ = ["Bounds", "ClaimResult", "ClaimVerdict", "Part", "judged", "of_effect", "of_spreads", "of_values"]

_CLOSED = Open()
# Without one of them there are two, the least that have a variance.
_LEAST_SPREAD = 3


class ClaimVerdict(StrEnum):
    """The verdict of a repeat on a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The verdict, from ``n`` blocks, or sessions where there are several; ``figure`` and ``interval`` of the
    part that decides.

    ``figure`` is a ratio for an order, a ratio and growth (the heaviest load to the lightest), a value in the
    metric's unit for a value and a single core, and a share of trials for failures and for shares of failed
    requests. ``level``: the interval covers the truth with a chance of 1 - level; the verdict follows from
    it. ``one_sided``: each of its ends has that level by itself, as a share's has. ``reason``: the part that
    decides, what is missing, or what it needs; ``lack``: of a claim that is not testable, whether the profile
    lacks that, or the machine.
    """

    verdict: ClaimVerdict
    n: int | None = None
    figure: float | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""
    level: float | None = None
    lack: Lack | None = None
    one_sided: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a figure's interval must lie, null: open. ``doubt``: outside by less than this factor, it decides
    nothing either.
    """

    low: float | None
    high: float | None
    doubt: float = 1.0

    def verdict(self, interval: tuple[float, float]) -> ClaimVerdict:
        """Return HOLDS for an interval within the bounds, DOES_NOT_HOLD outside of them, else CANNOT_TELL."""
        low = float("-inf") if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        if low <= interval[0] and interval[1] <= high:
            return ClaimVerdict.HOLDS
        beside = interval[1] < low / self.doubt or interval[0] > high * self.doubt
        return ClaimVerdict.DOES_NOT_HOLD if beside else ClaimVerdict.CANNOT_TELL

    def slack(self, interval: tuple[float, float] | None) -> float:
        """Return how far an interval lies within the bounds; negative: outside; infinite without bounds.

        >>> Bounds(1, None).slack((1.5, 9))
        0.5
        """
        if interval is None:
            return float("inf")
        above = float("inf") if self.low is None else interval[0] - self.low
        below = float("inf") if self.high is None else self.high - interval[1]
        return min(above, below)


@dataclass(frozen=True, slots=True)
class Part:
    """One figure of a claim. ``interval`` gives its interval at 1 - a level; ``lost``: why no value
    counts. ``open``: where the true value may lie beside the interval, for the reason ``limit``.
    ``one_sided``: as of `ClaimResult`.
    """

    name: str
    n: int
    figure: float | None = None
    interval: Callable[[float], tuple[float, float]] | None = None
    lost: str | None = None
    open: Open = _CLOSED
    limit: str = "the generator was the limit, so the figure is a bound"
    one_sided: bool = False


def judged(
    parts: Sequence[Part], bounds: Bounds, terms: Terms, least: int, tests: float | None = None
) -> list[ClaimResult]:
    """Return the verdict on each part, the weakest first; fewer than ``least`` blocks cannot tell.
    ``tests``: a part refutes the claim at ``terms.level`` over it; null: as many as there are parts. Where
    sessions are counted, fewer than five cannot tell, whatever the claim needs of blocks.
    """
    needed = LEAST_BLOCKS if terms.by_session else least
    found = [_verdict(part, bounds, terms, needed, tests or len(parts)) for part in parts]
    return sorted(found, key=lambda result: bounds.slack(result.interval))


def _verdict(part: Part, bounds: Bounds, terms: Terms, least: int, tests: float) -> ClaimResult:
    """Return the verdict on one of several parts, with the interval that it follows from.

    All parts must hold, so each is tested at the full level. One part that does not hold is enough, so
    that verdict uses each part's share of the level.
    """
    if part.lost is not None:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, part.n, part.figure, None, f"{part.name}: {part.lost}")
    if terms.by_session and part.n < least:
        reason = f"{part.name}: {few_sessions(part.n)}"
        return ClaimResult(ClaimVerdict.CANNOT_TELL, part.n, part.figure, reason=reason)
    if part.interval is None or part.n < least:
        return ClaimResult(
            ClaimVerdict.CANNOT_TELL,
            part.n,
            part.figure,
            part.interval(terms.nominal(terms.level)) if part.interval else None,
            f"{part.name}: {part.n} of the {least} blocks needed",
            terms.level,
            one_sided=part.one_sided,
        )
    level, interval = terms.level, part.interval(terms.nominal(terms.level))
    if bounds.verdict(interval) is ClaimVerdict.DOES_NOT_HOLD:
        level = terms.level / tests
        interval = part.interval(terms.nominal(level))
    verdict, heeded = bounds.verdict(interval), bounds.verdict(part.open.widened(interval))
    reason = part.name if heeded is verdict else f"{part.name}: {part.limit}"
    return ClaimResult(heeded, part.n, part.figure, interval, reason, level, one_sided=part.one_sided)


def of_effect(log_ratios: Sequence[float], name: str, lost: str | None = None, ends: Open = _CLOSED) -> Part:
    """Return a part whose figure is a ratio, from its logarithms by block."""
    if len(log_ratios) < 2:
        return Part(name, len(log_ratios), lost=lost, open=ends)
    effect = paired(log_ratios)

    def interval(level: float) -> tuple[float, float]:
        low, high = effect.interval(level)
        return ratio_of(low), ratio_of(high)

    return Part(name, effect.count, ratio_of(effect.centre), interval, lost, ends)


def of_values(values: Sequence[float], name: str) -> Part:
    """Return a part whose figure is the mean of one value per block: the geometric one where all are above
    0.
    """
    if len(values) < 2:
        return Part(name, len(values), values[0] if values else None)
    on_logs = min(values) > 0
    effect = paired([log(value) for value in values] if on_logs else values)

    def interval(level: float) -> tuple[float, float]:
        low, high = effect.interval(level)
        return (ratio_of(low), ratio_of(high)) if on_logs else (low, high)

    return Part(name, len(values), ratio_of(effect.centre) if on_logs else effect.centre, interval)


def of_spreads(values: Sequence[float], others: Sequence[float], name: str) -> Part:
    """Return a part whose figure is the ratio of the standard deviations of two series' logarithms.

    *Definition*: s1 / s2. Its interval is Student's about ln(s1^2 / s2^2), with n - 1 degrees of freedom of
    the shorter series; the squared error is the sum of the jackknife's of ln s^2, each times (1 + r^2) / (1 -
    r^2), with r the correlation of that series' neighbouring blocks (`dependence`).
    *Assumptions*: values above 0; any shape, roughly. The F distribution needs normal logarithms: with one
    trial in twenty ten times as noisy it calls one of two equal series steadier in 13 of 100 studies of five
    blocks and in 28 of twenty, this in 1 and 5. Fewer than three values, or values that are all equal but
    for one, have no ratio.
    *Source*: R. G. Miller, "Jackknifing variances", Ann. Math. Statist. 39 (1968).
    """
    n = min(len(values), len(others))
    own, other = _jackknifed(values), _jackknifed(others)
    if own is None or other is None:
        return Part(name, n)
    centre, error = own[0] - other[0], sqrt(own[1] + other[1])

    def interval(level: float) -> tuple[float, float]:
        half = student_t(1 - level / 2, n - 1) * error
        return ratio_of((centre - half) / 2), ratio_of((centre + half) / 2)

    return Part(name, n, ratio_of(centre / 2), interval)


def _jackknifed(values: Sequence[float]) -> tuple[float, float] | None:
    """Return ln of the variance of logarithms, and its squared error; null where too few values differ."""
    logs = [log(value) for value in values]
    without = [logs[:k] + logs[k + 1 :] for k in range(len(logs))]
    if len(logs) < _LEAST_SPREAD or min(map(variance, without)) <= 0:
        return None
    pseudo = [-(len(logs) - 1) * log(variance(left)) for left in without]
    square = dependence([[value] for value in logs]).correlation ** 2
    return log(variance(logs)), variance(pseudo) / len(logs) * (1 + square) / (1 - square)

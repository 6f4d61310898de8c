"""The verdict on a claim's parts: intervals of figures against bounds.

>>> part = of_effect([0.7, 0.71, 0.69, 0.7, 0.72], "a to b")
>>> judged([part], Bounds(1.9, 2.2), Terms(), 5)[0].verdict
<ClaimVerdict.HOLDS: 'holds'>

>>> estimand(Claim("c", "sentence", ClaimKind.RATIO, "ok_per_s", "a*", against="b*", low=2.0))
'the ratio of valid replies per second of a* to b*, block by block'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from math import ceil, floor, inf, log, log2, sqrt
from typing import TYPE_CHECKING

from prony.core.metrics import METRICS
from prony.core.units import format_percent
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.at_least import Open
from prony.figures.claim_needs import Lack
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, few_sessions
from prony.figures.statistics.effects import dependence, paired, ratio_of
from prony.model.plan import Claim, ClaimKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CLOSED = Open()
# With two, the distance of one of them from the other is all that there is.
_LEAST_SPREAD = 3
# The level of an interval of one part.
_OF_ONE = 0.05
# Sums of the same distances in another order: the ratio of a series to itself is not below 1.
_ALIKE = 1e-10
# All choices of so many blocks are tried.
_MOST_BITS = 14


class ClaimVerdict(StrEnum):
    """The verdict of a repeat on a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The verdict, from ``n`` blocks, or sessions where there are several; ``figure`` and ``interval`` of the
    part that decides. ``figure`` is a ratio for an order, a ratio and growth (the heaviest load to the
    lightest), a value in the metric's unit for a value and a single core, and a share of trials for failures
    and for shares of failed requests.
    """

    verdict: ClaimVerdict
    n: int | None = None
    """Blocks, or sessions of several."""
    figure: float | None = None
    """Of the part that decides."""
    interval: tuple[float, float] | None = None
    """Of that figure."""
    reason: str = ""
    """The part that decides, what is missing, or what it needs."""
    level: float | None = None
    """The interval covers the truth with a chance of 1 - level; the verdict follows from it."""
    lack: Lack | None = None
    """Of a claim that is not testable, whether the profile lacks that, or the machine."""
    one_sided: bool = False
    """Each of its ends has that level by itself, as a share's has."""


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
    ``tests``: a part refutes the claim at ``terms.level`` over it; None: as many as there are parts. Where
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


def blocks_for_spreads(level: float) -> int:
    """Return the fewest blocks of which the interval of a ratio of spreads has an end at 1 - ``level``.

    >>> blocks_for_spreads(0.05), blocks_for_spreads(0.01)
    (8, 10)
    """
    return 1 + ceil(log2(4 / level))


def of_spreads(pairs: Sequence[tuple[float, float]], name: str) -> Part:
    """Return a part whose figure is the ratio of the spreads of two series, from their values by block.

    *Definition*: the spread is the mean distance of logarithms from the middle one (of an even number the
    lower of both). Each choice of blocks has a ratio of the sums of these distances; the interval goes from
    the kth smallest to the kth largest of all (of 16,383 drawn ones where there are more), with k = level / 2
    * 2^(n - 1): where the spreads are equal, each block's distances may be exchanged. The middle one's own is
    0 and says nothing, so that n - 1 blocks are counted. Blocks that resemble each other by a correlation r
    (`dependence`) put both ends sqrt((1 + r^2) / (1 - r^2)) times as far away.
    *Assumptions*: values above 0; the shapes are alike but for their scale. Fewer than `blocks_for_spreads`
    have no interval: of servers one in three of whose trials is a fifth slower, all of one and not of the
    other are alike in one of seven studies of five blocks, which looks like a steadier server to every test.
    *Source*: J. A. Hartigan, "Using subsample values as typical values", J. Am. Stat. Assoc. 64 (1969), here
    of a ratio; M. B. Brown and A. B. Forsythe, "Robust tests for the equality of variances", J. Am. Stat.
    Assoc. 69 (1974), for distances from the median.
    """
    import numpy as np

    n = len(pairs)
    if n < _LEAST_SPREAD:
        return Part(name, n)
    logs = np.log(np.asarray(pairs, dtype=float))
    distances = np.abs(logs - np.sort(logs, axis=0)[(n - 1) // 2])
    sums = _choices(n) @ distances
    if not distances.any(axis=0).all():
        return Part(name, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(sums[:, 0] / sums[:, 1])
    # Blocks without any distance on either side count as beyond both ends.
    ends = np.sort(np.nan_to_num(ratios, nan=-inf, neginf=-inf, posinf=inf)), np.sort(ratios)
    centre = log(distances[:, 0].sum() / distances[:, 1].sum())
    square = dependence(logs).correlation ** 2
    widening = sqrt((1 + square) / (1 - square))

    def interval(level: float) -> tuple[float, float]:
        k = max(1, floor(level / 4 * (len(ratios) + 1)))
        low, high = (centre + widening * (float(end) - centre) for end in (ends[0][k - 1], ends[1][-k]))
        return ratio_of(low - _ALIKE), ratio_of(high + _ALIKE)

    return Part(name, n, ratio_of(centre), interval if n >= blocks_for_spreads(_OF_ONE) else None)


def _choices(n: int) -> "NDArray[np.bool_]":
    """Return choices of at least one of n blocks: all, or where they are too many, some."""
    import numpy as np

    every = np.arange(1, 2 ** min(n, _MOST_BITS))[:, None] >> np.arange(n) & 1
    some = every if n <= _MOST_BITS else np.random.default_rng(0).integers(0, 2, (2**_MOST_BITS - 1, n))
    found: NDArray[np.bool_] = some == 1
    return found


# --- what a claim is about, as a sentence -----------------------------------------------------------------


def estimand(claim: Claim) -> str:
    """Return the quantity that the claim is tested on, in words."""
    of = f" of the role {claim.role}" if claim.role else ""
    metric, own = f"{METRICS[claim.metric].title}{of}", _own(claim)
    match claim.kind:
        case ClaimKind.HIGHEST | ClaimKind.LOWEST | ClaimKind.RATIO:
            words = f"the ratio of {metric} of {own} to {_rival(claim)}, block by block"
        case ClaimKind.STEADIER:
            of = f"{metric} from its median over blocks, of {own} to {_rival(claim)}"
            words = f"the ratio of the mean distance of {of}"
        case ClaimKind.GROWS:
            words = f"the growth of {metric} of {own} from the lightest to the heaviest load, in each block"
        case ClaimKind.SINGLE_CORE:
            words = f"the mean of {metric} of {own} over blocks, with more than one core"
        case _ if claim.counts_trials:
            words = f"the share of trials of {own} in which {_failing(claim)}"
        case _:
            words = f"the mean of {metric} of {own} over blocks"
    return words


def _own(claim: Claim) -> str:
    return claim.engine if claim.engine != "*" else _each(claim.subject)


def _rival(claim: Claim) -> str:
    if claim.against_engine:
        return (
            "each other generator"
            if fnmatchcase(claim.engine, claim.against_engine)
            else claim.against_engine
        )
    if claim.against_load and claim.against in ("*", claim.subject):
        return "itself under " + ", ".join(f"{size:g} {name}" for name, size in claim.against_load.items())
    return _each(claim.against) if claim.against != "*" else "each other one under the same load"


def _each(glob: str) -> str:
    return "each subject" if glob == "*" else glob


def _failing(claim: Claim) -> str:
    if claim.kind is not ClaimKind.FAILS:
        return f"{_bounded(claim)} of the requests fail"
    least = format_percent(QUALIFIED_ERROR_RATIO if claim.low is None else claim.low)
    against = "" if claim.against == "*" else f", against that of {claim.against}"
    return f"more than {least} of the requests fail{against}"


def _bounded(claim: Claim) -> str:
    low, high = (None if one is None else format_percent(one) for one in (claim.low, claim.high))
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"

"""The effects of all pairs of several subjects that ran in the same blocks, for one verdict over all of them.

Runs that are far off are drawn in, what the subjects' noise has in common is estimated once, and a subject
that is noisier than the others keeps its own noise. Must not know verdicts.

>>> logs = {"a": {0: 1.0, 1: 1.1, 2: 0.9}, "b": {0: 2.0, 1: 2.1, 2: 1.9}}
>>> [(pair, round(effect.centre, 6)) for pair, effect in all_pairs(logs).items()]
[(('a', 'b'), 1.0)]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log2, sqrt
from typing import TYPE_CHECKING

from prony.analysis.effects import Effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Pair", "all_pairs", "usual_widening"]

# A normal value lies beyond three standard deviations once in 370: what does is drawn in to there.
_FARTHEST = 3.0
# The median and the mean of absolute normal deviations, in standard deviations.
_MEDIAN_DEVIATION = 0.6745
_MEAN_DEVIATION = 0.7979
# With fewer degrees of freedom the median deviation is too rough to say what is far off.
_LEAST_FREEDOM = 8
# With two subjects the differences have nothing to be pooled with; so much wider, they hold their level for
# two-peaked noise as well. Calibrated by `bench/verdicts`.
_ALONE = 1.08

# A subject whose variance is so many times the usual one is in no pool. Lower, chance takes it for too noisy.
_MOST_NOISE = 12.0
# How much wider intervals are by chance, per relative error of the subjects' own variances.
_CHANCE = 0.13

Pair = tuple[str, str]


def _own_weight(blocks: int, subjects: int) -> float:
    """Return the weight of the subjects' own variance against the pooled one, of which the larger counts.

    *Definition*: 0.85 + (2 + 1.5 max(0, log2(k / 16))) / n. Few blocks estimate it badly, and many subjects
    have pairs of which both are estimated too low: with this weight the procedure holds 7.5 % where half of
    16, of 32 and of 64 subjects are ten times as noisy as the others, and the power where all are alike.
    Calibrated by `bench/verdicts`.
    """
    return 0.85 + (2 + 1.5 * max(0.0, log2(subjects / 16))) / blocks


def usual_widening(subjects: int, blocks: int) -> float:
    """Return about how much larger the error of a pair is than the pooled one where all are equally noisy.

    *Definition*: sqrt(max(1, w)) (1 + 0.13 sqrt((k - 1) / ((n - 1) (k - 2)))): own variances are the larger
    ones by their weight, and by chance, which fewer blocks give more of. Fitted to simulated power.
    """
    if subjects <= 2:
        return sqrt(_ALONE)
    chance = sqrt((subjects - 1) / ((blocks - 1) * (subjects - 2)))
    return sqrt(max(1.0, _own_weight(blocks, subjects))) * (1 + _CHANCE * chance)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The logarithms by block and subject, with what is far off drawn in, and the share of each subject's
    values that was left as it is. A value that is missing is NaN.
    """

    values: "Floats"
    left: Sequence[float]


def all_pairs(logs: Mapping[str, Mapping[int, float]]) -> dict[Pair, Effect]:
    """Return ln(second / first) of each pair with two common blocks, in the order of ``logs`` (logarithms by
    subject and block).

    *Definition*: with y the values of which none lies further than three robust standard deviations from its
    block and subject, the centre is the mean of y_second - y_first over common blocks. Its squared error is
    c / n times the larger of two variances of such a difference: V, the mean over all pairs in the pool, and
    w (v_first + v_second), where the v fit the variances of those pairs by least squares, and w is 0.85 + 2 /
    n (more above 16 subjects). In the pool are the subjects whose v, fitted to all pairs, is at most 12 times
    the usual one, the largest of the quietest three quarters; who is not in it keeps that v. c is the
    mean over both subjects of (all values / values left as they were)^2. Degrees of freedom: those of the
    residuals of a two-way layout of the pool's k subjects, (k - 1)(n - 1) where no block is missing; of all
    subjects, for pairs with one that is not in the pool.
    *Assumptions*: within a block, the subjects' deviations are independent of each other. Their variances
    and shapes may differ.
    *Source*: J. W. Tukey and D. H. McLaughlin, "Less vulnerable confidence and significance procedures for
    location based on a single sample", Sankhya A 25 (1963), for drawn-in values and c; F. E. Grubbs, "On
    estimating precision of measuring instruments and product variability", J. Am. Statist. Ass. 43 (1948),
    for variances of subjects from those of differences.
    """
    names, table = _table(logs)
    if len(names) < 2:
        return {}
    freedom = _freedom(table)
    drawn = _drawn_in(table) if freedom >= _LEAST_FREEDOM else _Drawn(table, [1.0] * len(names))
    found = _differences(drawn.values)
    return _effects(names, drawn, found) if found else {}


def _table(logs: Mapping[str, Mapping[int, float]]) -> tuple[list[str], "Floats"]:
    """Return the subjects that share a block with another one, and their logarithms by block and subject."""
    import numpy as np

    names, blocks = list(logs), sorted({block for values in logs.values() for block in values})
    table = np.array([[logs[name].get(block, np.nan) for name in names] for block in blocks])
    table = table.reshape(len(blocks), len(names))
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    used = (~np.isnan(table)).any(axis=0)
    return [name for name, has in zip(names, used, strict=True) if has], table[:, used]


def _freedom(table: "Floats") -> int:
    """Return the degrees of freedom of the residuals about blocks and subjects."""
    import numpy as np

    known = ~np.isnan(table)
    known = known[known.sum(axis=1) >= 2]
    return max(1, int(known.sum()) - len(known) - int(known.any(axis=0).sum()) + 1)


def _drawn_in(table: "Floats") -> _Drawn:
    """Draw in values that lie far from their block's and their subject's median.

    *Definition*: the scale of a subject is the median absolute residual, its own or that of all, whichever is
    larger; where most values are equal, the mean absolute residual of all.
    """
    import numpy as np

    counts, subjects = (~np.isnan(table)).sum(axis=0), table.shape[1]
    # The one for NaN takes three times as long.
    median = np.median if int(counts.min()) == len(table) else np.nanmedian
    across = median(table, axis=1, keepdims=True)
    typical = across + median(table - across, axis=0)
    away = np.abs(table - typical)
    scale = np.maximum(median(away, axis=0), median(away)) / _MEDIAN_DEVIATION
    # Residuals about medians are smaller than the deviations themselves.
    smaller = np.sqrt((1 - 1 / subjects) * (1 - 1 / np.maximum(counts, 2)))
    limit = _FARTHEST * np.where(scale > 0, scale, np.nanmean(away) / _MEAN_DEVIATION) / smaller
    left = (away <= limit).sum(axis=0)
    drawn = typical + np.clip(table - typical, -limit, limit)
    return _Drawn(drawn, list(np.maximum(left, 1) / counts))


@dataclass(frozen=True, slots=True)
class _Difference:
    """The mean and the variance of a pair's differences over its ``count`` common blocks."""

    count: int
    mean: float
    variance: float


def _differences(table: "Floats") -> dict[tuple[int, int], _Difference]:
    import numpy as np

    found = {}
    for first, second in combinations(range(table.shape[1]), 2):
        differences = table[:, second] - table[:, first]
        known = differences[~np.isnan(differences)]
        if len(known) >= 2:
            found[first, second] = _Difference(len(known), float(known.mean()), float(known.var(ddof=1)))
    return found


@dataclass(frozen=True, slots=True)
class _Noise:
    """The variance that pairs of ``kept`` subjects have in common, and that of each subject: null where two
    say only what both have together.
    """

    kept: frozenset[int]
    pooled: float
    own: "Floats | None"

    def of_pair(self, first: int, second: int, blocks: int) -> float:
        """Return the variance of a pair's differences: the larger of both."""
        if self.own is None:
            return _ALONE * self.pooled
        mine = _own_weight(blocks, len(self.own)) * float(self.own[first] + self.own[second])
        return max(self.pooled, mine)


def _noise(found: Mapping[tuple[int, int], _Difference], subjects: int) -> _Noise:
    """Return the noise of pairs, with those subjects in the pool whose own is not far above the usual."""
    import numpy as np

    own = _of_subjects(found, subjects)
    kept = _usual(own) if own is not None else frozenset(range(subjects))
    within = {pair: one for pair, one in found.items() if kept.issuperset(pair)}
    if len(kept) == subjects or own is None or not within:
        return _Noise(frozenset(range(subjects)), _pooled(found), own)
    again = _of_subjects(within, subjects)
    if again is not None:
        own = np.where([one in kept for one in range(subjects)], again, own)
    return _Noise(kept, _pooled(within), own)


def _usual(own: "Floats") -> frozenset[int]:
    """Return the subjects whose variance is no more than so many times the usual one: the largest of the
    quietest three quarters. Where more subjects are noisy, noise is usual, and all have one pool.
    """
    usual = sorted(own)[len(own) - 1 - max(1, len(own) // 4)]
    return frozenset(one for one, value in enumerate(own) if value <= _MOST_NOISE * usual or usual <= 0)


def _pooled(found: Mapping[tuple[int, int], _Difference]) -> float:
    total = sum(one.count - 1 for one in found.values())
    return sum((one.count - 1) * one.variance for one in found.values()) / total


def _effects(
    names: list[str], drawn: _Drawn, found: Mapping[tuple[int, int], _Difference]
) -> dict[Pair, Effect]:
    noise = _noise(found, len(names))
    inflation = [float(1 / left**2) for left in drawn.left]
    every = float(_freedom(drawn.values))
    among = float(_freedom(drawn.values[:, sorted(noise.kept)]))
    method = "paired t" if noise.own is None else "Tukey on blocks"
    effects = {}
    for (first, second), one in found.items():
        factor = (inflation[first] + inflation[second]) / 2
        error = sqrt(noise.of_pair(first, second, one.count) * factor / one.count)
        freedom = among if noise.kept.issuperset((first, second)) else every
        effects[names[first], names[second]] = Effect(one.count, one.mean, error, freedom, method)
    return effects


def _of_subjects(found: Mapping[tuple[int, int], _Difference], subjects: int) -> "Floats | None":
    """Return the variance of each subject: those whose sums fit the pairs' best; null where two subjects say
    only what both have together. Single ones may be negative, by chance.
    """
    import numpy as np

    if len(found) < 3:
        return None
    weights = np.sqrt([one.count - 1.0 for one in found.values()])
    design = np.zeros((len(found), subjects))
    for row, pair in enumerate(found):
        design[row, list(pair)] = 1.0
    observed = np.array([one.variance for one in found.values()])
    solved: Floats = np.linalg.lstsq(design * weights[:, None], observed * weights, rcond=None)[0]
    return solved

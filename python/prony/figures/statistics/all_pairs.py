"""The effects of all pairs of several subjects that ran in the same blocks, for one verdict over all of them.

The effect of a pair is its mean difference over common blocks and nothing else. Its error is the pair's own,
drawn towards what is usual in this study by as much as the study's pairs are alike.

>>> logs = {"a": {0: 1.0, 1: 1.1, 2: 0.9}, "b": {0: 2.0, 1: 2.1, 2: 1.9}}
>>> [(pair, round(effect.centre, 6)) for pair, effect in all_pairs(logs).items()]
[(('a', 'b'), 1.0)]

>>> round(pair_level(0.05, 3, 8.0), 4)
0.0212
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from prony.figures.statistics.effects import Effect, for_shapes, quadrature, widenings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    from numpy.typing import NDArray

# A variance so small that chance makes one in a hundred smaller is no sign that pairs differ: values that
# come in steps often do not vary at all.
_RARE = 0.01
# Beyond so many times the usual variance, what is large is not drawn down.
_FAR_ABOVE = 6.0
# Differences a - b and a - c share one of their two parts.
_SHARED = 0.25

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of subjects, each array studies x pairs (or pairs, of one study): the places ``first`` and
    ``second`` of each, ``count`` common blocks, the mean difference second - first (``centre``), its standard
    ``error`` and degrees of ``freedom``. NaN below two common blocks.
    """

    first: "NDArray[np.intp]"
    second: "NDArray[np.intp]"
    count: "NDArray[np.intp]"
    centre: "Floats"
    error: "Floats"
    freedom: "Floats"


def all_pairs(logs: Mapping[str, Mapping[int, float]]) -> dict[Pair, Effect]:
    """Return ln(second / first) of each pair with two common blocks, in the order of ``logs`` (logarithms by
    subject and block).

    *Definition*: as ``pairs_of``.
    """
    names = list(logs)
    if len(names) < 2:
        return {}
    found = pairs_of(table_of(logs))
    method = "paired t" if len(names) == 2 else "Tukey on blocks"
    return {
        (names[found.first[at]], names[found.second[at]]): Effect(
            int(found.count[at]),
            float(found.centre[at]),
            float(found.error[at]),
            float(found.freedom[at]),
            method,
        )
        for at in range(len(found.first))
        if found.count[at] >= 2
    }


def table_of(logs: Mapping[str, Mapping[int, float]]) -> "Floats":
    """Return logarithms by block and subject, NaN where one is missing."""
    import numpy as np

    blocks = sorted({block for values in logs.values() for block in values})
    table = np.array([[logs[name].get(block, np.nan) for name in logs] for block in blocks])
    return table.reshape(len(blocks), len(logs))


def pairs_of(table: "ArrayLike") -> Pairs:
    """Return the effects of all pairs from logarithms: (studies x) blocks x subjects, NaN where one is
    missing.

    *Definition*: the centre is the mean of y_second - y_first over the blocks that both have, so that
    exp(centre) is the ratio of geometric means. With D the variance of these n differences, T and d what is
    usual in the study (see ``_usual``), the squared error is (d T + (n - 1) D) / (d + n - 1) / n, times the
    square of ``effects.widenings``, with its part for shapes by these n; d + n - 1 degrees of freedom. T is
    at most what D is likely of (``_largest_likely``), and a D of more than 6 T stays what it is: a quiet pair
    is not hidden by noisy ones, nor a noisy one taken for quiet. Two subjects have their own D alone.
    *Assumptions*: blocks resemble each other no more than the widening allows for. Variances and shapes may
    differ between subjects.
    *Source*: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in
    microarray experiments", Statist. Appl. Genet. Molec. Biol. 3 (2004), for variances drawn together by as
    much as they are alike. That all pairs hold 5 % together is by simulation: docs/concepts/verdicts.md.
    """
    import numpy as np

    rows = np.asarray(table, dtype=float)
    first, second = np.triu_indices(rows.shape[-1], 1)
    differences = rows[..., second] - rows[..., first]
    known = ~np.isnan(differences)
    count = known.sum(axis=-2)
    own = np.maximum(count - 1, 0)
    few = np.where(count >= 2, count, np.nan)
    centre = np.where(known, differences, 0.0).sum(axis=-2) / few
    squares = np.where(known, differences - centre[..., None, :], 0.0) ** 2
    variance = np.where(own > 0, squares.sum(axis=-2) / np.maximum(own, 1), 0.0)
    usual, weight = _usual(variance, own, _freedom(rows))
    freedom = weight + own
    near = np.minimum(usual, _largest_likely(variance, own))
    drawn = (weight * near + own * variance) / np.where(freedom > 0, freedom, np.nan)
    drawn = np.maximum(drawn, np.where(variance > _FAR_ABOVE * usual, variance, 0.0))
    # Of a pair with fewer blocks than the study the part for shapes is that of its own.
    each, blocks = max(1, rows.shape[-1] - 1), rows.shape[-2]
    wider = np.asarray(widenings(rows))[..., None] * for_shapes(own * each) / for_shapes((blocks - 1) * each)
    error = np.sqrt(drawn / few) * wider
    return Pairs(first, second, count, centre, error, np.where(own > 0, freedom, np.nan))


def _freedom(rows: "Floats") -> "Floats":
    """Return the degrees of freedom of the residuals about blocks and subjects, one for each study."""
    import numpy as np

    known = ~np.isnan(rows)
    known &= known.sum(axis=-1, keepdims=True) >= 2
    blocks, subjects = known.any(axis=-1).sum(axis=-1), known.any(axis=-2).sum(axis=-1)
    found: Floats = np.maximum(known.sum(axis=(-2, -1)) - blocks - subjects + 1, 1)[..., None]
    return found


def _largest_likely(variance: "Floats", own: "NDArray[np.intp]") -> "Floats":
    """Return the largest variance of which chance gives a pair so small a one, one time in a hundred.

    A pair may also not have varied because its values come in steps, or in two modes: so no pair's variance
    is taken as smaller than half of the mean of all for each block but one.
    """
    import numpy as np
    from scipy.special import chdtri

    freedom = np.maximum(own, 1)
    pooled = (own * variance).sum(axis=-1, keepdims=True) / np.maximum(own.sum(axis=-1, keepdims=True), 1)
    found: Floats = np.maximum(variance, pooled * 0.5**freedom) * freedom / chdtri(freedom, 1 - _RARE)
    return found


def _usual(variance: "Floats", own: "NDArray[np.intp]", freedom: "Floats") -> "tuple[Floats, Floats]":
    """Return the usual variance of a pair in each study, and how many degrees of freedom it weighs for each
    pair.

    *Definition*: with m the mean or the median over pairs, whichever is less, of ln D without what chance
    takes from it, and s^2 its variance, e = s^2 / (1 - c) less trigamma((n - 1) / 2), which is what s^2 would
    be if pairs were alike, c the mean correlation of two pairs' variances. It is exp(m), and weighs
    d = (1 + sqrt(1 + 2 e)) / e, at most the degrees of freedom that the other subjects have; all of them
    where e is not above 0. Of a pair with fewer blocks than others it is d times the square of its share: who
    lost blocks may be noisier than those that lost none.
    """
    import numpy as np
    from scipy.special import chdtri, digamma, polygamma

    pairs = variance.shape[-1]
    if pairs < 2:
        return np.zeros_like(variance), np.zeros_like(variance)
    used = own > 0
    half = np.where(used, own, 1) / 2
    many = np.maximum(used.sum(axis=-1, keepdims=True), 1)
    pooled = (own * variance).sum(axis=-1, keepdims=True) / np.maximum(own.sum(axis=-1, keepdims=True), 1)
    least = pooled * chdtri(2 * half, 1 - _RARE) / (2 * half)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(variance, least)) - digamma(half) + np.log(half)
    logs = np.where(used & (pooled > 0), logs, 0.0)
    mean = logs.sum(axis=-1, keepdims=True) / many
    scatter = (np.where(used, logs - mean, 0.0) ** 2).sum(axis=-1, keepdims=True) / np.maximum(many - 1, 1)
    chance = np.where(used, polygamma(1, half), 0.0).sum(axis=-1, keepdims=True) / many
    subjects = (1 + (1 + 8 * pairs) ** 0.5) / 2
    excess = scatter / (1 - _SHARED * 2 * (subjects - 2) / (pairs - 1)) - chance
    most = np.maximum(freedom - own, 0)
    positive = np.where(excess > 0, excess, 1.0)
    weight = np.where(excess > 0, (1 + np.sqrt(1 + 2 * positive)) / positive, np.inf)
    some = used | ~used.any(axis=-1, keepdims=True)
    middle = np.nanmedian(np.where(some, logs, np.nan), axis=-1, keepdims=True)
    usual: Floats = np.where(pooled > 0, np.exp(np.fmin(mean, middle)), 0.0)
    whole = own / np.maximum(own.max(axis=-1, keepdims=True), 1)
    return usual, np.minimum(weight, most) * whole**2


# --- the studentised range --------------------------------------------------------------------------------


# Nodes of each quadrature: both integrands are smooth, and 96 give eight digits at levels down to 1e-5.
_NODES = 96
# Beyond eight standard deviations a normal variable has a probability of 1e-15.
_FARTHEST = 8.0
# The least and the most share of the spread's distribution that counts.
_TAIL = 1e-10
_MOST_STEPS = 40
# So near to the level that no printed digit changes.
_NEAR = 1e-10
# A chance below that of any level; by rounding it may seem to be none.
_LEAST = 1e-300


@lru_cache(maxsize=4096)
def pair_level(level: float, subjects: int, freedom: float) -> float:
    """Return the two-sided level at which Student's t test of each pair holds ``level`` over all pairs.

    *Definition*: P(|T| >= q / sqrt(2)), where q is the upper ``level`` point of the studentised range of
    ``subjects`` means and an independent estimate of their variance with ``freedom`` degrees of freedom.
    *Assumptions*: means are independent and equally precise; with unequal precision it is conservative.
    *Source*: J. W. Tukey, "The problem of multiple comparisons" (1953); A. J. Hayter, "A proof of the
    conjecture that the Tukey-Kramer multiple comparisons procedure is conservative", Ann. Statist. 12 (1984).
    """
    if subjects <= 2:
        return level
    from scipy.special import stdtr, stdtrit

    # Between one test and a share for each pair (Bonferroni) lies the level of the pairs together.
    low = float(stdtrit(freedom, 1 - level / 2))
    high = float(stdtrit(freedom, 1 - level / (subjects * (subjects - 1))))
    return float(2 * stdtr(freedom, -_statistic(level, subjects, freedom, low, high)))


def _statistic(level: float, subjects: int, freedom: float, low: float, high: float) -> float:
    """Return where the chance of ``_beyond`` is ``level``, between ``low`` and ``high``.

    *Definition*: by secants between two statistics around it, through logarithms of the chance, which are
    nearly lines; an end that stays is halved (Illinois). Each step is a quadrature, and each study has
    degrees of freedom of its own.
    *Source*: M. Dowell and P. Jarratt, "A modified regula falsi method", BIT 11 (1971).
    """

    def off_at(statistic: float) -> float:
        return log(max(_LEAST, _beyond(statistic, subjects, freedom)) / level)

    above, below = off_at(low), off_at(high)
    if not above > 0 > below:
        return low if above <= 0 else high
    at, last = high, 0.0
    for _ in range(_MOST_STEPS):
        at = (low * below - high * above) / (below - above)
        off = off_at(at)
        if abs(off) < _NEAR:
            break
        stays = 0.5 if off * last > 0 else 1.0
        if off > 0:
            low, above, below = at, off, stays * below
        else:
            high, below, above = at, off, stays * above
        last = off
    return at


def _beyond(statistic: float, subjects: int, freedom: float) -> float:
    """Return the chance that some pair's t exceeds ``statistic``.

    *Definition*: the mean over the spread s (s^2 a mean square with ``freedom`` degrees of freedom) of
    1 - k times the integral of phi(z) (Phi(z) - Phi(z - q s))^(k - 1), with q = sqrt(2) ``statistic``.
    """
    import numpy as np
    from scipy.special import chdtri, gammaln, ndtr

    nodes, weights = quadrature(_NODES)
    z = _FARTHEST * nodes
    density = _FARTHEST * weights * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    low, high = (float(np.sqrt(chdtri(freedom, share) / freedom)) for share in (1 - _TAIL, _TAIL))
    s = low + (high - low) * (nodes + 1) / 2
    half = freedom / 2
    spread = np.exp(np.log(2) + half * np.log(half) - gammaln(half) + (freedom - 1) * np.log(s) - half * s**2)
    within = ndtr(z)[None, :] - ndtr(z[None, :] - 2**0.5 * statistic * s[:, None])
    inside = subjects * (within ** (subjects - 1) @ density)
    return float(1 - (high - low) / 2 * (weights @ (spread * inside)))

"""The effects of all pairs of several subjects that ran in the same blocks, for one verdict over all of them.

The effect of a pair is its mean difference over common blocks and nothing else. Its error is the pair's own,
drawn towards what is usual in this study by as much as the study's pairs are alike. Must not know verdicts.

>>> logs = {"a": {0: 1.0, 1: 1.1, 2: 0.9}, "b": {0: 2.0, 1: 2.1, 2: 1.9}}
>>> [(pair, round(effect.centre, 6)) for pair, effect in all_pairs(logs).items()]
[(('a', 'b'), 1.0)]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.analysis.dependence import widenings
from prony.analysis.effects import Effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

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
    square of ``dependence.widenings``; d + n - 1 degrees of freedom. T is at most what D is likely of
    (``_largest_likely``), and a D of more than 6 T stays what it is: a quiet pair is not hidden by noisy
    ones, nor a noisy one taken for quiet. Two subjects have their own D alone.
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
    error = np.sqrt(drawn / few) * np.asarray(widenings(rows))[..., None]
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
    where e is not above 0.
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
    return usual, np.minimum(weight, most)

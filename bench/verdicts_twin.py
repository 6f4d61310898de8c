"""Prony's procedure for all pairs on many complete studies at once, and others that it was chosen from.

A twin for simulations only: `check` and `check_dependence` hold it to Prony's own functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, inf, log2

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from prony.analysis.all_pairs import all_pairs
from prony.analysis.dependence import dependence as test_dependence
from prony.analysis.studentized import pair_level

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

LEVEL = 0.05
FARTHEST = 12.0
"""Subjects whose variance is more than so many times the usual one are in no pool."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The pairs of each study: estimates of second - first, and half-widths of their intervals."""

    first: Places
    second: Places
    centre: Floats
    half: Floats

    def excludes(self, bar: float) -> Bools:
        """Return whether an interval lies beyond ``bar`` on either side."""
        return np.abs(self.centre) > self.half + bar

    def first_beats(self, bar: float, others: Sequence[int] = ()) -> Bools:
        """Return whether subject 0 is above ``others`` (all, if none are named) by more than ``bar``."""
        rivals = np.isin(self.second, others) if others else np.ones(len(self.second), dtype=bool)
        return (-self.centre - self.half > bar)[:, (self.first == 0) & rivals].all(axis=1)

    def widened(self, factors: Floats) -> "Judged":
        """Return the pairs with the intervals of each study so many times as wide."""
        return Judged(self.first, self.second, self.centre, self.half * factors[:, None])


def _quantile(level: float, freedom: float) -> float:
    return float(-stdtrit(freedom, level / 2))


def _pairs(found: Floats) -> tuple[Places, Places, Floats]:
    first, second = np.triu_indices(found.shape[2], 1)
    return first, second, found[:, :, second] - found[:, :, first]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the intervals of pairs are made of: studies x pairs, or studies x 1.

    ``pooled`` and ``own``: the two variances of a difference, before weights; ``factor``: of either to the
    squared error of the mean; ``freedom``: degrees of freedom.
    """

    first: Places
    second: Places
    centre: Floats
    pooled: Floats
    own: Floats
    factor: Floats
    freedom: Places

    def quantiles(self, subjects: int, nominal: Callable[[float], float] = float) -> Floats:
        """Return the quantile of each pair. ``nominal``: the level at a look, of that over all looks."""
        found = np.empty(self.freedom.shape)
        for one in np.unique(self.freedom):
            level = nominal(pair_level(LEVEL, subjects, float(one)))
            found[self.freedom == one] = _quantile(level, one)
        return found


def own_weight(blocks: int, subjects: int) -> float:
    """Return the weight of own variances against the pooled one."""
    more = 1.5 * max(0.0, log2(subjects / 16))
    return 1.0 if subjects == 2 else 0.85 + (2 + more) / blocks


def judge(found: Floats, nominal: Callable[[float], float] = float, farthest: float = FARTHEST) -> Judged:
    """Return what Prony says of complete studies: studies x blocks x subjects."""
    _, blocks, subjects = found.shape
    parts = parts_of(found, farthest)
    square = np.maximum(parts.pooled, own_weight(blocks, subjects) * parts.own) * parts.factor
    half = parts.quantiles(subjects, nominal) * np.sqrt(square)
    return Judged(parts.first, parts.second, parts.centre, half)


def parts_of(found: Floats, farthest: float = FARTHEST) -> Parts:
    """Return what the intervals of all pairs are made of."""
    _, blocks, subjects = found.shape
    freedom = (subjects - 1) * (blocks - 1)
    drawn, left = _drawn_in(found) if freedom >= 8 else (found, np.ones((len(found), subjects)))
    first, second = np.triu_indices(subjects, 1)
    means, squares = drawn.mean(axis=1), _of_differences(drawn)
    kept, pooled, own = _variances(squares, farthest)
    both = kept[:, first] & kept[:, second]
    many = kept.sum(axis=1)[:, None]
    return Parts(
        first,
        second,
        means[:, second] - means[:, first],
        pooled,
        1.08 * pooled if subjects == 2 else own[:, first] + own[:, second],
        (left[:, first] ** -2.0 + left[:, second] ** -2.0) / 2 / blocks,
        np.where(both, (many - 1) * (blocks - 1), freedom),
    )


def _of_differences(drawn: Floats) -> Floats:
    """Return the variance of the differences of each two subjects: studies x subjects x subjects."""
    rest = drawn - drawn.mean(axis=1, keepdims=True)
    together = np.swapaxes(rest, 1, 2) @ rest / (drawn.shape[1] - 1)
    own = np.diagonal(together, axis1=1, axis2=2)
    squares = own[:, :, None] + own[:, None, :] - 2 * together
    np.maximum(squares, 0, out=squares)
    return squares


def _of_subjects(squares: Floats, many: Floats | int) -> Floats:
    """Return the variances of ``many`` subjects that fit those of their differences best."""
    rows = squares.sum(axis=2)
    return (rows - rows.sum(axis=1, keepdims=True) / (2 * (many - 1))) / (many - 2)


def _variances(squares: Floats, farthest: float) -> tuple[Bools, Floats, Floats]:
    """Return which subjects are in the pool, the variance that their pairs have in common, and that of each
    subject.
    """
    subjects = squares.shape[1]
    if subjects == 2 or farthest == inf:
        kept = np.ones(squares.shape[:2], dtype=bool)
        own = _of_subjects(squares, subjects) if subjects > 2 else np.zeros(squares.shape[:2])
        return kept, squares.sum(axis=(1, 2))[:, None] / (subjects * (subjects - 1)), own
    own = _of_subjects(squares, subjects)
    usual = np.sort(own, axis=1)[:, subjects - 1 - max(1, subjects // 4), None]
    kept = (own <= farthest * usual) | (usual <= 0)
    many = kept.sum(axis=1)[:, None]
    squares = squares * kept[:, :, None] * kept[:, None, :]
    pooled = squares.sum(axis=(1, 2))[:, None] / (many * (many - 1))
    again = _of_subjects(squares, np.maximum(many, 3))
    return kept, pooled, np.where(kept & (many > 2), again, own)


def _drawn_in(found: Floats) -> tuple[Floats, Floats]:
    _, blocks, subjects = found.shape
    across = np.median(found, axis=2, keepdims=True)
    typical = across + np.median(found - across, axis=1, keepdims=True)
    away = np.abs(found - typical)
    own = np.median(away, axis=1, keepdims=True)
    every = np.median(away.reshape(len(found), -1), axis=1)[:, None, None]
    smaller = ((1 - 1 / subjects) * (1 - 1 / blocks)) ** 0.5
    limit = 3 * np.maximum(own, every) / 0.6745 / smaller
    left = np.maximum((away <= limit).sum(axis=1), 1) / blocks
    return typical + np.clip(found - typical, -limit, limit), left


def check(found: Floats, judged: Judged) -> None:
    """Hold the twin to what Prony itself says of the first studies.

    *Errors*: AssertionError where they differ.
    """
    for place, study in enumerate(found):
        subjects = study.shape[1]
        logs = {f"s{k:02}": dict(enumerate(study[:, k].tolist())) for k in range(subjects)}
        for pair, effect in enumerate(all_pairs(logs).values()):
            level = pair_level(LEVEL, subjects, effect.freedom)
            low, high = effect.interval(level)
            centre, half = judged.centre[place, pair], judged.half[place, pair]
            assert np.allclose((low, high), (centre - half, centre + half), rtol=1e-6, atol=1e-9)


# --- dependence between blocks ----------------------------------------------------------------------------

_ORDERS_OF_BLOCKS = 1999
# Studies at once: their chances under all orders take 16 kB each.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Depends:
    """Of each study: whether a dependence of blocks is shown, and the factor of its intervals."""

    p_value: Floats
    widening: Floats

    @property
    def shown(self) -> Bools:
        """Whether a dependence is shown."""
        return self.p_value <= LEVEL


def dependence(tables: Sequence[Floats]) -> Depends:
    """Return the dependence of blocks that studies show in several tables: studies x blocks x series."""
    blocks = tables[0].shape[1]
    together = np.sum([_products(table) for table in tables], axis=0)
    together /= np.trace(together, axis1=1, axis2=2)[:, None, None]
    observed = np.trace(together, offset=1, axis1=1, axis2=2)
    random = np.random.default_rng(blocks)
    orders = np.argsort(random.random((_ORDERS_OF_BLOCKS, blocks)), axis=1)
    neighbours = np.zeros((_ORDERS_OF_BLOCKS, blocks * blocks))
    np.put_along_axis(neighbours, orders[:, :-1] * blocks + orders[:, 1:], 1.0, axis=1)
    p_value = np.empty(len(observed))
    for start in range(0, len(observed), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        chance = together[part].reshape(-1, blocks * blocks) @ neighbours.T
        larger = (chance >= observed[part, None] - 1e-12).sum(axis=1)
        p_value[part] = (1 + larger) / (1 + _ORDERS_OF_BLOCKS)
    correlation = np.minimum(0.9, (observed + 1 / blocks) / (1 - 3 / blocks))
    return Depends(p_value, np.where(p_value <= LEVEL, _widening(correlation, blocks), 1.0))


def _products(table: Floats) -> Floats:
    rest = table - table.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=2, keepdims=True)
    products = rest @ np.swapaxes(rest, 1, 2)
    return products / np.trace(products, axis1=1, axis2=2)[:, None, None] * (table.shape[2] - 1)


def _widening(correlation: Floats, blocks: int) -> Floats:
    steps = np.arange(1, blocks)
    more = 1 + 2 * ((1 - steps / blocks) * correlation[:, None] ** steps).sum(axis=1)
    return np.sqrt(np.maximum(1.0, more / np.maximum(0.1, 1 - (more - 1) / (blocks - 1))))


def check_dependence(tables: Sequence[Floats], depends: Depends, studies: int) -> None:
    """Hold the twin to what Prony itself says of the first studies.

    *Errors*: AssertionError where they differ.
    """
    for place in range(studies):
        found = test_dependence([_series(table[place]) for table in tables])
        assert found
        expected = (depends.p_value[place], depends.widening[place])
        assert np.allclose((found.p_value, found.widening), expected, rtol=1e-6)


def _series(study: Floats) -> dict[str, dict[int, float]]:
    return {f"s{k:02}": dict(enumerate(study[:, k].tolist())) for k in range(study.shape[1])}


# --- candidates -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claims:
    """Of each study: whether ``any`` pair is separated, and whether the ``first`` subject is above all."""

    any: Bools
    first: Bools


def _claims(judged: Judged, bar: float) -> Claims:
    return Claims(judged.excludes(bar).any(axis=1), judged.first_beats(bar))


def _plain(differences: Floats) -> tuple[Floats, Floats, int]:
    blocks = differences.shape[1]
    return differences.mean(axis=1), differences.var(axis=1, ddof=1) / blocks, blocks - 1


def _yuen(differences: Floats) -> tuple[Floats, Floats, int]:
    blocks = differences.shape[1]
    if blocks < 8:
        return _plain(differences)
    cut = floor(0.2 * blocks)
    kept, ranked = blocks - 2 * cut, np.sort(differences, axis=1)
    drawn = np.clip(ranked, ranked[:, cut : cut + 1], ranked[:, blocks - cut - 1 : blocks - cut])
    squares = ((drawn - drawn.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return ranked[:, cut : blocks - cut].mean(axis=1), squares / (kept * (kept - 1)), kept - 1


Estimate = Callable[[Floats], tuple[Floats, Floats, int]]


def _holm_levels(p_values: Floats) -> Floats:
    """Return the level of each test: after the first that is not rejected, all keep its level."""
    count = p_values.shape[1]
    order = np.argsort(p_values, axis=1)
    level = LEVEL / (count - np.arange(count))
    kept = np.take_along_axis(p_values, order, axis=1) > level
    stop = np.where(kept.any(axis=1), kept.argmax(axis=1), count - 1)
    ranked = level[np.minimum(np.arange(count)[None, :], stop[:, None])]
    levels = np.empty_like(p_values)
    np.put_along_axis(levels, order, ranked, axis=1)
    return levels


def _holm(estimate: Estimate) -> Callable[[Floats, float], Claims]:
    def claims(found: Floats, bar: float) -> Claims:
        first, second, differences = _pairs(found)
        centre, squares, freedom = estimate(differences)
        levels = _holm_levels(2 * stdtr(freedom, -np.abs(centre) / np.sqrt(squares)))
        return _claims(Judged(first, second, centre, -stdtrit(freedom, levels / 2) * np.sqrt(squares)), bar)

    return claims


def _before(found: Floats, bar: float) -> Claims:
    """The leader of the data against the others, Holm over k - 1; the other pairs as a second family."""
    subjects = found.shape[2]
    leads = np.argmax(found.mean(axis=1), axis=1)
    first, second, differences = _pairs(found)
    centre, squares, freedom = _yuen(differences)
    p_values = 2 * stdtr(freedom, -np.abs(centre) / np.sqrt(squares))
    levels = np.empty_like(p_values)
    has = (first[None, :] == leads[:, None]) | (second[None, :] == leads[:, None])
    for mask, size in ((has, subjects - 1), (~has, (subjects - 1) * (subjects - 2) // 2)):
        if size:
            levels[mask] = _holm_levels(p_values[mask].reshape(-1, size)).ravel()
    return _claims(Judged(first, second, centre, -stdtrit(freedom, levels / 2) * np.sqrt(squares)), bar)


def _tukey(found: Floats, bar: float) -> Claims:
    """One pooled variance of a two-way layout."""
    _, blocks, subjects = found.shape
    first, second, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    freedom = (subjects - 1) * (blocks - 1)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    return _claims(
        Judged(first, second, centre, _quantile(pair_level(LEVEL, subjects, freedom), freedom) * error), bar
    )


def _own_tukey(found: Floats, bar: float) -> Claims:
    """Each pair's own variance against the studentised range of its own degrees of freedom."""
    first, second, differences = _pairs(found)
    centre, squares, freedom = _plain(differences)
    quantile = _quantile(pair_level(LEVEL, found.shape[2], freedom), freedom)
    return _claims(Judged(first, second, centre, quantile * np.sqrt(squares)), bar)


def _with_the_best(found: Floats, bar: float) -> Claims:
    """Hsu's comparisons with the best, pooled: one-sided, at the level of k - 1 pairs (Bonferroni)."""
    _, blocks, subjects = found.shape
    first, second, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    freedom = (subjects - 1) * (blocks - 1)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    return _claims(Judged(first, second, centre, _quantile(2 * LEVEL / (subjects - 1), freedom) * error), bar)


_ORDERS = 199


def _permuted(found: Floats, bar: float) -> Claims:
    """The largest pooled t against its distribution when subjects are permuted within blocks."""
    rng = np.random.default_rng(1)
    first, second, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    rest = found - found.mean(axis=1, keepdims=True)
    largest = np.empty((len(found), _ORDERS))
    for order in range(_ORDERS):
        _, _, other = _pairs(rng.permuted(rest, axis=2))
        mean, square, _ = _plain(other)
        largest[:, order] = np.abs(mean).max(axis=1) / np.sqrt(square.mean(axis=1))
    quantile = np.sort(largest, axis=1)[:, int(0.95 * (_ORDERS + 1)) - 1][:, None]
    return _claims(Judged(first, second, centre, quantile * error), bar)


CANDIDATES: dict[str, Callable[[Floats, float], Claims]] = {
    "before: the leader as if fixed": _before,
    "Holm, all pairs, paired t": _holm(_plain),
    "Holm, all pairs, Yuen": _holm(_yuen),
    "Tukey, pooled": _tukey,
    "Tukey, own variances": _own_tukey,
    "with the best (Hsu)": _with_the_best,
    "permuted within blocks": _permuted,
    "Prony, one pool of all": lambda found, bar: _claims(judge(found, farthest=inf), bar),
    "**Prony**": lambda found, bar: _claims(judge(found), bar),
}

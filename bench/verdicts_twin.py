"""Prony's procedure for all pairs on many complete studies at once, and others that it was chosen from.

A twin for simulations only: `check` holds it to Prony's own functions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from prony.analysis.all_pairs import all_pairs
from prony.analysis.studentized import pair_level

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Judged:
    """The pairs of each study: estimates of second - first, and half-widths of their intervals."""

    first: NDArray[np.intp]
    centre: Floats
    half: Floats

    def excludes(self, bar: float) -> Bools:
        """Return whether an interval lies beyond ``bar`` on either side."""
        return np.abs(self.centre) > self.half + bar

    def first_beats(self, bar: float) -> Bools:
        """Return whether subject 0 is above all others by more than ``bar``."""
        return (-self.centre - self.half > bar)[:, self.first == 0].all(axis=1)


def _quantile(level: float, freedom: float) -> float:
    return float(-stdtrit(freedom, level / 2))


def _pairs(found: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    first, second = np.triu_indices(found.shape[2], 1)
    return first, second, found[:, :, second] - found[:, :, first]


def judge(found: Floats) -> Judged:
    """Return what Prony says of complete studies: studies x blocks x subjects."""
    _, blocks, subjects = found.shape
    freedom = (subjects - 1) * (blocks - 1)
    drawn, left = _drawn_in(found) if freedom >= 8 else (found, np.ones((len(found), subjects)))
    first, second, differences = _pairs(drawn)
    squares = differences.var(axis=1, ddof=1) / blocks
    pooled = squares.mean(axis=1, keepdims=True)
    own = 1.08 * squares
    if subjects > 2:
        rows = np.stack(
            [squares[:, (first == k) | (second == k)].sum(axis=1) for k in range(subjects)], axis=1
        )
        each = (rows - rows.sum(axis=1, keepdims=True) / (2 * (subjects - 1))) / (subjects - 2)
        own = (0.85 + 2 / blocks) * (each[:, first] + each[:, second])
    factor = (left[:, first] ** -2.0 + left[:, second] ** -2.0) / 2
    error = np.sqrt(np.maximum(pooled, own) * factor)
    quantile = _quantile(pair_level(LEVEL, subjects, float(freedom)), freedom)
    return Judged(first, differences.mean(axis=1), quantile * error)


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
        first, _, differences = _pairs(found)
        centre, squares, freedom = estimate(differences)
        levels = _holm_levels(2 * stdtr(freedom, -np.abs(centre) / np.sqrt(squares)))
        return _claims(Judged(first, centre, -stdtrit(freedom, levels / 2) * np.sqrt(squares)), bar)

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
    return _claims(Judged(first, centre, -stdtrit(freedom, levels / 2) * np.sqrt(squares)), bar)


def _tukey(found: Floats, bar: float) -> Claims:
    """One pooled variance of a two-way layout."""
    _, blocks, subjects = found.shape
    first, _, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    freedom = (subjects - 1) * (blocks - 1)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    return _claims(
        Judged(first, centre, _quantile(pair_level(LEVEL, subjects, freedom), freedom) * error), bar
    )


def _own_tukey(found: Floats, bar: float) -> Claims:
    """Each pair's own variance against the studentised range of its own degrees of freedom."""
    first, _, differences = _pairs(found)
    centre, squares, freedom = _plain(differences)
    quantile = _quantile(pair_level(LEVEL, found.shape[2], freedom), freedom)
    return _claims(Judged(first, centre, quantile * np.sqrt(squares)), bar)


def _with_the_best(found: Floats, bar: float) -> Claims:
    """Hsu's comparisons with the best, pooled: one-sided, at the level of k - 1 pairs (Bonferroni)."""
    _, blocks, subjects = found.shape
    first, _, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    freedom = (subjects - 1) * (blocks - 1)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    return _claims(Judged(first, centre, _quantile(2 * LEVEL / (subjects - 1), freedom) * error), bar)


_ORDERS = 199


def _permuted(found: Floats, bar: float) -> Claims:
    """The largest pooled t against its distribution when subjects are permuted within blocks."""
    rng = np.random.default_rng(1)
    first, _, differences = _pairs(found)
    centre, squares, _ = _plain(differences)
    error = np.sqrt(squares.mean(axis=1, keepdims=True)) * np.ones_like(squares)
    rest = found - found.mean(axis=1, keepdims=True)
    largest = np.empty((len(found), _ORDERS))
    for order in range(_ORDERS):
        _, _, other = _pairs(rng.permuted(rest, axis=2))
        mean, square, _ = _plain(other)
        largest[:, order] = np.abs(mean).max(axis=1) / np.sqrt(square.mean(axis=1))
    quantile = np.sort(largest, axis=1)[:, int(0.95 * (_ORDERS + 1)) - 1][:, None]
    return _claims(Judged(first, centre, quantile * error), bar)


CANDIDATES: dict[str, Callable[[Floats, float], Claims]] = {
    "before: the leader as if fixed": _before,
    "Holm, all pairs, paired t": _holm(_plain),
    "Holm, all pairs, Yuen": _holm(_yuen),
    "Tukey, pooled": _tukey,
    "Tukey, own variances": _own_tukey,
    "with the best (Hsu)": _with_the_best,
    "permuted within blocks": _permuted,
    "**Prony**": lambda found, bar: _claims(judge(found), bar),
}

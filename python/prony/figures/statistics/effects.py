"""The effect of B against A on the scale of logarithms: its centre, its error, its degrees of freedom.

One number per trial is the unit of analysis. Paired: ratios within a block, which remove what the block
shares (drift). Unpaired: two sets of trials of different times, whose drift remains in the effect.

>>> paired([0.01, 0.02, 0.03, 0.02, 0.02]).method
'paired t'

From the scale of logarithms back to ratios.

A crafted archive may hold figures so far apart that no float has their ratio. Nothing measured comes near:
the whole range of 64-bit integers spans e^44.

>>> ratio_of(0.0), change_of(0.0)
(1.0, 0.0)
>>> round(geometric_mean([1.0, 4.0]), 9), geometric_mean([4.0, 4.0]), geometric_mean([0.0, 4.0])
(2.0, 4.0, 0.0)
>>> ratio_of(1e6) == ratio_of(600.0)
True

>>> found = dependence([[b % 8 // 4, 0.0] for b in range(24)])
>>> round(found.correlation, 1), round(found.widening, 1)
(0.6, 2.1)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, expm1, fsum, log, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Its hundredfold and its square root are floats as well.
_LARGEST = 600.0


def ratio_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``), at most e^600."""
    return exp(min(log_ratio, _LARGEST))


def change_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``) - 1, at most e^600."""
    return expm1(min(log_ratio, _LARGEST))


def geometric_mean(values: Sequence[float]) -> float:
    """Return exp of the mean of ln(value), of one value at least; 0 if any is 0.

    Equal values have themselves as their mean, whatever logarithms are rounded to.
    """
    least, most = min(values), max(values)
    return 0.0 if least <= 0 else min(max(ratio_of(fsum(map(log, values)) / len(values)), least), most)


@dataclass(frozen=True, slots=True)
class Effect:
    """ln(B / A): its estimate ``centre``, standard error and degrees of freedom, from ``count`` blocks.

    ``spread``: what one block would vary by: ``error`` times the root of ``count``. An infinite error is one
    that nothing shows: there is no interval.
    """

    count: int
    centre: float
    error: float
    freedom: float
    method: str

    @property
    def spread(self) -> float:
        """The standard deviation of one block, as far as the error shows it."""
        return self.error * sqrt(self.count)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two-sided interval at 1 - ``level``."""
        half = student_t(1 - level / 2, self.freedom) * self.error
        return self.centre - half, self.centre + half

    def p_above(self, bound: float) -> float:
        """Return the one-sided p-value of the claim that the effect is greater than ``bound``."""
        if self.error == 0:
            return 0.0 if self.centre > bound else 1.0
        return tail((self.centre - bound) / self.error, self.freedom)

    @property
    def p_value(self) -> float:
        """The two-sided p-value against no effect."""
        if self.error == 0:
            return 0.0 if self.centre else 1.0
        return min(1.0, 2 * tail(abs(self.centre) / self.error, self.freedom))

    def p_within(self, bound: float) -> float:
        """Return the p-value of the claim that the effect lies within +-``bound`` (two one-sided tests)."""
        return max(self.p_above(-bound), self.mirrored().p_above(-bound))

    def mirrored(self) -> "Effect":
        """Return ln(A / B)."""
        return Effect(self.count, -self.centre, self.error, self.freedom, self.method)


@lru_cache(maxsize=4096)
def student_t(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution.

    *Source*: scipy.special.stdtrit (Boost's and Cephes' inverse of the incomplete beta function).
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def tail(statistic: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds ``statistic``."""
    from scipy.special import stdtr

    return float(stdtr(freedom, -statistic))


def _mean_square(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the square of the standard error."""
    count = len(values)
    mean = fsum(values) / count
    return mean, fsum((value - mean) ** 2 for value in values) / ((count - 1) * count)


def paired(log_ratios: Sequence[float], widening: float | None = None) -> Effect:
    """Return the effect from ln(B_b / A_b), one for each block b. ``widening``: None for that of blocks.

    *Definition*: the mean of the log ratios, so that its exponential is the ratio of geometric means; its
    error is s / sqrt(n), times that of `widenings`; n - 1 degrees of freedom.
    *Assumptions*: those of `widenings`.
    *Errors*: ValueError below two blocks.
    *Source*: Student, "The probable error of a mean", Biometrika 6 (1908).
    """
    count = len(log_ratios)
    if count < 2:
        raise ValueError(f"{count} blocks have no spread; expected at least 2")
    mean, square = _mean_square(log_ratios)
    wider = float(widenings([[value] for value in log_ratios])) if widening is None else widening
    return Effect(count, mean, sqrt(square) * wider, count - 1, "paired t")


def unpaired(first: Sequence[float], second: Sequence[float]) -> Effect:
    """Return the effect from ln A and ln B of independent trials (Welch's t).

    *Definition*: the difference of the means, error sqrt(s_A^2 / n_A + s_B^2 / n_B), degrees of freedom by
    Welch and Satterthwaite; ``count`` is the smaller number of trials.
    *Assumptions*: the trials differ in nothing but A and B. Between days or machines that is not so: the
    effect then includes drift, which no interval shows.
    *Errors*: ValueError below two trials on either side.
    *Source*: B. L. Welch, "The generalization of 'Student's' problem when several different population
    variances are involved", Biometrika 34 (1947).
    """
    if min(len(first), len(second)) < 2:
        raise ValueError(f"{len(first)} and {len(second)} trials have no spread; expected at least 2 each")
    (below, square_below), (above, square_above) = _mean_square(first), _mean_square(second)
    square = square_below + square_above
    parts = square_below**2 / (len(first) - 1) + square_above**2 / (len(second) - 1)
    freedom = square**2 / parts if parts > 0 else float(len(first) + len(second) - 2)
    return Effect(
        min(len(first), len(second)), above - below, sqrt(square), freedom, "Welch on logarithms, unpaired"
    )


# --- how blocks resemble the block before, and how much wider intervals must be for it --------------------


# What is thought of the correlation before the blocks are seen: its mean and its standard deviation. With
# them the procedure holds 5 % where each subject has a correlation of 0.2 (`bench/verdicts`).
_USUAL = 0.2
_DOUBT = 0.5
# Shapes of noise that are no normal one, and correlations that are estimated too low by chance: so much wider
# up to so many degrees of freedom, then less and less.
_SHAPES = 0.08
_FEW_FREEDOMS = 60
_MOST = 0.9


@dataclass(frozen=True, slots=True)
class Dependence:
    """The ``correlation`` of neighbouring blocks, as far as they show it, and the factor of standard errors
    (``widening``) that stands for it and for the shapes that so few ``blocks`` cannot show.
    """

    correlation: float
    widening: float
    blocks: int


def dependence(table: "ArrayLike") -> Dependence:
    """Return how the blocks of one study depend on each other, from its logarithms: blocks x subjects, NaN
    where one is missing.

    *Definition*: as ``widenings``.
    """
    import numpy as np

    rows = np.asarray(table, dtype=float)
    correlation, widening = _both(rows)
    return Dependence(float(correlation), float(widening), len(rows))


def widenings(table: "ArrayLike") -> "Floats":
    """Return the factors of standard errors: of studies x blocks x subjects, one for each study.

    *Definition*: with r the sum of products of neighbouring blocks' residuals, about the means of blocks (of
    two subjects and more) and of subjects, over the sum of their squares, n blocks and f = (n - 1) max(1, k -
    1) degrees of freedom, the estimate e = (r + 1 / n) / (1 - 3 / n) has a variance of about v = 1 / (f (1 -
    3 / n)^2). The correlation is 0.2 + (e - 0.2) 0.25 / (0.25 + v), from 0 to 0.9: what blocks do not show is
    taken as usual. The factor is sqrt(V / (1 - (V - 1) / (n - 1))), with V = 1 + 2 sum of (1 - j / n)
    correlation^j over j < n, times 1 + 0.08 min(1, 60 / f).
    *Assumptions*: blocks were measured one after the other. What a block does to all subjects alike cancels
    and is no dependence.
    *Source*: M. G. Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41 (1954), for
    the bias; B. Efron and C. Morris, "Stein's estimation rule and its competitors", J. Am. Statist. Ass. 68
    (1973), for drawing an estimate to what is usual. The numbers are by simulation.
    """
    return _both(table)[1]


def _both(table: "ArrayLike") -> "tuple[Floats, Floats]":
    import numpy as np

    rows = np.asarray(table, dtype=float)
    blocks, subjects = max(1, rows.shape[-2]), rows.shape[-1]
    freedom = max(1, (blocks - 1) * max(1, subjects - 1))
    weight = _DOUBT**2 / (_DOUBT**2 + 1 / (freedom * _leaning(blocks) ** 2))
    shown = shown_by(rows)
    estimate = np.where(np.isnan(shown), _USUAL, shown)
    correlation = np.clip(_USUAL + weight * (estimate - _USUAL), 0.0, _MOST)
    return correlation, of_mean(correlation, blocks) * for_shapes(freedom)


def for_shapes(freedom: "ArrayLike") -> "Floats":
    """Return the part of ``widenings`` for shapes of noise that so few degrees of freedom cannot show."""
    import numpy as np

    found: Floats = 1 + _SHAPES * np.minimum(1.0, _FEW_FREEDOMS / np.maximum(1, freedom))
    return found


def shown_by(table: "ArrayLike") -> "Floats":
    """Return the correlation of neighbouring blocks that studies show by themselves, without the leaning of
    few blocks to negative ones; NaN where nothing varies.

    *Definition*: e of ``widenings``.
    """
    import numpy as np

    rows = np.asarray(table, dtype=float)
    blocks = max(1, rows.shape[-2])
    found: Floats = (_shown(_residuals(rows)) + 1 / blocks) / _leaning(blocks)
    return found


def _leaning(blocks: int) -> float:
    return max(0.1, 1 - 3 / blocks)


def _residuals(rows: "Floats") -> "Floats":
    """Return what is left without the means of blocks and subjects; 0 where a value is missing."""
    import numpy as np

    known = ~np.isnan(rows)
    left = np.where(known, rows, 0.0)
    turns = 3 if not known.all() else 1  # the means of incomplete rows and columns depend on each other
    for _ in range(turns):
        for axis in (-1, -2) if rows.shape[-1] > 1 else (-2,):
            count = np.maximum(known.sum(axis=axis, keepdims=True), 1)
            left = np.where(known, left - left.sum(axis=axis, keepdims=True) / count, 0.0)
    return left


def _shown(left: "Floats") -> "Floats":
    """Return the correlation of neighbouring blocks; NaN where nothing varies."""
    import numpy as np

    products = (left[..., 1:, :] * left[..., :-1, :]).sum(axis=(-2, -1))
    squares = (left**2).sum(axis=(-2, -1))
    return np.where(squares > 0, products / np.where(squares > 0, squares, 1.0), np.nan)


def of_mean(correlation: "ArrayLike", blocks: int) -> "Floats":
    """Return the standard error of a mean of dependent blocks, over what their spread alone would give, by
    the correlation of neighbouring ones.

    *Source*: G. V. Bayley and J. M. Hammersley, "The 'effective' number of independent observations in an
    autocorrelated time series", J. R. Statist. Soc. Suppl. 8 (1946).
    """
    import numpy as np

    steps = np.arange(1, blocks)
    more = 1 + 2 * ((1 - steps / blocks) * np.asarray(correlation)[..., None] ** steps).sum(axis=-1)
    factor: Floats = np.sqrt(more / np.maximum(0.1, 1 - (more - 1) / max(1, blocks - 1)))
    return factor


@cache
def quadrature(nodes: int) -> "tuple[Floats, Floats]":
    """Return so many nodes on -1 to 1, and their weights (Gauss and Legendre)."""
    from numpy.polynomial.legendre import leggauss

    return leggauss(nodes)

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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, fsum, log, sqrt

from prony.analysis.dependence import widenings

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

    ``spread``: what one block would vary by: ``error`` times the root of ``count``.
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
    """Return the effect from ln(B_b / A_b), one for each block b. ``widening``: null for that of blocks.

    *Definition*: the mean of the log ratios, so that its exponential is the ratio of geometric means; its
    error is s / sqrt(n), times that of `dependence.widenings`; n - 1 degrees of freedom.
    *Assumptions*: those of `dependence.widenings`.
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

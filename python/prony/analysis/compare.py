"""Whether two subjects differ: from log ratios by block to an effect, its interval and a verdict.

One number per trial is the unit of analysis, and ratios within a block remove what the block shares (drift).

*Source*: K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974),
here on the paired differences; D. J. Schuirmann, "A comparison of the two one-sided tests procedure", J.
Pharmacokin. Biopharm. 15 (1987); S. Holm, "A simple sequentially rejective multiple test procedure", Scand.
J. Statist. 6 (1979).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp, floor, fsum, log1p, sqrt
from typing import TypeVar

__all__ = ["LEAST_BLOCKS", "MARGIN", "Comparison", "Verdict", "compare", "compare_family", "student_t"]

LEAST_BLOCKS = 5
"""Fewer blocks give no verdict."""

MARGIN = 0.02
"""Differences of less than this are of no interest. Fixed before the run."""

# From 8 blocks on, trimming drops a bad run on each side; before, it costs more than it saves.
_LEAST_TRIMMED = 8
_TRIM = 0.2
_LEVEL = 0.05
_POWER = 0.8

Key = TypeVar("Key", bound=Hashable)


class Verdict(StrEnum):
    """What can be said of B / A. ``HIGHER`` and ``LOWER`` speak of the figure: whether that is better,
    METRICS knows.
    """

    HIGHER = "higher"
    LOWER = "lower"
    EQUIVALENT = "equivalent"
    TRIVIAL = "different, perhaps trivial"
    NOT_SHOWN = "not shown"
    TOO_FEW = "too few blocks for a verdict"


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A. ``effect`` is B / A - 1, ``low`` and ``high`` its interval at 1 - ``level``; null below
    two blocks.

    ``blocks_needed``: about how many would show a difference of the margin, null where a verdict was reached.
    """

    blocks: int
    effect: float | None
    low: float | None
    high: float | None
    level: float
    p_value: float | None
    method: str
    verdict: Verdict
    blocks_needed: int | None = None


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Centre of the log ratios, its standard error, degrees of freedom, and the spread of one block."""

    centre: float
    error: float
    freedom: int
    spread: float
    method: str


def student_t(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution.

    *Source*: scipy.special.stdtrit (Boost's and Cephes' inverse of the incomplete beta function).
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _two_sided_p(statistic: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(statistic)))


def _paired_t(values: Sequence[float]) -> _Estimate:
    count = len(values)
    mean = fsum(values) / count
    spread = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
    return _Estimate(mean, spread / sqrt(count), count - 1, spread, "paired t")


def _yuen(values: Sequence[float]) -> _Estimate:
    """Return the 20 % trimmed estimate.

    *Definition*: g = floor(0.2 n), h = n - 2 g; the centre is the mean of the h middle values; its error is
    sqrt(W / (h (h - 1))) with W the sum of squares of the Winsorised values about their mean; h - 1 degrees
    of freedom.
    """
    ranked, count = sorted(values), len(values)
    cut = floor(_TRIM * count)
    kept = count - 2 * cut
    low, high = ranked[cut], ranked[count - cut - 1]
    winsorised = [min(max(value, low), high) for value in ranked]
    middle = fsum(winsorised) / count
    squares = fsum((value - middle) ** 2 for value in winsorised)
    error = sqrt(squares / (kept * (kept - 1)))
    centre = fsum(ranked[cut : count - cut]) / kept
    return _Estimate(centre, error, kept - 1, error * sqrt(count), "Yuen, 20 % trimmed, paired")


def _estimate(values: Sequence[float]) -> _Estimate:
    return _yuen(values) if len(values) >= _LEAST_TRIMMED else _paired_t(values)


def _p_value(estimate: _Estimate) -> float:
    if estimate.error == 0:
        return 1.0 if estimate.centre == 0 else 0.0
    return _two_sided_p(estimate.centre / estimate.error, estimate.freedom)


def _interval(estimate: _Estimate, level: float) -> tuple[float, float]:
    half = student_t(1 - level / 2, estimate.freedom) * estimate.error
    return estimate.centre - half, estimate.centre + half


def _verdict(estimate: _Estimate, level: float, margin: float, floor_: float) -> Verdict:
    low, high = _interval(estimate, level)
    bar, same = log1p(max(margin, floor_)), log1p(margin)
    if low > bar:
        return Verdict.HIGHER
    if high < -bar:
        return Verdict.LOWER
    # Two one-sided tests at `level` are the interval at 1 - 2 x level.
    inner_low, inner_high = _interval(estimate, min(2 * level, 1.0))
    if floor_ <= margin and -same < inner_low and inner_high < same:
        return Verdict.EQUIVALENT
    return Verdict.TRIVIAL if low > 0 or high < 0 else Verdict.NOT_SHOWN


def _blocks_needed(estimate: _Estimate, level: float, margin: float) -> int:
    """Return about how many blocks show a difference of the margin with 80 % power: ((t + t') s /
    margin)^2.
    """
    quantiles = student_t(1 - level / 2, estimate.freedom) + student_t(_POWER, estimate.freedom)
    return max(LEAST_BLOCKS, ceil((quantiles * estimate.spread / log1p(margin)) ** 2))


def compare(
    log_ratios: Sequence[float], level: float = _LEVEL, margin: float = MARGIN, noise_floor: float = 0.0
) -> Comparison:
    """Return the verdict on B / A from ln(B_b / A_b), one for each block in which both are valid.

    *Definition*: the effect is exp(centre) - 1; paired t below 8 blocks, Yuen's 20 % trimmed t from 8 on.
    HIGHER and LOWER: the interval at 1 - ``level`` lies beyond max(``margin``, ``noise_floor``);
    EQUIVALENT: the interval at 1 - 2 ``level`` lies within the margin, and the floor does not exceed it;
    TRIVIAL: it excludes 0.
    *Assumptions*: blocks are independent of each other; log ratios are roughly symmetric.
    *Errors*: none; fewer than 5 blocks give TOO_FEW.
    """
    count = len(log_ratios)
    if count < 2:
        effect = exp(log_ratios[0]) - 1 if log_ratios else None
        return Comparison(count, effect, None, None, level, None, "none", Verdict.TOO_FEW)
    estimate = _estimate(log_ratios)
    low, high = _interval(estimate, level)
    verdict = _verdict(estimate, level, margin, noise_floor) if count >= LEAST_BLOCKS else Verdict.TOO_FEW
    return Comparison(
        blocks=count,
        effect=exp(estimate.centre) - 1,
        low=exp(low) - 1,
        high=exp(high) - 1,
        level=level,
        p_value=_p_value(estimate),
        method=estimate.method,
        verdict=verdict,
        blocks_needed=_blocks_needed(estimate, level, margin) if verdict is Verdict.NOT_SHOWN else None,
    )


def _holm_levels(p_values: Mapping[Key, float], level: float) -> dict[Key, float]:
    """Return the level of each test: level / m for the smallest p, level / (m - 1) for the next, ... (Holm).

    After the first that is not rejected, all others keep its level.
    """
    levels: dict[Key, float] = {}
    stopped: float | None = None
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        adjusted = stopped if stopped is not None else level / (len(p_values) - rank)
        levels[key] = adjusted
        if p_values[key] > adjusted:
            stopped = adjusted
    return levels


def compare_family(
    family: Mapping[Key, Sequence[float]],
    level: float = _LEVEL,
    margin: float = MARGIN,
    noise_floor: float = 0.0,
) -> dict[Key, Comparison]:
    """Return the comparison of each member, at the level that Holm's procedure gives it over the whole
    family.

    The family is chosen before the run. Members without a verdict (fewer than 5 blocks) do not use up the
    level.
    """
    alone = {key: compare(ratios, level, margin, noise_floor) for key, ratios in family.items()}
    tested = {
        key: found.p_value
        for key, found in alone.items()
        if found.verdict is not Verdict.TOO_FEW and found.p_value is not None
    }
    levels = _holm_levels(tested, level)
    return {
        key: compare(family[key], levels[key], margin, noise_floor) if key in levels else found
        for key, found in alone.items()
    }

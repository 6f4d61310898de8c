"""Whether the machine changed while a study ran: the calibration's figures over time.

The reference server does the same work in every calibration, so a trend in its figures is the machine's.
Pairing by block removes a slow drift from comparisons; single figures contain it. Must not know trials.

>>> found = drift([(0, 100.0), (60, 101.0), (120, 102.0), (180, 103.0), (240, 104.0)], 0.02)
>>> round(found.change, 3), found.drifts
(0.04, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import log
from statistics import median

from prony.analysis.effects import change_of

CALIBRATED = ("response_ok_p50", "cpu_ns_per_request")
"""The metrics that show a drift: the latency at a fixed rate, and the CPU time of a request."""

# The chance that the trend is beside one end of its interval.
_LEVEL = 0.025


@dataclass(frozen=True, slots=True)
class Drift:
    """A figure over ``count`` blocks."""

    count: int
    median: float | None
    change: float | None = None
    """From the first to the last, relative, by its trend, such as 0.03."""
    low: float | None = None
    """`low` and `high`: the interval of it, at 95 % or more; all three are null with fewer than 5 blocks,
    which may rise or fall throughout by chance in one of twelve studies.
    """
    high: float | None = None
    drifts: bool = False
    """The change is more than the margin, and more than chance."""


def drift(points: Sequence[tuple[float, float]], margin: float) -> Drift:
    """Return the trend of (time, value), one of each block, times in any unit, values above 0.

    *Definition*: the change is exp(s T) - 1, with s the median of the slopes of ln(value) between all pairs
    of points, and T the time between the first and the last. Its interval is that of Sen, from the (k + 1)th
    smallest to the (k + 1)th largest slope, with k the most falling pairs that a random order of the points
    has with a chance of at most 2.5 % (Kendall): of five points k = 0, so that the interval has 98.3 %.
    *Assumptions*: points are independent: several of one block share its state, so that a block gives one; a
    rise followed by an equal fall is no trend.
    *Source*: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", J. Am. Stat.
    Assoc. 63 (1968); M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938).
    """
    values = [value for _, value in points]
    middle = median(values) if values else None
    length = max((time for time, _ in points), default=0.0) - min((time for time, _ in points), default=0.0)
    slopes = sorted(
        log(later / earlier) / (end - begin)
        for (begin, earlier), (end, later) in combinations(sorted(points), 2)
        if end > begin
    )
    cut = _most_falling(len(points))
    if cut is None or 2 * cut >= len(slopes):
        return Drift(len(points), middle)
    ends = slopes[cut], slopes[-1 - cut]
    change, low, high = (change_of(slope * length) for slope in (median(slopes), *ends))
    return Drift(len(points), middle, change, low, high, abs(change) > margin and (low > 0 or high < 0))


@cache
def _most_falling(count: int) -> int | None:
    """Return the most falling pairs that so many points in a random order have with a chance of at most
    ``_LEVEL``; null where even none is likelier.
    """
    import numpy as np

    chances = np.ones(1)
    for place in range(2, count + 1):
        # Of those before it, the point at this place is below 0 to place - 1, each with the same chance.
        sums = np.cumsum(np.concatenate((chances, np.zeros(place - 1))))
        chances = (sums - np.concatenate((np.zeros(place), sums[:-place]))) / place
    within = int((np.cumsum(chances) <= _LEVEL).sum())
    return within - 1 if within else None

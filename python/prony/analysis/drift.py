"""Whether the machine changed while a study ran: the calibration's figures over time.

The reference server does the same work in every calibration, so a trend in its figures is the machine's.
Pairing by block removes a slow drift from comparisons; single figures contain it. Must not know blocks.

>>> found = drift([(0, 100.0), (60, 101.0), (120, 102.0), (180, 103.0), (240, 104.0), (300, 105.0)], 0.02)
>>> round(found.change, 3), found.drifts
(0.05, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt
from statistics import median

from prony.analysis.logs import change_of

__all__ = ["CALIBRATED", "Drift", "drift"]

CALIBRATED = ("response_ok_p50", "cpu_ns_per_request")
"""The metrics that show a drift: the latency at a fixed rate, and the CPU time of a request."""

_FEWEST = 6
"""With fewer, even figures that all rise may do so by chance (p = 0.083 for 4, 0.017 for 5)."""
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Drift:
    """A figure over time. ``change``: from the first to the last, relative, by its trend, such as 0.03.

    ``low``, ``high``: the 95 % interval of it; all three are null with fewer than 6 figures. ``drifts``:
    the change is more than the margin, and more than chance.
    """

    count: int
    median: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    drifts: bool = False


def drift(points: Sequence[tuple[float, float]], margin: float) -> Drift:
    """Return the trend of (time, value), times in any unit, values above 0.

    *Definition*: the change is exp(s T) - 1, with s the median of the slopes of ln(value) between all pairs
    of points, and T the time between the first and the last; its interval is that of Sen, from the ranks
    (N - z sqrt(V)) / 2 and (N + z sqrt(V)) / 2 + 1 of the N slopes, with V = n (n - 1) (2 n + 5) / 18.
    *Assumptions*: errors are independent; a rise followed by an equal fall is no trend.
    *Source*: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", J. Am. Stat.
    Assoc. 63 (1968).
    """
    values = [value for _, value in points]
    middle = median(values) if values else None
    length = max((time for time, _ in points), default=0.0) - min((time for time, _ in points), default=0.0)
    slopes = sorted(
        log(later / earlier) / (end - begin)
        for (begin, earlier), (end, later) in combinations(sorted(points), 2)
        if end > begin
    )
    if len(points) < _FEWEST or not slopes:
        return Drift(len(points), middle)
    low, high = _interval(slopes, len(points))
    change, low, high = (change_of(slope * length) for slope in (median(slopes), low, high))
    return Drift(len(points), middle, change, low, high, abs(change) > margin and (low > 0 or high < 0))


def _interval(slopes: Sequence[float], count: int) -> tuple[float, float]:
    half = _Z * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    lower = max(0, int((len(slopes) - half) / 2) - 1)
    return slopes[lower], slopes[len(slopes) - 1 - lower]

"""Whether the machine drifted while a study ran: the calibration cell over time.

The reference server under a fixed rate does the same work each time; what its figures do, the machine did.

>>> drift([(0.0, 10.0), (1.0, 10.1), (2.0, 9.9), (3.0, 10.0)]).shown
False
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, fsum, log, sqrt

from prony.analysis.effects import student_t
from prony.analysis.missing import Missing

__all__ = ["Drift", "drift"]

_LEAST = 4
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Drift:
    """What a figure did from the first calibration to the last: relative change with its 95 % interval.

    ``spread``: the residual standard deviation about the trend, relative; ``count``: calibrations.
    """

    count: int
    change: float
    low: float
    high: float
    spread: float

    @property
    def shown(self) -> bool:
        """Whether the interval excludes no drift."""
        return self.low > 0 or self.high < 0


def drift(points: Sequence[tuple[float, float]]) -> Drift | Missing:
    """Return the drift of (time, value > 0), or why none can be told.

    *Definition*: the least-squares slope of ln(value) on time, times the time from first to last; its
    interval is Student's with n - 2 degrees of freedom.
    *Assumptions*: a drift in one direction, about which values vary independently.
    """
    known = [(at, log(value)) for at, value in points if value > 0]
    if len(known) < _LEAST:
        return Missing(f"{len(known)} calibrations that count; a drift needs {_LEAST}")
    count, span = len(known), max(at for at, _ in known) - min(at for at, _ in known)
    middle = fsum(at for at, _ in known) / count
    mean = fsum(value for _, value in known) / count
    squares = fsum((at - middle) ** 2 for at, _ in known)
    if squares == 0:
        return Missing("all calibrations were at one time")
    slope = fsum((at - middle) * value for at, value in known) / squares
    residuals = [value - mean - slope * (at - middle) for at, value in known]
    spread = sqrt(fsum(one**2 for one in residuals) / (count - 2))
    half = student_t(1 - _LEVEL / 2, count - 2) * spread / sqrt(squares)
    change, low, high = (expm1(one * span) for one in (slope, slope - half, slope + half))
    return Drift(count, change, low, high, expm1(spread))

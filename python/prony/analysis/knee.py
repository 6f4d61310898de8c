"""Where a server saturates: its highest throughput over loads, and the smallest load close to it.

>>> curve = [Point(10, 500.0), Point(100, 980.0), Point(1000, 1000.0)]
>>> found = saturation(curve)
>>> found.knee.load, found.highest.load
(100, 1000)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate

# The field's usual share: beyond it, more load adds latency and hardly any throughput.
_NEARLY = 0.95


@dataclass(frozen=True, slots=True)
class Point:
    """One load: throughput with its interval, and the tail of latency where there is one."""

    load: float
    throughput: float
    low: float | None = None
    high: float | None = None
    latency_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Saturation:
    """The point of the ``highest`` throughput and the ``knee``."""

    highest: Point
    knee: Point
    earliest: Point
    """The smallest load that may be the knee, by the intervals."""
    saturated: bool
    """False: the heaviest load is itself the knee, so a heavier load might give more."""


def points(cells: Iterable[CellSummary], latency: str) -> tuple[Point, ...]:
    """Return one subject's qualified cells as a curve by load; ``latency`` is a metric's name."""
    found = []
    for cell in cells:
        speed, tail = cell.metrics["ok_per_s"], cell.metrics[latency]
        if isinstance(speed, Estimate) and cell.unqualified is None:
            at = tail.mean if isinstance(tail, Estimate) else None
            load = cell.cell.load
            size = load.get("connections", load.get("rate", 0.0))
            found.append(Point(size, speed.mean, speed.low, speed.high, at))
    return tuple(sorted(found, key=lambda point: point.load))


def saturation(curve: Sequence[Point]) -> Saturation | Missing:
    """Return where a curve saturates, or why that is unknown.

    *Definition*: the knee is the least load whose throughput is at least 95 % of the highest of all loads;
    ``earliest`` is the least load whose interval's upper end reaches 95 % of the lower end of the highest's.
    *Assumptions*: loads are close enough to each other; the knee is one of those measured, and lies between
    it and the one before.
    *Source*: the share of the highest throughput as in N. J. Gunther, "Guerrilla Capacity Planning" (2007),
    section 4, read off the figures: no model of scaling is fitted.
    """
    if len(curve) < 3:
        return Missing(f"{len(curve)} loads with figures; a knee needs 3")
    ranked = sorted(curve, key=lambda point: point.load)
    highest = max(ranked, key=lambda point: point.throughput)
    knee = next(point for point in ranked if point.throughput >= _NEARLY * highest.throughput)
    bar = _NEARLY * (highest.throughput if highest.low is None else highest.low)
    earliest = next(point for point in ranked if _upper(point) >= bar)
    return Saturation(highest, knee, min(earliest, knee, key=lambda point: point.load), knee != ranked[-1])


def _upper(point: Point) -> float:
    return point.throughput if point.high is None else point.high

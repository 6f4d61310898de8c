"""Where each subject saturates, over loads that differ in one quantity only.

Where a server saturates: its highest throughput over loads, and the smallest load close to it.

>>> curve = [Point(10, 500.0), Point(100, 980.0), Point(1000, 1000.0)]
>>> found = saturation(curve)
>>> found.knee.load, found.highest.load
(100, 1000)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.model.shapes import at
from prony.model.shown import INTERNAL
from prony.model.workload import ClosedLoop
from prony.reading.groups import Group, families

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


LEAST_LOADS = 3
"""With fewer loads there is no curve."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The groups whose loads differ in one quantity only, the lightest first; ``places``: of these among all.

    ``over``: the quantity, `connections` or `rate`. ``latency``: the metric of the tail. ``subjects``:
    where each saturates, by name, as far as that is known: where the generator was the limit, it is not.
    """

    groups: tuple[Group, ...] = field(metadata=INTERNAL)
    places: tuple[int, ...] = field(metadata=at("groups"))
    over: str
    """The quantity that differs: `connections` or `rate`."""
    latency: str
    """The metric of the tail."""
    subjects: Mapping[str, Saturation]


def curves(groups: Sequence[Group]) -> tuple[Curve, ...]:
    """Return a curve for each family of at least three loads."""
    places = {id(group): place for place, group in enumerate(groups)}
    long = (family for family in families(groups) if len(family) >= LEAST_LOADS)
    return tuple(_curve(family, tuple(places[id(one)] for one in family)) for family in long)


def _curve(groups: Sequence[Group], places: tuple[int, ...]) -> Curve:
    closed = isinstance(groups[0].workload.loop, ClosedLoop)
    latency = "service_ok_p99" if closed else "response_ok_p99"
    names = dict.fromkeys(cell.name for group in groups for cell in group.cells)
    cells = [cell for group in groups for cell in group.cells]
    limited = {cell.name for cell in cells if cell.at_least}
    found = {
        name: saturation(points([cell for cell in cells if cell.name == name], latency))
        for name in names
        if name not in limited
    }
    known = {name: one for name, one in found.items() if not isinstance(one, Missing)}
    return Curve(tuple(groups), places, "connections" if closed else "rate", latency, known)

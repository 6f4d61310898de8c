"""Where each subject saturates, over loads that differ in one quantity only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prony.analysis.knee import Saturation, points, saturation
from prony.analysis.missing import Missing
from prony.model.shapes import at
from prony.model.shown import INTERNAL
from prony.model.workload import ClosedLoop
from prony.reading.groups import Group, families

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

"""Where each subject saturates, over loads that differ in one quantity only.

Where a server saturates: its highest throughput over loads, and the smallest load close to it.

>>> curve = [Point(10, 500.0), Point(100, 980.0), Point(1000, 1000.0)]
>>> found = saturation(curve)
>>> found.knee.load, found.highest.load
(100, 1000)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from math import hypot, log, log1p
from statistics import NormalDist

from prony.figures.find_rate import found_rate, is_confirmed
from prony.figures.missing import Missing
from prony.figures.standings import letters
from prony.figures.statistics.compare import MARGIN
from prony.figures.statistics.failure_rates import clopper_pearson
from prony.figures.summary import CellSummary
from prony.model.facts import FoundRate, RateBoundary, RateStep, RateTest, SearchPart, TrialStep
from prony.model.json_codec import at
from prony.model.shown import INTERNAL
from prony.model.trial import Run
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
        speed, tail = cell.known("ok_per_s"), cell.known(latency)
        if speed and cell.unqualified is None:
            at = tail.mean if tail else None
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


# --- the highest rate of each subject that meets an objective, as the last search of a study fo -----------


_Z = NormalDist().inv_cdf(0.975)


class SearchEnd(StrEnum):
    """What ended a search."""

    NOTHING_TRIED = "nothing tried"
    UNDECIDED = "undecided"
    NONE_MET = "none met"
    NO_HIGHER_TRIED = "no higher tried"
    NEXT_UNMET = "next unmet"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The result of a search for one subject: ``rate_per_s`` null where no rate met the objective.

    ``met`` of ``of`` fresh trials at that rate met it, and of ``unknown`` more it is not known; ``low`` and
    ``high``: the exact 95 % interval of that share, null without one. ``end``: what ended the search,
    ``ended_by``: the step that did, null without one; ``steps``: the rates that were tried. ``at_least``: the
    lowest higher rate that was tried could not be decided, or none was tried, so the rate is a bound.
    ``boundary``: the rate at which half of all trials meet it; null where the rate is a bound. ``tests``: the
    rates that fresh trials tested, in order. ``letters``: two that share one are not separated; empty where
    there is nothing to compare.
    """

    subject: str
    rate_per_s: float | None
    met: int
    of: int
    unknown: int
    low: float | None
    high: float | None
    end: SearchEnd
    ended_by: RateStep | None
    steps: tuple[RateStep, ...]
    at_least: bool
    boundary: RateBoundary | None = None
    tests: tuple[RateTest, ...] = ()
    letters: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether not most of the fresh trials met the objective, so that the rate is none that meets it."""
        return self.of > 0 and not is_confirmed(RateTest(self.rate_per_s or 0.0, self.met, self.of))

    @property
    def highest_per_s(self) -> float:
        """The rate by which subjects are ordered; 0 where none met the objective."""
        return (self.boundary.rate_per_s if self.boundary else self.rate_per_s) or 0.0


def confirmed_rates(
    runs: Sequence[Run], tried: Sequence[tuple[str, TrialStep]] = (), margin: float = MARGIN
) -> tuple[Confirmed, ...]:
    """Return what the last run that searched found, for each subject: the best first, those last that fresh
    trials refute; empty without a search.

    ``tried``: the steps of trials with their subjects, in order; they are all that a search that was
    interrupted has left. ``margin``: a smaller difference is of no interest.
    """
    found = next((run.facts.found_rates for run in reversed(runs) if run.facts.found_rates), ())
    best = sorted(map(_confirmed, found or _unfinished(tried)), key=_order)
    marks = _letters([(one.subject, one.boundary) for one in best if one.boundary], margin)
    return tuple(replace(one, letters=marks.get(one.subject, "")) for one in best)


def _order(one: Confirmed) -> tuple[bool, float]:
    return one.is_refuted or one.rate_per_s is None, -one.highest_per_s


def _letters(known: Sequence[tuple[str, RateBoundary]], margin: float) -> dict[str, str]:
    """Return letters for subjects with an interval; none for one alone.

    *Definition*: two are separated where their difference in ln rate is more than ln(1 + margin) beyond the
    root of the sum of the squares of the ends of intervals between them, each z / 1.96 times as far from its
    rate; z is the normal quantile of 5 % in all pairs together (Bonferroni).
    *Assumptions*: each end is about normal on the scale of ln rate, though not both alike: a stall leaves the
    upper one far away. That equals get two letters in less than 5 of 100 studies is by simulation
    (`bench/verdicts found`).
    *Source*: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a general
    approach", Statist. Med. 27 (2008).
    """
    pairs = list(combinations(known, 2))
    times = NormalDist().inv_cdf(1 - 0.025 / max(1, len(pairs))) / _Z
    different = [
        (one, other)
        for (one, first), (other, second) in pairs
        if _least_difference(first, second, times) > log1p(margin)
    ]
    return letters([name for name, _ in known], different) if pairs else {}


def _least_difference(one: RateBoundary, other: RateBoundary, times: float) -> float:
    """Return by how much the ln rates of two differ at least, with intervals so many times as wide."""
    lower, higher = sorted((one, other), key=lambda found: found.rate_per_s)
    ends = log(lower.high_per_s / lower.rate_per_s), log(higher.rate_per_s / higher.low_per_s)
    return log(higher.rate_per_s / lower.rate_per_s) - times * hypot(*ends)


def _unfinished(tried: Sequence[tuple[str, TrialStep]]) -> Iterator[FoundRate]:
    for name in dict.fromkeys(name for name, _ in tried):
        own = {
            part: [one.step for subject, one in tried if subject == name and one.part is part]
            for part in SearchPart
        }
        yield found_rate(name, own[SearchPart.SEARCH], own[SearchPart.CONFIRMATION])


def _confirmed(found: FoundRate) -> Confirmed:
    is_share = found.rate_per_s is not None and 0 < found.of >= found.met
    low, high = clopper_pearson(found.met, found.of) if is_share else (None, None)
    end, by = _end(found.steps, found.rate_per_s)
    counts = (found.met, found.of, found.unknown)
    at_least = found.rate_per_s is not None and end is not SearchEnd.NEXT_UNMET
    known = (found.rate_per_s, *counts, low, high, end, by, found.steps, at_least)
    return Confirmed(found.subject, *known, None if at_least else found.boundary, found.tests)


def _end(steps: Sequence[RateStep], rate: float | None) -> tuple[SearchEnd, RateStep | None]:
    above = [step for step in steps if not step.met and (rate is None or step.rate_per_s > rate)]
    if not above:
        return (SearchEnd.NOTHING_TRIED if rate is None else SearchEnd.NO_HIGHER_TRIED), None
    lowest = min(above, key=lambda step: step.rate_per_s)
    if lowest.met is None:
        return SearchEnd.UNDECIDED, lowest
    return (SearchEnd.NONE_MET if rate is None else SearchEnd.NEXT_UNMET), lowest

"""Planted effects, whose size is known: how the procedure judges them.

One subject serves the same page, which computes a little longer in some cells: the request says how long.

>>> round(expected_effect("cpu_ns_per_request", 1_250_000.0, 100_000), 3)
0.08
>>> round(expected_effect("ok_per_s", 800.0, 100_000), 3)
-0.074
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log1p

from prony.core.units import MICROSECOND_NS, SECOND_NS
from prony.figures.answer import block_ratios, mean_of
from prony.figures.noise_floor import BLOCKS
from prony.figures.statistics.compare import Comparison, Terms, Verdict, compare_family
from prony.figures.statistics.failure_rates import clopper_pearson
from prony.figures.summary import CellSummary
from prony.model.json_codec import INLINE, at
from prony.model.plan import Cell
from prony.model.shown import INTERNAL, shown, shown_as

APP = "page-cpu"
"""The built-in app whose page computes as long as it is asked to."""

METRICS_PLANTED = ("cpu_ns_per_request", "ok_per_s")
"""The metrics in which the effect of a plant is known: nothing else of the subject changes."""

_WORK = re.compile(r"/cpu\?us=(\d{1,9})")
_LEVEL = 0.05
_SHOWN = (Verdict.HIGHER, Verdict.LOWER)


@dataclass(frozen=True, slots=True)
class Power:
    """Studies of ``blocks`` blocks: ``found`` of them showed the effect correctly; ``wrong`` had a false
    verdict.
    """

    blocks: int
    found: int
    wrong: int
    studies: int

    @shown
    def least(self) -> float:
        """The least that the share of studies that find it may be (one-sided 95 %, exact)."""
        return clopper_pearson(self.found, self.studies, 2 * _LEVEL)[0]


@dataclass(frozen=True, slots=True)
class Planted:
    """The result of ``extra_us`` more CPU time in each request, beside ``work_us`` of the base, in one
    metric.
    """

    metric: str
    work_us: int
    extra_us: int
    expected: float | None
    """Planted / base - 1 as it must be, null where the base has no figure."""
    comparison: Comparison = field(metadata=INLINE)
    """Of all blocks."""
    margin: float = field(metadata=INTERNAL)
    """The difference below which none is of interest."""
    powers: tuple[Power, ...] = field(default=(), metadata=at("power"))
    reason: str | None = None
    """Null, or why a cell is not compared."""

    @shown
    def bias(self) -> float | None:
        """The estimated effect less the expected one; None where either is missing."""
        if self.expected is None or self.comparison.effect is None:
            return None
        return self.comparison.effect - self.expected

    @shown
    def covers(self) -> bool | None:
        """Whether the interval holds the expected effect; None where either is missing."""
        low, high = self.comparison.low, self.comparison.high
        if self.expected is None or low is None or high is None:
            return None
        return low <= self.expected <= high

    @shown_as("right")
    def is_right(self) -> bool | None:
        """Whether the verdict is right; None where it says nothing."""
        return None if self.expected is None else is_right(self.comparison, self.expected, self.margin)


@dataclass(frozen=True, slots=True)
class PlantedVerdicts:
    """Over all plants: how many verdicts are ``right``, and how many ``intervals`` are ``covered``: hold the
    expected effect.
    """

    right: int
    covered: int
    intervals: int


def verdicts_of(found: Sequence[Planted]) -> PlantedVerdicts:
    """Return how many verdicts on plants are right, and how many intervals hold the expected effect."""
    covers = [one.covers for one in found if one.covers is not None]
    return PlantedVerdicts(sum(one.is_right is True for one in found), sum(covers), len(covers))


@dataclass(frozen=True, slots=True)
class Wrong:
    """How many of ``studies`` of so many ``blocks`` said what is not so."""

    blocks: int
    wrong: int
    studies: int


def wrong_by_blocks(found: Sequence[Planted]) -> Mapping[str, tuple[Wrong, ...]]:
    """Return the wrong studies by metric, over all plants, for each number of blocks that has a study."""
    return {
        metric: tuple(_wrong([one for one in found if one.metric == metric]))
        for metric in dict.fromkeys(one.metric for one in found)
    }


@dataclass(frozen=True, slots=True)
class PlantedTests:
    """What an archive with planted effects shows of the procedure."""

    archive: str
    """The file that was read."""
    plants: tuple[Planted, ...]
    """One for each metric and size."""

    @shown
    def verdicts(self) -> PlantedVerdicts:
        """Over all plants: how many verdicts are right, and how many intervals hold the effect."""
        return verdicts_of(self.plants)

    @shown
    def studies(self) -> Mapping[str, tuple[Wrong, ...]]:
        """By metric: how many studies of so many blocks said what is not so."""
        return wrong_by_blocks(self.plants)


def _wrong(found: Sequence[Planted]) -> Iterator[Wrong]:
    for blocks in BLOCKS:
        if powers := [power for one in found for power in one.powers if power.blocks == blocks]:
            yield Wrong(blocks, sum(one.wrong for one in powers), sum(one.studies for one in powers))


def work_path(work_us: int) -> str:
    """Return the path of a page that takes so many microseconds of the CPU."""
    return f"/cpu?us={work_us}"


def work_us(cell: Cell) -> int | None:
    """Return how many microseconds of the CPU the cell's requests ask for; None where they ask for none."""
    asked = _WORK.fullmatch(cell.workload.request.path)
    return int(asked[1]) if asked else None


def expected_effect(metric: str, base: float, extra_ns: float) -> float:
    """Return planted / base - 1 of a metric whose figure without the plant is ``base``.

    *Definition*: CPU time per request grows by e / a, with the plant e and the base's own CPU time a. In a
    closed loop a server that serves one request at a time needs d = 1 / throughput for each: throughput
    changes by d / (d + e) - 1.
    *Assumptions*: the server is the bottleneck and computes without being interrupted more often than before.
    ``base`` is measured: its relative error, times the effect, is an error of what is expected.
    *Errors*: ValueError for a metric that is not one of ``METRICS_PLANTED``.
    """
    match metric:
        case "cpu_ns_per_request":
            return extra_ns / base
        case "ok_per_s":
            each_ns = SECOND_NS / base
            return each_ns / (each_ns + extra_ns) - 1
    raise ValueError(f"the effect of a plant on `{metric}` is unknown; expected one of {METRICS_PLANTED}")


def is_right(found: Comparison, expected: float, margin: float) -> bool | None:
    """Return whether a verdict is right for the expected effect; None where it says nothing.

    *Definition*: higher and lower hold beyond the margin and in their direction, equivalent within it, both
    on the scale of logarithms; a difference that is perhaps trivial holds in its direction.
    """
    truth, same = log1p(expected), log1p(margin)
    match found.verdict:
        case Verdict.HIGHER:
            return truth > same
        case Verdict.LOWER:
            return truth < -same
        case Verdict.EQUIVALENT:
            return abs(truth) < same
        case Verdict.TRIVIAL:
            return (found.effect or 0.0) * truth > 0
    return None


def planted(cells: Sequence[CellSummary], terms: Callable[[int], Terms]) -> tuple[Planted, ...]:
    """Return the results of the plants among cells under one load: each is compared with the cell whose
    requests ask for the least work. Empty without two that differ.

    ``terms`` gives the rules for a number of blocks.

    *Definition*: in each metric the plants are one family, as the subjects of a study are; power is read from
    studies of as many consecutive blocks as ``BLOCKS`` has.
    """
    asked = {work: one for one in cells if (work := work_us(one.cell)) is not None and _alike(one, cells[0])}
    works = sorted(asked)
    return tuple(
        one
        for metric in METRICS_PLANTED
        for one in _in_metric(metric, [(work, asked[work]) for work in works], terms)
    )


def _alike(one: CellSummary, other: CellSummary) -> bool:
    return replace(one.cell.subject, name="") == replace(other.cell.subject, name="")


def _in_metric(
    metric: str, ranked: Sequence[tuple[int, CellSummary]], terms: Callable[[int], Terms]
) -> Iterator[Planted]:
    if len(ranked) < 2:
        return
    (work, base), *others = ranked
    mean = mean_of(base, metric)
    expected = {
        more: expected_effect(metric, mean, MICROSECOND_NS * (more - work)) if mean else None
        for more, _ in others
    }
    # All that is planted is a speed: of a cell that does not qualify there is none.
    reasons = {more: base.unqualified or cell.unqualified for more, cell in others}
    family = {more: () if reasons[more] else block_ratios(base, cell, metric) for more, cell in others}
    agreed = terms(max(map(len, family.values())))
    powers = _powers(family, expected, terms)
    for more, found in compare_family(family, agreed).items():
        known = (expected[more], found, agreed.margin, powers.get(more, ()), reasons[more])
        yield Planted(metric, work, more - work, *known)


def _powers(
    family: Mapping[int, Sequence[float]],
    expected: Mapping[int, float | None],
    terms: Callable[[int], Terms],
) -> dict[int, tuple[Power, ...]]:
    """Return the power for each plant that has blocks, by number of blocks."""
    own = {more: ratios for more, ratios in family.items() if ratios}
    powers: dict[int, list[Power]] = {more: [] for more in own}
    for blocks in BLOCKS:
        agreed = terms(blocks)
        studies = [compare_family(one, agreed) for one in _studies(own, blocks)]
        for more in own if studies else ():
            powers[more].append(_power([one[more] for one in studies], expected[more], agreed))
    return {more: tuple(found) for more, found in powers.items()}


def _studies(family: Mapping[int, Sequence[float]], blocks: int) -> Iterator[dict[int, Sequence[float]]]:
    count = min((len(ratios) for ratios in family.values()), default=0) // blocks
    for first in range(0, count * blocks, blocks):
        yield {more: ratios[first : first + blocks] for more, ratios in family.items()}


def _power(studies: Sequence[Comparison], expected: float | None, terms: Terms) -> Power:
    right = [None if expected is None else is_right(one, expected, terms.margin) for one in studies]
    found = sum(bool(holds) and one.verdict in _SHOWN for one, holds in zip(studies, right, strict=True))
    return Power(studies[0].blocks, found, right.count(False), len(studies))

"""What settings do, where subjects differ in them on purpose: the best, what more or less of each would do,
and whether one setting's effect depends on another's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import prod

from prony.core.metrics import Better
from prony.figures.answer import Ranking, bounded_by, criterion, is_frail, log_values, ranked_cells
from prony.figures.statistics.compare import (
    LEAST_BLOCKS,
    NO_VERDICT,
    Comparison,
    Dependent,
    Place,
    Terms,
    Verdict,
    dependent,
    interactions,
)
from prony.figures.summary import CellSummary
from prony.model.json_codec import at
from prony.model.plan import Cell
from prony.model.shown import INTERNAL
from prony.model.trial import SubjectRecord
from prony.plan.factors import OF_SANDBOX, Value, short_keys, without_levels
from prony.reading.groups import Group

# A setting of the kernel is text; longer than this is none.
_DIGITS = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Level:
    """A value of a factor: as it was asked for, and as a number; null where it is none."""

    value: Value
    number: float | None

    @property
    def shown(self) -> str:
        """The value as the subject has it: a number of CPUs, not an expression of it."""
        of_cpus = isinstance(self.value, str) and "{" in self.value and self.number is not None
        return f"{self.number:g}" if of_cpus else str(self.value)


@dataclass(frozen=True, slots=True)
class Factor:
    """A setting in which subjects differ."""

    key: str
    title: str
    levels: tuple[Level, ...]
    """Ascending where all are numbers."""

    @property
    def is_number(self) -> bool:
        """Whether its levels have an order and distances."""
        return all(level.number is not None for level in self.levels)


@dataclass(frozen=True, slots=True)
class Member:
    """A subject of a sweep: ``cell`` is its place in the group, ``at`` the numbers of its levels."""

    cell: int
    name: str
    at: tuple[int, ...] = field(metadata=at("levels"))


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What one step in one factor from the best does."""

    factor: int
    """`factor` and `level`: by their numbers."""
    level: int
    name: str
    comparison: Comparison
    """The neighbour over the best."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """Two factors, by their numbers: at each level of the first, what the levels of the second do."""

    first: int
    second: int
    steps: Mapping[tuple[int, int], Comparison]
    """By (level of the first, level of the second after its first): the ratio to the second's first level
    there.
    """
    found: Mapping[tuple[int, int], Comparison]
    """Of these, how each but those of the first's first level differs from there."""
    verdict: Dependent
    best: tuple[tuple[int, ...], ...] | None
    """For each level of the first, the levels of the second that are best there, or not shown to be worse;
    null with other factors.
    """
    everywhere: tuple[int, ...]
    """The levels of the second that are among these at every level of the first."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The subjects of one server, frontend and app under one load that differ in settings only."""

    group: int
    """Its place among the results'."""
    name: str
    metric: str | None
    factors: tuple[Factor, ...]
    points: tuple[Member, ...]
    """In the order of the factors' levels."""
    best: str | None = None
    """The first of `metric`, null where nobody qualifies, and of fewer than five sessions."""
    ties: tuple[str, ...] = ()
    """Those that are not shown to be worse, `least` the one of all these with the least of its settings, null
    where settings have no order.
    """
    least: str | None = None
    blocks: int = 0
    """The fewest that a comparison rests on."""
    decided: bool = False
    """They are enough."""
    neighbours: tuple[Neighbour, ...] = ()
    at_edge: tuple[int, ...] = ()
    """The factors of which the best, and all ties, have the largest level that was measured."""
    steps: Mapping[int, Comparison] = field(default_factory=dict)
    """With one factor, what each level after the first makes of the one before it, by its number."""
    crossed: tuple[Crossed, ...] = ()
    unranked: tuple[str, ...] = field(default=(), metadata=INTERNAL)
    """Those that are in no verdict."""

    def point(self, name: str) -> Member:
        """Return the point of the subject of this name."""
        return next(one for one in self.points if one.name == name)

    def levels(self, name: str) -> tuple[Level, ...]:
        """Return the levels of the subject of this name."""
        at = self.point(name).at
        return tuple(factor.levels[k] for factor, k in zip(self.factors, at, strict=True))


def sweeps_of(
    groups: Iterable[Group], records: Mapping[str, SubjectRecord], agreed: Terms
) -> tuple[Sweep, ...]:
    """Return a sweep for each set of subjects of a group that differ in settings only. ``agreed``: the rules
    of comparisons in the primary groups.
    """
    return tuple(
        _sweep(number, group, places, records, replace(agreed, screens=not group.primary))
        for number, group in enumerate(groups)
        if not group.of_generators
        for places in _families(group)
    )


def _families(group: Group) -> list[list[int]]:
    """Return the places of cells whose subjects have the same name but for their levels."""
    alike: dict[object, list[int]] = {}
    for place, cell in enumerate(group.cells):
        subject = cell.cell.subject
        if subject.levels:
            alike.setdefault((without_levels(subject), tuple(subject.levels)), []).append(place)
    return [places for places in alike.values() if len(places) > 1]


def _sweep(
    number: int, group: Group, places: Sequence[int], records: Mapping[str, SubjectRecord], agreed: Terms
) -> Sweep:
    cells = [group.cells[place] for place in places]
    factors = _factors(cells, records)
    points = sorted(
        (_point(place, group.cells[place], factors, records) for place in places), key=lambda one: one.at
    )
    qualified = [cell for cell in cells if cell.unqualified is None]
    qualified = [cell for cell in qualified if len(cell.units) >= LEAST_BLOCKS] or qualified
    metric = criterion(qualified)
    unknown = Sweep(number, without_levels(cells[0].cell.subject), metric, factors, tuple(points))
    if metric is None:
        return unknown
    ranked = ranked_cells(qualified, metric, agreed)
    if agreed.by_session and not ranked.decided:
        return replace(unknown, blocks=ranked.blocks)
    best, ties = ranked.names[0], ranked.ties
    by_name = {point.name: point for point in points}
    compared = _Compared(
        factors=factors,
        by_place={by_name[one].at: one for one in ranked.names},
        ranked=ranked,
        logs={cell.name: log_values(cell, metric) for cell in qualified},
        held_back={one.name: why for one in qualified if (why := _held_back(one, metric)) is not None},
        terms=agreed,
    )
    good = [by_name[one] for one in (best, *ties)]
    return replace(
        unknown,
        best=best,
        ties=ties,
        least=_least(factors, good),
        blocks=ranked.blocks,
        decided=ranked.decided,
        neighbours=tuple(_neighbours(compared, by_name[best].at)),
        at_edge=_at_edge(factors, good),
        steps=_steps(compared),
        crossed=tuple(_crossings(compared)),
        unranked=tuple(point.name for point in points if point.name not in ranked.names),
    )


# --- factors ----------------------------------------------------------------------------------------------


def _factors(cells: Sequence[CellSummary], records: Mapping[str, SubjectRecord]) -> tuple[Factor, ...]:
    keys = tuple(cells[0].cell.subject.levels)
    titles = short_keys(keys)
    return tuple(Factor(key, titles[key], _levels(key, cells, records)) for key in keys)


def _levels(
    key: str, cells: Sequence[CellSummary], records: Mapping[str, SubjectRecord]
) -> tuple[Level, ...]:
    found = dict.fromkeys(_level(key, cell.cell, records) for cell in cells)
    if any(level.number is None for level in found):
        return tuple(found)
    return tuple(sorted(found, key=lambda level: level.number or 0.0))


def _level(key: str, cell: Cell, records: Mapping[str, SubjectRecord]) -> Level:
    value = cell.subject.levels[key]
    return Level(value, _number(key, value, cell, records.get(cell.subject.name)))


def _number(key: str, value: Value, cell: Cell, record: SubjectRecord | None) -> float | None:
    """Return a level as a number: what the subject's record resolved, or what it is itself."""
    owner, dot, name = key.partition(".")
    if owner == OF_SANDBOX and dot:
        limits = {
            "memory": cell.sandbox.memory_bytes,
            "cpus": cell.sandbox.cpu_quota,
            "pids": cell.sandbox.pids,
        }
        if name in limits:
            return limits[name]
        return _whole(int(value) if _DIGITS.fullmatch(str(value)) else value)
    resolved: object = record.settings.get(key) if record and not dot else None
    front = cell.subject.frontend
    if record and front and owner == front.entry and record.facts.frontend:
        resolved = record.facts.frontend.settings.get(name)
    return _whole(value if resolved is None else resolved)


def _whole(value: object) -> float | None:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _point(
    place: int, cell: CellSummary, factors: Sequence[Factor], records: Mapping[str, SubjectRecord]
) -> Member:
    own = (factor.levels.index(_level(factor.key, cell.cell, records)) for factor in factors)
    return Member(place, cell.name, tuple(own))


@dataclass(frozen=True, slots=True)
class _Compared:
    """The subjects that qualify: their places in the grid, their order, and their logarithms by block.
    ``held_back``: the verdict on those whose figure is not all of their speed.
    """

    factors: Sequence[Factor]
    by_place: Mapping[tuple[int, ...], str]
    ranked: Ranking
    logs: Mapping[str, Mapping[int, float]]
    held_back: Mapping[str, Verdict]
    terms: Terms


# --- the best ---------------------------------------------------------------------------------------------


def _least(factors: Sequence[Factor], good: Sequence[Member]) -> str | None:
    """Return the subject with the least of its settings: the smallest product of their places."""
    if not all(factor.is_number for factor in factors):
        return None

    def size(point: Member) -> float:
        numbers = (factor.levels[k].number or 0.0 for factor, k in zip(factors, point.at, strict=True))
        return prod(max(number, 0.0) for number in numbers)

    return min(good, key=lambda point: (size(point), point.at)).name


def _at_edge(factors: Sequence[Factor], good: Sequence[Member]) -> tuple[int, ...]:
    return tuple(
        k
        for k, factor in enumerate(factors)
        if factor.is_number and all(point.at[k] == len(factor.levels) - 1 for point in good)
    )


def _neighbours(compared: _Compared, at: tuple[int, ...]) -> Iterator[Neighbour]:
    """Yield what the next smaller and the next larger level of each factor do; of one without an order, each
    other level. ``at``: the place of the best.
    """
    best = compared.by_place[at]
    for k, factor in enumerate(compared.factors):
        near = (at[k] - 1, at[k] + 1) if factor.is_number else range(len(factor.levels))
        for level in near:
            name = compared.by_place.get((*at[:k], level, *at[k + 1 :]))
            if name is not None and name != best:
                yield Neighbour(k, level, name, compared.ranked.pairs[best, name])


def _steps(compared: _Compared) -> dict[int, Comparison]:
    if len(compared.factors) != 1:
        return {}
    places = range(1, len(compared.factors[0].levels))
    pairs = {k: (compared.by_place.get((k - 1,)), compared.by_place.get((k,))) for k in places}
    return {
        k: compared.ranked.pairs[before, after]
        for k, (before, after) in pairs.items()
        if before is not None and after is not None
    }


# --- two factors ------------------------------------------------------------------------------------------


def _crossings(compared: _Compared) -> Iterator[Crossed]:
    """Yield each pair of factors of which every combination was measured and qualifies."""
    for first, second in combinations(range(len(compared.factors)), 2):
        grid = _grid(compared, first, second)
        if grid is not None:
            yield _crossed(compared, first, second, grid)


def _grid(compared: _Compared, first: int, second: int) -> dict[Place, list[str]] | None:
    """Return the subjects at each combination of two factors' levels, one for each of the others'."""
    ranges = [range(len(factor.levels)) for factor in compared.factors]
    grid: dict[Place, list[str]] = {}
    for place in product(*ranges):
        name = compared.by_place.get(place)
        if name is None:
            return None
        grid.setdefault((place[first], place[second]), []).append(name)
    return grid


def _crossed(compared: _Compared, first: int, second: int, grid: Mapping[Place, Sequence[str]]) -> Crossed:
    made = interactions(grid, compared.logs, compared.terms)
    found = {place: _without_held_back(one, place, compared, grid) for place, one in made.items()}
    alone = len(compared.factors) == 2
    best = _best_at(compared, first, second, grid) if alone else None
    pairs = compared.ranked.pairs
    return Crossed(
        first=first,
        second=second,
        steps={(i, j): pairs[grid[i, 0][0], grid[i, j][0]] for i, j in grid if j} if alone else {},
        found=found,
        verdict=dependent([one.verdict for one in found.values()]),
        best=best,
        everywhere=tuple(sorted(set.intersection(*map(set, best)))) if best else (),
    )


def _without_held_back(
    found: Comparison, place: Place, compared: _Compared, grid: Mapping[Place, Sequence[str]]
) -> Comparison:
    """Return an interaction without a verdict where one of its figures is a bound, or of the trials that a
    server did not fail.
    """
    names = (name for at in product((0, place[0]), (0, place[1])) for name in grid[at])
    held_back = next((compared.held_back[name] for name in names if name in compared.held_back), None)
    is_open = found.verdict in (*NO_VERDICT, Verdict.NOT_SHOWN)
    return found if held_back is None or is_open else replace(found, verdict=held_back)


def _held_back(cell: CellSummary, metric: str) -> Verdict | None:
    """Return the verdict that there is of a cell's speed when its own figure is not all of it."""
    if is_frail(cell, metric):
        return Verdict.SURVIVORS
    return bounded_by(cell, cell, metric).verdict if cell.reach(metric) > 1 else None


def _best_at(
    compared: _Compared, first: int, second: int, grid: Mapping[Place, Sequence[str]]
) -> tuple[tuple[int, ...], ...]:
    """Return for each level of the first factor the best levels of the second, and those not shown to be
    worse.
    """
    ranked = compared.ranked
    worse = Verdict.LOWER if ranked.better is Better.HIGHER else Verdict.HIGHER
    found = []
    for i in range(len(compared.factors[first].levels)):
        here = {grid[i, j][0]: j for j in range(len(compared.factors[second].levels))}
        leader, *others = sorted(here, key=ranked.names.index)
        ties = [name for name in others if ranked.pairs[leader, name].verdict is not worse]
        found.append(tuple(sorted(here[name] for name in (leader, *(ties if ranked.decided else ())))))
    return tuple(found)

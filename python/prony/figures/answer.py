"""Which subject is best under one workload, and how sure that is."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf, log, log1p

from prony.core.metrics import METRICS, Better
from prony.figures.account import is_speed
from prony.figures.at_least import Bounded, heeded
from prony.figures.by_session import is_failed
from prony.figures.missing import Missing, Value
from prony.figures.statistics.all_pairs import Pair
from prony.figures.statistics.compare import (
    LEAST_BLOCKS,
    Comparison,
    Terms,
    Verdict,
    compare_all,
    few_sessions,
)
from prony.figures.statistics.effects import geometric_mean, ratio_of
from prony.figures.summary import CellSummary, Estimate, estimate_over
from prony.model.plan import Cell
from prony.model.workload import OpenLoop

_LEVEL = 0.05
_EQUAL = "the first are exactly equal"
OF_GENERATORS = ("generator_ok_per_cpu_s", "ok_per_s")
"""What decides between generators: the work that they do for their CPU. Under an equal load their throughput
shows the server's delay.
"""

_TAIL_FIRST = ("response_ok_p99", "response_ok_p95", "response_ok_p50")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Subjects in one metric under one load: ``names``, best first, and every ordered pair, second / first.

    ``blocks``: the fewest that a comparison with the first rests on. ``level_with_first``: those whose
    figures are exactly the first's.
    """

    names: tuple[str, ...]
    better: Better
    pairs: Mapping[Pair, Comparison]
    blocks: int
    level_with_first: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether there are enough blocks for verdicts."""
        return self.blocks >= LEAST_BLOCKS

    @property
    def with_first(self) -> dict[str, Comparison]:
        """How each of the others compares with the first."""
        first, *others = self.names
        return {name: self.pairs[first, name] for name in others}

    @property
    def ties(self) -> tuple[str, ...]:
        """Those that are not shown to be worse than the first by more than the margin."""
        worse = _worse(self.better)
        return tuple(
            name for name, one in self.with_first.items() if self.decided and one.verdict is not worse
        )

    @property
    def separated(self) -> set[Pair]:
        """The pairs of which one is shown to be better by more than the margin, each once."""
        places = {name: place for place, name in enumerate(self.names)}
        return {
            (one, other)
            for (one, other), found in self.pairs.items()
            if places[one] < places[other] and found.verdict in (Verdict.HIGHER, Verdict.LOWER)
        }


def _worse(better: Better) -> Verdict:
    return Verdict.LOWER if better is Better.HIGHER else Verdict.HIGHER


@dataclass(frozen=True, slots=True)
class Answer:
    """The leader in ``metric``, those not separated from it, and how the others compare with it. ``metric``
    is null when no subject qualifies, ``leader`` also when the first are exactly equal (they are the
    ``ties``), and where trials are of fewer than five sessions; ``reason`` says why.
    """

    metric: str | None
    """What decides: a percentile of the response time in an open loop, `ok_per_s` in a closed one."""
    leader: str | None
    ties: tuple[str, ...] = ()
    """Those that are not separated from the leader."""
    blocks: int = 0
    """The fewest that a comparison rests on; sessions, where these count (`by_session`)."""
    decided: bool = False
    """There are enough for verdicts."""
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    """By name of the other subject, with the `first`."""
    reason: str | None = None
    first: str | None = None
    """The one that `comparisons` are with, the leader if there is one."""
    by_session: bool = False
    """Sessions are counted in place of blocks, for the study has several; below five nobody leads."""
    figure: Estimate | None = None
    """The leader's own, whose interval holds whoever of all candidates leads."""
    command_line: str | None = None
    """What starts the leader."""

    @property
    def alone(self) -> bool:
        """Whether nobody was left to compare the leader with: it is best of nothing."""
        return self.leader is not None and not self.comparisons


def log_values(cell: CellSummary, metric: str) -> dict[int, float]:
    """Return ln of the metric by block, or by session, where it is known and above zero."""
    return _logs(cell.units, metric)


def block_logs(cell: CellSummary, metric: str) -> dict[int, float]:
    """Return ln of the metric by block, of whatever session."""
    return _logs(cell.by_block, metric)


def log_ratios(first: CellSummary, second: CellSummary, metric: str) -> tuple[float, ...]:
    """Return ln(second / first) of each block, or session, in which both have the metric."""
    return _ratios(first.units, second.units, metric)


def block_ratios(first: CellSummary, second: CellSummary, metric: str) -> tuple[float, ...]:
    """Return ln(second / first) of each block in which both have the metric, of whatever session."""
    return _ratios(first.by_block, second.by_block, metric)


_Units = Mapping[int, Mapping[str, Value]]


def _logs(units: _Units, metric: str) -> dict[int, float]:
    return {unit: log(value) for unit, value in _positive(units, metric).items()}


def _ratios(first: _Units, second: _Units, metric: str) -> tuple[float, ...]:
    below, above = _positive(first, metric), _positive(second, metric)
    return tuple(log(above[unit] / below[unit]) for unit in sorted(below.keys() & above.keys()))


def _positive(units: _Units, metric: str) -> dict[int, float]:
    found = {unit: metrics[metric] for unit, metrics in units.items()}
    return {unit: value for unit, value in found.items() if not isinstance(value, Missing) and value > 0}


def criterion(cells: Sequence[CellSummary], choices: Sequence[str] = ()) -> str | None:
    """Return the metric that decides: the tail in an open loop, throughput in a closed one.

    An open loop offers every server the same load, so only latency can differ; the first of p99, p95 and
    p50 that all have, or of other ``choices``. Null if there are no cells, or they have none in common.
    """
    if not cells:
        return None
    names = choices or deciding_metrics(cells[0].cell)
    return next((name for name in names if all(cell.known(name) for cell in cells)), None)


def deciding_metrics(cell: Cell) -> tuple[str, ...]:
    """Return the metrics that decide under a cell's load, the first choice first."""
    return _TAIL_FIRST if isinstance(cell.workload.loop, OpenLoop) else ("ok_per_s",)


def mean_of(cell: CellSummary, metric: str) -> float | None:
    """Return the geometric mean of a metric over blocks, or sessions, by which subjects are ranked; None
    without values. Ratios of it are what comparisons test.
    """
    found = [metrics[metric] for metrics in cell.units.values()]
    values = [value for value in found if not isinstance(value, Missing)]
    return geometric_mean(values) if values else None


def ranking(  # noqa: PLR0913 - what a ranking is made of
    logs: Mapping[str, Mapping[int, float]],
    places: Mapping[str, float],
    better: Better,
    terms: Terms,
    *,
    heed: Callable[[Pair, Comparison], Comparison] | None = None,
    frail: Collection[str] = (),
) -> Ranking:
    """Return the order of subjects, with the comparison of every pair, from logarithms by subject and block.

    *Definition*: the best over common blocks is first (`_advantages`), unless another is shown to be better:
    who lost a trial in a slow block is no better for it. All pairs are compared at once (`compare_all`), so
    leader, ties and letters come from one procedure: whoever leads, in at most 5 of 100 studies of equal
    subjects any of them is separated. Few blocks (below 5) decide nothing. ``places``: the geometric means,
    which say who are exactly equal, or 0. ``heed`` gives the comparison of a pair without what its figures
    cannot show. ``frail``: subjects whose server failed trials. Those may have been the slow ones, so by the
    rest such a subject is never shown to be better or equivalent, and comes after the others.
    """
    sign = -1.0 if better is Better.HIGHER else 1.0
    pairs = compare_all(logs, terms)
    ahead = _advantages(places, pairs)
    ranked = sorted(logs, key=lambda name: (name in frail, sign * ahead[name], sign * places[name]))
    if heed:
        pairs = {pair: heed(pair, found) for pair, found in pairs.items()}
    pairs = {pair: without_survivors(pair, found, better, frail) for pair, found in pairs.items()}
    first = _unbeaten(ranked, pairs, better)
    names = (first, *(name for name in ranked if name != first))
    fewest = min((pairs[first, name].blocks for name in names[1:]), default=len(logs[first]))
    equal = tuple(name for name in names[1:] if places[name] == places[first])
    return Ranking(names, better, pairs, fewest, equal)


def without_survivors(pair: Pair, found: Comparison, better: Better, frail: Collection[str]) -> Comparison:
    """Return a comparison that does not prefer a subject by the trials that its server did not fail."""
    if found.verdict is Verdict.EQUIVALENT:
        preferred = set(pair)
    elif found.verdict in (Verdict.HIGHER, Verdict.LOWER):
        preferred = {pair[0] if found.verdict is _worse(better) else pair[1]}
    else:
        return found
    return replace(found, verdict=Verdict.SURVIVORS) if preferred & set(frail) else found


def _advantages(places: Mapping[str, float], pairs: Mapping[Pair, Comparison]) -> dict[str, float]:
    """Return by how much the logarithm of each subject lies above those of the others: the mean of its
    differences to them over common blocks; without bound for a figure of 0. Where all blocks are complete,
    that is its geometric mean's.
    """
    above: dict[str, list[float]] = {name: [] for name in places}
    for (_, second), found in pairs.items():
        if found.effect is not None:
            above[second].append(log1p(found.effect))
    return {
        name: -inf if places[name] <= 0 else fsum(found) / max(1, len(found)) for name, found in above.items()
    }


def _unbeaten(names: Sequence[str], pairs: Mapping[Pair, Comparison], better: Better) -> str:
    """Return the first of ``names`` than which none is shown to be better; the first where there is none."""
    return next((name for name in names if not _is_beaten(name, names, pairs, better)), names[0])


def _is_beaten(name: str, names: Sequence[str], pairs: Mapping[Pair, Comparison], better: Better) -> bool:
    """Return whether another is shown to be better: means over all common blocks may say otherwise than
    those over the blocks of two.
    """
    worse = _worse(better)
    return any(pairs[other, name].verdict is worse for other in names if other != name)


def answer(cells: Sequence[CellSummary], terms: Terms | None = None, choices: Sequence[str] = ()) -> Answer:
    """Return the best subject of cells that share one workload, in the metric that decides (``choices`` as
    in `criterion`).

    *Definition*: as ``ranking``, among the qualified; those with too few blocks for a verdict are left out
    where others have enough. Where the first are exactly equal, nobody leads, nor of fewer than five
    sessions.
    """
    qualified = [cell for cell in cells if cell.unqualified is None]
    qualified = [cell for cell in qualified if len(cell.units) >= LEAST_BLOCKS] or qualified
    metric, agreed = criterion(qualified, choices), terms or Terms()
    if metric is None:
        return Answer(None, None, reason=_without_answer(cells, qualified), by_session=agreed.by_session)
    found = _answered(metric, ranked_cells(qualified, metric, agreed), agreed)
    return replace(found, by_session=agreed.by_session, figure=_figure(found.leader, metric, qualified))


def _figure(leader: str | None, metric: str, cells: Sequence[CellSummary]) -> Estimate | None:
    """Return the leader's figure, with an interval that holds for each of the candidates together: who leads
    was chosen from the same trials (Bonferroni).
    """
    cell = next((cell for cell in cells if cell.name == leader), None)
    found = cell.known(metric) if cell else None
    if cell is None or found is None or found.low is None:
        return found
    known = [metrics[metric] for metrics in cell.units.values()]
    values = [value for value in known if not isinstance(value, Missing)]
    own = estimate_over(values, metric, _LEVEL / len(cells))
    return replace(found, low=own.low, high=own.high)


def _answered(metric: str, found: Ranking, terms: Terms) -> Answer:
    first = found.names[0]
    known = Answer(metric, first, found.ties, found.blocks, found.decided, found.with_first, first=first)
    if terms.by_session and not found.decided:
        return replace(known, leader=None, reason=few_sessions(found.blocks))
    if found.level_with_first:
        return replace(known, leader=None, ties=(first, *found.level_with_first), reason=_EQUAL)
    return known


def ranked_cells(cells: Sequence[CellSummary], metric: str, terms: Terms) -> Ranking:
    """Return the ranking of ``cells`` (at least one) in ``metric``, by their names."""
    logs = {cell.name: log_values(cell, metric) for cell in cells}
    places = {cell.name: mean_of(cell, metric) or 0.0 for cell in cells}
    of = {cell.name: cell for cell in cells}
    frail = {cell.name for cell in cells if is_frail(cell, metric)}

    bounds = {cell.name for cell in cells if cell.at_least}

    def heed(pair: Pair, found: Comparison) -> Comparison:
        # Pairs are many, bounds few.
        if bounds.isdisjoint(pair):
            return found
        return heeded(found, metric, bounded_by(of[pair[0]], of[pair[1]], metric), terms.margin)

    return ranking(logs, places, METRICS[metric].better, terms, heed=heed, frail=frail)


def is_frail(cell: CellSummary, metric: str) -> bool:
    """Return whether a cell's speed is that of the trials that its server did not fail."""
    return is_speed(metric) and any(map(is_failed, cell.others))


def bounded_by(first: CellSummary, second: CellSummary, metric: str) -> Bounded:
    """Return by what factors the figures of two cells may be better than measured, and why.

    *Definition*: a cell's factor is that of the mean over all its trials. Of the fewer that both have, all
    that were disturbed may be some: its logarithm is then as many times as large.
    """
    common = max(1, len(first.units.keys() & second.units.keys()))
    one, other = (ratio_of(log(cell.reach(metric)) * len(cell.units) / common) for cell in (first, second))
    return Bounded(one, other, verdict=hidden_by((first, second)))


def hidden_by(cells: Sequence[CellSummary]) -> Verdict:
    """Return what may have hidden a difference between cells whose figures are bounds."""
    if any(cell.held_back for cell in cells):
        return Verdict.LIMITED
    if any(trial.disturbed for cell in cells for trial in cell.counted):
        return Verdict.DISTURBED
    is_shared = any(cell.generator_share or cell.is_of_generator for cell in cells)
    return Verdict.SHARED if is_shared else Verdict.LIMITED


def _without_answer(cells: Sequence[CellSummary], qualified: Sequence[CellSummary]) -> str:
    if qualified:
        return "no latency that all qualified subjects have"
    spoilt = any(cell.total for cell in cells) and not any(cell.ok for cell in cells)
    return "no trial counts" if spoilt else "no subject qualifies"

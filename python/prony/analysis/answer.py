"""Which subject is best under one workload, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, fsum, log

from prony.analysis.compare import LEAST_BLOCKS, Comparison, Terms, Verdict, compare_family
from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, Better
from prony.model import OpenLoop

__all__ = ["Answer", "answer", "criterion", "deciding_metrics", "geometric_mean", "lead", "log_ratios"]

_TAIL_FIRST = ("response_ok_p99", "response_ok_p95", "response_ok_p50")


@dataclass(frozen=True, slots=True)
class Answer:
    """The leader in ``metric``, those not separated from it, and how the others compare with it.

    ``metric`` and ``leader`` are null when no subject qualifies; ``reason`` says why. ``blocks``: the
    fewest blocks that a comparison rests on. ``decided``: there are enough blocks for verdicts. Names are
    those of the cells.
    """

    metric: str | None
    leader: str | None
    ties: tuple[str, ...] = ()
    blocks: int = 0
    decided: bool = False
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    reason: str | None = None


def log_ratios(first: CellSummary, second: CellSummary, metric: str) -> tuple[float, ...]:
    """Return ln(second / first) of each block in which both have the metric, by block."""
    ratios = []
    for block in sorted(first.by_block.keys() & second.by_block.keys()):
        below, above = first.by_block[block][metric], second.by_block[block][metric]
        if isinstance(below, Missing) or isinstance(above, Missing) or below <= 0 or above <= 0:
            continue
        ratios.append(log(above / below))
    return tuple(ratios)


def _has(cell: CellSummary, metric: str) -> bool:
    return isinstance(cell.metrics[metric], Estimate)


def criterion(cells: Sequence[CellSummary]) -> str | None:
    """Return the metric that decides: the tail in an open loop, throughput in a closed one.

    An open loop offers every server the same load, so only latency can differ; the first of p99, p95 and
    p50 that all have. Null if there are no cells, or they have none of these in common.
    """
    if not cells:
        return None
    return next(
        (name for name in deciding_metrics(cells[0]) if all(_has(cell, name) for cell in cells)), None
    )


def deciding_metrics(cell: CellSummary) -> tuple[str, ...]:
    """Return the metrics that decide under a cell's load, the first choice first."""
    return _TAIL_FIRST if isinstance(cell.cell.workload.loop, OpenLoop) else ("ok_per_s",)


def geometric_mean(cell: CellSummary, metric: str) -> float | None:
    """Return the geometric mean of a metric over blocks, by which subjects are ranked; null without values.

    *Definition*: exp of the mean of ln(value), 0 if any value is 0. Differences of it between two subjects
    are means of their log ratios, which is what comparisons test: ranked by arithmetic means, a subject
    with one bad block would come after one that is worse in all others.
    """
    found = [metrics[metric] for metrics in cell.by_block.values()]
    values = [value for value in found if not isinstance(value, Missing)]
    if not values or min(values) <= 0:
        return 0.0 if values else None
    return exp(fsum(map(log, values)) / len(values))


def _place(cell: CellSummary, metric: str) -> float:
    mean = geometric_mean(cell, metric) or 0.0
    return -mean if METRICS[metric].better is Better.HIGHER else mean


def _compared(
    leader: CellSummary, cells: Sequence[CellSummary], metric: str, terms: Terms
) -> dict[str, Comparison]:
    others = [cell for cell in cells if cell is not leader]
    family = {cell.name: log_ratios(leader, cell, metric) for cell in others}
    return compare_family(family, terms)


def _led(
    cells: Sequence[CellSummary], metric: str, terms: Terms
) -> tuple[CellSummary, dict[str, Comparison]]:
    """Return the first of ranked cells that no other is shown to beat, and how the others compare.

    From 8 blocks on comparisons are trimmed, and may reverse an order that comes from one extreme block.
    """
    ahead = Verdict.HIGHER if METRICS[metric].better is Better.HIGHER else Verdict.LOWER
    every = [(cell, _compared(cell, cells, metric, terms)) for cell in cells]
    unbeaten = (led for led in every if all(found.verdict is not ahead for found in led[1].values()))
    return next(unbeaten, every[0])


def _tied(comparison: Comparison, better: Better) -> bool:
    """Return whether the other is not separated from the leader: it is not shown to be worse by more than
    the margin.
    """
    worse = Verdict.LOWER if better is Better.HIGHER else Verdict.HIGHER
    return comparison.verdict is not worse


def answer(cells: Sequence[CellSummary], terms: Terms | None = None) -> Answer:
    """Return the best subject of cells that share one workload, in the metric that decides.

    *Definition*: as ``lead``, among the qualified; those with too few blocks for a verdict are left out where
    others have enough.
    """
    qualified = [cell for cell in cells if cell.unqualified is None]
    qualified = [cell for cell in qualified if len(cell.by_block) >= LEAST_BLOCKS] or qualified
    metric = criterion(qualified)
    if metric is None:
        return Answer(None, None, reason=_without_answer(cells, qualified))
    return lead(qualified, metric, terms or Terms())


def _without_answer(cells: Sequence[CellSummary], qualified: Sequence[CellSummary]) -> str:
    if qualified:
        return "no latency that all qualified subjects have"
    spoilt = any(cell.total for cell in cells) and not any(cell.ok for cell in cells)
    return "no trial counts" if spoilt else "no subject qualifies"


def lead(cells: Sequence[CellSummary], metric: str, terms: Terms) -> Answer:
    """Return the best of ``cells`` (at least one) in ``metric``.

    *Definition*: the lowest geometric mean over blocks (or highest, where higher is better) leads, unless
    another is shown to be better. The others are compared with it by block, as one family (Holm). With fewer
    than 5 common blocks nothing is decided: it only leads.
    *Assumptions*: the leader is chosen from the same trials, which favours it; ties are therefore judged
    generously.
    """
    better = METRICS[metric].better
    leader, comparisons = _led(sorted(cells, key=lambda cell: _place(cell, metric)), metric, terms.of(metric))
    blocks = min([found.blocks for found in comparisons.values()], default=leader.ok)
    decided = blocks >= LEAST_BLOCKS
    ties = tuple(name for name, found in comparisons.items() if decided and _tied(found, better))
    return Answer(metric, leader.name, ties, blocks, decided, comparisons)

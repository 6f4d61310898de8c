"""Which subject is best under one workload, and how far that can be said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from prony.analysis.compare import LEAST_BLOCKS, Comparison, Verdict, compare_family
from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, Better
from prony.model import OpenLoop

__all__ = ["Answer", "answer", "criterion", "log_ratios"]

_TAIL_FIRST = ("response_ok_p99", "response_ok_p95", "response_ok_p50")


@dataclass(frozen=True, slots=True)
class Answer:
    """The leader in ``metric``, those that cannot be told apart from it, and how the others compare with it.

    ``metric`` and ``leader`` are null when no subject qualifies; ``reason`` says why. ``blocks``: the
    fewest blocks that a comparison rests on. ``decided``: there are enough blocks for verdicts. Names are
    those of subjects.
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

    An open loop offers every server the same load, so that only latency tells them apart; of p99, p95 and
    p50 the first that all have. Null if there are no cells, or they have none of them in common.
    """
    if not cells:
        return None
    candidates = _TAIL_FIRST if isinstance(cells[0].cell.workload.loop, OpenLoop) else ("ok_per_s",)
    return next((name for name in candidates if all(_has(cell, name) for cell in cells)), None)


def _mean(cell: CellSummary, metric: str) -> float:
    found = cell.metrics[metric]
    assert isinstance(found, Estimate)
    return found.mean


def _tied(comparison: Comparison, better: Better) -> bool:
    """Say whether the other cannot be told apart from the leader: it is not shown to be worse by more than
    a margin.
    """
    worse = Verdict.LOWER if better is Better.HIGHER else Verdict.HIGHER
    return comparison.verdict is not worse


def answer(cells: Sequence[CellSummary]) -> Answer:
    """Return the best subject of cells that share one workload.

    *Definition*: among qualified subjects, the lowest mean (or highest, for throughput) leads. The others
    are compared with it by block, as one family (Holm). With fewer than 5 common blocks nothing is decided:
    it only leads.
    *Assumptions*: the leader is chosen from the same trials, which favours it; ties are therefore read
    generously.
    """
    qualified = [cell for cell in cells if cell.unqualified is None]
    metric = criterion(qualified)
    if metric is None:
        reason = "no subject qualifies" if not qualified else "no latency that all qualified subjects have"
        return Answer(None, None, reason=reason)
    better = METRICS[metric].better
    ranked = sorted(qualified, key=lambda cell: _mean(cell, metric), reverse=better is Better.HIGHER)
    leader, others = ranked[0], ranked[1:]
    family = {cell.cell.subject.name: log_ratios(leader, cell, metric) for cell in others}
    comparisons = compare_family(family)
    blocks = min([found.blocks for found in comparisons.values()], default=leader.ok)
    decided = blocks >= LEAST_BLOCKS
    ties = tuple(name for name, found in comparisons.items() if decided and _tied(found, better))
    return Answer(metric, leader.cell.subject.name, ties, blocks, decided, comparisons)

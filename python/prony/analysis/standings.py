"""Who is best in each measure, and which are not separated: groups with letters, never bare ranks.

>>> [measure.title for measure in MEASURES]
['throughput', 'latency', 'errors', 'CPU/request', 'memory']
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from prony.analysis.answer import geometric_mean, lead, log_ratios
from prony.analysis.compare import LEAST_BLOCKS, Terms, Verdict, compare_family
from prony.analysis.groups import friedman, letters
from prony.analysis.missing import Missing
from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.analysis.summary import CellSummary, Estimate
from prony.metrics import METRICS, Better

__all__ = ["GENERATOR_MEASURES", "MEASURES", "Measure", "Standing", "standing", "standings"]

_DIFFERENT = (Verdict.HIGHER, Verdict.LOWER)


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of quality: the first of ``metrics`` that all candidates have. ``speed``: only of subjects
    whose speed is qualified.
    """

    title: str
    metrics: tuple[str, ...]
    speed: bool = True


MEASURES = (
    Measure("throughput", ("ok_per_s",)),
    Measure(
        "latency",
        tuple(f"{kind}_ok_{p}" for kind in ("response", "service") for p in ("p99", "p95", "p50")),
    ),
    Measure("errors", ("error_ratio",), speed=False),
    Measure("CPU/request", ("cpu_ns_per_request",)),
    Measure("memory", ("pss_end", "rss_peak"), speed=False),
)
"""In the order of reports. CPU is that of one request: a smaller total may only mean less work done."""


GENERATOR_MEASURES = (
    Measure("throughput", ("ok_per_s",)),
    Measure("errors", ("error_ratio",), speed=False),
    Measure("CPU/request", ("generator_cpu_ns_per_request",)),
    Measure("memory", ("generator_rss_mean",), speed=False),
)
"""For generators: the load that they make, and its cost."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One measure under one load. ``ranked``: names, best first by the geometric mean over blocks.

    ``letters``: two that share one are not separated; empty while there are too few ``blocks``. ``best``:
    the first and those not separated from it. ``left_out``: those with too few blocks to be
    compared. ``omnibus_p``: of Friedman's test that all are equal, which the pairs do not depend on; null for
    two. ``metric`` and ``best`` are empty when nobody has the metric, and ``reason`` says why.
    """

    measure: str
    metric: str | None
    ranked: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    letters: Mapping[str, str] | None = None
    blocks: int = 0
    reason: str | None = None
    left_out: tuple[str, ...] = ()
    omnibus_p: float | None = None

    @property
    def decided(self) -> bool:
        """Whether there are enough blocks for verdicts."""
        return self.letters is not None


def standings(
    cells: Sequence[CellSummary], terms: Terms, measures: Sequence[Measure] = MEASURES
) -> tuple[Standing, ...]:
    """Return who is best in each measure among cells that may be compared."""
    return tuple(standing(cells, measure, terms) for measure in measures)


def standing(cells: Sequence[CellSummary], measure: Measure, terms: Terms) -> Standing:
    """Return who is best in one measure.

    *Definition*: of the cells that may be compared, the first is that of ``answer.lead``, which
    also names those not separated from it. Pairs without it are a second family (Holm) for the letters.
    With errors, those that qualify (at most 0.1 %) are best and share a letter: a ratio to zero says
    nothing, and single failures are no difference. Cells with too few blocks are left out where others have
    enough.
    *Assumptions*: an omnibus test does not stand before the pairs: Holm's procedure needs none.
    """
    fit = [cell for cell in cells if _counts(cell, measure)]
    enough = [cell for cell in fit if len(cell.by_block) >= LEAST_BLOCKS]
    left_out = tuple(cell.name for cell in fit if enough and cell not in enough)
    fit = enough or fit
    if not fit:
        return Standing(measure.title, None, reason="no subject qualifies")
    metric = next((m for m in measure.metrics if all(_has(cell, m) for cell in fit)), None)
    if metric is None:
        return Standing(measure.title, None, reason="not all subjects have it")
    found = _by_errors(fit) if metric == "error_ratio" else _by_pairs(fit, metric, terms)
    return replace(found, measure=measure.title, left_out=left_out)


def _counts(cell: CellSummary, measure: Measure) -> bool:
    return bool(cell.ok) and (cell.unqualified is None or not measure.speed)


def _has(cell: CellSummary, metric: str) -> bool:
    return isinstance(cell.metrics[metric], Estimate)


def _by_pairs(cells: Sequence[CellSummary], metric: str, terms: Terms) -> Standing:
    first = lead(cells, metric, terms)
    ranked = sorted(cells, key=lambda cell: (cell.name != first.leader, _place(cell, metric)))
    names = tuple(cell.name for cell in ranked)
    if not first.decided:
        return Standing("", metric, names, names[:1], None, first.blocks)
    worse = {(names[0], name) for name in first.comparisons if name not in first.ties}
    pairs = {(one.name, two.name): log_ratios(one, two, metric) for one, two in combinations(ranked[1:], 2)}
    compared = compare_family(pairs, terms.of(metric))
    worse |= {pair for pair, found in compared.items() if found.verdict in _DIFFERENT}
    best = (names[0], *(name for name in names[1:] if name in first.ties))
    found = Standing("", metric, names, best, letters(names, worse), first.blocks)
    return replace(found, omnibus_p=friedman(_complete_blocks(cells, metric)))


def _complete_blocks(cells: Sequence[CellSummary], metric: str) -> list[dict[str, float]]:
    """Return the metric by name for each block in which all have it."""
    blocks = sorted(set.intersection(*(set(cell.by_block) for cell in cells)))
    rows = [{cell.name: cell.by_block[block][metric] for cell in cells} for block in blocks]
    known = [{name: one for name, one in row.items() if not isinstance(one, Missing)} for row in rows]
    return [row for row in known if len(row) == len(cells)]


def _place(cell: CellSummary, metric: str) -> float:
    value = geometric_mean(cell, metric) or 0.0
    return -value if METRICS[metric].better is Better.HIGHER else value


def _by_errors(cells: Sequence[CellSummary]) -> Standing:
    ranked = sorted(cells, key=lambda cell: (not _is_clean(cell), cell.error_ratio or 0.0))
    names = tuple(cell.name for cell in ranked)
    clean = tuple(cell.name for cell in ranked if _is_clean(cell))
    blocks = min(len(cell.by_block) for cell in ranked)
    if blocks < LEAST_BLOCKS or not clean:
        return Standing("", "error_ratio", names, clean or names[:1], None, blocks)
    different = {(one, other) for one in clean for other in names if other not in clean}
    return Standing("", "error_ratio", names, clean, letters(names, different), blocks)


def _is_clean(cell: CellSummary) -> bool:
    return cell.error_ratio is not None and cell.error_ratio <= QUALIFIED_ERROR_RATIO

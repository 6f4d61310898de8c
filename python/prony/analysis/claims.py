"""Whether a repeat confirms the claims of a published experiment: a verdict with its figure for each.

Each kind has an estimand and a test. A claim of several parts (loads, rivals) holds when every part does,
and does not when one is shown not to hold. Must not know reports.

*Source*: R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982):
of a claim that is the conjunction of its parts, each may be tested at the full level.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, log
from types import MappingProxyType

from prony.analysis.account import ending_named
from prony.analysis.at_least import Bounded, Open, ends_of, open_end
from prony.analysis.claim_cells import by_block, claimed, rivals, unsampled, where
from prony.analysis.claim_needs import unmet
from prony.analysis.claim_parts import (
    Bounds,
    ClaimResult,
    ClaimVerdict,
    Part,
    judged,
    of_effect,
    of_values,
)
from prony.analysis.compare import LEAST_BLOCKS, Terms
from prony.analysis.failure_rates import Failures, clopper_pearson, compare_failures
from prony.analysis.missing import Missing
from prony.analysis.rates import QUALIFIED_ERROR_RATIO, is_speed
from prony.analysis.summary import CellSummary, TrialFigures
from prony.model import Claim, ClaimKind, Failed

__all__ = ["ClaimResult", "ClaimVerdict", "evaluate"]

# A process on one core shows a little more than 100 %: samples of CPU and time are not taken at one moment.
_ONE_CORE_PERCENT = 102.0
_MOST = 0.5


def evaluate(claim: Claim, cells: Sequence[CellSummary], terms: Terms | None = None) -> ClaimResult:
    """Return the verdict of a study's cells, of all loads, on ``claim``.

    *Definition*: not testable where a need of the claim is not met; cannot tell below the blocks that it
    needs (at least 5 for an order, a ratio and growth). ``terms``: margin and noise floor, as for the metric.
    """
    own = claimed(claim, cells)
    lacking = unmet(claim, own)
    if lacking is not None:
        return ClaimResult(ClaimVerdict.NOT_TESTABLE, reason=f"needs {lacking}")
    return _combined(_KINDS[claim.kind](claim, own, cells, (terms or Terms()).of(claim.metric)))


def _combined(parts: Sequence[ClaimResult]) -> ClaimResult:
    """Return the part that decides: the weakest that does not hold, else the weakest open one, else the
    weakest of all.
    """
    for verdict in (ClaimVerdict.DOES_NOT_HOLD, ClaimVerdict.CANNOT_TELL):
        for part in parts:
            if part.verdict is verdict:
                return part
    if not parts:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, reason="no other server produced usable figures")
    return parts[0]


# --- orders and ratios ------------------------------------------------------------------------------------


def _unqualified(claim: Claim, cell: CellSummary) -> str | None:
    return (cell.unqualified if is_speed(claim.metric) else None) or unsampled(claim, cell)


def _ratios(claim: Claim, cell: CellSummary, other: CellSummary) -> list[float]:
    mine, theirs = by_block(cell, claim), by_block(other, claim)
    both = sorted(mine.keys() & theirs.keys())
    return [log(mine[b] / theirs[b]) for b in both if mine[b] > 0 and theirs[b] > 0]


def _pairs(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary]
) -> Iterable[tuple[CellSummary, CellSummary]]:
    return ((cell, other) for cell in own for other in rivals(claim, cell, cells))


def _order(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the ratio to each rival under the same load. It holds where every interval lies on the
    claimed side of 1, by more than the noise floor, and does not where one lies on the other side by as much:
    in between the machine cannot say. Rivals whose speed does not qualify are no rivals.
    """
    bar, doubt = 1 + terms.noise_floor, (1 + terms.noise_floor) ** 2
    highest = claim.kind is ClaimKind.HIGHEST
    bounds = Bounds(bar, None, doubt) if highest else Bounds(None, 1 / bar, doubt)
    fit = [(cell, other) for cell, other in _pairs(claim, own, cells) if _unqualified(claim, other) is None]
    return _compared(claim, fit, bounds, terms)


def _ratio(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the ratio to each rival; it holds where the whole interval lies within the bounds."""
    return _compared(claim, list(_pairs(claim, own, cells)), Bounds(claim.low, claim.high), terms)


def _compared(
    claim: Claim, pairs: Sequence[tuple[CellSummary, CellSummary]], bounds: Bounds, terms: Terms
) -> list[ClaimResult]:
    parts: list[Part] = []
    for cell, other in pairs:
        ratios, name = _ratios(claim, cell, other), f"{where(cell)}, to {other.name}"
        lost = _unqualified(claim, cell) or _unqualified(claim, other)
        ends = ends_of(claim.metric, Bounded(cell.at_least, other.at_least))
        parts.append(of_effect(ratios, name, lost, ends, terms.widening))
    return judged(parts, bounds, terms, max(LEAST_BLOCKS, claim.needs.blocks))


# --- values -----------------------------------------------------------------------------------------------


def _value(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the mean over blocks; it holds where the whole interval lies within the bounds."""
    return judged(_means(claim, own, terms), Bounds(claim.low, claim.high), terms, claim.needs.blocks)


def _single_core(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the mean CPU of a server that has more than one core; it holds where the whole interval lies
    at or below one core.
    """
    return judged(_means(claim, own, terms), Bounds(None, _ONE_CORE_PERCENT), terms, claim.needs.blocks)


def _means(claim: Claim, own: Sequence[CellSummary], terms: Terms) -> list[Part]:
    found = (of_values(list(by_block(cell, claim).values()), where(cell), terms.widening) for cell in own)
    return [
        replace(part, lost=_lost(claim, cell), open=open_end(claim.metric, at_least=cell.at_least))
        for part, cell in zip(found, own, strict=True)
    ]


def _lost(claim: Claim, cell: CellSummary) -> str | None:
    """Return why a cell has no value that counts; null if it has one, or if only its trials are too few."""
    value = cell.metrics[claim.metric]
    missing = value.reason if isinstance(value, Missing) and cell.ok and not claim.role else None
    return _unqualified(claim, cell) or missing


# --- growth -----------------------------------------------------------------------------------------------


def _grows(
    claim: Claim, own: Sequence[CellSummary], _: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: exp(s ln(heaviest / lightest load)), s the slope of ln(metric) on ln(load), fitted in each
    block. It holds where the interval lies above 1 by more than the margin, and does not where it lies below.
    """
    name = _varied(own)
    if name is None:
        return [ClaimResult(ClaimVerdict.NOT_TESTABLE, reason="needs two loads or more")]
    alike: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in (one for one in own if name in one.cell.load):
        alike.setdefault((cell.cell.subject.name, cell.cell.engine.name), []).append(cell)
    curves = [found for found in alike.values() if len({cell.cell.load[name] for cell in found}) > 1]
    parts = [_growth(claim, found, name, terms) for found in curves]
    return judged(parts, Bounds(1 + terms.margin, None), terms, max(LEAST_BLOCKS, claim.needs.blocks))


def _varied(own: Sequence[CellSummary]) -> str | None:
    """Return the quantity in which these loads differ; null when they do not."""
    names = ("connections", "rate", "requests", "threads")
    return next((name for name in names if len({cell.cell.load.get(name) for cell in own}) > 1), None)


def _growth(claim: Claim, cells: Sequence[CellSummary], name: str, terms: Terms) -> Part:
    sizes = [cell.cell.load[name] for cell in cells]
    span = log(max(sizes) / min(sizes))
    values = {size: by_block(cell, claim) for size, cell in zip(sizes, cells, strict=True)}
    blocks = set.intersection(*(set(found) for found in values.values()))
    curves = [[(log(size), found[block]) for size, found in values.items()] for block in sorted(blocks)]
    growths = [_slope(curve) * span for curve in curves if all(value > 0 for _, value in curve)]
    lost = next((lost for cell in cells if (lost := _unqualified(claim, cell))), None)
    title = f"{cells[0].cell.subject.name}, from {min(sizes):g} to {max(sizes):g} {name}"
    return of_effect(growths, title, lost, _ends_of_growth(claim, cells, sizes), terms.widening)


def _ends_of_growth(claim: Claim, cells: Sequence[CellSummary], sizes: Sequence[float]) -> Open:
    """Return where the true growth may lie: what is higher under a load above the middle adds to it."""
    middle, ends = fsum(map(log, sizes)) / len(sizes), Open()
    for cell, size in zip(cells, sizes, strict=True):
        own = open_end(claim.metric, at_least=cell.at_least)
        ends |= own if log(size) > middle else own.turned
    return ends


def _slope(curve: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of ln(value) on x."""
    middle = fsum(x for x, _ in curve) / len(curve)
    squares = fsum((x - middle) ** 2 for x, _ in curve)
    return fsum((x - middle) * log(value) for x, value in curve) / squares


# --- failures ---------------------------------------------------------------------------------------------


def _fails(
    claim: Claim, own: Sequence[CellSummary], cells: Sequence[CellSummary], terms: Terms
) -> list[ClaimResult]:
    """Estimand: the share of trials in which more than 0.1 % of the requests end so, or, without a kind, the
    server fails. It holds where most do (one-sided, exact), and, against others, more of them than of those
    (Fisher's exact test on trials).
    """
    least = claim.needs.blocks
    parts = [_share(claim, cell) for cell in own]
    found = judged(parts, Bounds(_MOST, None), terms, least)
    if claim.against == "*":
        return found
    return found + [_more(claim, cell, other, terms) for cell, other in _pairs(claim, own, cells)]


def _failures(claim: Claim, cell: CellSummary) -> Failures:
    trials = (*cell.counted, *(trial for trial in cell.others if isinstance(trial.outcome, Failed)))
    return Failures(sum(_failed_so(claim.failure, trial) for trial in trials), len(trials))


def _failed_so(kind: str | None, trial: TrialFigures) -> bool:
    if isinstance(trial.outcome, Failed):
        return kind is None or kind == trial.outcome.stage
    asked = ending_named(kind) if kind else None
    found = trial.account.failed.items()
    lost = sum(count for ending, count in found if asked is None or asked.includes(ending))
    return lost > QUALIFIED_ERROR_RATIO * trial.account.requests


def _share(claim: Claim, cell: CellSummary) -> Part:
    found = _failures(claim, cell)
    if not found.total:
        return Part(where(cell), 0)

    def interval(level: float) -> tuple[float, float]:
        # One-sided at the level: 5 of 5 trials show that most fail.
        return clopper_pearson(found.failed, found.total, min(1.0, 2 * level))

    return Part(where(cell), found.total, found.failed / found.total, interval)


def _more(claim: Claim, cell: CellSummary, other: CellSummary, terms: Terms) -> ClaimResult:
    mine, theirs = _failures(claim, cell), _failures(claim, other)
    name = f"{where(cell)}, against {other.name}"
    if not mine.total or not theirs.total:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, 0, reason=f"{name}: no trial counts")
    n, compared = min(mine.total, theirs.total), compare_failures(mine, theirs, terms.level)
    share = mine.failed / mine.total
    said = f"{name}: {mine.failed} of {mine.total} trials fail, against {theirs.failed} of {theirs.total}"
    if not compared.differs:
        return ClaimResult(ClaimVerdict.CANNOT_TELL, n, share, None, said)
    more = mine.failed * theirs.total > theirs.failed * mine.total
    verdict = ClaimVerdict.HOLDS if more else ClaimVerdict.DOES_NOT_HOLD
    return ClaimResult(verdict, n, share, None, said)


Evaluation = Callable[[Claim, Sequence[CellSummary], Sequence[CellSummary], Terms], list[ClaimResult]]

_KINDS: Mapping[ClaimKind, Evaluation] = MappingProxyType(
    {
        ClaimKind.HIGHEST: _order,
        ClaimKind.LOWEST: _order,
        ClaimKind.RATIO: _ratio,
        ClaimKind.VALUE: _value,
        ClaimKind.GROWS: _grows,
        ClaimKind.FAILS: _fails,
        ClaimKind.SINGLE_CORE: _single_core,
    }
)

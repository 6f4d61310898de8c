"""Two subjects, or one subject in two archives: effect, interval and verdict in each metric at each load.

Must not know archives or the command line.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from prony.analysis.answer import (
    bounded_by,
    criterion,
    deciding_metrics,
    is_frail,
    log_ratios,
    without_survivors,
)
from prony.analysis.at_least import heeded
from prony.analysis.by_session import in_common, in_sessions, is_failed, shares_of
from prony.analysis.compare import LEAST_BLOCKS, Comparison, Terms, compare_effects, with_range
from prony.analysis.effects import Effect, paired, unpaired
from prony.analysis.failure_rates import FailureComparison, compare_failures, compare_in_blocks
from prony.analysis.missing import Missing
from prony.analysis.rates import is_speed
from prony.analysis.summary import CellSummary
from prony.metrics import METRICS
from prony.model import Workload

__all__ = ["METRICS_COMPARED", "Match", "Row", "Versus", "differing_parts", "matches", "versus"]

METRICS_COMPARED = (
    "ok_per_s",
    *(f"{kind}_ok_{suffix}" for kind in ("response", "service") for suffix in ("p50", "p95", "p99", "mean")),
    *("cpu_ns_per_request", "pss_end", "rss_peak"),
)
"""In the order of reports."""


@dataclass(frozen=True, slots=True)
class Match:
    """Two cells under one load: ``second`` is compared with ``first``."""

    first: CellSummary
    second: CellSummary


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one match; ``comparison`` null: there is none, and ``reason`` says why. ``screens``: the
    comparison was not made for this metric.
    """

    match: Match
    metric: str
    comparison: Comparison | None
    screens: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Versus:
    """All rows, and for each match how often trials failed. ``paired``: by block, within one archive.
    ``by_session``: sessions are counted in place of blocks and trials.
    """

    matches: tuple[Match, ...]
    rows: tuple[Row, ...]
    failures: tuple[FailureComparison, ...]
    paired: bool
    by_session: bool = False


def matches(first: Iterable[CellSummary], second: Sequence[CellSummary], alike: bool) -> tuple[Match, ...]:
    """Return the cells of both sides with the same load and generator; ``alike``: and the same subject."""
    return tuple(
        Match(one, other)
        for one in first
        for other in second
        if one.cell.load == other.cell.load
        and one.cell.engine.name == other.cell.engine.name
        and (not alike or one.cell.subject.name == other.cell.subject.name)
    )


def differing_parts(match: Match) -> tuple[str, ...]:
    """Return how the two cells differ beside their subjects, in words."""
    first, second = match.first.cell, match.second.cell
    told = {
        "sandbox": first.sandbox == second.sandbox,
        "window": first.workload.stop == second.workload.stop,
        "warm-up": first.workload.warmup_ns == second.workload.warmup_ns,
        "time-out": _time_outs(first.workload) == _time_outs(second.workload),
        "request": (first.workload.request, first.workload.mix)
        == (second.workload.request, second.workload.mix),
        "pacing": first.engine.pacing == second.engine.pacing,
    }
    return tuple(name for name, same in told.items() if not same)


def _time_outs(workload: Workload) -> tuple[int, int | None]:
    return workload.timeout_ns, workload.connect_timeout_ns


def versus(found: Sequence[Match], is_paired: bool, terms: Terms, primary: Sequence[str] = ()) -> Versus:
    """Return the comparison of all matches in all metrics. ``primary``: those that it is made for.

    *Definition*: primary are these, or the metric that decides (throughput in a closed loop, the tail in an
    open one): one family over all loads (Holm). All others are a screening (Benjamini and Hochberg). Paired
    by block within an archive; between archives Welch's test on logarithms. Where one of both has several
    sessions, these are counted, and fewer than five have no interval.
    *Assumptions*: of two archives nothing but the subject changed. It did: the effect includes the machine's
    drift.
    """
    by_session = any(_has_sessions(match) for match in found)
    if by_session:
        found = [_in_sessions(match, is_paired) for match in found]
    wanted = {k: set(primary) or {_criterion(one)} for k, one in enumerate(found)}
    effects = {
        (k, metric): _effect(match, metric, is_paired)
        for k, match in enumerate(found)
        for metric in METRICS_COMPARED
        if _both_have(match, metric)
    }
    ranges = {
        (k, metric): log_ratios(found[k].first, found[k].second, metric)
        for k, metric in effects
        if by_session and is_paired
    }
    compared = _families(found, effects, wanted, terms, ranges)
    rows = tuple(
        Row(found[k], metric, compared.get((k, metric)), metric not in wanted[k], _reason(effect))
        for (k, metric), effect in effects.items()
    )
    failures = tuple(_failures(match, is_paired) for match in found)
    return Versus(tuple(found), rows, failures, is_paired, by_session)


def _has_sessions(match: Match) -> bool:
    return match.first.by_session is not None or match.second.by_session is not None


def _in_sessions(match: Match, is_paired: bool) -> Match:
    """Return a match in which sessions count, over the blocks that both have; of two archives each by itself,
    for blocks of the one have nothing to do with those of the other.
    """
    if is_paired:
        return Match(*in_sessions((match.first, match.second)))
    return Match(*in_sessions((match.first,)), *in_sessions((match.second,)))


def _criterion(match: Match) -> str:
    """Return the metric that decides, or would if both had it: the first row then says that they lack it."""
    return criterion([match.first, match.second]) or deciding_metrics(match.first.cell)[0]


Key = tuple[int, str]


def _families(
    found: Sequence[Match],
    effects: Mapping[Key, Effect | Missing],
    wanted: Mapping[int, set[str]],
    terms: Terms,
    ranges: Mapping[Key, Sequence[float]],
) -> dict[Key, Comparison]:
    """Return the comparisons. ``ranges``: the log ratios of single sessions, where these are counted."""
    compared: dict[Key, Comparison] = {}
    for screens in (False, True):
        family = {
            key: effect
            for key, effect in effects.items()
            if isinstance(effect, Effect) and (key[1] not in wanted[key[0]]) is screens
        }
        agreed = replace(terms, screens=screens)
        judged = compare_effects(family, agreed)
        for key in family:
            compared[key] = with_range(
                _heeded(found[key[0]], key[1], judged[key], terms), ranges.get(key, ())
            )
    return compared


def _heeded(match: Match, metric: str, found: Comparison, terms: Terms) -> Comparison:
    """Return a comparison without what bounds, and trials that a server failed, leave open."""
    one = heeded(found, metric, bounded_by(match.first, match.second, metric), terms.margin)
    sides = {"first": match.first, "second": match.second}
    frail = {name for name, cell in sides.items() if is_frail(cell, metric)}
    return without_survivors(("first", "second"), one, METRICS[metric].better, frail)


def _both_have(match: Match, metric: str) -> bool:
    return bool(_values(match.first, metric) and _values(match.second, metric))


def _values(cell: CellSummary, metric: str) -> list[float]:
    found = [metrics[metric] for metrics in cell.units.values()]
    return [float(value) for value in found if not isinstance(value, Missing) and value > 0]


def _effect(match: Match, metric: str, is_paired: bool) -> Effect | Missing:
    lost = match.first.unqualified or match.second.unqualified
    if lost and is_speed(metric):
        return Missing(f"speed does not qualify: {lost}")
    if is_paired:
        ratios = log_ratios(match.first, match.second, metric)
        units = "sessions" if _has_sessions(match) else "blocks"
        return paired(ratios) if len(ratios) >= 2 else Missing(f"{len(ratios)} common {units}: no interval")
    first, second = (list(map(log, _values(cell, metric))) for cell in (match.first, match.second))
    if min(len(first), len(second)) < 2:
        units = "sessions" if _has_sessions(match) else "trials"
        return Missing(f"{len(first)} and {len(second)} {units}: no interval")
    return unpaired(first, second)


def _reason(effect: Effect | Missing) -> str | None:
    return effect.reason if isinstance(effect, Missing) else None


def _failures(match: Match, is_paired: bool) -> FailureComparison:
    if is_paired:
        found = compare_in_blocks(*in_common(match.first, match.second, is_failed))
    else:
        found = compare_failures(*shares_of(match.first, match.second, is_failed, is_paired=False))
    few = min(found.first.total, found.second.total) < LEAST_BLOCKS
    return replace(found, differs=False) if few and _has_sessions(match) else found

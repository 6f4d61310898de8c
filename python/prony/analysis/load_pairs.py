"""Two loads in alternating windows, compared pair by pair: what the machine does to both cancels out.

*Definition*: of each figure the log of second / first within each pair; its interval and verdict are those of
`compare_effects`, one family over the figures of a load, with standard errors that allow for pairs which
resemble their neighbours.
*Assumptions*: a pair is short against what drifts, and its order is random; windows are long enough for the
percentile. Both sides had the same load. The state of one side may last for several windows; if it lasts as
long as the whole comparison, no interval shows it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, log

from prony.analysis.compare import (
    LEAST_BLOCKS,
    Comparison,
    Terms,
    compare_effects,
    compare_family,
)
from prony.analysis.dependence import of_mean, shown_by
from prony.analysis.effects import paired
from prony.analysis.missing import Missing, Value
from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.analysis.trial_metrics import load_metrics
from prony.model.recording import Recording

__all__ = ["FigurePair", "LoadPair", "LoadPairs", "Resemblance", "SideTotals", "compare_load_pairs"]

_STATISTICS = ("mean", "p50", "p99")
# Found by simulation: with it, intervals miss in at most 5 % of comparisons at a correlation of 0.5, and in
# at most 10 % at 0.8, of 5 pairs and of 100. It stands for what few pairs cannot show.
_MARGIN = 4.0
_MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class Resemblance:
    """How neighbouring pairs resemble each other: ``correlation`` as estimated, ``most`` as allowed for, and
    ``widening``, by which standard errors and intervals are multiplied.
    """

    correlation: float
    most: float
    widening: float


@dataclass(frozen=True, slots=True)
class LoadPair:
    """One window of each side; ``second_began``: the second side had the first window."""

    first: Recording
    second: Recording
    second_began: bool


@dataclass(frozen=True, slots=True)
class FigurePair:
    """A figure on both sides: means over the windows, and how the second compares with the first.

    ``pairs``: those in which both have it; ``reason``: why others have not, null where all have.
    ``resemblance``: of these pairs, null below five.
    """

    metric: str
    first: float | None
    second: float | None
    comparison: Comparison
    pairs: int
    reason: str | None
    resemblance: Resemblance | None


@dataclass(frozen=True, slots=True)
class SideTotals:
    """All windows of one side together."""

    requests: int
    errors: int

    @property
    def is_qualified(self) -> bool:
        """Whether so few requests failed that speed figures may be compared."""
        return self.errors <= QUALIFIED_ERROR_RATIO * self.requests


@dataclass(frozen=True, slots=True)
class LoadPairs:
    """The comparison of two loads. ``figures``: what it was made for comes first."""

    pairs: int
    first: SideTotals
    second: SideTotals
    figures: tuple[FigurePair, ...]

    @property
    def deciding(self) -> FigurePair:
        """The first figure that enough pairs have: whether they have it depends on their length alone."""
        return next((one for one in self.figures if one.pairs >= LEAST_BLOCKS), self.figures[0])


def compare_load_pairs(pairs: Sequence[LoadPair]) -> LoadPairs:
    """Return how the second side compares with the first: throughput of a closed loop, latency of both.

    In an open loop the rate is what was asked for, so it is not compared.
    """
    is_open = any(pair.first.is_open for pair in pairs)
    kind = "response" if is_open else "service"
    latencies = [f"{kind}_ok_{statistic}" for statistic in _STATISTICS]
    names = latencies[::-1] if is_open else ["ok_per_s", *latencies]
    measured = [(load_metrics(pair.first), load_metrics(pair.second)) for pair in pairs]
    logs = {name: _log_ratios(measured, name) for name in names}
    alike = {name: _resemblance(ratios) for name, ratios in logs.items()}
    compared = _compared(logs, alike)
    return LoadPairs(
        len(pairs),
        _totals([pair.first for pair in pairs]),
        _totals([pair.second for pair in pairs]),
        tuple(_figure(name, measured, len(logs[name]), compared[name], alike[name]) for name in names),
    )


def _compared(
    logs: Mapping[str, Sequence[float]], alike: Mapping[str, Resemblance | None]
) -> dict[str, Comparison]:
    wide = {name: paired(logs[name], found.widening) for name, found in alike.items() if found}
    return {**compare_family(logs), **compare_effects(wide, Terms())}


def _resemblance(ratios: Sequence[float]) -> Resemblance | None:
    """Return how log ratios resemble their neighbours; null below five.

    *Definition*: the correlation is that of `dependence.shown_by`, and the most that is allowed for 4 / n
    more, between 0 and 0.9. The widening is `dependence.of_mean` of that. Windows of one server process
    resemble each other more than blocks of fresh ones, so it is allowed for, and not drawn to what is usual.
    *Assumptions*: the correlation fades as that of a first-order autoregression.
    """
    count = len(ratios)
    if count < LEAST_BLOCKS:
        return None
    shown = float(shown_by([[one] for one in ratios]))
    correlation = 0.0 if isnan(shown) else min(max(shown, -1.0), 1.0)
    most = min(max(correlation + _MARGIN / count, 0.0), _MOST_CORRELATION)
    return Resemblance(correlation, most, float(of_mean(most, count)))


_Measured = Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]]


def _log_ratios(measured: _Measured, name: str) -> list[float]:
    both = ((_positive(first[name]), _positive(second[name])) for first, second in measured)
    return [log(b / a) for a, b in both if a is not None and b is not None]


def _positive(value: Value) -> float | None:
    return None if isinstance(value, Missing) or value <= 0 else value


def _figure(
    name: str, measured: _Measured, pairs: int, comparison: Comparison, alike: Resemblance | None
) -> FigurePair:
    means = [_mean([side[k][name] for side in measured]) for k in (0, 1)]
    return FigurePair(name, means[0], means[1], comparison, pairs, _reason(name, measured, pairs), alike)


def _mean(values: Sequence[Value]) -> float | None:
    known = [value for value in values if not isinstance(value, Missing)]
    return sum(known) / len(known) if known else None


def _reason(name: str, measured: _Measured, pairs: int) -> str | None:
    values = [side[name] for both in measured for side in both]
    reasons = Counter(value.reason for value in values if isinstance(value, Missing))
    if reasons:
        return reasons.most_common(1)[0][0]
    return f"fewer than {LEAST_BLOCKS} pairs" if pairs < LEAST_BLOCKS else None


def _totals(recordings: Sequence[Recording]) -> SideTotals:
    accounts = [recording.account for recording in recordings]
    requests = sum(account.scheduled for account in accounts)
    return SideTotals(requests, requests - sum(account.ok for account in accounts))

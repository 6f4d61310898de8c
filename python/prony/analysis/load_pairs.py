"""Two loads in alternating windows, compared pair by pair: what the machine does to both cancels out.

*Definition*: of each figure the log of second / first within each pair; its interval and verdict are those of
`compare_family`, one family over the figures of a load.
*Assumptions*: a pair is short against what drifts, and its order is random; windows are long enough for the
percentile. Both sides had the same load.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from prony.analysis.compare import LEAST_BLOCKS, Comparison, compare_family
from prony.analysis.missing import Missing, Value
from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.analysis.trial_metrics import load_metrics
from prony.model.recording import Recording

__all__ = ["FigurePair", "LoadPair", "LoadPairs", "SideTotals", "compare_load_pairs"]

_STATISTICS = ("mean", "p50", "p99")


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
    """

    metric: str
    first: float | None
    second: float | None
    comparison: Comparison
    pairs: int
    reason: str | None


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
    compared = compare_family(logs)
    return LoadPairs(
        len(pairs),
        _totals([pair.first for pair in pairs]),
        _totals([pair.second for pair in pairs]),
        tuple(_figure(name, measured, len(logs[name]), compared[name]) for name in names),
    )


_Measured = Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]]


def _log_ratios(measured: _Measured, name: str) -> list[float]:
    both = ((_positive(first[name]), _positive(second[name])) for first, second in measured)
    return [log(b / a) for a, b in both if a is not None and b is not None]


def _positive(value: Value) -> float | None:
    return None if isinstance(value, Missing) or value <= 0 else value


def _figure(name: str, measured: _Measured, pairs: int, comparison: Comparison) -> FigurePair:
    means = [_mean([side[k][name] for side in measured]) for k in (0, 1)]
    return FigurePair(name, means[0], means[1], comparison, pairs, _reason(name, measured, pairs))


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

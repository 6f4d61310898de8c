"""Figures that a generator's limit has made a bound: the server is at least so good.

A generator that is the limit delays or withholds requests. Throughput is then at least what was measured, and
a response time, which counts from when the request was due, at most. So what such a server is shown to be
better than stands, and what it seems to be worse than does not.

>>> from prony.figures.statistics.compare import compare
>>> slower = compare([-0.10, -0.11, -0.09, -0.10, -0.12])
>>> heeded(slower, "ok_per_s", Bounded(second=inf), bar=0.02).verdict
<Verdict.LIMITED: 'not shown: the generator was the limit'>
>>> heeded(slower, "ok_per_s", Bounded(second=1.03), bar=0.02).verdict
<Verdict.LOWER: 'lower'>
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from prony.core.metrics import METRICS, Better
from prony.figures.account import is_speed
from prony.figures.statistics.compare import NO_VERDICT, Comparison, Verdict
from prony.model.limit import Limit, Limited, LimitKind

# A single suspicion comes in 2 of 100 healthy loads; one that returns in most trials belongs to the load.
_MOST = 0.5
_COSTS = ("cpu_ns_per_request", "generator_cpu_ns_per_request", "generator_ok_per_cpu_s")
_MORE_UNDER_MORE_LOAD = (
    "cpu_percent",
    "generator_cpu_percent",
    "busiest_thread_percent",
    "error_ratio",
    "error_per_s",
)


def is_at_least(trials: Iterable[Limit | None]) -> bool:
    """Return whether figures over trials with this evidence, None for none, are bounds.

    *Definition*: the generator was the limit in any of them, or may have been in more than half.
    """
    levels = [Limited.NO if one is None else one.level for one in trials]
    doubted = sum(level is not Limited.NO for level in levels)
    return Limited.YES in levels or doubted > _MOST * len(levels)


def rate_reach(evidence: Iterable[Limit]) -> float:
    """Return the factor by which a trial's throughput may have been higher with a generator that is no limit.

    *Definition*: 1 / (1 - s) where others kept a worker from its CPU for a share s of the window, and nothing
    else speaks against it: meanwhile it could not take replies, and no more than that was lost. 1 without
    evidence, and for requests that went out late. Infinite else: how much more a generator at its own limit
    would have found is not known.

    >>> rate_reach([Limit(LimitKind.KEPT_WAITING, share=0.2)])
    1.25
    """
    return max((_reach(one) for one in evidence), default=1.0)


def _reach(limit: Limit) -> float:
    if limit.kind is LimitKind.LATE:
        return 1.0
    known = limit.kind is LimitKind.KEPT_WAITING and limit.share is not None and limit.share < 1
    return 1 / (1 - (limit.share or 0.0)) if known else inf


def capacity_reach(busy: float | None) -> float:
    """Return the factor by which throughput can be higher at most, of a server that kept its CPUs busy for
    this share of their time; infinite where that is not known.

    *Definition*: 1 / ``busy``: a server whose CPUs are busy 99 % of the time has 1 % more to give.
    *Assumptions*: a request costs as much CPU time under a little more load.

    >>> round(capacity_reach(0.99), 3)
    1.01
    """
    return 1 / min(busy, 1.0) if busy is not None and busy > 0 else inf


def is_bound(metric: str) -> bool:
    """Return whether a generator at its limit makes a metric a bound: what a request costs in CPU time is the
    same, whoever asks for it.

    >>> is_bound("ok_per_s"), is_bound("cpu_ns_per_request")
    (True, False)
    """
    return is_speed(metric) and metric not in _COSTS


def is_throughput(metric: str) -> bool:
    """Return whether a metric is a speed of which more is better."""
    return is_speed(metric) and METRICS[metric].better is Better.HIGHER


def is_pace(metric: str) -> bool:
    """Return whether a metric is a throughput, or the time of one request at that pace.

    >>> is_pace("ok_per_s"), is_pace("duration_ns_per_request"), is_pace("service_ok_mean")
    (True, True, False)
    """
    return (is_throughput(metric) and metric not in _COSTS) or metric == "duration_ns_per_request"


def grows_with_load(metric: str) -> bool:
    """Return whether a metric that is no speed is more where more is asked of a server: its CPU, its errors.

    >>> grows_with_load("cpu_percent"), grows_with_load("pss_end")
    (True, False)
    """
    return metric in _MORE_UNDER_MORE_LOAD


@dataclass(frozen=True, slots=True)
class Bounded:
    """By what factor each of two compared figures may be better than measured; 1: not at all. ``verdict``: of
    what that leaves open.
    """

    first: float = 1.0
    second: float = 1.0
    verdict: Verdict = Verdict.LIMITED

    def __bool__(self) -> bool:
        """Return whether one of them is a bound."""
        return max(self.first, self.second) > 1


def heeded(found: Comparison, metric: str, bounded: Bounded, bar: float) -> Comparison:
    """Return the comparison second / first without what a figure that is a bound cannot show.

    *Definition*: a verdict by which a subject of which a bound is known is worse stands where it is HIGHER or
    LOWER also for the best that this subject may have been: its interval lies beyond ``bar``, a ratio less 1,
    by more than that factor. Else it is what ``bounded`` says, and so is an equivalence. Metrics that a
    generator cannot limit stay as they are.
    *Assumptions*: a stage before a first-come server never makes a reply earlier.
    """
    if not bounded or not is_bound(metric) or found.verdict in NO_VERDICT or found.effect is None:
        return found
    second_is_worse = (found.effect > 0) is (METRICS[metric].better is Better.LOWER)
    factor = bounded.second if second_is_worse else bounded.first
    is_doubtful = factor > 1 and not _is_beyond(found, (1 + bar) * factor)
    if not is_doubtful and found.verdict is not Verdict.EQUIVALENT:
        return found
    return replace(found, verdict=bounded.verdict)


def _is_beyond(found: Comparison, factor: float) -> bool:
    """Return whether all of the interval of a ratio lies more than ``factor`` away from 1, on either side."""
    return (
        found.low is not None
        and found.high is not None
        and (1 + found.low > factor or 1 + found.high < 1 / factor)
    )


@dataclass(frozen=True, slots=True)
class Open:
    """By what factor the true value may lie below its interval, or above, because a figure that it is made of
    is a bound; 1: not at all.
    """

    below: float = 1.0
    above: float = 1.0

    def __or__(self, other: "Open") -> "Open":
        """Return both together."""
        return Open(self.below * other.below, self.above * other.above)

    @property
    def turned(self) -> "Open":
        """Those of 1 / figure, or of its negative."""
        return Open(self.above, self.below)

    def __pow__(self, weight: float) -> "Open":
        """Return those of a figure to the power of ``weight``, at least 0."""
        return Open(self.below**weight, self.above**weight)

    def at_most(self, factor: float) -> "Open":
        """Return the same sides, open by no more than ``factor``."""
        return Open(min(self.below, factor), min(self.above, factor))

    def widened(self, interval: tuple[float, float]) -> tuple[float, float]:
        """Return an interval with its open ends moved; by an infinite factor to infinity.

        *Errors*: none; a finite factor is for what is positive, such as ratios.
        """
        low, high = interval
        return (
            low if self.below == 1 else -inf if self.below == inf else low / self.below,
            high if self.above == 1 else inf if self.above == inf else high * self.above,
        )


def open_end(metric: str, *, at_least: bool) -> Open:
    """Return where the true value of a metric may lie beside its figure.

    *Definition*: above, of throughput and of what grows with the load (CPU, errors); below, of latencies.

    >>> open_end("response_ok_p99", at_least=True)
    Open(below=inf, above=1.0)
    """
    if not at_least:
        return Open()
    if is_bound(metric):
        return Open(above=inf) if is_throughput(metric) else Open(below=inf)
    return Open(above=inf) if grows_with_load(metric) else Open()


def ends_of(metric: str, bounded: Bounded) -> Open:
    """Return where the true ratio first / second of a metric may lie beside its figure."""
    first, second = (
        open_end(metric, at_least=one > 1).at_most(one) for one in (bounded.first, bounded.second)
    )
    return first | second.turned

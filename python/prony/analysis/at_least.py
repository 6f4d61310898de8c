"""Figures that a generator's limit has made a bound: the server is at least so good.

A generator that is the limit delays or withholds requests. Throughput is then at least what was measured, and
a response time, which counts from when the request was due, at most. So what such a server is shown to be
better than stands, and what it seems to be worse than does not. Must not know cells or reports.

>>> from prony.analysis.compare import compare
>>> found = heeded(compare([-0.10, -0.11, -0.09, -0.10, -0.12]), "ok_per_s", Bounded(second=True))
>>> found.verdict
<Verdict.LIMITED: 'not shown: the generator was the limit'>
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from prony.analysis.compare import Comparison, Verdict
from prony.analysis.rates import is_speed
from prony.metrics import METRICS, Better
from prony.model import Limit, Limited

__all__ = ["Bounded", "Open", "ends_of", "heeded", "is_at_least", "open_end"]

# A single suspicion comes in 2 of 100 healthy loads; one that returns in most trials belongs to the load.
_MOST = 0.5
_MORE_UNDER_MORE_LOAD = ("cpu_percent", "busiest_thread_percent", "error_ratio")


def is_at_least(trials: Iterable[Limit | None]) -> bool:
    """Return whether figures over trials with this evidence, null for none, are bounds.

    *Definition*: the generator was the limit in any of them, or may have been in more than half.
    """
    levels = [Limited.NO if one is None else one.level for one in trials]
    doubted = sum(level is not Limited.NO for level in levels)
    return Limited.YES in levels or doubted > _MOST * len(levels)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Which of two compared figures is a bound."""

    first: bool = False
    second: bool = False

    def __bool__(self) -> bool:
        """Return whether one of them is."""
        return self.first or self.second


def heeded(found: Comparison, metric: str, bounded: Bounded) -> Comparison:
    """Return the comparison second / first without what a figure that is a bound cannot show.

    *Definition*: a verdict by which a subject of which a bound is known is worse is LIMITED, and so is an
    equivalence. Metrics that are no speed stay as they are.
    *Assumptions*: a stage before a first-come server never makes a reply earlier.
    """
    if not bounded or not is_speed(metric) or found.verdict is Verdict.TOO_FEW or found.effect is None:
        return found
    second_is_worse = (found.effect > 0) is (METRICS[metric].better is Better.LOWER)
    doubtful = bounded.second if second_is_worse else bounded.first
    if not doubtful and found.verdict is not Verdict.EQUIVALENT:
        return found
    return replace(found, verdict=Verdict.LIMITED, blocks_needed=None)


@dataclass(frozen=True, slots=True)
class Open:
    """On which sides of its interval a figure may lie beside, because one that it is made of is a bound."""

    below: bool = False
    above: bool = False

    def __or__(self, other: "Open") -> "Open":
        """Return both together."""
        return Open(self.below or other.below, self.above or other.above)

    @property
    def turned(self) -> "Open":
        """Those of 1 / figure, or of its negative."""
        return Open(self.above, self.below)

    def widened(self, interval: tuple[float, float]) -> tuple[float, float]:
        """Return an interval with its open ends at infinity."""
        low, high = interval
        return float("-inf") if self.below else low, float("inf") if self.above else high


def open_end(metric: str, *, at_least: bool) -> Open:
    """Return where the true value of a metric may lie beside its figure.

    *Definition*: above, of throughput and of what grows with the load (CPU, errors); below, of latencies.

    >>> open_end("response_ok_p99", at_least=True)
    Open(below=True, above=False)
    """
    if not at_least:
        return Open()
    if is_speed(metric):
        higher = METRICS[metric].better is Better.HIGHER
        return Open(below=not higher, above=higher)
    return Open(above=metric in _MORE_UNDER_MORE_LOAD)


def ends_of(metric: str, bounded: Bounded) -> Open:
    """Return where the true ratio first / second of a metric may lie beside its figure."""
    first, second = (open_end(metric, at_least=one) for one in (bounded.first, bounded.second))
    return first | second.turned

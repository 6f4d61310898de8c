"""Objectives: conditions that a server should meet, such as ``p99 < 50ms, errors < 0.1%``.

Pure: text to conditions, and whether a value keeps one.

>>> latency, errors = parse_objective("p99 < 50ms, errors < 0.1%").conditions
>>> latency.holds(42e6), errors.holds(0.01)
(True, False)

What fails a load in CI, such as `p99 > 50ms`: judged on one Recording; null where it cannot be decided.

Each figure is known as a range: a percentile among requests that were given up is a lower bound, and a
generator that may have been the limit has shown times that are too long, or a rate, CPU and errors that are
too low. The condition holds, or does not hold, when it does so in the whole range.

>>> condition = parse_load_condition("p99 of ok > 50ms")
>>> condition.metrics, condition.shown(42e6, 42e6), condition.shown(42e6, inf)
(('response_ok_p99', 'service_ok_p99'), False, None)
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

from prony.core.metrics import METRICS, PERCENTILES, Unit
from prony.core.units import parse_bytes, parse_count, parse_duration, parse_percent, parse_rate
from prony.figures.account import ClassKind, keeps_rate, kind_of, tally, without_own_failures
from prony.figures.at_least import grows_with_load, is_throughput
from prony.figures.latency import LatencySummary, latency_summaries
from prony.figures.missing import Missing, Value
from prony.figures.trial_metrics import load_metrics
from prony.model.json_codec import INLINE, at
from prony.model.recording import Recording
from prony.model.shown import INTERNAL

# Of all requests, since a server that fails the slow ones must not look fast; in a closed loop, which has no
# intended times, the service time.
_LATENCIES = {
    label: (f"response_all_{suffix}", f"service_all_{suffix}")
    for label, suffix in {
        **{f"p{percentile}": suffix for suffix, percentile in PERCENTILES.items()},
        "mean": "mean",
        "max": "max",
    }.items()
}

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **_LATENCIES,
        "errors": ("error_ratio",),
        "success": ("success_ratio",),
        "rps": ("ok_per_s",),
        "cpu": ("cpu_percent",),
        "memory": ("pss_end",),
    }
)
"""Short names to metrics: the first that a trial has is meant. Every metric's own name is understood too."""

_COMPARED: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
_CONDITION = re.compile(r"\s*([a-z][a-z0-9_.]*)\s*(<=|>=|<|>)\s*(\S.*?)\s*")
_EXAMPLE = "such as `p99 < 50ms` or `errors < 0.1%`"


def _as_percent(text: str) -> float:
    return 100 * parse_percent(text)


_PARSERS: Mapping[Unit, Callable[[str], float]] = MappingProxyType(
    {
        Unit.RATE: parse_rate,
        Unit.DURATION: parse_duration,
        Unit.RATIO: parse_percent,
        Unit.PERCENT: _as_percent,
        Unit.BYTES: parse_bytes,
        Unit.COUNT: parse_count,
    }
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound on the first of ``metrics`` that a trial or load has; ``limit`` is in that metric's unit."""

    text: str = field(metadata=at("condition"))
    metrics: tuple[str, ...] = field(metadata=INTERNAL)
    operator: str = field(metadata=INTERNAL)
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether a value of the metric keeps the bound."""
        return _COMPARED[self.operator](value, self.limit)

    def shown(self, low: float, high: float) -> bool | None:
        """Return whether the condition holds for all values from ``low`` to ``high``, for none, or None."""
        at_low, at_high = self.holds(low), self.holds(high)
        return at_low if at_low == at_high else None


@dataclass(frozen=True, slots=True)
class Objective:
    """Conditions that must all be met."""

    text: str
    conditions: tuple[Condition, ...]


def parse_condition(text: str) -> Condition:
    """Return the bound that ``text`` writes, such as ``p99 < 50ms``.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text.strip()}` is not a condition; expected one {_EXAMPLE}")
    name, sign, limit = match.groups()
    metrics = ALIASES.get(name, (name,))
    if metrics[0] not in METRICS:
        known = ", ".join(ALIASES)
        raise ValueError(f"`{name}` is not a metric; expected one of {known}, or a name of METRICS")
    return Condition(text.strip(), metrics, sign, _PARSERS[METRICS[metrics[0]].unit](limit))


def parse_objective(text: str) -> Objective:
    """Return the objective that ``text`` writes: conditions with commas between them.

    *Errors*: ValueError, naming the text and what was expected.
    """
    return Objective(text.strip(), tuple(parse_condition(part) for part in text.split(",")))


# --- what fails a load ------------------------------------------------------------------------------------


_POPULATIONS = ("ok", "all")
_RATE, _ERRORS = "rate", "errors"
_NAMES: Mapping[str, str] = {
    **{f"p{percentile}": f"p{percentile}" for percentile in PERCENTILES.values()},
    **{name: name for name in ("mean", "max", _ERRORS)},
    _RATE: "rps",
}
_LOAD_LATENCIES = frozenset(
    f"{kind}_{population}_{statistic}"
    for kind in ("response", "service")
    for population in _POPULATIONS
    for statistic in ("mean", *PERCENTILES, "max")
)
_FORM = re.compile(r"\s*([a-z][a-z0-9.]*?)(?:\s+of\s+([a-z]+))?\s*((?:<=|>=|<|>)\s*\S.*?)\s*")
_LOAD_EXAMPLE = "such as `p99 > 50ms`, `p99.9 of ok > 1s`, `rate < 500` or `errors > 0.1%`"


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """A condition on one load. ``holds`` null: it cannot be decided, for this ``reason``.

    ``value``: the figure as it was measured, in the unit of ``metric``; null where there is none, or where it
    is infinite because requests failed. ``by_generator``: it is the generator that leaves it open.
    """

    condition: Condition = field(metadata=INLINE)
    metric: str
    value: float | None
    holds: bool | None
    reason: str | None = None

    @property
    def by_generator(self) -> bool:
        """Whether the generator, and not the want of figures, leaves it open."""
        return self.holds is None and self.reason in (_LIMITED, _OWN)


def parse_load_condition(text: str) -> Condition:
    """Return the condition that ``text`` writes: a figure, perhaps ``of ok`` or ``of all``, and its limit.

    A latency is of all requests unless it says otherwise: failed ones are infinite. It is the response time
    in an open loop, the service time in a closed one.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text.strip()}` is not a condition; expected one {_LOAD_EXAMPLE}")
    name, population, bound = match.groups()
    if name not in _NAMES:
        raise ValueError(f"`{name}` is not a figure of a load; expected one of {', '.join(_NAMES)}")
    known = parse_condition(f"{_NAMES[name]} {bound}")
    if population is not None:
        known = _of(known, name, population)
    return replace(known, text=text.strip())


def _of(condition: Condition, name: str, population: str) -> Condition:
    if population not in _POPULATIONS or name in (_RATE, _ERRORS):
        raise ValueError(
            f"`{name} of {population}` is not a figure of a load; expected a latency `of ok` (valid replies) "
            "or `of all` (every request)"
        )
    metrics = tuple(metric.replace("_all_", f"_{population}_") for metric in ALIASES[name])
    return replace(condition, metrics=metrics)


def judge_condition(
    condition: Condition,
    recording: Recording,
    metrics: Mapping[str, Value] | None = None,
    *,
    is_limited: bool,
) -> ConditionResult:
    """Return whether a condition holds for a load. ``is_limited``: the generator may have been the limit;
    ``metrics``: what was measured with the load beside it too, None for nothing.

    *Definition*: a latency at or beyond the percentile from which requests were given up counts as any value
    from it on; with a limited generator it, and any other time, as any value up to it in an open loop, and as
    any at all in a closed one, where the generator also sets the load; a rate as any value from it on. What
    grows with the load (CPU, errors) counts as any value from it on too, and success as any up to it, unless
    the generator sent in time what was due: then nothing was withheld. Requests that the generator itself
    could not send may or may not be errors, and may or may not be infinite. Infinite because others failed
    stays infinite. A generator that is only suspect may have been the limit too. Other figures are as they
    were measured.
    """
    metrics = load_metrics(recording) if metrics is None else metrics
    metric = next((name for name in condition.metrics if _is_measured(metrics[name])), condition.metrics[-1])
    value = metrics[metric]
    if isinstance(value, Missing):
        least = _least(recording, metric) if value.infinite else None
        holds = None if least is None else condition.shown(least, inf)
        is_own = holds is None and value.infinite
        return ConditionResult(condition, metric, None, holds, _OWN if is_own else value.reason)
    low, high, reason = _range_of(recording, metric, value, is_limited)
    holds = condition.shown(low, high)
    return ConditionResult(condition, metric, value, holds, reason if holds is None else None)


def _least(recording: Recording, metric: str) -> float | None:
    """Return the least that an infinite latency may have been: what it is without the generator's own
    failures, perhaps infinite all the same; None where that is not known.
    """
    value = load_metrics(replace(recording, account=without_own_failures(recording.account)))[metric]
    if isinstance(value, Missing):
        return inf if value.infinite else None
    return value


def _is_measured(value: object) -> bool:
    return not isinstance(value, Missing) or value.infinite


# The lowest and highest value that it may have, and why they differ where they do.
_Range = tuple[float, float, str]
_LIMITED = "the generator may have been the limit"
_OWN = "the generator itself could not send some of the requests"
_GIVEN_UP = "requests were given up, so it is a lower bound"


def _range_of(recording: Recording, metric: str, value: float, is_limited: bool) -> _Range:
    if is_throughput(metric):
        return value, inf if is_limited else value, _LIMITED
    if metric in ("error_ratio", "success_ratio"):
        return _ratio(recording, metric, value, is_limited)
    if metric in _LOAD_LATENCIES:
        return _latency(recording, metric, value, is_limited)
    if METRICS[metric].unit is Unit.DURATION:
        return _time(recording, value, is_limited)
    withheld = grows_with_load(metric) and _withheld(recording, is_limited)
    return value, inf if withheld else value, _LIMITED


def _withheld(recording: Recording, is_limited: bool) -> bool:
    """Return whether the server may have got less to do than was asked for."""
    return is_limited and not keeps_rate(recording)


def _ratio(recording: Recording, metric: str, value: float, is_limited: bool) -> _Range:
    found, withheld = tally(recording.account), _withheld(recording, is_limited)
    own = sum(count for ending, count in found.failed.items() if kind_of(ending.name) is ClassKind.CLIENT)
    share, reason = own / found.requests, _LIMITED if withheld else _OWN
    if metric == "error_ratio":
        return value - share, inf if withheld else value, reason
    return 0.0 if withheld else value, value + share, reason


def _time(recording: Recording, value: float, is_limited: bool) -> _Range:
    if not is_limited:
        return value, value, _LIMITED
    return 0.0, value if recording.is_open else inf, _LIMITED


def _latency(recording: Recording, metric: str, value: float, is_limited: bool) -> _Range:
    kind, population, statistic = metric.split("_")
    summary = latency_summaries(recording)[population, kind]
    is_censored = summary is not None and _is_lower_bound(summary, statistic)
    low, high, _ = _time(recording, value, is_limited)
    return low, inf if is_censored else high, _LIMITED if is_limited else _GIVEN_UP


def _is_lower_bound(summary: LatencySummary, statistic: str) -> bool:
    percentile = float(PERCENTILES.get(statistic, "100"))
    return summary.censored_from is not None and percentile > summary.censored_from

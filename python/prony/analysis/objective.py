"""Objectives: conditions that a server should meet, such as ``p99 < 50ms, errors < 0.1%``.

Pure: text to conditions, and conditions on the metrics of one trial. Must not know how a trial is run.

>>> objective = parse_objective("p99 < 50ms, errors < 0.1%")
>>> objective.met({"response_all_p99": 42e6, "error_ratio": 0.0})
True
>>> objective.met({"response_all_p99": 42e6, "error_ratio": 0.01})
False
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from prony.analysis.missing import Missing, Value
from prony.metrics import METRICS, PERCENTILES, Unit
from prony.units import parse_bytes, parse_count, parse_duration, parse_percent, parse_rate

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
    """One bound on the first of ``metrics`` that a trial has; ``limit`` is in that metric's unit."""

    text: str
    metrics: tuple[str, ...]
    operator: str
    limit: float

    def met(self, metrics: Mapping[str, Value]) -> bool | Missing:
        """Return whether a trial's metrics keep the bound, or why that is unknown.

        A value that is infinite, because requests failed, keeps no upper bound.
        """
        found = [metrics.get(name, Missing(f"no `{name}` was measured")) for name in self.metrics]
        value = next((one for one in found if _is_known(one)), found[0])
        if isinstance(value, Missing):
            return self.operator.startswith(">") if value.infinite else value
        return _holds(value, self.operator, self.limit)


@dataclass(frozen=True, slots=True)
class Objective:
    """Conditions that must all be met."""

    text: str
    conditions: tuple[Condition, ...]

    def met(self, metrics: Mapping[str, Value]) -> bool | Missing:
        """Return whether the metrics of one trial meet all conditions, or why that is unknown.

        *Definition*: false when one condition is not met, whatever is missing for others.
        *Assumptions*: limits of latency are below the time-out, where unanswered requests count at their age.
        """
        found = [condition.met(metrics) for condition in self.conditions]
        if any(one is False for one in found):
            return False
        return next((one for one in found if isinstance(one, Missing)), True)


def _is_known(value: Value) -> bool:
    return not isinstance(value, Missing) or value.infinite


def _holds(value: float, operator: str, limit: float) -> bool:
    match operator:
        case "<":
            return value < limit
        case "<=":
            return value <= limit
        case ">":
            return value > limit
        case _:
            return value >= limit


def parse_condition(text: str) -> Condition:
    """Return the bound that ``text`` writes, such as ``p99 < 50ms``.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text.strip()}` is not a condition; expected one {_EXAMPLE}")
    name, operator, limit = match.groups()
    metrics = ALIASES.get(name, (name,))
    if metrics[0] not in METRICS:
        known = ", ".join(ALIASES)
        raise ValueError(f"`{name}` is not a metric; expected one of {known}, or a name of METRICS")
    return Condition(text.strip(), metrics, operator, _PARSERS[METRICS[metrics[0]].unit](limit))


def parse_objective(text: str) -> Objective:
    """Return the objective that ``text`` writes: conditions with commas between them.

    *Errors*: ValueError, naming the text and what was expected.
    """
    return Objective(text.strip(), tuple(parse_condition(part) for part in text.split(",")))

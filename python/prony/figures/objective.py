"""Objectives: conditions that a server should meet, such as ``p99 < 50ms, errors < 0.1%``.

Pure: text to conditions, and whether a value keeps one.

>>> latency, errors = parse_objective("p99 < 50ms, errors < 0.1%").conditions
>>> latency.holds(42e6), errors.holds(0.01)
(True, False)
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prony.core.metrics import METRICS, PERCENTILES, Unit
from prony.core.units import parse_bytes, parse_count, parse_duration, parse_percent, parse_rate
from prony.model.json_codec import at
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

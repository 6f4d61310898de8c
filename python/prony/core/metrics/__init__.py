"""METRICS: every quantity that Prony reports, with its unit, its direction, its definition and its source.

The only registry of quantities: tables, JSON, and the reference page read it.

>>> METRICS["response_ok_p99"].unit, METRICS["response_ok_p99"].better
(<Unit.DURATION: 'duration'>, <Better.LOWER: 'lower'>)
>>> format_metric("rss_peak", 55_260_000)
'52.7 MiB'
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from prony.core.metrics.metric import Better, Metric, Unit
from prony.core.metrics.requests import HANDSHAKES, LATENCY, PERCENTILES, REQUESTS
from prony.core.metrics.subject import GENERATOR, MACHINE, SUBJECT
from prony.core.units import format_bytes, format_count, format_duration, format_percent, format_rate

__all__ = ["METRICS", "PERCENTILES", "Better", "Metric", "Unit", "format_metric"]

METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for metric in (*REQUESTS, *LATENCY, *HANDSHAKES, *SUBJECT, *MACHINE, *GENERATOR)}
)
"""Name to Metric, in the order in which reports list them."""


def _format_percent_number(value: float) -> str:
    return format_percent(value / 100)


_FORMATTERS: Mapping[Unit, Callable[[float], str]] = MappingProxyType(
    {
        Unit.RATE: format_rate,
        Unit.DURATION: format_duration,
        Unit.RATIO: format_percent,
        Unit.PERCENT: _format_percent_number,
        Unit.BYTES: format_bytes,
        Unit.COUNT: format_count,
    }
)


def format_metric(name: str, value: float) -> str:
    """Return ``value`` of the metric ``name`` with its unit."""
    return _FORMATTERS[METRICS[name].unit](value)

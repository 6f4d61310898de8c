"""The unit of a metric in a table: one for all cells."""

from collections.abc import Iterable

from prony.metrics import METRICS, Unit
from prony.units import Scale, bytes_scale, duration_scale

_FIXED = {
    Unit.RATE: Scale(1, "/s"),
    Unit.RATIO: Scale(0.01, "%"),
    Unit.PERCENT: Scale(1, "%"),
    Unit.COUNT: Scale(1, ""),
}


def metric_scale(metric: str, values: Iterable[float]) -> Scale:
    """Return the unit that suits most of these values of a metric.

    >>> metric_scale("rss_peak", [50 * 1024**2]).unit, metric_scale("error_ratio", [0.5]).unit
    ('MiB', '%')
    """
    match METRICS[metric].unit:
        case Unit.DURATION:
            return duration_scale(values)
        case Unit.BYTES:
            return bytes_scale(values)
        case unit:
            return _FIXED[unit]

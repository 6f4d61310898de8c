"""How a report writes numbers: a function for each form, from `units`.

>>> signed_percent(0.129), signed_percent(11.0)
('+12.9 %', '12 times')

The unit of a metric in a table: one for all cells.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from prony.core.metrics import METRICS, Unit, format_metric
from prony.core.units import (
    Scale,
    bytes_scale,
    duration_scale,
    format_bytes,
    format_count,
    format_duration,
    format_in,
    format_mean,
    format_percent,
    seconds,
    within,
)
from prony.figures.summary import Estimate
from prony.report.text import Figure, Text, each_of, pointer, text

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


Form = Callable[[float], str]
TENFOLD = 9.0
"""A relative difference from which on a percentage says nothing."""


def signed_percent(effect: float) -> str:
    """Return a relative difference, such as ``+12.9 %``; from tenfold on, as a factor."""
    if effect >= TENFOLD:
        return f"{effect + 1:,.0f} times"
    return f"{100 * effect:+.1f} %" if abs(effect) < 1 else f"{100 * effect:+.0f} %"


def confidence(level: float) -> str:
    """Return the confidence of an interval at ``level``, such as ``95 %``."""
    return f"{100 * (1 - level):.3g} %"


def of_percent(ratio: float) -> str:
    """Return a ratio as a percentage without the sign `%`, which the column's heading has."""
    return format_percent(ratio).removesuffix(" %")


def whole_percent(ratio: float) -> str:
    """Return a ratio in whole per cents, as in ``54%``."""
    return f"{ratio:.0%}"


def about_percent(ratio: float) -> str:
    """Return a ratio as a percentage of two digits, or whole: of what is only estimated. What is more than
    tenfold needs no digits.

    >>> about_percent(0.0312), about_percent(2.3544), about_percent(12.1655)
    ('3.1 %', '235 %', 'tenfold')
    """
    if ratio >= TENFOLD:
        return "tenfold"
    return f"{100 * ratio:.2g} %" if ratio < 1 else f"{100 * ratio:,.0f} %"


def digits(decimals: int) -> Form:
    """Return how a factor is written with so many decimals."""
    return lambda value: f"{value:,.{decimals}f}"


def p_value(value: float) -> str:
    """Return a p-value with two digits."""
    return f"{value:.2g}"


def rate(value: float) -> str:
    """Return a rate that a search found: five digits."""
    return f"{value:,.5g}"


def load_number(value: float) -> str:
    """Return a number of connections or a rate, as the study gives it."""
    return f"{value:,g}"


def as_typed(value: float) -> str:
    """Return a number as a study writes it: without separators."""
    return f"{value:g}" if value != int(value) else f"{int(value)}"


def ordinal(block: float) -> str:
    """Return a block's number, counted from 1."""
    return f"{block + 1:.0f}"


def day(unix_ns: float) -> str:
    """Return the day of a moment, in UTC."""
    return datetime.fromtimestamp(seconds(int(unix_ns)), tz=UTC).date().isoformat()


count: Form = format_count
percent: Form = format_percent
duration: Form = format_duration
byte_size: Form = format_bytes


def in_scale(scale: Scale) -> Form:
    """Return a form for the values of a column in this unit."""
    return partial(format_in, scale=scale)


def in_metric(metric: str) -> Form:
    """Return a form for the values of a metric, with their unit."""
    return partial(format_metric, metric)


def mean_alone(value: Estimate, scale: Scale, at: str) -> Text:
    """Return a mean in the unit of its column, with no more digits than its interval allows; ``at``: as
    `estimate`.
    """
    half = value.half_width
    form = in_scale(scale) if half is None else partial(format_mean, half_width=half, scale=scale)
    return text("{}", Figure(value.mean, form, at + pointer("mean")))


def in_metric_within(metric: str, half_width: float) -> Form:
    """Return the form of a metric's figures where half of their interval is so wide.

    >>> in_metric_within("ok_per_s", 8_499)(111_462)
    '111,500 /s'
    """
    form = in_metric(metric)
    return lambda value: form(within(value, half_width))


def estimate(value: Estimate, scale: Scale, at: str) -> Text:
    """Return a mean in the unit of its column, with the ends of its interval where there is one.

    ``at``: where the JSON has the estimate.
    """
    mean, half = mean_alone(value, scale, at), value.half_width
    if value.low is None or value.high is None or half is None:
        return mean
    form = partial(format_mean, half_width=half, scale=scale)
    low, high = each_of(value, at, form, "low", "high")
    return text("{} ({}–{})", mean, low, high)

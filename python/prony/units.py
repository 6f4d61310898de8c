"""Quantities: their types, how they are parsed and how they are formatted.

The only module that converts or formats quantities. Must not know what is measured.

>>> parse_duration("1m30s")
90000000000
>>> format_duration(1_500_000)
'1.50 ms'
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from statistics import median
from typing import NamedTuple, NewType

__all__ = [
    "DAY_NS",
    "Bytes",
    "Nanoseconds",
    "PerSecond",
    "Ratio",
    "Scale",
    "bytes_scale",
    "duration_scale",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_in",
    "format_percent",
    "format_rate",
    "parse_bytes",
    "parse_count",
    "parse_duration",
    "parse_percent",
    "parse_rate",
    "seconds",
]

Nanoseconds = NewType("Nanoseconds", int)
Bytes = NewType("Bytes", int)
PerSecond = NewType("PerSecond", float)
Ratio = NewType("Ratio", float)

_SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * _SECOND_NS
_DURATION_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES_STEPS = ((1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB"), (1.0, "B"))
_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "min": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
}
_SIZE_BYTES = {
    "": 1,
    "b": 1,
    "k": 1024,
    "kb": 1000,
    "kib": 1024,
    "m": 1024**2,
    "mb": 1000**2,
    "mib": 1024**2,
    "g": 1024**3,
    "gb": 1000**3,
    "gib": 1024**3,
}
# At most 15 digits: a float holds these exactly, so no input can overflow.
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_DURATION_PART = re.compile(rf"({_NUMBER})\s*(ns|us|µs|ms|min|s|m|h)")
_SIZE = re.compile(rf"({_NUMBER})\s*([a-z]*)")
_RATE = re.compile(rf"({_NUMBER}(?:e[0-9]{{1,2}})?)\s*(?:/\s*(s|m|h))?")
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_RATE_PERIOD_S = {"s": 1, "m": 60, "h": 3600}


def seconds(value_ns: int) -> float:
    """Return nanoseconds as seconds, for arithmetic that ends in a rate."""
    return value_ns / _SECOND_NS


def parse_duration(text: str) -> Nanoseconds:
    """Parse a duration such as ``250ms``, ``30s`` or ``1m30s``; return nanoseconds.

    A unit is required: a bare number is never a time.

    *Errors*: ValueError, naming the text and what was expected.
    """
    stripped = text.strip()
    parts = list(_DURATION_PART.finditer(stripped))
    if not parts or "".join(part.group(0) for part in parts) != stripped:
        raise ValueError(
            f"`{text}` is not a duration; expected a number and a unit, such as `250ms`, `30s`, `1m30s`"
        )
    # Exact: a float would lose single nanoseconds beyond 104 days.
    return Nanoseconds(round(sum(Fraction(part.group(1)) * _DURATION_NS[part.group(2)] for part in parts)))


def parse_bytes(text: str) -> Bytes:
    """Parse a size such as ``512M``, ``1KiB`` or ``100kB``; return bytes.

    ``K``, ``M``, ``G`` are powers of 1024, as in cgroups and container engines; ``kB``, ``MB``, ``GB``
    powers of 1000.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match.group(2) not in _SIZE_BYTES:
        raise ValueError(
            f"`{text}` is not a size; expected a number and a unit, such as `512M`, `1KiB`, `100kB`"
        )
    return Bytes(round(float(match.group(1)) * _SIZE_BYTES[match.group(2)]))


def parse_rate(text: str) -> PerSecond:
    """Parse a rate such as ``550``, ``550/s`` or ``90/m``; return requests per second.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _RATE.fullmatch(text.strip())
    rate = float(match.group(1)) / _RATE_PERIOD_S[match.group(2) or "s"] if match else 0.0
    if rate <= 0:
        raise ValueError(
            f"`{text}` is not a rate; expected requests per second, such as `550`, `550/s`, `90/m`"
        )
    return PerSecond(rate)


def parse_percent(text: str) -> Ratio:
    """Parse a percentage and return it as a ratio: ``0.1%`` is 0.001.

    The sign is required: a bare 1 could be one per cent or all.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a percentage; expected a number and `%`, such as `0.1%`")
    return Ratio(float(match.group(1)) / 100)


def parse_count(text: str) -> int:
    """Parse a whole number.

    *Errors*: ValueError, naming the text and what was expected.
    """
    if not re.fullmatch(r"[0-9]{1,15}", text.strip()):
        raise ValueError(f"`{text}` is not a count; expected a whole number, such as `100`")
    return int(text)


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for size, unit in steps:
        # 99.95 % of a step already rounds up to it: 999.6 us reads "1.00 ms".
        if abs(value) >= size * 0.9995:
            return f"{_three_digits(value / size)} {unit}"
    size, unit = steps[-1]
    return f"{_three_digits(value / size)} {unit}"


def format_duration(value_ns: float) -> str:
    """Return a duration with three significant digits and its unit: ``12.1 ms``."""
    return _scaled(value_ns, _DURATION_STEPS)


def format_bytes(value: float) -> str:
    """Return a size with three significant digits in binary units: ``52.7 MiB``."""
    return _scaled(value, _BYTES_STEPS)


def format_rate(value: float) -> str:
    """Return a rate in requests per second: ``550 /s``."""
    return f"{_three_digits(value)} /s"


def format_percent(ratio: float) -> str:
    """Return a ratio as a percentage; 0 % and 100 % only when the ratio is exactly that.

    >>> format_percent(0.99999), format_percent(1.0)
    ('99.99 %', '100 %')
    """
    percent = 100 * ratio
    if percent in (0.0, 100.0):
        return f"{percent:.0f} %"
    if 99.995 <= percent < 100:
        return "99.99 %"
    return f"{percent:.2f} %" if percent >= 0.005 else "<0.01 %"


def format_count(value: float) -> str:
    """Return a count with separators between thousands."""
    return f"{value:,.0f}"


class Scale(NamedTuple):
    """The unit of a table's column: a value is divided by ``size``."""

    size: float
    unit: str


def _common_scale(values: Iterable[float], steps: tuple[tuple[float, str], ...]) -> Scale:
    known = [abs(value) for value in values if value]
    typical = median(known) if known else 0.0
    return Scale(*next((step for step in steps if typical >= step[0]), steps[-1]))


def duration_scale(values_ns: Iterable[float]) -> Scale:
    """Return the unit in which most of these durations read best."""
    return _common_scale(values_ns, _DURATION_STEPS)


def bytes_scale(values: Iterable[float]) -> Scale:
    """Return the unit in which most of these sizes read best."""
    return _common_scale(values, _BYTES_STEPS)


def format_in(value: float, scale: Scale, half_width: float | None = None) -> str:
    """Return a value in the unit of its column, without the unit, with its half-width if it has one.

    >>> format_in(2_220_000, Scale(1e6, "ms"), 320_000)
    '2.22 ±0.32'
    """
    scaled = value / scale.size
    magnitude = abs(scaled)
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.0995 else 3
    text = f"{scaled:,.{decimals}f}"
    if half_width is None:
        return text
    # A half-width that would round to zero is shown as the smallest value of its last digit.
    least = 10.0**-decimals if half_width > 0 else 0.0
    return f"{text} ±{max(half_width / scale.size, least):,.{decimals}f}"

"""Quantities: their types, how they are parsed and how they are formatted.

The only module that converts or formats quantities. The supervisor of every subject imports it, so it imports
nothing heavy at its head.

>>> parse_duration("1m30s")
90000000000
>>> format_duration(1_500_000)
'1.50 ms'
"""

import re
from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import NamedTuple

MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
KIB = 1024
MIB = 1024**2
GIB = 1024**3

_DURATION_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES_STEPS = ((float(GIB), "GiB"), (float(MIB), "MiB"), (float(KIB), "KiB"), (1.0, "B"))
_DURATION_NS = {
    "ns": 1,
    "us": MICROSECOND_NS,
    "µs": MICROSECOND_NS,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "min": MINUTE_NS,
    "h": HOUR_NS,
}
_SIZE_BYTES = {
    "": 1,
    "b": 1,
    "k": KIB,
    "kb": 1000,
    "kib": KIB,
    "m": MIB,
    "mb": 1000**2,
    "mib": MIB,
    "g": GIB,
    "gb": 1000**3,
    "gib": GIB,
}
# At most 15 digits: a float holds these exactly, so no input can overflow.
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_DURATION_PART = re.compile(rf"({_NUMBER})\s*(ns|us|µs|ms|min|s|m|h)")
_SIZE = re.compile(rf"({_NUMBER})\s*([a-z]*)")
_RATE = re.compile(rf"({_NUMBER}(?:e[0-9]{{1,2}})?)\s*([kM]?)\s*(?:/\s*(s|m|h))?")
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_RATE_PERIOD_S = {"s": 1, "m": 60, "h": 3600}
# Powers of 1000, as rates have them everywhere; a small `m` would read as milli or as minutes.
_RATE_FACTOR = {"": 1, "k": 1_000, "M": 1_000_000}


def seconds(value_ns: float) -> float:
    """Return nanoseconds as seconds."""
    return value_ns / SECOND_NS


def nanoseconds(value_s: float) -> int:
    """Return seconds as nanoseconds, to the nearest one."""
    return round(value_s * SECOND_NS)


def parse_duration(text: str) -> int:
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
    from fractions import Fraction

    # Exact: a float would lose single nanoseconds beyond 104 days.
    return round(sum(Fraction(part.group(1)) * _DURATION_NS[part.group(2)] for part in parts))


def parse_bytes(text: str) -> int:
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
    return round(float(match.group(1)) * _SIZE_BYTES[match.group(2)])


def parse_rate(text: str) -> float:
    """Parse a rate such as ``550``, ``2.5k``, ``1M`` or ``90/m``; return requests per second.

    ``k`` is a thousand, ``M`` a million; ``/s``, ``/m`` and ``/h`` name another period than a second.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _RATE.fullmatch(text.strip())
    rate = 0.0
    if match:
        number, factor, period = match.groups()
        rate = float(number) * _RATE_FACTOR[factor] / _RATE_PERIOD_S[period or "s"]
    if rate <= 0:
        raise ValueError(
            f"`{text}` is not a rate; expected requests per second, such as `550`, `2.5k`, `1M`, `90/m`"
        )
    return rate


def parse_percent(text: str) -> float:
    """Parse a percentage and return it as a ratio: ``0.1%`` is 0.001.

    The sign is required: a bare 1 could be one per cent or all.

    *Errors*: ValueError, naming the text and what was expected.
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a percentage; expected a number and `%`, such as `0.1%`")
    return float(match.group(1)) / 100


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
    """Return a duration with three significant digits and its unit: ``12.1 ms``; none is ``0 s``."""
    return _scaled(value_ns, _DURATION_STEPS) if value_ns else "0 s"


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
    from statistics import median

    known = [abs(value) for value in values if value]
    typical = median(known) if known else 0.0
    return Scale(*next((step for step in steps if typical >= step[0]), steps[-1]))


def duration_scale(values_ns: Iterable[float]) -> Scale:
    """Return the unit in which most of these durations read best."""
    return _common_scale(values_ns, _DURATION_STEPS)


def bytes_scale(values: Iterable[float]) -> Scale:
    """Return the unit in which most of these sizes read best."""
    return _common_scale(values, _BYTES_STEPS)


def _decimals(scaled: float) -> int:
    magnitude = abs(scaled)
    return 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.0995 else 3


def format_in(value: float, scale: Scale) -> str:
    """Return a value in the unit of its column, without the unit.

    >>> format_in(2_220_000, Scale(1e6, "ms"))
    '2.22'
    """
    scaled = value / scale.size
    return f"{scaled:,.{_decimals(scaled)}f}"


def _decimals_within(value: float, half_width: float) -> int:
    """Return the decimals that a value may have beside this half of its interval; negative: whole tens."""
    return min(_decimals(value), _allowed(value, half_width))


def _allowed(value: float, half_width: float) -> int:
    """Return the place of the second digit of a half-width; a value keeps its first digit, however wide."""
    if not (half_width > 0 and isfinite(half_width) and isfinite(value)):
        return _EVERY
    second = 1 - floor(log10(half_width))
    return max(second, -floor(log10(abs(value)))) if value else second


_EVERY = 15
"""Decimals: as many as a float holds."""


def _written(value: float, decimals: int) -> str:
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def format_mean(value: float, half_width: float, scale: Scale) -> str:
    """Return a mean in the unit of its column, with no more digits than its interval allows: up to the second
    digit of half of it.

    >>> format_mean(111_462, 8_499, Scale(1, "/s")), format_mean(2_220_000, 320_000, Scale(1e6, "ms"))
    ('111,500', '2.22')
    """
    scaled = value / scale.size
    return _written(scaled, _decimals_within(scaled, half_width / scale.size))


def within(value: float, half_width: float) -> float:
    """Return a value or an end of its interval, rounded to the second digit of half of the interval.

    >>> within(119_960, 8_499), within(0.0, 0.0)
    (120000, 0.0)
    """
    return round(value, _allowed(value, half_width))

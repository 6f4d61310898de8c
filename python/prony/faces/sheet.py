"""A table for other programs: one row for each observation, one unit for each column.

Pure: rows are made on demand. Must not know files or how a cell is written.

>>> header("response_ok_p99"), header("error_ratio")
('response_ok_p99 [ns]', 'error_ratio [1]')
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prony.analysis.missing import Missing
from prony.analysis.summary import Estimate
from prony.metrics import METRICS, Unit

Row = tuple[str | int | float | None, ...]

UNITS: Mapping[Unit, str] = {
    Unit.RATE: "1/s",
    Unit.DURATION: "ns",
    Unit.RATIO: "1",
    Unit.PERCENT: "%",
    Unit.BYTES: "B",
    Unit.COUNT: "1",
}

ESTIMATE = ("count", "mean", "low", "high", "median", "min", "max")
"""The columns of an estimate."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: its name, its columns, and its rows, which are made when they are read."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def header(metric: str) -> str:
    """Return a metric's column: its name and its unit."""
    return f"{metric} [{UNITS[METRICS[metric].unit]}]"


def estimated(value: Estimate | Missing) -> Row:
    """Return the columns of an estimate; empty ones where it is missing."""
    if isinstance(value, Missing):
        return tuple(None for _ in ESTIMATE)
    return value.count, value.mean, value.low, value.high, value.median, value.min, value.max


def reason(value: Estimate | Missing) -> str | None:
    """Return why an estimate is missing; null where it is not."""
    return value.reason if isinstance(value, Missing) else None

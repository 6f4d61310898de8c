"""Distributions of times as a Recording holds them: exact count, min, max and sum, and a histogram between.

The histogram itself is the engine's; ``Histogram`` says what is used of it.
"""

from base64 import b64decode
from dataclasses import dataclass
from typing import Protocol, Self

from prony.model import Json

__all__ = ["EMPTY", "Distribution", "Histogram", "decode_histogram", "read_distribution"]


class Histogram(Protocol):
    """An HdrHistogram of nanoseconds with three significant digits."""

    def merge(self, other: Self) -> None:
        """Add all values of ``other``."""

    def value_at_quantile(self, quantile: float) -> int:
        """Return the value of rank ceil(quantile x count)."""

    def count_below(self, value: int) -> int:
        """Return how many values are below ``value``, to the histogram's precision."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Distribution:
    """A population of times. *Units*: nanoseconds. Empty: count 0 and the rest null."""

    count: int
    min_ns: int | None = None
    max_ns: int | None = None
    sum_ns: int | None = None
    histogram: Histogram | None = None


EMPTY = Distribution(0)


def decode_histogram(text: str) -> Histogram:
    """Return the histogram that base64 ``text`` encodes (HdrHistogram V2, deflate)."""
    from prony._engine import Histogram as EngineHistogram

    decoded: Histogram = EngineHistogram.decode(b64decode(text))
    return decoded


def read_distribution(value: Json | None) -> Distribution | None:
    """Return a Recording's distribution; null where the Recording has none (response time in a closed
    loop).
    """
    if not value:
        return None
    if not value["count"]:
        return EMPTY
    return Distribution(
        value["count"],
        value["min_ns"],
        value["max_ns"],
        value["sum_ns"],
        decode_histogram(value["histogram"]),
    )

"""Distributions of times in a Recording: exact count, min, max and sum, and a histogram between.

The histogram itself is the engine's; ``Histogram`` says what is used of it.
"""

from dataclasses import dataclass
from typing import Protocol, Self

from prony.errors import ArchiveError
from prony.model.recording import Distribution


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
class Times:
    """A distribution whose histogram can be asked. *Units*: nanoseconds. Empty: count 0, the rest null."""

    count: int
    min_ns: int | None = None
    max_ns: int | None = None
    sum_ns: int | None = None
    histogram: Histogram | None = None


EMPTY = Times(0)


def decode_histogram(data: bytes) -> Histogram:
    """Return the histogram that ``data`` encodes (HdrHistogram V2, deflate).

    *Errors*: ArchiveError when it is none: only data of an archive can be damaged. The check is here and
    not in the archive's reader, because it costs a millisecond for each, and few are ever used.
    """
    from prony._engine import EngineError
    from prony._engine import Histogram as EngineHistogram

    try:
        decoded: Histogram = EngineHistogram.decode(data)
    except EngineError as error:
        raise ArchiveError(f"a histogram in the archive cannot be read: {error}") from error
    return decoded


def read_distribution(found: Distribution | None) -> Times | None:
    """Return a Recording's distribution; null where the Recording has none (response time in a closed
    loop).
    """
    if found is None:
        return None
    if found.histogram is None:
        return EMPTY
    return Times(found.count, found.min_ns, found.max_ns, found.sum_ns, decode_histogram(found.histogram))

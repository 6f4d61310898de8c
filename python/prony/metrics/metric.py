"""What a metric is: a quantity with its unit, its direction, its definition and its source.

Must not know which there are.

>>> Unit("bytes") is Unit.BYTES
True
"""

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a quantity is counted in. ``DURATION`` is nanoseconds, ``RATIO`` 0 to 1, ``PERCENT`` 100 = one
    core.
    """

    RATE = "rate"
    DURATION = "duration"
    RATIO = "ratio"
    PERCENT = "percent"
    BYTES = "bytes"
    COUNT = "count"


class Better(StrEnum):
    """Which direction is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity: ``definition`` is a sentence, ``source`` where the numbers come from."""

    name: str
    unit: Unit
    better: Better
    title: str
    definition: str
    source: str

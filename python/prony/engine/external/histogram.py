"""A distribution of a Recording, from a count of each microsecond.

Must not know what was counted.

>>> distribution({"count": 0, "min_ns": None, "max_ns": None, "sum_ns": None, "microseconds": {}}).count
0
"""

from prony.model.recording import Distribution
from prony.model.shapes import Json
from prony.units import MICROSECOND_NS


def distribution(counted: Json) -> Distribution:
    """Return it with the engine's histogram: each value is the middle of its microsecond."""
    from prony._engine import Histogram

    histogram = Histogram()
    for microseconds, count in counted["microseconds"].items():
        histogram.record(microseconds * MICROSECOND_NS + MICROSECOND_NS // 2, count)
    return Distribution(
        counted["count"], counted["min_ns"], counted["max_ns"], counted["sum_ns"], histogram.encode()
    )

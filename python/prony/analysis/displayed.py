"""Statistics that published experiments show, but no verdict uses.

>>> trimmed_mean([1.0, 2.0, 3.0, 90.0])
2.5
"""

from collections.abc import Sequence
from math import fsum

from prony.analysis.missing import Missing, Value
from prony.analysis.summary import CellSummary

_LEAST = 3


def trimmed_mean(values: Sequence[float]) -> Value:
    """Return the mean without the highest and the lowest value; missing below three.

    *Assumptions*: none, and no interval: of four values the mean of two is left, whose spread is not known.
    """
    if len(values) < _LEAST:
        return Missing(f"{len(values)} trials; none is left without the highest and the lowest")
    return fsum(sorted(values)[1:-1]) / (len(values) - 2)


def cell_trimmed_mean(cell: CellSummary, metric: str) -> Value:
    """Return the trimmed mean of a metric over the cell's trials that count; missing where the mean is."""
    mean = cell.metrics[metric]
    if isinstance(mean, Missing):
        return mean
    found = [metrics[metric] for metrics in cell.by_block.values()]
    return trimmed_mean([value for value in found if not isinstance(value, Missing)])

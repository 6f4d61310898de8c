"""From the scale of logarithms back to ratios.

A crafted archive may hold figures so far apart that no float has their ratio. Nothing measured comes near:
the whole range of 64-bit integers spans e^44.

>>> ratio_of(0.0), change_of(0.0)
(1.0, 0.0)
>>> round(geometric_mean([1.0, 4.0]), 9), geometric_mean([4.0, 4.0]), geometric_mean([0.0, 4.0])
(2.0, 4.0, 0.0)
>>> ratio_of(1e6) == ratio_of(600.0)
True
"""

from collections.abc import Sequence
from math import exp, expm1, fsum, log

# Its hundredfold and its square root are floats as well.
_LARGEST = 600.0


def ratio_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``), at most e^600."""
    return exp(min(log_ratio, _LARGEST))


def change_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``) - 1, at most e^600."""
    return expm1(min(log_ratio, _LARGEST))


def geometric_mean(values: Sequence[float]) -> float:
    """Return exp of the mean of ln(value), of one value at least; 0 if any is 0.

    Equal values have themselves as their mean, whatever logarithms are rounded to.
    """
    least, most = min(values), max(values)
    return 0.0 if least <= 0 else min(max(ratio_of(fsum(map(log, values)) / len(values)), least), most)

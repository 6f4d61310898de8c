"""From the scale of logarithms back to ratios.

A crafted archive may hold figures so far apart that no float has their ratio. Nothing measured comes near:
the whole range of 64-bit integers spans e^44.

>>> ratio_of(0.0), change_of(0.0)
(1.0, 0.0)
>>> ratio_of(1e6) == ratio_of(600.0)
True
"""

from math import exp, expm1

__all__ = ["change_of", "ratio_of"]

# Its hundredfold and its square root are floats as well.
_LARGEST = 600.0


def ratio_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``), at most e^600."""
    return exp(min(log_ratio, _LARGEST))


def change_of(log_ratio: float) -> float:
    """Return exp(``log_ratio``) - 1, at most e^600."""
    return expm1(min(log_ratio, _LARGEST))

"""Whether what runs late in a block fares otherwise than what runs early.

The order within a block is random, so a difference is of the order: of what earlier trials leave behind, or
of a machine that tires. Must not know trials or metrics.

>>> rising = [InBlock(0, 0.0), InBlock(1, 0.05), InBlock(2, 0.1)]
>>> round(order_effect([rising] * 5, 0.02).effect, 3)
0.105
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from prony.analysis.compare import Comparison, Terms, compare

_LEAST = 3
"""With two trials a block says only which of them ran first."""


@dataclass(frozen=True, slots=True)
class InBlock:
    """A trial of a block: when it ran, and the log of what it achieved over its cell's usual, more being
    better. ``weight``: one over its variance, so that a noisy cell does not hide what all others show.
    """

    time: float
    value: float
    weight: float = 1.0


def order_effect(blocks: Sequence[Sequence[InBlock]], margin: float) -> Comparison | None:
    """Return how what ran last in a block compares with what ran first; null where none has three trials.

    *Definition*: in each block the slope of the values over the place, from 0 for the first to 1 for the
    last, by weighted least squares; the slopes are compared with 0 as any other effect, one from each block.
    *Assumptions*: the order was drawn at random, else it may favour some cells.
    """
    slopes = [_slope(block) for block in blocks if len(block) >= _LEAST]
    return compare(slopes, Terms(margin=margin)) if slopes else None


def _slope(block: Sequence[InBlock]) -> float:
    ordered = sorted(block, key=lambda one: one.time)
    places = [k / (len(ordered) - 1) for k in range(len(ordered))]
    weights = [one.weight for one in ordered]
    middle = fsum(w * x for w, x in zip(weights, places, strict=True)) / fsum(weights)
    arms = [w * (x - middle) for w, x in zip(weights, places, strict=True)]
    rise = fsum(arm * one.value for arm, one in zip(arms, ordered, strict=True))
    return rise / fsum(arm * x for arm, x in zip(arms, places, strict=True))

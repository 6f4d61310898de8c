"""What difference a design can find, before and after it is measured.

>>> power = power_of(0.05 * 2**0.5, 8, 20, 0.02)
>>> f"{100 * power.difference:.0f} %", power.blocks_for_half
('9 %', 136)
"""

from dataclasses import dataclass
from math import log1p, sqrt

from prony.analysis.all_pairs import usual_widening
from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.effects import student_t
from prony.analysis.logs import change_of
from prony.analysis.studentized import pair_level

__all__ = ["Sight", "power_of", "spread_of_floor"]

_LEVEL = 0.05
_OFTEN = 0.9
# The share of absolute normal deviations that a noise floor bounds, in standard deviations.
_FLOOR_DEVIATIONS = 1.96
# More blocks than anybody runs.
_MOST_BLOCKS = 1000


@dataclass(frozen=True, slots=True)
class Sight:
    """What ``blocks`` of so many ``subjects`` can find: a ``difference`` of two is separated nine times in
    ten, ``bar`` being what is of no interest, or may be noise. ``blocks_for_half``: those that would find
    half of it; null above 1,000, and where half lies within the bar.
    """

    subjects: int
    blocks: int
    difference: float
    blocks_for_half: int | None
    bar: float

    @property
    def is_half_within_bar(self) -> bool:
        """Whether no number of blocks finds half of the difference."""
        return self.difference / 2 <= self.bar


def power_of(spread: float, subjects: int, blocks: int, bar: float) -> Sight:
    """Return what a design can find, from the standard deviation of one block's log ratio (``spread``).

    *Definition*: exp(ln(1 + bar) + (t w + t') spread / sqrt(n)) - 1, with t the quantile of the intervals of
    all pairs, t' that of 90 %, (k - 1)(n - 1) degrees of freedom, and w as ``usual_widening``.
    *Assumptions*: all subjects are equally noisy. To separate one subject from all others takes more.
    """
    found = _difference(spread, subjects, blocks, bar)
    half = found / 2
    enough = _least_blocks(spread, subjects, bar, half) if half > bar else None
    return Sight(subjects, blocks, found, enough, bar)


def _difference(spread: float, subjects: int, blocks: int, bar: float) -> float:
    freedom = float((subjects - 1) * (blocks - 1))
    quantile = student_t(1 - pair_level(_LEVEL, subjects, freedom) / 2, freedom)
    quantile *= usual_widening(subjects, blocks)
    return change_of(log1p(bar) + (quantile + student_t(_OFTEN, freedom)) * spread / sqrt(blocks))


def _least_blocks(spread: float, subjects: int, bar: float, difference: float) -> int | None:
    """Return the least blocks that find a difference, by halving: more blocks always find less."""
    low, high = LEAST_BLOCKS, _MOST_BLOCKS
    if _difference(spread, subjects, high, bar) > difference:
        return None
    while low < high:
        middle = (low + high) // 2
        if _difference(spread, subjects, middle, bar) <= difference:
            high = middle
        else:
            low = middle + 1
    return low


def spread_of_floor(effect: float, blocks: int) -> float:
    """Return about the standard deviation of one block's log ratio, from a noise floor of so many blocks."""
    return log1p(effect) * sqrt(blocks) / _FLOOR_DEVIATIONS

"""Single trials that are far worse than the others of their cell: too rare for any interval to cover.

>>> found = stalled({block: 0.01 * (block % 3) for block in range(9)} | {9: -0.5}, is_higher_better=True)
>>> found.blocks, found.of, round(found.worst, 2)
((9,), 10, -0.4)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from statistics import median

from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.effects import change_of
from prony.model.shown import shown

# What is 20 % worse is noticed by users; what is not further off than five deviations is noise.
_LEAST_EFFECT = 0.2
_FARTHEST = 5.0
# The median of absolute normal deviations, in standard deviations.
_MEDIAN_DEVIATION = 0.6745
# What happens in more trials is no longer rare: it widens the interval.
_MOST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Stall:
    """The ``blocks`` of a cell whose trials stalled, ``of`` so many."""

    blocks: tuple[int, ...]
    """Those whose trials stalled."""
    of: int
    worst: float
    """Relative to the median."""

    @shown
    def trials(self) -> int:
        """How many trials stalled."""
        return len(self.blocks)


def stalled(by_block: Mapping[int, float], *, is_higher_better: bool) -> Stall | None:
    """Return the trials that stalled, from the logarithm of a figure by block; null if none did.

    *Definition*: worse than the median of all by more than 20 %, and by more than five robust standard
    deviations of logarithms, in at most a fifth of at least five trials.
    *Assumptions*: a stall that did not happen is not seen: n trials without one show, at 95 %, that its share
    is at most 3 / n.
    """
    if len(by_block) < LEAST_BLOCKS:
        return None
    sign = -1.0 if is_higher_better else 1.0
    logs = {block: sign * value for block, value in by_block.items()}
    middle = median(logs.values())
    scale = median(abs(value - middle) for value in logs.values()) / _MEDIAN_DEVIATION
    limit = max(log(1 + _LEAST_EFFECT), _FARTHEST * scale)
    found = {block: value - middle for block, value in logs.items() if value - middle > limit}
    if not found or len(found) > _MOST_SHARE * len(logs):
        return None
    return Stall(tuple(sorted(found)), len(logs), change_of(sign * max(found.values())))

"""What difference a design can find, before it is measured and after.

>>> low, high = foreseen(0.05, 4, 10, 0.02)
>>> 0.1 < low < high < 0.4
True
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, hypot, log1p, sqrt
from statistics import median
from typing import TYPE_CHECKING

from prony.figures.statistics.all_pairs import pair_level, pairs_of
from prony.figures.statistics.compare import Comparison
from prony.figures.statistics.effects import change_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LEVEL = 0.05
_OFTEN = 0.9
# The quantile of a normal value for nine times in ten.
_NINE_IN_TEN = 1.2816
# The share of absolute normal deviations that a noise floor bounds, in standard deviations.
_FLOOR_DEVIATIONS = 1.96
# A range that is wider says nothing.
_WIDEST = 10
_SIMULATED = 400
# One trial in twenty is ten times as noisy: what machines that other work visits do.
_BAD, _TIMES = 0.05, 10


@dataclass(frozen=True, slots=True)
class Needed:
    """Numbers of blocks, `low` to `high`, of two digits."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What ``blocks`` could find: two subjects that differ by ``difference`` are separated nine times in ten,
    ``bar`` being what is of no interest.
    """

    blocks: int
    difference: float
    blocks_for_half: Needed | None
    """Those that would find half of it, by the 95 % interval of the variance; null where that is wider than
    tenfold (below eight blocks), and where half lies within the bar."""
    bar: float

    @property
    def is_half_within_bar(self) -> bool:
        """Whether no number of blocks finds half of the difference."""
        return self.difference / 2 <= self.bar


def sight(found: Sequence[Comparison], blocks: int, bar: float) -> Sight | None:
    """Return what these comparisons could have found; None where none has an interval.

    *Definition*: exp(ln(1 + bar) + h + 1.28 sqrt(e^2 + h^2 / (2 f))) - 1, with h the median half-width of the
    intervals, e the median standard error, and f the median degrees of freedom, for another study's intervals
    would be wider or narrower. Beyond the bar it shrinks with the root of the number of blocks, and grows
    with the true variance, whose 95 % interval is that of n - 1 degrees of freedom (chi-square): what
    subjects lend each other is not counted, for how blocks resemble each other is estimated for all at once.
    """
    known = [one for one in found if one.low is not None and one.high is not None and one.spread is not None]
    if not known:
        return None
    half = median((log1p(one.high or 0.0) - log1p(one.low or 0.0)) / 2 for one in known)
    error = median((one.spread or 0.0) / sqrt(one.blocks) for one in known)
    freedom = median(one.freedom or 1.0 for one in known)
    beyond = half + _NINE_IN_TEN * hypot(error, half / sqrt(2 * freedom))
    difference = change_of(log1p(bar) + beyond)
    if difference / 2 <= bar:
        return Sight(blocks, difference, None, bar)
    times = beyond / (log1p(difference / 2) - log1p(bar))
    return Sight(blocks, difference, _needed(blocks, times), bar)


def _needed(blocks: int, times: float) -> Needed | None:
    """Return how many blocks see so many ``times`` less, for both ends of what their spread can be."""
    from scipy.special import chdtri

    own = blocks - 1
    low, high = (blocks * times**2 * own / float(chdtri(own, end)) for end in (0.025, 0.975))
    return Needed(_two_digits(low), _two_digits(high)) if high <= _WIDEST * low else None


def _two_digits(value: float) -> int:
    return int(float(f"{ceil(value):.2g}"))


@lru_cache(maxsize=64)
def foreseen(noise: float, subjects: int, blocks: int, bar: float) -> tuple[float, float]:
    """Return the differences of two subjects that a design will find nine times in ten, by the standard
    deviation of a trial's logarithm (``noise``): where it is normal, and where one trial in twenty is ten
    times as noisy.

    *Definition*: the 90 % quantile of half-width less error, over 400 simulated studies that the product's
    own procedure reads, beyond the bar.
    """
    import numpy as np

    random = np.random.default_rng(blocks)
    values = noise * random.normal(size=(_SIMULATED, blocks, subjects))
    bad = np.where(random.random(values.shape) < _BAD, _TIMES, 1)
    low, high = (change_of(log1p(bar) + _beyond(one)) for one in (values, values * bad))
    return low, high


def _beyond(values: "Floats") -> float:
    import numpy as np
    from scipy.special import stdtrit

    found = pairs_of(values)
    freedom = found.freedom[:, 0]
    # One level for the studies' usual freedom: it changes little with it.
    level = pair_level(_LEVEL, values.shape[-1], float(np.median(freedom)))
    half = stdtrit(freedom, 1 - level / 2) * found.error[:, 0]
    return float(np.quantile(half - found.centre[:, 0], _OFTEN))


def spread_of_floor(effect: float, blocks: int) -> float:
    """Return about the standard deviation of one block's log ratio, from a noise floor of so many blocks."""
    return log1p(effect) * sqrt(blocks) / _FLOOR_DEVIATIONS

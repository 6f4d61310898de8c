"""What difference a design can find, before it is measured and after.

>>> low, high = foreseen(0.05, 4, 10, 0.02)
>>> 0.1 < low < high < 0.4
True

When a study that looks several times may stop: its figures are precise, its verdicts are reached, or more
blocks would not help.

A study of a fixed number of blocks has no such question.

>>> from prony.figures.statistics.compare import compare_family
>>> steady = compare_family({"b/a": [0.10, 0.101, 0.099, 0.1, 0.102, 0.098, 0.1, 0.1, 0.101, 0.099]})
>>> decide(steady, 10, Precision(target=0.02)).decision
<Decision.REACHED: 'verdicts reached'>
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import ceil, hypot, log1p, sqrt
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from prony.figures.statistics.all_pairs import pair_level, pairs_of
from prony.figures.statistics.compare import HELD_BACK, Comparison, Terms, Verdict
from prony.figures.statistics.effects import change_of, student_t
from prony.figures.statistics.spending import Look
from prony.model.plan import Precision

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

    @property
    def times_for_half(self) -> float | None:
        """How many times the blocks find half of the difference, about; null where none do."""
        if self.is_half_within_bar:
            return None
        half = log1p(self.difference / 2) - log1p(self.bar)
        return ((log1p(self.difference) - log1p(self.bar)) / half) ** 2


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


# --- when a study that looks several times may stop -------------------------------------------------------


Key = TypeVar("Key", bound=Hashable)

_DECIDED = (Verdict.HIGHER, Verdict.LOWER, Verdict.EQUIVALENT)


class Decision(StrEnum):
    """The decision of a look."""

    CONTINUE = "continue"
    PRECISE = "precise enough"
    REACHED = "verdicts reached"
    FUTILE = "futile"
    AT_MAXIMUM = "at maximum"


@dataclass(frozen=True, slots=True)
class Stop:
    """The decision after ``blocks``, and the rule that made it, in words.

    ``projected``: about how many blocks the least uncertain open comparison would need, null if none is open.
    """

    decision: Decision
    blocks: int
    rule: str
    projected: int | None = None


def _half_width(found: Comparison) -> float:
    if found.low is None or found.high is None:
        return float("inf")
    return (log1p(found.high) - log1p(found.low)) / 2


def _projected(found: Comparison, terms: Terms, precision: Precision) -> int | None:
    """Return about how many blocks make the interval narrow enough, or decide on which side of the bar the
    effect lies: (t s / d)^2 with d the target, or the distance to the bar, whichever is more. Null without an
    interval. The bar is the margin.
    """
    if found.effect is None or found.spread is None or found.freedom is None or found.nominal is None:
        return None
    most = precision.looks[-1]
    level = Look(most, precision.looks).nominal(found.nominal)
    quantile = student_t(1 - level / 2, found.freedom * most / found.blocks)
    distance = abs(abs(log1p(found.effect)) - log1p(terms.margin))
    return ceil((quantile * found.spread / max(distance, log1p(precision.target))) ** 2)


def decide(
    found: Mapping[Key, Comparison], blocks: int, precision: Precision, terms: Terms | None = None
) -> Stop:
    """Return whether to stop after ``blocks``, from each comparison that a report would show now, made with
    the look of ``blocks``.

    *Definition*: REACHED when every comparison is higher, lower or equivalent; PRECISE when every one is that
    or has a half-width of at most the target (left out: those that the generator limits, and those of
    survivors, which no block decides); AT_MAXIMUM after the last look; FUTILE when none that is open is
    projected to be either within the maximum, or at a look there is nothing to compare; otherwise, and
    between looks, CONTINUE.
    *Assumptions*: blocks are added whole. The intervals of all looks hold together at their level (repeated
    confidence intervals), so the time to stop, and the choice of what is shown, may depend on them.
    *Source*: C. Jennison and B. W. Turnbull, "Interim analyses: the repeated confidence interval approach",
    J. R. Statist. Soc. B 51 (1989); "Group Sequential Methods" (2000), chapters 9 and 10.
    """
    found = {key: one for key, one in found.items() if one.verdict not in HELD_BACK}
    if not found:
        return _without_figures(blocks, precision)
    agreed = terms or Terms()
    undecided = {key: one for key, one in found.items() if one.verdict not in _DECIDED}
    wide = {key: one for key, one in undecided.items() if _half_width(one) > log1p(precision.target)}
    needs = [_projected(one, agreed, precision) for one in wide.values()]
    projected = min((one for one in needs if one is not None), default=None)
    decision = _decision(len(undecided), len(wide), projected, blocks, precision)
    return Stop(decision, blocks, _rule(decision, precision, len(found)), projected)


def _without_figures(blocks: int, precision: Precision) -> Stop:
    """More blocks of subjects that all fail would show nothing: that is not a verdict."""
    ends = blocks in precision.looks or blocks > precision.looks[-1]
    decision = Decision.FUTILE if ends else Decision.CONTINUE
    return Stop(decision, blocks, f"{decision}: no subject has figures that could be compared")


def _decision(
    undecided: int, wide: int, projected: int | None, blocks: int, precision: Precision
) -> Decision:
    most = precision.looks[-1]
    if blocks < most and blocks not in precision.looks:
        return Decision.CONTINUE
    if not undecided:
        return Decision.REACHED
    if not wide:
        return Decision.PRECISE
    if blocks >= most:
        return Decision.AT_MAXIMUM
    return Decision.FUTILE if projected is not None and projected > most else Decision.CONTINUE


def _rule(decision: Decision, precision: Precision, comparisons: int) -> str:
    looks = ", ".join(map(str, precision.looks))
    several = f", {comparisons} comparisons with the leaders" if comparisons > 1 else ""
    return (
        f"{decision}: looks after {looks} blocks with O'Brien-Fleming-type spending{several}, "
        f"for intervals of ±{100 * precision.target:g} % or a verdict"
    )

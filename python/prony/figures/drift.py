"""What changed while a study ran, or between two: the machine, late trials of a block, single trials.

The reference server does the same work in every calibration, so a trend in its figures is the machine's.
Pairing by block removes a slow drift from comparisons; single figures contain it.

The order within a block is random, so a difference between its late and its early trials is of the order: of
what earlier trials leave behind, or of a machine that tires.

>>> found = drift([(0, 100.0), (60, 101.0), (120, 102.0), (180, 103.0), (240, 104.0)], 0.02)
>>> round(found.change, 3), found.drifts
(0.04, True)

>>> found = stalled({block: 0.01 * (block % 3) for block in range(9)} | {9: -0.5}, is_higher_better=True)
>>> found.blocks, found.of, round(found.worst, 2)
((9,), 10, -0.4)

>>> rising = [InBlock(0, 0.0), InBlock(1, 0.05), InBlock(2, 0.1)]
>>> round(order_effect([rising] * 5, 0.02).effect, 3)
0.105

>>> one = Fingerprint({"cpu": {"model": "A", "available": 2}, "kernel": {"release": "6.1"}})
>>> comparable(one, one)
()
>>> comparable(one, Fingerprint({**one.free, "kernel": {"release": "6.6"}}))
(Difference(name='kernel', a='6.1', b='6.6'),)
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import fsum, log
from statistics import median
from typing import NamedTuple

from prony.figures.statistics.compare import LEAST_BLOCKS, Comparison, Terms, compare
from prony.figures.statistics.effects import change_of
from prony.model.facts import Fingerprint, Unknown
from prony.model.shown import shown

CALIBRATED = ("response_ok_p50", "cpu_ns_per_request")
"""The metrics that show a drift: the latency at a fixed rate, and the CPU time of a request."""

# The chance that the trend is beside one end of its interval.
_LEVEL = 0.025


@dataclass(frozen=True, slots=True)
class Drift:
    """A figure over ``count`` blocks."""

    count: int
    median: float | None
    change: float | None = None
    """From the first to the last, relative, by its trend, such as 0.03."""
    low: float | None = None
    """`low` and `high`: the interval of it, at 95 % or more; all three are null with fewer than 5 blocks,
    which may rise or fall throughout by chance in one of twelve studies.
    """
    high: float | None = None
    drifts: bool = False
    """The change is more than the margin, and more than chance."""


def drift(points: Sequence[tuple[float, float]], margin: float) -> Drift:
    """Return the trend of (time, value), one of each block, times in any unit, values above 0.

    *Definition*: the change is exp(s T) - 1, with s the median of the slopes of ln(value) between all pairs
    of points, and T the time between the first and the last. Its interval is that of Sen, from the (k + 1)th
    smallest to the (k + 1)th largest slope, with k the most falling pairs that a random order of the points
    has with a chance of at most 2.5 % (Kendall): of five points k = 0, so that the interval has 98.3 %.
    *Assumptions*: points are independent: several of one block share its state, so that a block gives one; a
    rise followed by an equal fall is no trend.
    *Source*: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", J. Am. Stat.
    Assoc. 63 (1968); M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938).
    """
    values = [value for _, value in points]
    middle = median(values) if values else None
    length = max((time for time, _ in points), default=0.0) - min((time for time, _ in points), default=0.0)
    slopes = sorted(
        log(later / earlier) / (end - begin)
        for (begin, earlier), (end, later) in combinations(sorted(points), 2)
        if end > begin
    )
    cut = _most_falling(len(points))
    if cut is None or 2 * cut >= len(slopes):
        return Drift(len(points), middle)
    ends = slopes[cut], slopes[-1 - cut]
    change, low, high = (change_of(slope * length) for slope in (median(slopes), *ends))
    return Drift(len(points), middle, change, low, high, abs(change) > margin and (low > 0 or high < 0))


@cache
def _most_falling(count: int) -> int | None:
    """Return the most falling pairs that so many points in a random order have with a chance of at most
    ``_LEVEL``; None where even none is likelier.
    """
    import numpy as np

    chances = np.ones(1)
    for place in range(2, count + 1):
        # Of those before it, the point at this place is below 0 to place - 1, each with the same chance.
        sums = np.cumsum(np.concatenate((chances, np.zeros(place - 1))))
        chances = (sums - np.concatenate((np.zeros(place), sums[:-place]))) / place
    within = int((np.cumsum(chances) <= _LEVEL).sum())
    return within - 1 if within else None


# --- single trials that are far worse than the others of their cell ---------------------------------------


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
    """Return the trials that stalled, from the logarithm of a figure by block; None if none did.

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


# --- whether what runs late in a block fares otherwise than what runs early -------------------------------


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
    """Return how what ran last in a block compares with what ran first; None where none has three trials.

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


# --- whether two machines are similar enough to compare figures measured on them --------------------------


WHAT_MATTERS = {
    "CPU model": ("cpu", "model"),
    "kernel": ("kernel", "release"),
    "CPU governor": ("cpu", "governor"),
    "CPUs": ("cpu", "available"),
    "memory limit": ("memory", "limit_bytes"),
}
"""What must agree before two archives are compared without pairs: a name, and where a fingerprint has it."""


class Difference(NamedTuple):
    """A relevant fact that differs. ``a`` and ``b`` are in words, ready to print."""

    name: str
    a: str
    b: str


def comparable(a: Fingerprint, b: Fingerprint) -> tuple[Difference, ...]:
    """Return the facts of WHAT_MATTERS in which two fingerprints differ; empty: they may be compared.

    *Definition*: a fact that neither machine has is no difference (a guest without frequencies has no
    governor); a fact that only one of them has is a difference.
    """
    return tuple(
        Difference(name, _in_words(one), _in_words(other))
        for name, path in WHAT_MATTERS.items()
        if _known(one := a.fact(*path)) != _known(other := b.fact(*path))
    )


def machine_key(fingerprint: Fingerprint) -> str:
    """Return twelve letters that are equal for machines without a difference in WHAT_MATTERS."""
    facts = [_known(fingerprint.fact(*path)) for path in WHAT_MATTERS.values()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _known(fact: object) -> object:
    """Return the value to compare: all unknown facts are equal, and differ from every known value."""
    return {"missing": None} if isinstance(fact, Unknown) else fact


def _in_words(fact: object) -> str:
    match fact:
        case Unknown(reason):
            return f"not known: {reason}"
        case dict():
            return ", ".join(f"{name}: {_in_words(value)}" for name, value in fact.items())
        case _:
            return "none" if fact is None else str(fact)

"""Whether one subject's trials fail more often than another's: of two, and of all pairs of several.

>>> compare_failures(Failures(0, 10), Failures(8, 10)).p_value < 0.001
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import comb, floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

Pair = tuple[str, str]

_FISHER = "Fisher's exact test"
_SIGNS = "exact sign test within blocks"
# With fewer common blocks, Fisher's test finds more.
_LEAST_SIGNS = 20
# Shares are quotients of whole numbers: theirs are apart by more than this.
_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class Failures:
    """``failed`` of ``total`` trials. Trials, never requests: those of one trial fail together."""

    failed: int
    total: int

    @property
    def share(self) -> float:
        """The share that failed; 0 of none."""
        return self.failed / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class FailureComparison:
    """Two counts and the chance of so uneven a split if the rates were equal; ``differs`` at the level."""

    first: Failures
    second: Failures
    p_value: float
    differs: bool
    method: str
    """The test."""


def compare_failures(first: Failures, second: Failures, level: float = 0.05) -> FailureComparison:
    """Return whether the shares of failed trials differ (Fisher's exact test, two-sided).

    *Definition*: with the margins of the 2 x 2 table fixed, the sum of the probabilities of all tables that
    are at most as probable as this one.
    *Assumptions*: trials are independent of each other.
    *Source*: R. A. Fisher, "Statistical Methods for Research Workers" (1934), section 21.02.
    """
    p_value = _fisher(first, second)
    return FailureComparison(first, second, p_value, p_value <= level, _FISHER)


def compare_in_blocks(
    first: Mapping[int, bool], second: Mapping[int, bool], level: float = 0.05
) -> FailureComparison:
    """Return whether one fails more often than the other in the blocks that both have: whether it failed,
    by block.

    *Definition*: from 20 common blocks on the exact sign test: twice the chance that of the blocks in which
    only one failed, that many or more are of one side. Below, Fisher's exact test. The number of blocks alone
    decides which.
    *Assumptions*: in the sign test, that equals have the same chance within a block, whatever they share. In
    Fisher's, that nothing but the block's state makes trials alike: sharing that makes the test careful
    (`tests/figures/test_failure_rates.py`). Of few blocks it finds more: in five, the sign test never has a
    p below 1 / 16; of ten, if one fails in half of the trials and the other never, it finds 38 of 100 and
    Fisher's 64. Of twenty whose state varies (one fails in 0.5 of them, the other in 0.2, log odds with a
    standard deviation of 2), it finds 19 and Fisher's 10.
    *Source*: Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12 (1947), exact by the binomial distribution.

    >>> compare_in_blocks(dict.fromkeys(range(20), False), {k: k < 8 for k in range(20)}).p_value
    0.0078125
    """
    common = sorted(first.keys() & second.keys())
    one, other = (Failures(sum(side[k] for k in common), len(common)) for side in (first, second))
    if len(common) < _LEAST_SIGNS:
        return compare_failures(one, other, level)
    p_value = _sign_test(sum(first[k] != second[k] for k in common), abs(one.failed - other.failed))
    return FailureComparison(one, other, p_value, p_value <= level, _SIGNS)


def _sign_test(differing: int, more: int) -> float:
    tail = sum(comb(differing, k) for k in range((differing + more) // 2, differing + 1))
    return float(min(1.0, 2 * tail / 2**differing))


def _fisher(first: Failures, second: Failures) -> float:
    failed, total = first.failed + second.failed, first.total + second.total
    possible = range(max(0, failed - second.total), min(failed, first.total) + 1)
    ways = {k: comb(first.total, k) * comb(second.total, failed - k) for k in possible}
    observed = ways[first.failed]
    # Whole numbers: ties are ties, and the sum is divided once.
    return sum(count for count in ways.values() if count <= observed) / comb(total, failed)


def separated(pairs: Mapping[Pair, FailureComparison], level: float = 0.05) -> set[Pair]:
    """Return the pairs of which the first is shown to fail less often than the second: those whose
    ``adjusted`` p-value is at most ``level``.

    >>> failed = {"b": Failures(0, 10), "c": Failures(1, 10), "a": Failures(10, 10)}
    >>> pairs = (("b", "a"), ("c", "a"), ("b", "c"))
    >>> sorted(separated({(x, y): compare_failures(failed[x], failed[y]) for x, y in pairs}))
    [('b', 'a'), ('c', 'a')]
    """
    return {pair for pair, p_value in adjusted(pairs).items() if p_value <= level}


def adjusted(pairs: Mapping[Pair, FailureComparison]) -> dict[Pair, float]:
    """Return the p-value of each pair's second failing no more often than the first, over all pairs of
    several subjects: separating those of at most 5 % separates any two equal ones in at most 5 % of studies,
    whatever the others do.

    *Definition*: a closed test. Two differ if every set of m subjects that holds both is shown not to be of
    equals. The p-value of a set whose extremes are these two is m (m - 1) / 2 times the chance that two of m
    equals lie so far apart, given how many trials of the set failed; of two subjects it is that of their
    comparison. Beside a set of equals there may be others, and each has the share of the level that w has in
    the sum of theirs, w the smaller of its numbers of failures and of successes: p becomes 1 - (1 - p)^(1 +
    w' / w), with w' of all subjects outside, 0 of a single one. Taken is the largest p over m, each with the
    number of failures nearest to half of the trials that m - 2 others between the two allow, and over all
    pairs around this one.
    *Assumptions*: trials are independent, or resemble each other only as far as those of the same block do,
    which makes the test careful. Shuffling the subjects within blocks needs less, but its p-value is about
    all subjects together: where others fail always or never, it separates equals, and of two alone in five
    blocks it cannot be less than 1 / 16. Of unequal numbers of trials, the smaller one counts in sets of more
    than two.
    *Source*: R. Marcus, E. Peritz and K. R. Gabriel, "On closed testing procedures with special reference to
    ordered analysis of variance", Biometrika 63 (1976); R. E. Tarone, "A modified Bonferroni method for
    discrete data", Biometrics 46 (1990), that what cannot be separated takes no level.

    >>> five = {str(k): Failures(5 * (k == 7), 5) for k in range(8)}
    >>> both = ((a, b) for a in five for b in five if a < b)
    >>> found = adjusted({(a, b): compare_failures(five[a], five[b]) for a, b in both})
    >>> [pair for pair, p_value in found.items() if p_value <= 0.05] == [(str(k), "7") for k in range(7)]
    True
    """
    shares = _shares(pairs)
    names = sorted(shares, key=lambda name: shares[name])
    known = {**pairs} | {
        (b, a): replace(one, first=one.second, second=one.first) for (a, b), one in pairs.items()
    }
    found: dict[Pair, float] = {}
    around = dict.fromkeys(names, 0.0)
    for place, low in enumerate(names):
        # From the widest inwards: none is separated within two that are not.
        wider = 0.0
        for high in reversed(names[place + 1 :]):
            others = tuple(shares[name] for name in names if name not in (low, high))
            wider = around[high] = max(wider, around[high], _of_sets(known[low, high], others))
            found[low, high] = wider
    return {pair: found.get(pair, 1.0) for pair in pairs}


def _shares(pairs: Mapping[Pair, FailureComparison]) -> dict[str, float]:
    """Return the share of each subject, over all its pairs: their blocks may differ."""
    counts: dict[str, list[Failures]] = {}
    for pair, both in pairs.items():
        for name, one in zip(pair, (both.first, both.second), strict=True):
            counts.setdefault(name, []).append(one)
    return {name: sum(one.share for one in each) / len(each) for name, each in counts.items()}


@lru_cache(maxsize=4096)
def _of_sets(both: FailureComparison, others: tuple[float, ...]) -> float:
    """Return the largest p-value of the sets whose extremes are these two, among ``others`` with shares."""
    import numpy as np

    less, more = both.first, both.second
    if less.share >= more.share or not less.total:
        return 1.0
    n, pair = min(less.total, more.total), less.share + more.share
    between = np.array(sorted(share for share in others if less.share <= share <= more.share))
    sizes = np.arange(2, len(between) + 3)
    fewest, most = (n * (pair + np.append(0, np.cumsum(each))) for each in (between, between[::-1]))
    failed = np.clip(sizes * n / 2, fewest, most)
    apart = floor((more.share - less.share) * n + _ROUNDING)
    p_values = _chances(n, sizes, np.rint(failed), apart) * sizes * (sizes - 1) / 2
    p_values[0] = both.p_value
    without = len(others) + 2 - sizes
    elsewhere = np.where(without > 1, _weight(n * (pair + sum(others)) - failed, n * without), 0.0)
    level = 1 + elsewhere / _weight(failed, n * sizes)
    return float((1 - (1 - p_values.clip(0, 1)) ** level).max())


def _weight(failed: "Floats", trials: "Integers") -> "Floats":
    """Return the number of failures, or of successes if they are fewer: with none, none is separated."""
    import numpy as np

    return np.minimum(failed, trials - failed).clip(0)


def _chances(n: int, subjects: "Integers", failed: "Floats", apart: int) -> "Floats":
    """Return the chance that two of so many equal subjects, with ``n`` trials each, lie ``apart`` or more,
    given how many of all trials failed.
    """
    import numpy as np

    of_both, others = np.arange(2 * n + 1), (subjects[:, None] - 2) * n
    rest = failed[:, None] - of_both
    ways = _log_ways(2 * n, of_both) + _log_ways(others, rest.clip(0, others))
    chance = np.exp(ways - _log_ways(subjects * n, failed)[:, None])
    found: Floats = np.where((rest >= 0) & (rest <= others), chance, 0.0) @ _tails(n)[:, apart]
    return found


@cache
def _tails(n: int) -> "Floats":
    """Return the chance that two equal subjects with ``n`` trials each lie so far apart (columns) or farther,
    given how many trials of both failed (rows).
    """
    import numpy as np

    of_both, of_first = np.arange(2 * n + 1)[:, None], np.arange(n + 1)
    rest = of_both - of_first
    ways = _log_ways(n, of_first) + _log_ways(n, rest.clip(0, n)) - _log_ways(2 * n, of_both)
    chance = np.where((rest >= 0) & (rest <= n), np.exp(ways), 0.0)
    found = np.zeros((2 * n + 1, 2 * n + 1))
    np.add.at(found, (np.broadcast_to(of_both, rest.shape), abs(rest - of_first)), chance)
    return found[:, ::-1].cumsum(axis=1)[:, ::-1]


def _log_ways(of: "Integers | int", chosen: "Floats | Integers") -> "Floats":
    from scipy.special import gammaln

    found: Floats = gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)
    return found


def clopper_pearson(count: int, total: int, level: float = 0.05) -> tuple[float, float]:
    """Return the exact two-sided interval at 1 - ``level`` of a share of which ``count`` in ``total`` were
    seen.

    *Source*: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the
    case of the binomial", Biometrika 26 (1934).
    """
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, level / 2)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - level / 2)) if count < total else 1.0
    return low, high

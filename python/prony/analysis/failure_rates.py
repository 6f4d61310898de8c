"""Whether one subject's trials fail more often than another's.

>>> compare_failures(Failures(0, 10), Failures(8, 10)).p_value < 0.001
True
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

from prony.analysis.multiplicity import holm

__all__ = ["FailureComparison", "Failures", "clopper_pearson", "compare_failures", "separated"]

Pair = tuple[str, str]


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


def compare_failures(first: Failures, second: Failures, level: float = 0.05) -> FailureComparison:
    """Return whether the shares of failed trials differ (Fisher's exact test, two-sided).

    *Definition*: with the margins of the 2 x 2 table fixed, the sum of the probabilities of all tables that
    are at most as probable as this one.
    *Source*: R. A. Fisher, "Statistical Methods for Research Workers" (1934), section 21.02.
    """
    p_value = _fisher(first, second)
    return FailureComparison(first, second, p_value, p_value <= level)


def _fisher(first: Failures, second: Failures) -> float:
    failed, total = first.failed + second.failed, first.total + second.total
    possible = range(max(0, failed - second.total), min(failed, first.total) + 1)
    ways = {k: comb(first.total, k) * comb(second.total, failed - k) for k in possible}
    observed = ways[first.failed]
    # Whole numbers: ties are ties, and the sum is divided once.
    return sum(count for count in ways.values() if count <= observed) / comb(total, failed)


def separated(pairs: Mapping[Pair, tuple[Failures, Failures]], level: float = 0.05) -> set[Pair]:
    """Return the pairs of which the first is shown to fail less often than the second.

    *Definition*: Fisher's exact test of every pair, at the levels of Holm: whoever fails least by chance, in
    at most ``level`` of studies of equal subjects is any pair separated.
    *Assumptions*: trials are independent. Few of them separate nothing: of five each, all against none has p
    = 0.008, which is enough for six pairs at most.

    >>> none, one, all_ = Failures(0, 10), Failures(1, 10), Failures(10, 10)
    >>> sorted(separated({("b", "a"): (none, all_), ("c", "a"): (one, all_), ("b", "c"): (none, one)}))
    [('b', 'a'), ('c', 'a')]
    """
    found = {pair: compare_failures(*counts).p_value for pair, counts in pairs.items()}
    levels = holm(found, level)
    return {
        pair
        for pair, (less, more) in pairs.items()
        if found[pair] <= levels[pair] and less.share < more.share
    }


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

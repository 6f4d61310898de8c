"""Which of several subjects are not separated: letters instead of ranks.

>>> letters(["a", "b", "c"], {("a", "c")})
{'a': 'a', 'b': 'ab', 'c': 'b'}
"""

from collections.abc import Collection, Mapping, Sequence
from math import fsum
from string import ascii_lowercase


def letters(names: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return letters for each of ``names``, in their order: two share one unless their pair is ``different``.

    *Definition*: a letter is a largest set of subjects no two of which differ (insert and absorb): one set of
    all is split at each pair that differs, and sets within others are dropped.
    *Source*: H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", J.
    Comput. Graph. Statist. 13 (2004).
    """
    sets = [frozenset(names)]
    for first, second in different:
        split = [one for one in sets if not {first, second} <= one]
        for both in (one for one in sets if {first, second} <= one):
            split += [both - {first}, both - {second}]
        sets = [one for one in dict.fromkeys(split) if not any(one < other for other in split)]
    order = {name: place for place, name in enumerate(names)}
    ranked = sorted(sets, key=lambda one: sorted(order[name] for name in one))
    return {name: "".join(_letter(k) for k, one in enumerate(ranked) if name in one) for name in names}


def _letter(number: int) -> str:
    """Return a, b, ..., z, a', b', ..."""
    turns, place = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[place] + "'" * turns


def friedman(blocks: Sequence[Mapping[str, float]]) -> float | None:
    """Return the p-value of the claim that all subjects are equal, from complete blocks; null below two
    blocks, or with fewer than three subjects.

    *Definition*: with ranks r_ij within block i (ties: their mean) and k subjects, (k - 1) times the sum of
    squares of the mean ranks about (k + 1) / 2, over the mean of the sums of squares within blocks, times the
    number of blocks; chi-square with k - 1 degrees of freedom.
    *Assumptions*: blocks are independent; the chi-square holds for some ten blocks and more, and is
    conservative below.
    *Source*: M. Friedman, "The use of ranks to avoid the assumption of normality", J. Am. Statist. Ass. 32
    (1937); W. J. Conover, "Practical Nonparametric Statistics" (1999), section 5.8, for ties.
    """
    names = sorted(set.intersection(*(set(block) for block in blocks))) if blocks else []
    if len(blocks) < 2 or len(names) < 3:
        return None
    ranks = [_ranks([block[name] for name in names]) for block in blocks]
    middle, count = (len(names) + 1) / 2, len(blocks)
    means = [fsum(row[j] for row in ranks) / count for j in range(len(names))]
    between = fsum((mean - middle) ** 2 for mean in means)
    within = fsum((rank - middle) ** 2 for row in ranks for rank in row) / count
    if within == 0:
        return 1.0
    return _chi_square_tail((len(names) - 1) * count * between / within, len(names) - 1)


def _ranks(values: Sequence[float]) -> list[float]:
    below = [sum(other < value for other in values) for value in values]
    equal = [sum(other == value for other in values) for value in values]
    return [less + (same + 1) / 2 for less, same in zip(below, equal, strict=True)]


def _chi_square_tail(statistic: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic))

"""The level of each of several tests, so that errors stay rare over all of them.

>>> holm({"a": 0.001, "b": 0.02, "c": 0.3}, 0.05)["b"]
0.025
>>> screening({"a": 0.001, "b": 0.02, "c": 0.3}, 0.05)
0.03333333333333333
"""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def _unchanged(level: float) -> float:
    return level


def holm(
    p_values: Mapping[Key, float], level: float, nominal: Callable[[float], float] = _unchanged
) -> dict[Key, float]:
    """Return the level of each test: ``level`` / m for the smallest p, ``level`` / (m - 1) for the next, ...

    After the first that is not rejected, all others keep its level. ``nominal`` gives the level of one look
    from a level over all looks; it must rise with it.

    *Definition*: the chance of any false rejection is at most ``level``, however the tests depend on each
    other. With looks: the procedure of Maurer and Bretz, in which every test spends its own level over the
    looks.
    *Source*: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979);
    W. Maurer and F. Bretz, "Multiple testing in group sequential trials using graphical approaches",
    Statistics in Biopharmaceutical Research 5 (2013).
    """
    levels: dict[Key, float] = {}
    stopped: float | None = None
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        adjusted = stopped if stopped is not None else nominal(level / (len(p_values) - rank))
        levels[key] = adjusted
        if p_values[key] > adjusted:
            stopped = adjusted
    return levels


def screening(p_values: Mapping[Key, float], level: float) -> float:
    """Return the one level at which all are tested: of those rejected, about ``level`` are false.

    *Definition*: R ``level`` / m, where R is the largest number of tests with p <= R ``level`` / m, at least
    1; intervals at this level miss their truth in at most a share of ``level`` of those selected.
    *Assumptions*: tests are independent or positively dependent.
    *Source*: Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57
    (1995); Y. Benjamini and D. Yekutieli, "False discovery rate-adjusted multiple confidence intervals", J.
    Am. Statist. Ass. 100 (2005).
    """
    total = max(1, len(p_values))
    ranked = enumerate(sorted(p_values.values()), start=1)
    rejected = max((rank for rank, p in ranked if p <= rank * level / total), default=1)
    return rejected * level / total

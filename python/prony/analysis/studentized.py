"""The studentised range: how far apart the largest and the smallest of several equal means may lie.

>>> round(pair_level(0.05, 3, 8.0), 4)
0.0212
"""

from functools import cache, lru_cache
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Nodes of each quadrature: both integrands are smooth, and 96 give eight digits at levels down to 1e-5.
_NODES = 96
# Beyond eight standard deviations a normal variable has a probability of 1e-15.
_FARTHEST = 8.0
# The least and the most share of the spread's distribution that counts.
_TAIL = 1e-10
_MOST_STEPS = 40
# So near to the level that no printed digit changes.
_NEAR = 1e-10
# A chance below that of any level; by rounding it may seem to be none.
_LEAST = 1e-300


@lru_cache(maxsize=4096)
def pair_level(level: float, subjects: int, freedom: float) -> float:
    """Return the two-sided level at which Student's t test of each pair holds ``level`` over all pairs.

    *Definition*: P(|T| >= q / sqrt(2)), where q is the upper ``level`` point of the studentised range of
    ``subjects`` means and an independent estimate of their variance with ``freedom`` degrees of freedom.
    *Assumptions*: means are independent and equally precise; with unequal precision it is conservative.
    *Source*: J. W. Tukey, "The problem of multiple comparisons" (1953); A. J. Hayter, "A proof of the
    conjecture that the Tukey-Kramer multiple comparisons procedure is conservative", Ann. Statist. 12 (1984).
    """
    if subjects <= 2:
        return level
    from scipy.special import stdtr, stdtrit

    # Between one test and a share for each pair (Bonferroni) lies the level of the pairs together.
    low = float(stdtrit(freedom, 1 - level / 2))
    high = float(stdtrit(freedom, 1 - level / (subjects * (subjects - 1))))
    return float(2 * stdtr(freedom, -_statistic(level, subjects, freedom, low, high)))


def _statistic(level: float, subjects: int, freedom: float, low: float, high: float) -> float:
    """Return where the chance of ``_beyond`` is ``level``, between ``low`` and ``high``.

    *Definition*: by secants between two statistics around it, through logarithms of the chance, which are
    nearly lines; an end that stays is halved (Illinois). Each step is a quadrature, and each study has
    degrees of freedom of its own.
    *Source*: M. Dowell and P. Jarratt, "A modified regula falsi method", BIT 11 (1971).
    """

    def off_at(statistic: float) -> float:
        return log(max(_LEAST, _beyond(statistic, subjects, freedom)) / level)

    above, below = off_at(low), off_at(high)
    if not above > 0 > below:
        return low if above <= 0 else high
    at, last = high, 0.0
    for _ in range(_MOST_STEPS):
        at = (low * below - high * above) / (below - above)
        off = off_at(at)
        if abs(off) < _NEAR:
            break
        stays = 0.5 if off * last > 0 else 1.0
        if off > 0:
            low, above, below = at, off, stays * below
        else:
            high, below, above = at, off, stays * above
        last = off
    return at


@cache
def _quadrature() -> "tuple[Floats, Floats]":
    """Return nodes and weights on -1 to 1."""
    from numpy.polynomial.legendre import leggauss

    return leggauss(_NODES)


def _beyond(statistic: float, subjects: int, freedom: float) -> float:
    """Return the chance that some pair's t exceeds ``statistic``.

    *Definition*: the mean over the spread s (s^2 a mean square with ``freedom`` degrees of freedom) of
    1 - k times the integral of phi(z) (Phi(z) - Phi(z - q s))^(k - 1), with q = sqrt(2) ``statistic``.
    """
    import numpy as np
    from scipy.special import chdtri, gammaln, ndtr

    nodes, weights = _quadrature()
    z = _FARTHEST * nodes
    density = _FARTHEST * weights * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    low, high = (float(np.sqrt(chdtri(freedom, share) / freedom)) for share in (1 - _TAIL, _TAIL))
    s = low + (high - low) * (nodes + 1) / 2
    half = freedom / 2
    spread = np.exp(np.log(2) + half * np.log(half) - gammaln(half) + (freedom - 1) * np.log(s) - half * s**2)
    within = ndtr(z)[None, :] - ndtr(z[None, :] - 2**0.5 * statistic * s[:, None])
    inside = subjects * (within ** (subjects - 1) @ density)
    return float(1 - (high - low) / 2 * (weights @ (spread * inside)))

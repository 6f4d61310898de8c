"""Several looks at the figures without more false findings: the level of each look.

The error allowed over all looks is spent in parts, the smallest at the first look.

>>> [round(bound, 4) for bound in boundaries(0.05, (1 / 3, 2 / 3, 1.0))]
[3.7103, 2.5114, 1.993]
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from prony.figures.statistics.effects import quadrature

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Nodes of the quadrature: the integrand is a smooth normal density, and 128 give 12 digits.
_NODES = 128
# No boundary lies beyond: the normal tail there is below the smallest double.
_FARTHEST = 38.0
_HALVINGS = 90


@dataclass(frozen=True, slots=True)
class Look:
    """Where a study stands that looks several times: ``blocks`` of the ``planned`` looks.

    ``planned`` ends with the maximum. A look at another number of blocks than planned is allowed, if the
    figures were not the reason for it.
    """

    blocks: int
    planned: tuple[int, ...]

    @property
    def fractions(self) -> tuple[float, ...]:
        """The shares of the maximum at the looks up to now, this one last."""
        most = self.planned[-1]
        before = tuple(look / most for look in self.planned if look < min(self.blocks, most))
        return (*before, min(self.blocks / most, 1.0))

    def nominal(self, level: float) -> float:
        """Return the two-sided level at which a test is made now, when ``level`` is that of all looks.

        *Assumptions*: a t-test's p-value is held against the level that is exact for a normal statistic with
        known variance (the significance level approach).
        *Source*: C. Jennison and B. W. Turnbull, "Group Sequential Methods" (2000), section 3.8.
        """
        from scipy.special import ndtr

        return float(2 * ndtr(-boundaries(level, self.fractions)[-1]))


def spent(level: float, fraction: float) -> float:
    """Return how much of the two-sided ``level`` is spent when ``fraction`` of all blocks are measured.

    *Definition*: 4 - 4 Phi(z / sqrt(t)), z the quantile at 1 - level / 4: on each side the function 2 - 2 Phi
    that spends like O'Brien and Fleming's bounds.
    *Source*: K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
    70 (1983).
    """
    from scipy.special import ndtr, ndtri

    return float(4 * ndtr(ndtri(level / 4) / fraction**0.5))


@lru_cache(maxsize=1024)
def boundaries(level: float, fractions: tuple[float, ...]) -> tuple[float, ...]:
    """Return the bounds of abs(Z) at the looks, where Z is the test's statistic on all data up to the look.

    *Definition*: with S_k = Z_k sqrt(t_k), a Wiener process at the times t_k, bound c_k solves P(abs(Z_j) <
    c_j for j < k, abs(Z_k) >= c_k) = spent(t_k) - spent(t_(k-1)).
    *Source*: P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated significance tests on accumulating data",
    J. R. Statist. Soc. A 132 (1969): the recursion over looks, here by Gauss-Legendre quadrature.
    """
    import numpy as np

    nodes, weights = quadrature(_NODES)
    at, mass = np.zeros(1), np.ones(1)  # where S is, and with which probability: at the start, in 0
    bounds: list[float] = []
    before, used = 0.0, 0.0
    for fraction in fractions:
        step = (fraction - before) ** 0.5
        bound = _bound(at, mass, step, spent(level, fraction) - used)
        bounds.append(bound / fraction**0.5)
        distance = (bound * nodes[:, None] - at[None, :]) / step
        density = np.exp(-0.5 * distance**2) / (step * (2 * np.pi) ** 0.5)
        at, mass = bound * nodes, bound * weights * (density @ mass)
        before, used = fraction, spent(level, fraction)
    return tuple(bounds)


def _bound(at: "Floats", mass: "Floats", step: float, allowed: float) -> float:
    """Return b for which abs(S) >= b after the step with probability ``allowed``, by bisection."""
    from scipy.special import ndtr

    low, high = 0.0, _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = float(mass @ (ndtr((at - middle) / step) + ndtr((-at - middle) / step)))
        low, high = (middle, high) if beyond > allowed else (low, middle)
    return (low + high) / 2

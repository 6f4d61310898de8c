"""How blocks resemble the block before, and how much wider intervals must be for it.

Where a machine's state lasts for longer than a block, and does not treat all subjects alike, ten blocks say
less than ten. Few blocks cannot show whether it does: then what is usual counts. Must not know reports.

>>> found = dependence([[b % 8 // 4, 0.0] for b in range(24)])
>>> round(found.correlation, 1), round(found.widening, 1)
(0.6, 2.1)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# What is thought of the correlation before the blocks are seen: its mean and its standard deviation. With
# them the procedure holds 5 % where each subject has a correlation of 0.2 (`bench/verdicts`).
_USUAL = 0.2
_DOUBT = 0.5
# Shapes of noise that are no normal one, and correlations that are estimated too low by chance: so much wider
# up to so many degrees of freedom, then less and less.
_SHAPES = 0.08
_FEW_FREEDOMS = 60
_MOST = 0.9


@dataclass(frozen=True, slots=True)
class Dependence:
    """The ``correlation`` of neighbouring blocks, as far as they show it, and the factor of standard errors
    (``widening``) that stands for it and for the shapes that so few ``blocks`` cannot show.
    """

    correlation: float
    widening: float
    blocks: int


def dependence(table: "ArrayLike") -> Dependence:
    """Return how the blocks of one study depend on each other, from its logarithms: blocks x subjects, NaN
    where one is missing.

    *Definition*: as ``widenings``.
    """
    import numpy as np

    rows = np.asarray(table, dtype=float)
    correlation, widening = _both(rows)
    return Dependence(float(correlation), float(widening), len(rows))


def widenings(table: "ArrayLike") -> "Floats":
    """Return the factors of standard errors: of studies x blocks x subjects, one for each study.

    *Definition*: with r the sum of products of neighbouring blocks' residuals, about the means of blocks (of
    two subjects and more) and of subjects, over the sum of their squares, n blocks and f = (n - 1) max(1, k -
    1) degrees of freedom, the estimate e = (r + 1 / n) / (1 - 3 / n) has a variance of about v = 1 / (f (1 -
    3 / n)^2). The correlation is 0.2 + (e - 0.2) 0.25 / (0.25 + v), from 0 to 0.9: what blocks do not show is
    taken as usual. The factor is sqrt(V / (1 - (V - 1) / (n - 1))), with V = 1 + 2 sum of (1 - j / n)
    correlation^j over j < n, times 1 + 0.08 min(1, 60 / f).
    *Assumptions*: blocks were measured one after the other. What a block does to all subjects alike cancels
    and is no dependence.
    *Source*: M. G. Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41 (1954), for
    the bias; B. Efron and C. Morris, "Stein's estimation rule and its competitors", J. Am. Statist. Ass. 68
    (1973), for drawing an estimate to what is usual. The numbers are by simulation.
    """
    return _both(table)[1]


def _both(table: "ArrayLike") -> "tuple[Floats, Floats]":
    import numpy as np

    rows = np.asarray(table, dtype=float)
    blocks, subjects = max(1, rows.shape[-2]), rows.shape[-1]
    freedom = max(1, (blocks - 1) * max(1, subjects - 1))
    weight = _DOUBT**2 / (_DOUBT**2 + 1 / (freedom * _leaning(blocks) ** 2))
    shown = shown_by(rows)
    estimate = np.where(np.isnan(shown), _USUAL, shown)
    correlation = np.clip(_USUAL + weight * (estimate - _USUAL), 0.0, _MOST)
    return correlation, of_mean(correlation, blocks) * (1 + _SHAPES * min(1.0, _FEW_FREEDOMS / freedom))


def shown_by(table: "ArrayLike") -> "Floats":
    """Return the correlation of neighbouring blocks that studies show by themselves, without the leaning of
    few blocks to negative ones; NaN where nothing varies.

    *Definition*: e of ``widenings``.
    """
    import numpy as np

    rows = np.asarray(table, dtype=float)
    blocks = max(1, rows.shape[-2])
    found: Floats = (_shown(_residuals(rows)) + 1 / blocks) / _leaning(blocks)
    return found


def _leaning(blocks: int) -> float:
    return max(0.1, 1 - 3 / blocks)


def _residuals(rows: "Floats") -> "Floats":
    """Return what is left without the means of blocks and subjects; 0 where a value is missing."""
    import numpy as np

    known = ~np.isnan(rows)
    left = np.where(known, rows, 0.0)
    turns = 3 if not known.all() else 1  # the means of incomplete rows and columns depend on each other
    for _ in range(turns):
        for axis in (-1, -2) if rows.shape[-1] > 1 else (-2,):
            count = np.maximum(known.sum(axis=axis, keepdims=True), 1)
            left = np.where(known, left - left.sum(axis=axis, keepdims=True) / count, 0.0)
    return left


def _shown(left: "Floats") -> "Floats":
    """Return the correlation of neighbouring blocks; NaN where nothing varies."""
    import numpy as np

    products = (left[..., 1:, :] * left[..., :-1, :]).sum(axis=(-2, -1))
    squares = (left**2).sum(axis=(-2, -1))
    return np.where(squares > 0, products / np.where(squares > 0, squares, 1.0), np.nan)


def of_mean(correlation: "ArrayLike", blocks: int) -> "Floats":
    """Return the standard error of a mean of dependent blocks, over what their spread alone would give, by
    the correlation of neighbouring ones.

    *Source*: G. V. Bayley and J. M. Hammersley, "The 'effective' number of independent observations in an
    autocorrelated time series", J. R. Statist. Soc. Suppl. 8 (1946).
    """
    import numpy as np

    steps = np.arange(1, blocks)
    more = 1 + 2 * ((1 - steps / blocks) * np.asarray(correlation)[..., None] ** steps).sum(axis=-1)
    factor: Floats = np.sqrt(more / np.maximum(0.1, 1 - (more - 1) / max(1, blocks - 1)))
    return factor

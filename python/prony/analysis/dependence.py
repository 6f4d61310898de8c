"""Whether blocks resemble the block before, and how much wider intervals must then be.

Comparisons take blocks as independent. Where a machine's state lasts for longer than a block, and does not
treat all trials of a block alike, they are not: ten blocks then say less than ten. Must not know reports.

>>> logs = {"a": {b: b % 8 // 4 for b in range(24)}, "b": {b: 0.0 for b in range(24)}}
>>> found = dependence([logs])
>>> found.shown, round(found.correlation, 1)
(True, 0.7)
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

from prony.analysis.compare import LEAST_BLOCKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["CONSIDERABLE", "Dependence", "dependence"]

CONSIDERABLE = 0.5
"""The correlation that the test's power is given for."""

# Of studies of so many equal subjects whose blocks have this correlation, the share that separates some,
# although the test is heeded (with three calibrations a block): by blocks and subjects. From
# `bench/verdicts dependence`.
_COSTS = {
    5: {2: 0.156, 3: 0.191, 4: 0.230, 8: 0.284, 16: 0.237},
    7: {2: 0.141, 3: 0.160, 4: 0.171, 8: 0.135, 16: 0.084},
    10: {2: 0.114, 3: 0.117, 4: 0.112, 8: 0.091, 16: 0.055},
    15: {2: 0.081, 3: 0.076, 4: 0.077, 8: 0.065, 16: 0.055},
    20: {2: 0.067, 3: 0.065, 4: 0.070, 8: 0.066, 16: 0.050},
}
# What no shape of noise exceeds: a larger share is to be said.
_BEARABLE = 0.075

_LEVEL = 0.05
_PERMUTATIONS = 1999
_SIMULATED = 1000
_MOST_CORRELATION = 0.9
# Series of few blocks lean to negative correlations: by (1 + 3 r) / n.
_LEANING = 3


@dataclass(frozen=True, slots=True)
class Dependence:
    """How trials of ``blocks`` blocks resemble those of the block before.

    ``correlation``: of neighbouring blocks, within ``series`` series; ``p_value``: of the claim that there is
    none, one-sided; ``power``: the share of studies in which this test shows a correlation of 0.5.
    ``widening``: the factor of standard errors, 1 where none is shown. ``cost``: up to what share of studies
    separates equal subjects where the correlation is 0.5, although this test is heeded; null up to 7.5 %.
    """

    correlation: float
    p_value: float
    power: float
    widening: float
    blocks: int
    series: int
    cost: float | None

    @property
    def shown(self) -> bool:
        """Whether a dependence is shown."""
        return self.p_value <= _LEVEL


def dependence(tables: Sequence[Mapping[str, Mapping[int, float]]]) -> Dependence | None:
    """Return how blocks depend on each other, from logarithms by series and block in tables whose series ran
    in the same blocks; null where no table has two series in five blocks.

    *Definition*: r is the sum of products of neighbouring blocks' residuals, about the means of series and
    blocks, over the sum of their squares; each table weighs as much as it has degrees of freedom. The p-value
    is the share of permutations of the blocks with at least this r. The correlation is (r + 1 / n) / (1 - 3 /
    n). Where the p-value is at most 5 %, standard errors are multiplied by sqrt(V / (1 - (V - 1) / (n - 1))),
    with V = 1 + 2 sum of (1 - j / n) correlation^j over j < n.
    *Assumptions*: under independence, blocks are exchangeable: a trend of single series is a dependence, one
    that a block shares is none. Blocks were measured one after the other.
    *Source*: A. Wald and J. Wolfowitz, "An exact test for randomness in the non-parametric case based on
    serial correlation", Ann. Math. Statist. 14 (1943); M. G. Kendall, "Note on bias in the estimation of
    autocorrelation", Biometrika 41 (1954).
    """
    import numpy as np

    usable = [_residuals(table) for table in tables]
    known = [rows for rows in usable if rows is not None]
    if not known:
        return None
    blocks = max(len(rows) for rows in known)
    known = [rows for rows in known if len(rows) == blocks]
    together = sum((_weighted(rows) for rows in known), np.zeros((blocks, blocks)))
    together /= np.trace(together)
    random = np.random.default_rng(blocks)
    orders = np.argsort(random.random((_PERMUTATIONS, blocks)), axis=1)
    chance = together[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    observed = float(np.diag(together, 1).sum())
    p_value = (1 + int((chance >= observed - 1e-12).sum())) / (1 + _PERMUTATIONS)
    shrunk = 1 - _LEANING / blocks
    correlation = min(_MOST_CORRELATION, (observed + 1 / blocks) / shrunk)
    return Dependence(
        correlation=correlation,
        p_value=p_value,
        power=_power([rows.shape[1] for rows in known], blocks, float(np.quantile(chance, 1 - _LEVEL))),
        widening=_widening(correlation, blocks) if p_value <= _LEVEL else 1.0,
        blocks=blocks,
        series=sum(rows.shape[1] for rows in known),
        cost=_cost([rows.shape[1] for rows in known], blocks),
    )


def _residuals(table: Mapping[str, Mapping[int, float]]) -> "Floats | None":
    """Return blocks x series without the means of both; 0 where a value is missing. Null below two series or
    five blocks, and where nothing is left.
    """
    import numpy as np

    blocks = sorted({block for values in table.values() for block in values})
    rows = np.array([[values.get(block, np.nan) for values in table.values()] for block in blocks])
    if len(blocks) < LEAST_BLOCKS or rows.shape[1] < 2:
        return None
    rows = rows[(~np.isnan(rows)).sum(axis=1) >= 2]
    if len(rows) < LEAST_BLOCKS or np.isnan(rows).all(axis=0).any():
        return None
    for _ in range(3):  # the means of incomplete rows and columns depend on each other
        rows = rows - np.nanmean(rows, axis=1, keepdims=True)
        rows = rows - np.nanmean(rows, axis=0)
    left: Floats = np.nan_to_num(rows)
    return left if (left**2).sum() > 0 else None


def _weighted(rows: "Floats") -> "Floats":
    """Return the products of blocks, scaled so that their trace is the table's degrees of freedom."""
    products = rows @ rows.T
    scaled: Floats = products / products.trace() * (rows.shape[1] - 1)
    return scaled


def _power(series: Sequence[int], blocks: int, bound: float) -> float:
    """Return how often r exceeds its bound where each of so many series, in tables, has a correlation of 0.5:
    of simulated normal studies.
    """
    import numpy as np

    random, products = np.random.default_rng(blocks), np.zeros(_SIMULATED)
    for many in series:
        rows = random.normal(size=(_SIMULATED, blocks, many))
        for block in range(1, blocks):
            fresh = rows[:, block] * sqrt(1 - CONSIDERABLE**2)
            rows[:, block] = CONSIDERABLE * rows[:, block - 1] + fresh
        rows -= rows.mean(axis=2, keepdims=True)
        rows -= rows.mean(axis=1, keepdims=True)
        own = (rows[:, 1:] * rows[:, :-1]).sum(axis=(1, 2)) / (rows**2).sum(axis=(1, 2))
        products += own * (many - 1)
    return float((products / sum(many - 1 for many in series) >= bound).mean())


def _widening(correlation: float, blocks: int) -> float:
    """Return the standard error of a mean of dependent blocks, over what their spread alone would give."""
    inflation = 1 + 2 * fsum((1 - j / blocks) * correlation**j for j in range(1, blocks))
    return sqrt(max(1.0, inflation / max(0.1, 1 - (inflation - 1) / (blocks - 1))))


def _cost(series: Sequence[int], blocks: int) -> float | None:
    """Return the largest cost of tables of so many series: by the next fewer blocks that were simulated, and
    the next fewer and next more subjects.
    """
    rows = _COSTS[max(known for known in _COSTS if known <= blocks)]
    near = [_near(rows, many) for many in series]
    most = max(rows[many] for both in near for many in both)
    return most if most > _BEARABLE else None


def _near(known: Collection[int], many: int) -> tuple[int, int]:
    """Return the next fewer and the next more of those known, which end with the most."""
    fewer, more = [one for one in known if one <= many], [one for one in known if one >= many]
    return max(fewer), min(more, default=max(fewer))

"""The whole procedure on trials whose names were drawn again: how often it separates what is equal.

Within a block, trials of one subject under several names may swap their names. Each such study is judged as
any other, with its leader chosen from it, all pairs and the margin. Must not know archives.

>>> found = rerandomised({"A": dict.fromkeys(range(5), 0.0), "B": dict.fromkeys(range(5), 0.0)}, Terms())
>>> found.false, found.studies
(0, 2000)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt

from prony.analysis.answer import ranking
from prony.analysis.compare import LEAST_BLOCKS, Terms
from prony.analysis.effects import ratio_of
from prony.analysis.failure_rates import clopper_pearson
from prony.metrics import Better
from prony.model.shown import shown

STUDIES = 2000
"""The studies that are drawn: three standard errors of a share of 5 % are then 1.5 %."""

_LEVEL = 0.05
_UNLIKELY = 0.01

Logs = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One study of equal subjects: whether some pair was ``called`` higher or lower, whether some interval
    ``missed`` the truth, which is 0, and the p-value of its first pair.
    """

    called: bool
    missed: bool
    p_value: float


@dataclass(frozen=True, slots=True)
class Rerandomised:
    """What came of ``studies`` studies of ``names`` names in ``blocks`` blocks."""

    names: int
    blocks: int
    studies: int
    false: int
    """Some pair was called higher or lower."""
    missed: int
    """Some interval excluded 0, which is the truth."""
    too_small: float
    """The most by which the share of p-values below any p, of one pair a study, exceeds p."""

    @shown
    def rate(self) -> float:
        """The share of studies with a false verdict."""
        return self.false / self.studies

    @shown
    def coverage(self) -> float:
        """The share of studies of which all intervals contain the truth."""
        return 1 - self.missed / self.studies

    @shown
    def most(self) -> float:
        """The largest share that is at most 5 % but for the draws: three standard errors more."""
        return _LEVEL + 3 * sqrt(_LEVEL * (1 - _LEVEL) / self.studies)

    @shown
    def bound(self) -> float:
        """The most that the share may be on these data (one-sided 95 %, exact)."""
        return clopper_pearson(self.false, self.studies, 2 * _LEVEL)[1]

    @shown
    def holds(self) -> bool:
        """Whether false verdicts are at most so frequent."""
        return self.rate <= self.most

    @shown
    def chance(self) -> float:
        """How far p-values that are uniform exceed so, once in 100 times.

        *Definition*: sqrt(ln(100) / (2 n)).
        *Source*: N. V. Smirnov, "Table for estimating the goodness of fit of empirical distributions", Ann.
        Math. Statist. 19 (1948), for one side.
        """
        return sqrt(-log(_UNLIKELY) / (2 * self.studies))


def is_false(logs: Logs, terms: Terms) -> bool:
    """Return whether the study of equal subjects calls any of them higher or lower than another."""
    return judged_equals(logs, terms).called


def judged_equals(logs: Logs, terms: Terms) -> Judged:
    """Return what the procedure of reports makes of equals, from logarithms by name and block."""
    means = {name: ratio_of(fsum(values.values()) / len(values)) for name, values in logs.items()}
    found = ranking(logs, means, Better.HIGHER, terms)
    missed = any((one.low or 0.0) > 0 or (one.high or 0.0) < 0 for one in found.pairs.values())
    first, second, *_ = logs
    p_value = found.pairs[first, second].p_value
    return Judged(bool(found.separated), missed, 1.0 if p_value is None else p_value)


def rerandomised(
    logs: Logs,
    terms: Terms,
    procedure: Callable[[Logs, Terms], Judged] = judged_equals,
    studies: int = STUDIES,
) -> Rerandomised | None:
    """Return what ``procedure`` makes of ``studies`` studies, from logarithms by name and block; null below
    two names or five blocks that all names have.

    *Definition*: in each block, the names are drawn again for its values, all orders equally likely.
    *Assumptions*: the names are of one subject, so that its trials of a block are exchangeable. The rate is
    that of the procedure on these data: of few names and blocks there are few different studies.
    *Source*: E. J. G. Pitman, "Significance tests which may be applied to samples from any populations", J.
    R. Statist. Soc. Suppl. 4 (1937).
    """
    table = common_blocks(logs)
    if len(table) < 2 or len(next(iter(table.values()))) < LEAST_BLOCKS:
        return None
    every = [procedure(study, terms) for study in _drawn(table, studies)]
    return Rerandomised(
        names=len(table),
        blocks=len(next(iter(table.values()))),
        studies=studies,
        false=sum(one.called for one in every),
        missed=sum(one.missed for one in every),
        too_small=_excess([one.p_value for one in every]),
    )


def common_blocks(logs: Logs) -> dict[str, dict[int, float]]:
    """Return the values of those blocks that all names have, in order."""
    shared = sorted(set.intersection(*(set(values) for values in logs.values()))) if logs else []
    return {name: {block: values[block] for block in shared} for name, values in logs.items()}


def as_equals(logs: Logs) -> dict[str, dict[int, float]]:
    """Return the values of different subjects as if all were one: without their means over common blocks.

    *Definition*: deviations from each subject's mean, times sqrt(n / (n - 1)) so that they vary as before.
    """
    return {name: _centred(values) for name, values in common_blocks(logs).items()}


def _centred(values: Mapping[int, float]) -> dict[int, float]:
    count = max(1, len(values))
    mean, wider = fsum(values.values()) / count, sqrt(count / max(1, count - 1))
    return {block: (value - mean) * wider for block, value in values.items()}


def _drawn(table: Logs, studies: int) -> Iterator[dict[str, dict[int, float]]]:
    import numpy as np

    names, blocks = list(table), list(next(iter(table.values())))
    values = np.array([[table[name][block] for name in names] for block in blocks])
    random = np.random.default_rng(values.shape)
    for _ in range(studies):
        columns = random.permuted(values, axis=1).T.tolist()
        yield {name: dict(zip(blocks, one, strict=True)) for name, one in zip(names, columns, strict=True)}


def _excess(p_values: Sequence[float]) -> float:
    """Return the most by which the share of values at or below p exceeds p."""
    count = len(p_values)
    return max(0.0, *(k / count - value for k, value in enumerate(sorted(p_values), 1)))

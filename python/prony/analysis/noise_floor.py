"""The differences that a machine shows where there are none: the same subject under two names.

The A/A differences test the whole procedure (how many verdicts are false) and the machine (how large a
difference by chance may be). Must not know where floors are kept.

>>> floors = (Floor("ok_per_s", "closed", 5, 0.03), Floor("ok_per_s", "closed", 10, 0.01))
>>> floor_of(floors, "ok_per_s", "closed", 7), floor_of(floors, "ok_per_s", "open", 7)
(0.03, 0.0)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt
from random import Random

from prony.analysis.compare import LEAST_BLOCKS, Verdict, compare
from prony.analysis.failure_rates import clopper_pearson
from prony.model import Cell, OpenLoop

__all__ = [
    "BLOCKS",
    "LEAST_STUDIES",
    "Floor",
    "SelfTest",
    "centred",
    "floor_of",
    "floors_by_metric",
    "load_class",
    "self_test",
]

BLOCKS = (5, 10, 15, 20)
"""The numbers of blocks that floors are measured for: the least, and those of the looks."""

LEAST_STUDIES = 59
"""With fewer studies, even none with a false verdict does not show that at most 5 % are: 0.95^59 < 5 %."""

# At least 200 give a 95th percentile with ten beyond it.
_PERMUTATIONS = 400
_LEAST_EACH = 40
_LEVEL = 0.05
_FALSE = (Verdict.HIGHER, Verdict.LOWER)


@dataclass(frozen=True, slots=True)
class Floor:
    """An A/A effect that 95 of 100 do not exceed: of a metric, a class of load and a number of blocks."""

    metric: str
    load: str
    blocks: int
    effect: float


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What A/A differences of one metric show, read in studies of ``blocks`` blocks.

    ``false`` of ``studies`` real ones said faster or slower; ``bound`` is the most that their share may be
    (one-sided 95 %, exact), null without a study. ``permuted_false`` of ``permuted`` studies made by swapping
    the two labels within blocks said so.
    """

    metric: str
    load: str
    blocks: int
    false: int
    studies: int
    bound: float | None
    permuted_false: int
    permuted: int
    floor: float

    @property
    def shown(self) -> bool | None:
        """Whether at most 5 % are shown to be false, or more; null where neither is, as with few studies."""
        if self.studies < LEAST_STUDIES:
            return None
        low, high = clopper_pearson(self.false, self.studies, 2 * _LEVEL)
        return True if high <= _LEVEL else False if low > _LEVEL else None

    @property
    def as_floor(self) -> Floor:
        """The noise floor that it measured."""
        return Floor(self.metric, self.load, self.blocks, self.floor)


def load_class(cell: Cell) -> str:
    """Return the class of load that floors go by: `open` or `closed`."""
    return "open" if isinstance(cell.workload.loop, OpenLoop) else "closed"


def floor_of(floors: Iterable[Floor], metric: str, load: str, blocks: int) -> float:
    """Return the floor for a comparison of so many blocks; 0 where none was measured.

    *Definition*: that of the largest number of blocks that is not more: fewer blocks vary more, so that it
    is conservative.
    """
    fit = [one for one in floors if (one.metric, one.load) == (metric, load) and one.blocks <= blocks]
    return max(fit, key=lambda one: one.blocks).effect if fit else 0.0


def floors_by_metric(floors: Iterable[Floor], cell: Cell, blocks: int) -> dict[str, float]:
    """Return the floors of comparisons of so many blocks under the load of ``cell``, by metric."""
    known, load = tuple(floors), load_class(cell)
    return {one.metric: floor_of(known, one.metric, load, blocks) for one in known if one.load == load}


def centred(log_ratios: Sequence[float]) -> list[float]:
    """Return the differences of two subjects without their effect, as if both were one.

    *Definition*: the deviations from the mean, times sqrt(n / (n - 1)) so that they vary as before.
    """
    count = len(log_ratios)
    mean = fsum(log_ratios) / count
    return [(value - mean) * sqrt(count / max(1, count - 1)) for value in log_ratios]


def self_test(
    metric: str, load: str, pairs: Sequence[Sequence[float]], blocks: int, *, is_real: bool = True
) -> SelfTest | None:
    """Return what the A/A log ratios of one pair or several show in studies of ``blocks`` blocks; null when
    none has so many.

    ``is_real``: each pair is one subject under two names, and consecutive blocks make studies. Otherwise only
    permutations are read.

    *Definition*: the floor is the 95th percentile of the absolute effect over studies of ``blocks`` blocks
    drawn without replacement, the labels swapped within each at random.
    *Assumptions*: blocks differ only by chance; permutations of few blocks say little about rare effects.
    *Source*: E. J. G. Pitman, "Significance tests which may be applied to samples from any populations", J.
    R. Statist. Soc. Suppl. 4 (1937), for permutations.
    """
    long = [one for one in pairs if len(one) >= blocks >= LEAST_BLOCKS]
    if not long:
        return None
    studies = [compare(one) for pair in long for one in _studies(pair, blocks)] if is_real else []
    permuted = [compare(one) for pair in long for one in _permuted(pair, blocks, len(long))]
    effects = sorted(abs(one.effect or 0.0) for one in permuted)
    false = sum(one.verdict in _FALSE for one in studies)
    return SelfTest(
        metric=metric,
        load=load,
        blocks=blocks,
        false=false,
        studies=len(studies),
        bound=clopper_pearson(false, len(studies), 2 * _LEVEL)[1] if studies else None,
        permuted_false=sum(one.verdict in _FALSE for one in permuted),
        permuted=len(permuted),
        floor=effects[ceil((1 - _LEVEL) * len(effects)) - 1],
    )


def _studies(log_ratios: Sequence[float], blocks: int) -> Iterable[Sequence[float]]:
    return (log_ratios[k : k + blocks] for k in range(0, len(log_ratios) - blocks + 1, blocks))


def _permuted(log_ratios: Sequence[float], blocks: int, pairs: int) -> Iterable[list[float]]:
    random = Random(f"labels:{blocks}:{len(log_ratios)}")  # noqa: S311 - an experiment's order, not a secret
    for _ in range(max(_LEAST_EACH, _PERMUTATIONS // pairs)):
        yield [random.choice((-1, 1)) * value for value in random.sample(list(log_ratios), blocks)]

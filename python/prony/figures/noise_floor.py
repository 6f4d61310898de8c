"""The differences that a machine shows where there are none: the same subject under two names.

The A/A differences test the whole procedure (how many verdicts are false) and the machine (how large a
difference by chance may be).

How often the whole procedure separates what is equal is found on trials whose names were drawn again.

Within a block, trials of one subject under several names may swap their names. Each such study is judged as
any other, with its leader chosen from it, all pairs and the margin.

>>> found = rerandomised({"A": dict.fromkeys(range(5), 0.0), "B": dict.fromkeys(range(5), 0.0)}, Terms())
>>> found.false, found.studies
(0, 2000)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil, fsum, log, sqrt
from random import Random

from prony.core.metrics import Better
from prony.figures.account import is_speed
from prony.figures.answer import block_logs, criterion, ranking
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, Verdict, compare
from prony.figures.statistics.effects import ratio_of
from prony.figures.statistics.failure_rates import clopper_pearson
from prony.figures.summary import CellSummary
from prony.figures.versus import METRICS_COMPARED
from prony.model import shown as of_json
from prony.model.facts import Floor
from prony.model.json_codec import INLINE, at
from prony.model.plan import Cell
from prony.model.shown import shown
from prony.model.workload import OpenLoop

STUDIES = 2000
"""The studies that are drawn: three standard errors of a share of 5 % are then 1.5 %."""

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
    """Return what ``procedure`` makes of ``studies`` studies, from logarithms by name and block; None below
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


# --- the differences of one machine -----------------------------------------------------------------------


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
class SelfTest:
    """What A/A differences of one metric show, read in studies of ``blocks`` blocks.

    ``false`` of ``studies`` real ones called some name higher or lower; ``bound`` is the most that their
    share may be (one-sided 95 %, exact), null without a study. ``permuted_false`` of ``permuted`` studies of
    two names, made by swapping the labels within blocks, said so.
    """

    metric: str
    load: str = field(metadata=at("loop"))
    blocks: int
    false: int
    studies: int
    bound: float | None
    permuted_false: int
    permuted: int
    floor: float = field(metadata=at("noise_floor"))

    @of_json.shown
    def shown(self) -> bool | None:
        """Whether at most 5 % are shown to be false, or more; None where neither is, as with few studies."""
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


def floors_by_metric(floors: Iterable[Floor], cell: Cell, blocks: int) -> dict[str, float]:
    """Return the floors of comparisons of so many blocks under the load of ``cell``, by metric.

    *Definition*: that of the largest number of blocks that is not more: fewer blocks vary more, so that it
    is conservative.
    """
    load = load_class(cell)
    fit = (one for one in floors if one.load == load and one.blocks <= blocks)
    return {one.metric: one.effect for one in sorted(fit, key=lambda one: one.blocks)}


def self_test(
    metric: str, load: str, tables: Sequence[Logs], blocks: int, *, is_real: bool = True
) -> SelfTest | None:
    """Return what studies of ``blocks`` blocks show of one subject under several names, or of several such
    subjects, from logarithms by name and block; None when none has so many.

    ``is_real``: consecutive blocks make studies of all names. Otherwise only permutations are read.

    *Definition*: a real study is false when the whole procedure calls any of its names higher or lower. The
    floor is the 95th percentile of the absolute effect of two names over studies of ``blocks`` blocks drawn
    without replacement, the labels swapped within each at random.
    *Assumptions*: blocks differ only by chance; permutations of few blocks say little about rare effects.
    *Source*: E. J. G. Pitman, "Significance tests which may be applied to samples from any populations", J.
    R. Statist. Soc. Suppl. 4 (1937), for permutations.
    """
    whole = [common_blocks(one) for one in tables]
    real = [is_false(one, Terms()) for table in whole for one in _studies(table, blocks)] if is_real else []
    pairs = [two for table in whole for two in _differences(table) if len(two) >= blocks >= LEAST_BLOCKS]
    if not pairs:
        return None
    permuted = [compare(one) for pair in pairs for one in _permuted(pair, blocks, len(pairs))]
    effects = sorted(abs(one.effect or 0.0) for one in permuted)
    return SelfTest(
        metric=metric,
        load=load,
        blocks=blocks,
        false=sum(real),
        studies=len(real),
        bound=clopper_pearson(sum(real), len(real), 2 * _LEVEL)[1] if real else None,
        permuted_false=sum(one.verdict in _FALSE for one in permuted),
        permuted=len(permuted),
        floor=effects[ceil((1 - _LEVEL) * len(effects)) - 1],
    )


def _differences(table: Logs) -> Iterable[list[float]]:
    """Return the log ratios of each two names."""
    for first, second in combinations(table.values(), 2):
        yield [second[block] - value for block, value in first.items()]


def _studies(table: Logs, blocks: int) -> Iterable[Logs]:
    """Return the studies of so many consecutive blocks."""
    every = sorted(next(iter(table.values()), {}))
    for k in range(0, len(every) - blocks + 1 if len(table) >= 2 else 0, blocks):
        yield {
            name: {block: values[block] for block in every[k : k + blocks]} for name, values in table.items()
        }


def _permuted(log_ratios: Sequence[float], blocks: int, pairs: int) -> Iterable[list[float]]:
    random = Random(f"labels:{blocks}:{len(log_ratios)}")  # noqa: S311 - an experiment's order, not a secret
    for _ in range(max(_LEAST_EACH, _PERMUTATIONS // pairs)):
        yield [random.choice((-1, 1)) * value for value in random.sample(list(log_ratios), blocks)]


# --- an archive as a test of the procedure itself ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Namesakes:
    """Cells under one load that are one subject under several names (``is_real``), or are made so."""

    cells: tuple[CellSummary, ...]
    is_real: bool

    def logs(self, metric: str) -> Mapping[str, Mapping[int, float]]:
        """Return the logarithms of a metric by name and block; of speed, without what does not qualify.

        *Definition*: of subjects that differ, the effects are taken out.
        """
        fit = [one for one in self.cells if one.unqualified is None or not is_speed(metric)]
        known = {cell.name: block_logs(cell, metric) for cell in fit}
        found = {name: values for name, values in known.items() if values}
        return found if self.is_real else as_equals(found)


@dataclass(frozen=True, slots=True)
class Procedure:
    """What the whole procedure makes of ``subject`` under a class of ``load``, in the metric that decides."""

    subject: str
    load: str = field(metadata=at("loop"))
    metric: str
    found: Rerandomised = field(metadata=INLINE)


def namesakes(groups: Iterable[Sequence[CellSummary]]) -> tuple[Namesakes, ...]:
    """Return the cells of each load that are one subject but for its name, if there are any; else all cells
    of each load.
    """
    every = [list(cells) for cells in groups]
    real = [Namesakes(alike, True) for cells in every for alike in _alike(cells)]
    return tuple(real or [Namesakes(tuple(cells), False) for cells in every if len(cells) >= 2])


def _alike(cells: Iterable[CellSummary]) -> list[tuple[CellSummary, ...]]:
    """Return the cells that differ in nothing but their subject's name."""
    found: list[list[CellSummary]] = []
    for cell in cells:
        same = next((one for one in found if _unnamed(one[0]) == _unnamed(cell)), None)
        if same is None:
            found.append([cell])
        else:
            same.append(cell)
    return [tuple(one) for one in found if len(one) >= 2]


def _unnamed(cell: CellSummary) -> object:
    return replace(cell.cell.subject, name=""), cell.cell.workload


def self_tests(found: Sequence[Namesakes]) -> tuple[SelfTest, ...]:
    """Return the self-test for each metric, class of load and number of blocks that there are enough of."""
    loads = dict.fromkeys(load_class(one.cells[0].cell) for one in found)
    is_real = all(one.is_real for one in found)
    tests = (
        self_test(metric, load, _tables(found, metric, load), blocks, is_real=is_real)
        for load in loads
        for metric in METRICS_COMPARED
        for blocks in BLOCKS
    )
    return tuple(one for one in tests if one is not None)


def _tables(found: Iterable[Namesakes], metric: str, load: str) -> list[Mapping[str, Mapping[int, float]]]:
    return [one.logs(metric) for one in found if load_class(one.cells[0].cell) == load]


def procedures(found: Iterable[Namesakes], terms: Terms) -> tuple[Procedure, ...]:
    """Return what the whole procedure makes of names that are drawn again within blocks, for each load."""
    return tuple(one for sakes in found if (one := _procedure(sakes, terms)) is not None)


def _procedure(sakes: Namesakes, terms: Terms) -> Procedure | None:
    metric = criterion([cell for cell in sakes.cells if cell.unqualified is None])
    drawn = rerandomised(sakes.logs(metric), terms) if metric else None
    if metric is None or drawn is None:
        return None
    first, *others = (cell.name for cell in sakes.cells)
    subject = first if sakes.is_real else f"{first} and {len(others)} more"
    return Procedure(subject, load_class(sakes.cells[0].cell), metric, drawn)

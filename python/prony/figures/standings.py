"""Who is best in each measure, and which are not separated: groups with letters, never bare ranks.

>>> [measure.title for measure in MEASURES]
['throughput', 'latency', 'mean latency', 'errors', 'CPU/request', 'memory']

Which of several subjects are not separated: letters instead of ranks.

>>> letters(["a", "b", "c"], {("a", "c")})
{'a': 'a', 'b': 'ab', 'c': 'b'}
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from string import ascii_lowercase

from prony.figures.answer import ranked_cells
from prony.figures.by_session import is_failed, more_often, share_of
from prony.figures.missing import Missing
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, few_sessions
from prony.figures.statistics.failure_rates import separated
from prony.figures.summary import CellSummary, TrialFigures, lost_trials
from prony.model.shown import shown
from prony.model.workload import ClosedLoop


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
    """Return the p-value of the claim that all subjects are equal, from complete blocks; None below two
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


_LATENCY, _MEAN = "latency", "mean latency"
_ERRORS = ("error_ratio",)
_NOT_SEPARATED = "not separated by the number of trials that lose requests"
_BY_LOAD = "each server has its own load in a closed loop: compare latency in an open loop"


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of quality: the first of ``metrics`` that all candidates have."""

    title: str
    metrics: tuple[str, ...]


MEASURES = (
    Measure("throughput", ("ok_per_s",)),
    Measure(
        _LATENCY,
        tuple(f"{kind}_ok_{p}" for kind in ("response", "service") for p in ("p99", "p95", "p50")),
    ),
    Measure(_MEAN, ("response_ok_mean", "service_ok_mean")),
    Measure("errors", _ERRORS),
    Measure("CPU/request", ("cpu_ns_per_request",)),
    Measure("memory", ("pss_end", "rss_peak")),
)
"""In the order of reports. CPU is that of one request: a smaller total may only mean less work done."""


GENERATOR_MEASURES = (
    Measure("requests per CPU", ("generator_ok_per_cpu_s",)),
    Measure("throughput", ("ok_per_s",)),
    Measure("errors", _ERRORS),
    Measure("memory", ("generator_rss_mean",)),
)
"""For generators: the load that they make, and its cost."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One measure under one load."""

    measure: str
    metric: str | None
    """The first that all who may be compared have; null where nobody has one."""
    ranked: tuple[str, ...] = ()
    """Names, best first by the geometric mean over blocks."""
    best: tuple[str, ...] = ()
    """The first and those not separated from it; empty where nobody can be."""
    letters: Mapping[str, str] | None = None
    """Two that share one are not separated; empty while there are too few `blocks`."""
    blocks: int = 0
    """The fewest of a comparison; of several sessions, these."""
    reason: str | None = None
    """Why there is no metric, or nobody is best."""
    left_out: tuple[str, ...] = ()
    """Those with too few blocks to be compared."""
    omnibus_p: float | None = None
    """Of Friedman's test that all are equal, which the pairs do not depend on; null for two."""

    @shown
    def decided(self) -> bool:
        """Whether there are enough blocks for verdicts."""
        return self.letters is not None


def standings(
    cells: Sequence[CellSummary], terms: Terms, measures: Sequence[Measure] = MEASURES
) -> tuple[Standing, ...]:
    """Return who is best in each measure among cells that may be compared."""
    return tuple(standing(cells, measure, terms) for measure in measures)


def standing(cells: Sequence[CellSummary], measure: Measure, terms: Terms) -> Standing:
    """Return who is best in one measure.

    *Definition*: of the cells that qualify, the order, those not separated from the first, and the letters
    are those of one ``answer.ranking``, over all pairs. With errors all cells are read, and trials are
    counted that lose more than 0.1 % of their requests, or what was allowed: a ratio to zero says nothing,
    single failures are no difference, and requests of one trial fail together. Letters are those of
    ``failure_rates.separated``. Best are the first and those not separated from it, unless one of them loses
    too many requests over all trials: then nobody is. Cells with too few blocks are left out where others
    have enough. Nobody is best of one, and no latency is best in a closed loop, where each server makes its
    own load.
    *Assumptions*: an omnibus test does not stand before the pairs: their procedure needs none.
    """
    fit = [cell for cell in cells if _counts(cell, measure)]
    enough = [cell for cell in fit if len(cell.units) >= LEAST_BLOCKS]
    left_out = tuple(cell.name for cell in fit if enough and cell not in enough)
    fit = enough or fit
    if reason := _unanswerable(fit, measure):
        return Standing(measure.title, None, reason=reason)
    metric = next((m for m in measure.metrics if all(cell.known(m) for cell in fit)), None)
    if metric is None:
        return Standing(measure.title, None, reason="not all subjects have it")
    found = _by_errors(fit, terms) if metric == "error_ratio" else _by_pairs(fit, metric, terms)
    return replace(found, measure=measure.title, left_out=left_out)


def _unanswerable(fit: Sequence[CellSummary], measure: Measure) -> str | None:
    if not fit:
        return "no subject qualifies"
    closed = isinstance(fit[0].cell.workload.loop, ClosedLoop)
    return _BY_LOAD if closed and measure.title in (_LATENCY, _MEAN) else None


def _counts(cell: CellSummary, measure: Measure) -> bool:
    return bool(cell.ok) and (cell.unqualified is None or measure.metrics == _ERRORS)


def _by_pairs(cells: Sequence[CellSummary], metric: str, terms: Terms) -> Standing:
    found = ranked_cells(cells, metric, terms)
    if len(cells) == 1:
        return Standing("", metric, found.names, blocks=found.blocks, reason="nobody else to compare with")
    if not found.decided and terms.by_session:
        return Standing("", metric, found.names, blocks=found.blocks, reason=few_sessions(found.blocks))
    if not found.decided:
        return Standing("", metric, found.names, found.names[:1], None, found.blocks)
    best = (found.names[0], *found.ties)
    marks = letters(found.names, found.separated)
    omnibus = friedman(_complete_blocks(cells, metric))
    return Standing("", metric, found.names, best, marks, found.blocks, omnibus_p=omnibus)


def _complete_blocks(cells: Sequence[CellSummary], metric: str) -> list[dict[str, float]]:
    """Return the metric by name for each block in which all have it."""
    blocks = sorted(set.intersection(*(set(cell.units) for cell in cells)))
    rows = [{cell.name: cell.units[block][metric] for cell in cells} for block in blocks]
    known = [{name: one for name, one in row.items() if not isinstance(one, Missing)} for row in rows]
    return [row for row in known if len(row) == len(cells)]


def _by_errors(cells: Sequence[CellSummary], terms: Terms) -> Standing:
    ranked = sorted(cells, key=lambda cell: (share_of(cell, _loses(cell)), cell.error_ratio or 0.0))
    names = tuple(cell.name for cell in ranked)
    clean = tuple(cell.name for cell in ranked if _is_clean(cell))
    blocks = min(len(cell.units) for cell in ranked)
    if not clean:
        reason = f"all lose more than {100 * ranked[0].allowed_errors:g} %"
        return Standing("", "error_ratio", names, blocks=blocks, reason=reason)
    if len(cells) == 1:
        return Standing("", "error_ratio", names, blocks=blocks, reason="nobody else to compare with")
    if blocks < LEAST_BLOCKS and terms.by_session:
        return Standing("", "error_ratio", names, blocks=blocks, reason=few_sessions(blocks))
    if blocks < LEAST_BLOCKS:
        return Standing("", "error_ratio", names, clean, None, blocks)
    pairs = combinations(ranked, 2)
    different = separated(
        {(one.name, other.name): more_often(one, other, _loses(one)) for one, other in pairs}
    )
    best = tuple(name for name in names if (names[0], name) not in different)
    marks = letters(names, different)
    if not set(best) <= set(clean):
        return Standing("", "error_ratio", names, (), marks, blocks, _NOT_SEPARATED)
    return Standing("", "error_ratio", names, best, marks, blocks)


def _loses(cell: CellSummary) -> Callable[[TrialFigures], bool]:
    """Return what says whether the server failed in a trial, or lost more requests than are allowed."""
    return lambda trial: is_failed(trial) or (trial.account.error_ratio or 0.0) > cell.allowed_errors


def _is_clean(cell: CellSummary) -> bool:
    """Return whether a cell loses no more requests, and its server no more trials, than it may."""
    failed = sum(map(is_failed, cell.others))
    lost = lost_trials(cell.ok, cell.ok + failed)
    return lost is None and cell.error_ratio is not None and cell.error_ratio <= cell.allowed_errors

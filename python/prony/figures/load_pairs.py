"""Two loads in alternating windows, as two cells whose blocks are pairs: what the machine does cancels out.

*Definition*: as `versus.compared_loads`, with standard errors that allow for pairs which resemble their
neighbours.
*Assumptions*: a pair is short against what drifts, and its order is random; windows are long enough for the
percentile. Both sides had the same load. The state of one side may last for several windows; if it lasts as
long as the whole comparison, no interval shows it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan

from prony.figures.answer import deciding_metrics, log_ratios
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms
from prony.figures.statistics.effects import of_mean, shown_by
from prony.figures.summary import CellSummary, TrialFigures, figures, summarise_cell
from prony.figures.versus import (
    METRICS_COMPARED,
    Match,
    Resemblance,
    SideTotals,
    Versus,
    Windows,
    compared_loads,
    of_blocks,
    then_of,
)
from prony.model.address import Address
from prony.model.limit import Limited
from prony.model.plan import Cell
from prony.model.recording import Recording
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Ok, Trial, TrialRole
from prony.model.workload import EngineChoice, Workload

# Found by simulation: with it, intervals miss in at most 5 % of comparisons at a correlation of 0.5, and in
# at most 10 % at 0.8, of 5 pairs and of 100. It stands for what few pairs cannot show.
_MARGIN = 4.0
_MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class LoadPair:
    """One window of each side; ``second_began``: the second side had the first window."""

    first: Recording
    second: Recording
    second_began: bool


@dataclass(frozen=True, slots=True)
class LoadSide:
    """One of two loads: as typed, and in full."""

    url: str
    workload: Workload
    address: Address


@dataclass(frozen=True, slots=True)
class PairedLoads:
    """Two loads to compare, in ``pairs`` of windows whose order the seed sets."""

    first: LoadSide
    second: LoadSide
    pairs: int
    seed: int


def compare_load_pairs(asked: PairedLoads, pairs: Sequence[LoadPair], dropped: int = 0) -> Versus:
    """Return how the second side compares with the first. ``dropped``: as of `versus.Windows`.

    *Definition*: made for the metric that decides; in an open loop for the first of p99, p95 and p50 that
    five pairs have: whether they have it depends on their length alone.
    """
    both = (asked.first, [pair.first for pair in pairs]), (asked.second, [pair.second for pair in pairs])
    cells = (
        cell_of(side.url, side.workload, [run_figures(one, pair) for pair, one in enumerate(windows)])
        for side, windows in both
    )
    match = Match(*cells)
    sides = match.first, match.second
    effect_of = partial(of_blocks, widening=_widening)
    loads = compared_loads([match], True, Terms(), tuple(_made_for(match)), effect_of)
    alike = {name: resemblance(log_ratios(*sides, name)) for name in METRICS_COMPARED}
    known = {name: one for name, one in alike.items() if one is not None}
    return Versus(
        first=asked.first.url,
        second=asked.second.url,
        paired=True,
        loads=loads,
        sides=tuple(totals(side.counted) for side in sides),
        windows=Windows(asked.seed, asked.pairs, len(pairs), dropped, known),
        then=then_of(loads, f"the same command with `--pairs {2 * asked.pairs}`"),
    )


def run_figures(recording: Recording, block: int) -> TrialFigures:
    """Return the figures of a load that is no trial of a study. ``block``: its number, or its pair's."""
    return figures(Trial(0, block, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, recording=recording))


def cell_of(name: str, load: Workload, runs: Iterable[TrialFigures], threads: int = 1) -> CellSummary:
    """Return the loads of a side as the trials of a cell."""
    subject = Subject(name, "", App("", "", "", {}), Interface.NONE)
    return summarise_cell(Cell(0, subject, load, EngineChoice(threads=threads)), runs)


def _made_for(match: Match) -> Iterator[str]:
    for name in deciding_metrics(match.first.cell):
        yield name
        if len(log_ratios(match.first, match.second, name)) >= LEAST_BLOCKS:
            return


def totals(trials: Sequence[TrialFigures], files: Iterable[str] = ()) -> SideTotals:
    """Return all windows, or saved loads, of one side together."""
    return SideTotals(
        requests=sum(one.account.requests for one in trials),
        errors=sum(one.account.lost for one in trials),
        limited=sum(one.limited is not None and one.limited.level is not Limited.NO for one in trials),
        files=tuple(files),
    )


def _widening(ratios: Sequence[float]) -> float | None:
    alike = resemblance(ratios)
    return None if alike is None else alike.widening


def resemblance(ratios: Sequence[float]) -> Resemblance | None:
    """Return how log ratios resemble their neighbours; None below five.

    *Definition*: the correlation is that of `dependence.shown_by`, and the most that is allowed for 4 / n
    more, between 0 and 0.9. The widening is `dependence.of_mean` of that. Windows of one server process
    resemble each other more than blocks of fresh ones, so it is allowed for, and not drawn to what is usual.
    *Assumptions*: the correlation fades as that of a first-order autoregression.
    """
    count = len(ratios)
    if count < LEAST_BLOCKS:
        return None
    shown = float(shown_by([[one] for one in ratios]))
    correlation = 0.0 if isnan(shown) else min(max(shown, -1.0), 1.0)
    most = min(max(correlation + _MARGIN / count, 0.0), _MOST_CORRELATION)
    return Resemblance(correlation, most, float(of_mean(most, count)))

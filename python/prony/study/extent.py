"""How much there is to do in a study, and about how long it takes: for people, before it begins.

>>> rough_length(45.0), rough_length(5400.0)
('45 s', '90 min')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.units import seconds

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model.plan import Cell, Plan

# How long a trial takes besides its load: start, contract, drain, stop. Only for the estimate before the
# first trial is over.
TRIAL_OVERHEAD_S = 2.5
# Nobody can know in advance how long a fixed number of requests takes: the pace of a page with a database.
COUNTED_PER_S = 100.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Trials and seconds, at least and at most, with ``pauses_s`` between sessions. ``bound_s``: a budget of
    time, null without.
    """

    trials: tuple[int, int]
    seconds: tuple[float, float]
    bound_s: float | None = None
    pauses_s: float = 0.0

    @property
    def each_s(self) -> float:
        """The mean length of a trial."""
        return (self.seconds[1] - self.pauses_s) / max(1, self.trials[1])

    def __str__(self) -> str:
        """Return it in words, such as ``24 trials, about 3 min``."""
        if self.trials[0] == self.trials[1]:
            return f"{number_of(self.trials[0], 'trial')}, about {rough_length(self.seconds[1])}"
        bound = f", within about {rough_length(self.bound_s)}" if self.bound_s is not None else ""
        return (
            f"{self.trials[0]} to {self.trials[1]} trials, "
            f"about {rough_length(self.seconds[0])} to {rough_length(self.seconds[1])}{bound}"
        )


def extent_of(plan: "Plan", catalog: "Catalog", cross_checks: "Sequence[Cell]" = ()) -> Extent:
    """Return how much a plan is, with calibration, cross-checks and the first looks of a pilot, but without
    repeats of invalid trials and without what no generator here can measure. ``catalog``: it has the plan's
    servers.
    """
    from prony.study.confirming import close_looks
    from prony.study.generators import to_leave_out
    from prony.study.pilot import piloted

    if plan.design.find_rate:
        return _search_extent(plan)
    cells = [*plan.cells, *cross_checks]
    absent = to_leave_out(cells, catalog)
    block = [cell for cell in cells if cell.id not in absent] + _calibrations(plan, len(cells))
    precision = plan.design.precision
    least = precision.looks[0] if precision else plan.blocks
    length_s = sum(map(_length_s, block)) + _rounds_s(plan)
    pauses_s = (plan.design.sessions - 1) * seconds(plan.design.pause_ns)
    closely = close_looks(plan)
    looks = len(piloted(plan)) + len(closely)
    before_s = pilot_seconds(plan)[0] + pauses_s + sum(map(_length_s, closely))
    return Extent(
        (looks + least * len(block), looks + plan.blocks * len(block)),
        (least * length_s + before_s, plan.blocks * length_s + before_s),
        seconds(precision.budget_ns) if precision and precision.budget_ns is not None else None,
        pauses_s,
    )


def pilot_seconds(plan: "Plan") -> tuple[float, float]:
    """Return how long a plan's pilot takes where all are warm at the first look, and where none ever is."""
    from prony.study.pilot import looks_at, piloted

    looks = [looks_at(cell, plan.design.pilot_ns or 0) for cell in piloted(plan)]
    first = sum(one[0] + TRIAL_OVERHEAD_S for one in looks)
    return first, sum(sum(one) + len(one) * TRIAL_OVERHEAD_S for one in looks)


def _search_extent(plan: "Plan") -> Extent:
    from prony.analysis.find_rate import MOST_TESTS
    from prony.study.rates import TYPICAL_STEPS

    calibrations = _calibrations(plan, len(plan.cells))
    cells, all_blocks = len(plan.cells), (plan.blocks, MOST_TESTS * plan.blocks)
    each_s, around_s = sum(map(_length_s, plan.cells)), sum(map(_length_s, calibrations))
    trials = [cells * (TYPICAL_STEPS + blocks) + blocks * len(calibrations) for blocks in all_blocks]
    lengths_s = [each_s * (TYPICAL_STEPS + blocks) + around_s * blocks for blocks in all_blocks]
    return Extent((trials[0], trials[1]), (lengths_s[0], lengths_s[1]))


def _calibrations(plan: "Plan", cells: int) -> "list[Cell]":
    return [] if plan.calibration is None else [plan.calibration] * (3 if cells > 1 else 2)


def _rounds_s(plan: "Plan") -> float:
    """Return how long the rounds of a block take."""
    if not plan.design.rounds:
        return 0.0
    from prony.study.rounds import SLICE_S, lead_in_ns

    starts_s = sum(seconds(lead_in_ns(cell)) + TRIAL_OVERHEAD_S / 2 for cell in plan.cells)
    return starts_s + plan.design.rounds * len(plan.cells) * SLICE_S


def _length_s(cell: "Cell") -> float:
    from prony.model.workload import DurationStop

    stop = cell.workload.stop
    window_s = seconds(stop.duration_ns) if isinstance(stop, DurationStop) else stop.requests / COUNTED_PER_S
    return seconds(cell.workload.warmup_ns) + window_s + TRIAL_OVERHEAD_S


def number_of(number: int, what: str) -> str:
    """Return a number of things, such as ``1 trial`` or ``3 trials``."""
    return f"{number} {what}{'s' if number != 1 else ''}"


def rough_length(seconds: float) -> str:
    """Return a length of time, roughly."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

"""How much there is to do in a study, and about how long it takes: for people, before it begins.

>>> rough_length(45.0), rough_length(5400.0)
('45 s', '90 min')
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, hypot, inf, log1p, sqrt

from prony.catalog.schema.loader import Catalog
from prony.core.units import SECOND_NS, seconds
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.statistics.effects import student_t
from prony.figures.statistics.power import foreseen
from prony.model.plan import Cell, Plan
from prony.model.workload import DurationStop, Workload
from prony.study.rounds import SLICE_S, are_closed, lead_in_ns, rounds_decide, unfit_cells, why_in_turns
from prony.study.task import TRIAL_OVERHEAD_S

# Nobody can know in advance how long a fixed number of requests takes: the pace of a page with a database.
COUNTED_PER_S = 100.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Trials and seconds, at least and at most, with ``pauses_s`` between sessions, and ``rounds_s`` of short
    windows. ``bound_s``: a budget of time, null without.
    """

    trials: tuple[int, int]
    seconds: tuple[float, float]
    bound_s: float | None = None
    pauses_s: float = 0.0
    rounds_s: float = 0.0

    @property
    def each_s(self) -> float:
        """The mean length of a trial."""
        return (self.seconds[1] - self.pauses_s - self.rounds_s) / max(1, self.trials[1])

    def __str__(self) -> str:
        """Return it in words, such as ``24 trials, about 3 min``."""
        if self.trials[0] == self.trials[1]:
            return f"{number_of(self.trials[0], 'trial')}, about {rough_length(self.seconds[1])}"
        bound = f", within about {rough_length(self.bound_s)}" if self.bound_s is not None else ""
        return (
            f"{self.trials[0]} to {self.trials[1]} trials, "
            f"about {rough_length(self.seconds[0])} to {rough_length(self.seconds[1])}{bound}"
        )


def extent_of(plan: Plan, catalog: Catalog, cross_checks: Sequence[Cell] = ()) -> Extent:
    """Return how much a plan is, with calibration, cross-checks and the first looks of a pilot, but without
    repeats of invalid trials and without what no generator here can measure. ``catalog``: it has the plan's
    servers.
    """
    from prony.study.admission import to_leave_out
    from prony.study.blocks import close_looks
    from prony.study.pilot import piloted

    if plan.design.find_rate:
        return _search_extent(plan)
    cells = [*plan.cells, *cross_checks]
    absent = to_leave_out(cells, catalog)
    block = [cell for cell in cells if cell.id not in absent] + _calibrations(plan, len(cells))
    precision = plan.design.precision
    least = precision.looks[0] if precision else plan.whole_blocks
    length_s, in_rounds_s = sum(map(_length_s, block)), rounds_seconds(plan)
    pauses_s = (plan.design.sessions - 1) * seconds(plan.design.pause_ns)
    closely = close_looks(plan)
    looks = len(piloted(plan)) + len(closely)
    before_s = pilot_seconds(plan)[0] + pauses_s + sum(map(_length_s, closely))
    # Blocks of rounds alone come only after all the whole ones.
    alone_s = (plan.blocks - plan.whole_blocks) * in_rounds_s
    least_s, most_s = (
        whole * (length_s + in_rounds_s) + before_s + alone_s for whole in (least, plan.whole_blocks)
    )
    return Extent(
        (looks + least * len(block), looks + plan.whole_blocks * len(block)),
        (least_s, most_s),
        seconds(precision.budget_ns) if precision and precision.budget_ns is not None else None,
        pauses_s,
        plan.blocks * in_rounds_s,
    )


def pilot_seconds(plan: Plan) -> tuple[float, float]:
    """Return how long a plan's pilot takes where all are warm at the first look, and where none ever is."""
    from prony.study.pilot import looks_at, piloted

    looks = [looks_at(cell, plan.design.pilot_ns or 0) for cell in piloted(plan)]
    first = sum(one[0] + TRIAL_OVERHEAD_S for one in looks)
    return first, sum(sum(one) + len(one) * TRIAL_OVERHEAD_S for one in looks)


def _search_extent(plan: Plan) -> Extent:
    from prony.figures.find_rate import MOST_TESTS
    from prony.study.rates import TYPICAL_STEPS

    calibrations = _calibrations(plan, len(plan.cells))
    cells, all_blocks = len(plan.cells), (plan.blocks, MOST_TESTS * plan.blocks)
    each_s, around_s = sum(map(_length_s, plan.cells)), sum(map(_length_s, calibrations))
    trials = [cells * (TYPICAL_STEPS + blocks) + blocks * len(calibrations) for blocks in all_blocks]
    lengths_s = [each_s * (TYPICAL_STEPS + blocks) + around_s * blocks for blocks in all_blocks]
    return Extent((trials[0], trials[1]), (lengths_s[0], lengths_s[1]))


def _calibrations(plan: Plan, cells: int) -> list[Cell]:
    return [] if plan.calibration is None else [plan.calibration] * (3 if cells > 1 else 2)


def rounds_seconds(plan: Plan) -> float:
    """Return how long the rounds of a block take."""
    if not plan.design.rounds:
        return 0.0

    unfit = unfit_cells(plan)
    cells = [cell for cell in plan.cells if cell.id not in unfit]
    starts_s = sum(seconds(lead_in_ns(cell)) + TRIAL_OVERHEAD_S / 2 for cell in cells)
    return starts_s + plan.design.rounds * len(cells) * SLICE_S


def _length_s(cell: Cell) -> float:
    stop = cell.workload.stop
    window_s = seconds(stop.duration_ns) if isinstance(stop, DurationStop) else stop.requests / COUNTED_PER_S
    return seconds(cell.workload.warmup_ns) + window_s + TRIAL_OVERHEAD_S


def number_of(number: int, what: str) -> str:
    """Return a number of things, such as ``1 trial`` or ``3 trials``."""
    return f"{number} {what}{'s' if number != 1 else ''}"


def rough_length(seconds: float) -> str:
    """Return a length of time, roughly."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


# --- how many blocks, and how many rounds in each, a length of time has room for --------------------------


# What is usual: the standard deviation of a logarithm from start to start of a server, and of one window.
# That falls from two seconds on, to about a half at ten seconds.
_START, _WINDOW = 0.02, 0.078
# Of four recorded servers two: who foresees by the usual alone promises too much.
_LARGE_START = 0.06
_FLAT_S, _FALL = 2.0, 0.385
_ROUNDS = (3, 5, 8, 12, 20, 30)
_NINE_IN_TEN = 1.28
_MUCH_MORE = 2 / 3
# Blocks of rounds alone say nothing of latencies and memory, which have no interval over three: by so many
# whole blocks, how much smaller a difference must be that they show.
_BY_ROUNDS = {LEAST_BLOCKS: 0.95, 3: 0.85}
_MORE = 1.05
MOST_BLOCKS = 1000


# Of a study for which there is little time.
_SHORT_WINDOW_NS, _SHORT_WARMUP_NS = 3 * SECOND_NS, SECOND_NS
SHORT_TRIALS = (
    "trials are short, after a warm-up of 1 s at most and without a pilot: a server that compiles while it "
    "runs may not be warm by then, and needs more time (--for 15m), or --warmup and --duration"
)


def with_short_trials(plan: Plan) -> Plan:
    """Return the plan with trials of three seconds at most, after one of warm-up; no pilot, no
    calibration. A note says what that may hide.
    """
    cells = tuple(replace(cell, workload=_short(cell.workload)) for cell in plan.cells)
    is_short = cells != plan.cells or plan.design.pilot_ns is not None
    notes = (*plan.notes, SHORT_TRIALS) if is_short else plan.notes
    design = replace(plan.design, pilot_ns=None)
    return replace(plan, cells=cells, calibration=None, design=design, notes=notes)


def _short(load: Workload) -> Workload:
    if not isinstance(load.stop, DurationStop) or load.loop.stages:
        return load
    stop = DurationStop(min(load.stop.duration_ns, _SHORT_WINDOW_NS))
    return replace(load, stop=stop, warmup_ns=min(load.warmup_ns, _SHORT_WARMUP_NS))


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a plan may be made. ``may_shorten``: shorter trials, where that shows much more; ``in_turns``: no
    rounds.
    """

    may_shorten: bool = False
    in_turns: bool = False


_ANY = Wishes()


def fitting(
    plan: Plan, catalog: Catalog, length_s: float, cross_checks: Sequence[Cell] = (), wishes: Wishes = _ANY
) -> Plan | None:
    """Return the plan with the blocks and rounds that see the smallest difference within a time; None where
    there is no time for five blocks.

    *Definition*: the difference is (t + 1.28) s sqrt(2 / n), with t of n blocks, and s of a trial that has so
    many rounds, by what is usual. Much more: two thirds of it. Blocks of rounds alone, after the fifth, show
    more where it is 5 % smaller, after the third where it is 15 % smaller.
    """

    def best(of: Plan) -> tuple[float, Plan | None]:
        designs = _designs(of, wishes)
        fits = (one for design in designs if (one := _filled(design, catalog, length_s, cross_checks)))
        return _least((_sight(one), one) for one in fits)

    return _chosen(best(plan), best(with_short_trials(plan)) if wishes.may_shorten else (inf, None))


def _least(found: Iterable[tuple[float, Plan]]) -> tuple[float, Plan | None]:
    """Return the plan with the smallest number; one with blocks of rounds alone where that is worth it."""

    def weighed(each: tuple[float, Plan]) -> float:
        number, plan = each
        return number if plan.whole_blocks == plan.blocks else number / _BY_ROUNDS[plan.whole_blocks]

    return min(found, key=weighed, default=(inf, None))


def _chosen(planned: tuple[float, Plan | None], short: tuple[float, Plan | None]) -> Plan | None:
    """Return the plan with short trials where it is much better: where its number is smaller."""
    return short[1] if short[0] < _MUCH_MORE * planned[0] else planned[1]


def seeing(
    plan: Plan, catalog: Catalog, difference: float, cross_checks: Sequence[Cell] = (), wishes: Wishes = _ANY
) -> Plan | None:
    """Return the plan with the blocks and rounds that find a difference soonest; None where the most blocks
    do not.

    *Definition*: as `power.foreseen` finds it, by what is usual.
    """
    beyond = log1p(difference) - log1p(plan.design.margin)

    def soonest(of: Plan) -> tuple[float, Plan | None]:
        every = [replace(one, blocks=_about(one, beyond)) for one in _designs(of, wishes)]
        designs = [one for one in every if one.blocks < MOST_BLOCKS] or every
        return _least((extent_of(one, catalog, cross_checks).seconds[1], one) for one in designs)

    found = _chosen(soonest(plan), soonest(with_short_trials(plan)) if wishes.may_shorten else (inf, None))
    subjects = max(2, len({cell.subject.name for cell in plan.cells if cell.is_under(plan.design.primary)}))
    while found is not None and found.blocks <= MOST_BLOCKS:
        if foreseen(usual_noise(found), subjects, found.blocks, plan.design.margin)[0] <= difference:
            return found
        found = replace(found, blocks=ceil(_MORE * found.blocks))
    return None


def _about(plan: Plan, beyond: float) -> int:
    """Return about how many blocks see a difference of logarithms."""
    numbers = range(LEAST_BLOCKS, MOST_BLOCKS)
    return next((one for one in numbers if _sight(replace(plan, blocks=one)) <= beyond), MOST_BLOCKS)


def _designs(plan: Plan, wishes: Wishes) -> Iterator[Plan]:
    yield replace(plan, design=replace(plan.design, rounds=0))
    for rounds in () if wishes.in_turns or why_in_turns(plan) else _ROUNDS:
        for whole in (None, *_BY_ROUNDS) if rounds_decide(plan) else (None,):
            yield replace(plan, design=replace(plan.design, rounds=rounds, whole_blocks=whole))


def _filled(plan: Plan, catalog: Catalog, length_s: float, cross_checks: Sequence[Cell]) -> Plan | None:
    """Return a plan with as many blocks as there is time for; None for fewer than five."""
    least, more = (
        extent_of(replace(plan, blocks=blocks), catalog, cross_checks).seconds[1]
        for blocks in (LEAST_BLOCKS, LEAST_BLOCKS + 1)
    )
    blocks = LEAST_BLOCKS + int((length_s - least) // (more - least))
    return replace(plan, blocks=blocks) if blocks >= LEAST_BLOCKS else None


def _sight(plan: Plan) -> float:
    freedom = plan.blocks - 1
    return (student_t(0.975, freedom) + _NINE_IN_TEN) * usual_noise(plan) * sqrt(2 / plan.blocks)


def usual_noise(plan: Plan) -> float:
    """Return the usual standard deviation of a trial's logarithm."""
    return hypot(*usual_levels(plan))


def usual_levels(plan: Plan) -> tuple[float, float]:
    """Return what is usual from start to start, and within a start: by a trial's rounds, else by its own
    window.
    """
    stop = plan.cells[0].workload.stop
    window_s = seconds(stop.duration_ns) if isinstance(stop, DurationStop) else _FLAT_S
    own = _WINDOW * min(1.0, (_FLAT_S / window_s) ** _FALL)
    return _START, _WINDOW / sqrt(plan.design.rounds) if shows_by_rounds(plan) else own


def levels_to_expect(plan: Plan, of_machine: float = 0.0) -> tuple[tuple[float, float], ...]:
    """Return what is usual from start to start and within a start, and what it is of servers whose starts
    differ more. ``of_machine``: the noise of a window there, if known: rounds have as many times the usual.
    """
    between, within = usual_levels(plan)
    in_turns = replace(plan, design=replace(plan.design, rounds=0))
    within *= max(1.0, of_machine / usual_noise(in_turns))
    return (between, within), (_LARGE_START, within)


def shows_by_rounds(plan: Plan) -> bool:
    """Return whether rounds give the figure that decides: not in an open loop, where latencies do."""
    return plan.design.rounds > 0 and are_closed(plan)

"""How many blocks, and how many rounds in each, a length of time has room for: those that see most."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, inf, sqrt

from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.effects import student_t
from prony.catalog.schema.loader import Catalog
from prony.model.plan import Cell, Plan
from prony.model.workload import DurationStop, Workload
from prony.study.extent import extent_of
from prony.study.rounds import why_in_turns
from prony.units import SECOND_NS, seconds

# What is usual: the standard deviation of a logarithm from start to start of a server, and of one window.
# That falls from two seconds on, to about a half at ten seconds.
_START, _WINDOW = 0.02, 0.078
_FLAT_S, _FALL = 2.0, 0.385
_ROUNDS = (3, 5, 8, 12, 20, 30)
_NINE_IN_TEN = 1.28
_MUCH_MORE = 2 / 3


# Of a study for which there is little time.
_SHORT_WINDOW_NS, _SHORT_WARMUP_NS = 3 * SECOND_NS, SECOND_NS


def with_short_trials(plan: Plan) -> Plan:
    """Return the plan with trials of three seconds at most, after one of warm-up; no pilot, no
    calibration.
    """
    cells = tuple(replace(cell, workload=_short(cell.workload)) for cell in plan.cells)
    return replace(plan, cells=cells, calibration=None, design=replace(plan.design, pilot_ns=None))


def _short(load: Workload) -> Workload:
    if not isinstance(load.stop, DurationStop) or load.loop.stages:
        return load
    stop = DurationStop(min(load.stop.duration_ns, _SHORT_WINDOW_NS))
    return replace(load, stop=stop, warmup_ns=min(load.warmup_ns, _SHORT_WARMUP_NS))


def fitting(
    plan: Plan,
    catalog: Catalog,
    length_s: float,
    cross_checks: Sequence[Cell] = (),
    *,
    may_shorten: bool = False,
) -> Plan | None:
    """Return the plan with the blocks and rounds that see the smallest difference within a time; null where
    there is no time for five blocks. ``may_shorten``: with shorter trials, where that shows much more.

    *Definition*: the difference is (t + 1.28) s sqrt(2 / n), with t of n blocks, and s of a trial that has so
    many rounds, by what is usual. Much more: two thirds of it.
    """

    def best(of: Plan) -> tuple[float, Plan | None]:
        fits = (one for design in _designs(of) if (one := _filled(design, catalog, length_s, cross_checks)))
        return min(((_sight(one), one) for one in fits), key=lambda each: each[0], default=(inf, None))

    planned, short = best(plan), best(with_short_trials(plan)) if may_shorten else (inf, None)
    return short[1] if short[0] < _MUCH_MORE * planned[0] else planned[1]


def _designs(plan: Plan) -> Iterator[Plan]:
    for rounds in (0, *(_ROUNDS if why_in_turns(plan) is None else ())):
        yield replace(plan, design=replace(plan.design, rounds=rounds))


def _filled(plan: Plan, catalog: Catalog, length_s: float, cross_checks: Sequence[Cell]) -> Plan | None:
    """Return a plan with as many blocks as there is time for; null for fewer than five."""
    first, second = (
        extent_of(replace(plan, blocks=blocks), catalog, cross_checks).seconds[1] for blocks in (1, 2)
    )
    blocks = int((length_s - first) / (second - first)) + 1
    return replace(plan, blocks=blocks) if blocks >= LEAST_BLOCKS else None


def _sight(plan: Plan) -> float:
    freedom = plan.blocks - 1
    return (student_t(0.975, freedom) + _NINE_IN_TEN) * usual_noise(plan) * sqrt(2 / plan.blocks)


def usual_noise(plan: Plan) -> float:
    """Return the usual standard deviation of a trial's logarithm: by its rounds, else by its own window."""
    stop = plan.cells[0].workload.stop
    window_s = seconds(stop.duration_ns) if isinstance(stop, DurationStop) else _FLAT_S
    own = _WINDOW * min(1.0, (_FLAT_S / window_s) ** _FALL)
    return hypot(_START, _WINDOW / sqrt(plan.design.rounds) if plan.design.rounds else own)

"""How many blocks, and how many rounds in each, a length of time has room for: those that see most."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, sqrt

from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.effects import student_t
from prony.catalog.schema.loader import Catalog
from prony.model.plan import Cell, Plan
from prony.model.workload import DurationStop, Workload
from prony.study.extent import extent_of
from prony.study.rounds import why_in_turns
from prony.units import SECOND_NS

# What is usual: the standard deviation of a trial's logarithm by its own window, from start to start of a
# server, and of one slice.
_WINDOW, _START, _SLICE = 0.05, 0.02, 0.07
_ROUNDS = (3, 5, 8, 12, 20, 30)
_NINE_IN_TEN = 1.28


# Of a study for which there is little time.
_SHORT_WINDOW_NS, _SHORT_WARMUP_NS = 3 * SECOND_NS, SECOND_NS


def shortened(plan: Plan) -> Plan:
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


def fitting(plan: Plan, catalog: Catalog, length_s: float, cross_checks: Sequence[Cell] = ()) -> Plan | None:
    """Return the plan with the blocks and rounds that see the smallest difference within a time; null where
    there is no time for five blocks.

    *Definition*: the difference is (t + 1.28) s sqrt(2 / n), with t of n blocks, and s of a trial that has so
    many rounds, by what is usual.
    """
    designs = [replace(plan, design=replace(plan.design, rounds=rounds)) for rounds in _possible(plan)]
    found = []
    for one in designs:
        first, second = (
            extent_of(replace(one, blocks=blocks), catalog, cross_checks).seconds[1] for blocks in (1, 2)
        )
        blocks = int((length_s - first) / (second - first)) + 1
        if blocks >= LEAST_BLOCKS:
            found.append((_sight(blocks, one.design.rounds), replace(one, blocks=blocks)))
    return min(found, key=lambda each: each[0])[1] if found else None


def _possible(plan: Plan) -> Iterator[int]:
    yield 0
    if why_in_turns(plan) is None:
        yield from _ROUNDS


def _sight(blocks: int, rounds: int) -> float:
    return (student_t(0.975, blocks - 1) + _NINE_IN_TEN) * usual_noise(rounds) * sqrt(2 / blocks)


def usual_noise(rounds: int) -> float:
    """Return the usual standard deviation of a trial's logarithm, with so many rounds."""
    return hypot(_START, _SLICE / sqrt(rounds)) if rounds else _WINDOW

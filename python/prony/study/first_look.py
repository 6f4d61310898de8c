"""A first look at the subjects of a user's app: one short trial each, reported at once and not kept.

It says within a minute roughly what the study will say, and shows what is wrong before the study has taken
its time. Must not know blocks.
"""

from collections.abc import Iterator
from dataclasses import replace

from prony.analysis.latency import latency_summaries
from prony.analysis.rates import rates_of
from prony.catalog.schema.apps import is_built_in
from prony.model.plan import Cell, Plan
from prony.model.trial import Failed, Invalid, Trial
from prony.model.workload import DurationStop
from prony.schedule import Position, Turn
from prony.study.base import StudyListener
from prony.study.bench import StudyBench, measure
from prony.study.extent import TRIAL_OVERHEAD_S
from prony.study.replies import first_cells
from prony.units import SECOND_NS, format_duration, format_percent, format_rate, seconds

_WINDOW_NS = SECOND_NS
_WARMUP_NS = SECOND_NS // 2
# A study whose own trials are hardly longer has an answer as soon.
_LEAST_WINDOW_NS = 5 * SECOND_NS


def first_look_s(plan: Plan) -> float:
    """Return about how long the first look at a plan's subjects takes; 0 when there is none."""
    if plan.design.find_rate:
        return 0.0
    looks = {cell.subject.name for cell in plan.cells if _is_long(cell) and not is_built_in(cell.subject.app)}
    # The probe before it starts each subject too.
    return len(looks) * (seconds(_WINDOW_NS + _WARMUP_NS) + 2 * TRIAL_OVERHEAD_S)


def first_look(bench: StudyBench, listener: StudyListener) -> None:
    """Run a short trial of each subject with a user's app, and report it. Nothing of it is archived."""
    cells = [cell for cell in first_cells(bench) if _is_long(cell)]
    if not cells or bench.study.plan.design.find_rate:
        return
    load = _shortened(cells[0]).describe_load()
    listener.notice(f"first look: one trial each, {load}; no verdict, and not kept")
    for cell in cells:
        listener.notice(f"  {cell.subject.name}: {'; '.join(_words(glance(bench, cell, listener)))}")


def glance(bench: StudyBench, cell: Cell, listener: StudyListener) -> Trial:
    """Return a short trial of a cell's load, which belongs to no block and is not archived."""
    return measure(bench, Turn(_shortened(cell), Position(block=-1, position=1)), listener)


def _shortened(cell: Cell) -> Cell:
    return replace(cell, workload=replace(cell.workload, warmup_ns=_WARMUP_NS, stop=DurationStop(_WINDOW_NS)))


def _is_long(cell: Cell) -> bool:
    stop = cell.workload.stop
    return isinstance(stop, DurationStop) and stop.duration_ns >= _LEAST_WINDOW_NS


def _words(trial: Trial) -> Iterator[str]:
    """Yield what a trial shows, though other programs disturbed it: it is only a look."""
    if isinstance(trial.outcome, Failed) or trial.recording is None:
        yield trial.outcome.reason if isinstance(trial.outcome, Failed | Invalid) else "no result"
        return
    rates = rates_of(trial.recording)
    if (rate := rates["ok_per_s"]) is not None:
        yield f"{format_rate(rate)} valid replies"
    times = latency_summaries(trial.recording, ("50",))["ok", "service"]
    median = times.percentiles["50"] if times else None
    if median is not None:
        yield f"half within {format_duration(median)}"
    if errors := rates["error_ratio"]:
        yield f"{format_percent(errors)} errors"

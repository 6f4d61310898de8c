"""The pilot: before the first block, how long each server warms up under the load of its cell.

Each look is a trial with a fresh server and a cell of its own in the archive: the same load from its start,
for as long as warm-up and window take, then twice as long and so on while the pace still changes at the end.
What a trial shows stays in its facts, so that a pilot is resumed as blocks are.

It says within a minute roughly what the study will say, and shows what is wrong before the study has taken
its time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from prony.catalog.schema.apps import is_built_in
from prony.core.units import SECOND_NS, format_duration, format_percent, format_rate, seconds
from prony.figures.account import rates_of
from prony.figures.latency import latency_summaries
from prony.figures.steady_state import judge_pilot, warmup_ns
from prony.model.facts import PilotStep
from prony.model.plan import Cell, Plan
from prony.model.trial import Failed, Invalid, Trial, TrialRole
from prony.model.workload import DurationStop
from prony.plan.order import Position, Turn
from prony.study.bench import StudyBench, measure
from prony.study.blocks import run_turns
from prony.study.ledger import Ledger
from prony.study.replies import first_cells
from prony.study.task import TRIAL_OVERHEAD_S, Study, StudyListener

# A server that compiles itself is still at it after 6 s, which show little of that.
_LEAST_LOOK_S = 12
# Of the longest load, this share is behind the longest warm-up that it can show.
_BEHIND = 1 / 2
# A look that is hardly longer than the last one shows nothing new.
_LONGER = 1.5
# Shorter windows have no seconds that could be compared.
_LEAST_WINDOW_NS = 2 * SECOND_NS


def piloted(plan: Plan) -> tuple[Cell, ...]:
    """Return the cells that the plan's pilot looks at: those of a fixed time, by the engine that records
    single seconds.
    """
    if plan.design.pilot_ns is None:
        return ()
    return tuple(cell for cell in plan.cells if _has_seconds(cell))


def _has_seconds(cell: Cell) -> bool:
    stop, loop = cell.workload.stop, cell.workload.loop
    is_long = isinstance(stop, DurationStop) and stop.duration_ns >= _LEAST_WINDOW_NS
    return cell.engine.is_built_in and is_long and not loop.stages


def looks_at(cell: Cell, longest_ns: int) -> tuple[int, ...]:
    """Return for how many seconds the looks at a cell take, the next where one was not enough.

    >>> from prony.model.subject import App, Interface, Subject
    >>> from prony.model.workload import ClosedLoop, Workload
    >>> load = Workload(ClosedLoop(1), DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS)
    >>> looks_at(Cell(0, Subject("a", "a", App("a", "", "", {}), Interface.WSGI), load), 30 * SECOND_NS)
    (13, 26, 60)
    """
    stop = cell.workload.stop
    window_ns = stop.duration_ns if isinstance(stop, DurationStop) else 0
    first = max(_LEAST_LOOK_S, round(seconds(cell.workload.warmup_ns + window_ns)))
    most = max(first, round(seconds(longest_ns) / (1 - _BEHIND)))
    found = [first]
    while found[-1] * _LONGER <= most:
        longer = 2 * found[-1]
        found.append(longer if longer * _LONGER <= most else most)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Looks:
    """The looks at one cell: their turns, each of so many seconds."""

    cell: Cell
    turns: tuple[Turn, ...]
    seconds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Pilot:
    """One pilot over the cells of a plan. ``known``: the numbers of its cells that the archive has."""

    bench: StudyBench
    ledger: Ledger
    listener: StudyListener
    known: frozenset[int]

    def look(self, looks: _Looks) -> PilotStep | None:
        """Look at a cell until it is warm, or the last look is over; return what the last one showed."""
        step = None
        for turn, length in zip(looks.turns, looks.seconds, strict=True):
            if turn.cell.id not in self.known:
                self.ledger.writer.record_cell(turn.cell, TrialRole.PILOT)
            judge = partial(_judged, looks.cell.id, length, self.bench.study.plan.design.margin)
            run_turns(self.bench, [turn], self.ledger, self.listener, judge)
            step = self.ledger.latest(turn).facts.pilot
            if step is None or not step.changes:
                break
        return step


def _judged(cell_id: int, length: int, margin: float, trial: Trial) -> Trial:
    step = judge_pilot(trial, cell_id, length, margin)
    return replace(trial, facts=replace(trial.facts, pilot=step))


def run_pilot(
    bench: StudyBench, ledger: Ledger, known: Sequence[Cell], listener: StudyListener
) -> StudyBench:
    """Run what the archive lacks of the pilot; return the bench with the warm-ups that it found.

    ``known``: the pilot's cells that the archive has.
    """
    longest_ns = bench.study.plan.design.pilot_ns
    if longest_ns is None:
        return bench
    pilot = _Pilot(bench, ledger, listener, frozenset(cell.id for cell in known))
    found = {}
    for looks in _looks(bench.study, longest_ns):
        if bench.has(looks.turns[0]):
            step = pilot.look(looks)
            planned_ns = looks.cell.workload.warmup_ns
            found[looks.cell.id] = warmup_ns(planned_ns, longest_ns, step)
            if step is not None and found[looks.cell.id] > planned_ns:
                listener.notice(_in_words(looks.cell, step, found[looks.cell.id]))
    return replace(bench, warmups=found | _of_cross_checks(bench.study, found))


def _looks(study: Study, longest_ns: int) -> Iterator[_Looks]:
    """Yield the looks at each cell of the pilot; their cells have numbers that no other one has."""
    plan = study.plan
    others = (*plan.cells, *study.cross_checks, *([plan.calibration] if plan.calibration else []))
    number = 1 + max(cell.id for cell in others)
    for cell in piloted(plan):
        lengths = looks_at(cell, longest_ns)
        turns = (_turn(cell, number + place, place, length) for place, length in enumerate(lengths))
        yield _Looks(cell, tuple(turns), lengths)
        number += len(lengths)


def _turn(cell: Cell, number: int, place: int, length: int) -> Turn:
    load = replace(cell.workload, stop=DurationStop(length * SECOND_NS), warmup_ns=0)
    return Turn(replace(cell, id=number, workload=load), Position(0, place, role=TrialRole.PILOT))


def _in_words(cell: Cell, step: PilotStep, found_ns: int) -> str:
    warm = "still warms up" if step.after_s is None else "is warm"
    after = step.seconds if step.after_s is None else step.after_s
    planned = f"{seconds(cell.workload.warmup_ns):g} s"
    found = f"{seconds(found_ns):g} s"
    return f"{cell.subject.name} {warm} after {after} s: its trials warm up for {found}, not {planned}"


def _of_cross_checks(study: Study, found: Mapping[int, int]) -> dict[int, int]:
    """Return the warm-ups of cells that another generator measures once more."""
    own = [(cell, found[cell.id]) for cell in piloted(study.plan) if cell.id in found]
    return {
        check.id: warmup
        for check in study.cross_checks
        for cell, warmup in own
        if (check.subject, check.workload) == (cell.subject, cell.workload)
    }


# --- A first look at the subjects of a user's app ---------------------------------------------------------


_WINDOW_NS = SECOND_NS
_WARMUP_NS = SECOND_NS // 2
# A study whose own trials are hardly longer has an answer as soon.
_LEAST_LOOK_NS = 5 * SECOND_NS


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
    return isinstance(stop, DurationStop) and stop.duration_ns >= _LEAST_LOOK_NS


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

"""One block: every cell once, in its random order, each trial archived as it ends.

A block is always finished: an incomplete one would lack the subjects that come late in it.

A pause counts from the last trial, so that a study that was killed in one waits only for what is left of it.

What looks so closely disturbs what it sees, so these trials have cells and a role of their own: their figures
enter no mean and no verdict.

>>> number_of_look(3) == number_of_look(2) + 1
True
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from prony.core.units import format_duration, seconds
from prony.figures.validity import in_words
from prony.model.plan import Cell, Plan
from prony.model.trial import FaultKind, Trial, TrialRole
from prony.plan.order import Position, Turn, again, block_turns
from prony.study.bench import StudyBench, measure
from prony.study.ledger import ArchivedTrial, Ledger
from prony.study.task import StudyListener

Judge = Callable[[Trial], Trial]
"""Adds results to a trial before it is archived."""


def run_block(bench: StudyBench, block: int, ledger: Ledger, listener: StudyListener) -> None:
    """Run those trials of one block that are not in the archive yet."""
    run_turns(bench, block_turns(bench.study.plan, block, bench.study.cross_checks), ledger, listener)


def run_turns(
    bench: StudyBench,
    turns: Sequence[Turn],
    ledger: Ledger,
    listener: StudyListener,
    judge: Judge | None = None,
) -> None:
    """Run those of ``turns``, all of one block, that are not in the archive yet.

    Trials that the environment disturbed are repeated at the end of the block, at most twice; every attempt
    is archived as a trial of its own. A figure that is a bound already is repeated only once the machine is
    quiet, a pilot's never; a search needs an answer, and no bound. A subject's own failures are data and are
    not repeated. Nor is calibration: at another place in the block it would mean nothing.
    """
    position = 1 + max((turn.position.position for turn in turns), default=-1)
    now: Iterable[Turn] = [turn for turn in turns if bench.has(turn)]
    retries = bench.study.retries
    for attempt in range(1 + retries):
        for turn in now:
            if not ledger.has(turn):
                _run_turn(bench, turn, ledger, listener, judge)
        disturbed = _to_repeat(bench, now, ledger, listener) if attempt < retries else ()
        now = [again(turn, position + place) for place, turn in enumerate(disturbed)]
        position += len(disturbed)
        if disturbed:
            listener.notice(_repeats(len(disturbed), ledger.entries[disturbed[0].key]))


def _to_repeat(
    bench: StudyBench, turns: Iterable[Turn], ledger: Ledger, listener: StudyListener
) -> tuple[Turn, ...]:
    """Return those of ``turns`` whose trials a repeat may make better."""
    disturbed = ledger.disturbed(turns)
    able = tuple(turn for turn in disturbed if turn.position.role is not TrialRole.CALIBRATION)
    bounded = [turn for turn in able if _suffices(turn, ledger)]
    if bench.study.force or not bounded:
        return able
    is_pilot = bounded[0].position.role is TrialRole.PILOT
    if not is_pilot and bench.patience.wait(bounded[0].cell.workload, listener):
        return able
    return tuple(turn for turn in able if turn not in bounded)


def _suffices(turn: Turn, ledger: Ledger) -> bool:
    """Return whether the figures of a disturbed trial are bounds, and of use as such."""
    is_of_use = turn.position.role in (TrialRole.SUBJECT, TrialRole.PILOT)
    return is_of_use and ledger.entries[turn.key].is_bounded


def _repeats(count: int, first: ArchivedTrial) -> str:
    trials = "a trial is" if count == 1 else f"{count} trials are"
    fault, others = first.fault, first.facts.others
    named = ", ".join(f"{one.name} {one.share:.0%}" for one in others)
    by = f" ({named})" if named and fault and fault.kind is FaultKind.OTHER_LOAD else ""
    return f"{trials} repeated at the block's end: {fault and in_words(fault)}{by}"


def _run_turn(
    bench: StudyBench, turn: Turn, ledger: Ledger, listener: StudyListener, judge: Judge | None
) -> None:
    """Run one trial, archive it, and report it. By force, nothing is waited for."""
    if not bench.study.force and bench.study.retries:
        bench.patience.wait(turn.cell.workload, listener)
    listener.trial_started(turn.cell, *_shown(turn, bench.study.plan.blocks))
    trial = measure(bench, turn, listener)
    bench.patience.note(trial)
    trial = judge(trial) if judge else trial
    ledger.append(trial)
    listener.trial_ended(turn.cell, trial)


def _shown(turn: Turn, blocks: int) -> tuple[int, int]:
    """Return the number of this block and of all blocks; none in a pilot and in a search, whose length is not
    known.
    """
    at = turn.position
    if at.role in (TrialRole.PILOT, TrialRole.CONFIRMATION):
        return 0, 0
    if at.role is not TrialRole.FIND_RATE:
        return at.block, blocks
    return (at.block - 1, blocks) if at.block else (0, 0)


# --- the pauses between the sessions of a study -----------------------------------------------------------


# How often the time that is left is shown.
_STEP_S = 0.25


def with_pauses(
    plan: Plan, ledger: Ledger, listener: StudyListener, run_block: Callable[[int], None]
) -> Callable[[int], None]:
    """Return ``run_block`` with a pause before the first block of each session but the first."""

    def run(block: int) -> None:
        is_first = block % plan.session_blocks == 0
        if block and is_first and plan.design.sessions > 1 and not ledger.has_any(block):
            _pause(plan, block, ledger, listener)
        run_block(block)

    return run


def _pause(plan: Plan, block: int, ledger: Ledger, listener: StudyListener) -> None:
    words = f"session {block // plan.session_blocks + 1} of {plan.design.sessions}"
    pause_ns = plan.design.pause_ns
    # A clock that was set back makes it no longer than asked, and one that is set meanwhile changes nothing.
    left_ns = min(pause_ns, ledger.last_ended_ns + pause_ns - time.time_ns())
    if left_ns <= 0:
        return
    until_s = time.monotonic() + seconds(left_ns)
    at = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds(left_ns)))
    listener.notice(
        f"pause of {format_duration(left_ns)} before {words}, until {at}; Ctrl-C keeps all results"
    )
    while (left_s := until_s - time.monotonic()) > 0:
        listener.paused(left_s, words)
        time.sleep(min(_STEP_S, left_s))


# --- the confirming trials --------------------------------------------------------------------------------


# Beyond the cells of any plan, its pilot and its searches, so that a study that goes on finds the same ones.
_FIRST = 5_000_000


def number_of_look(cell_id: int) -> int:
    """Return the number of the cell that a close look at a plan's cell has."""
    return _FIRST + cell_id


def close_looks(plan: Plan) -> tuple[Cell, ...]:
    """Return the cells at which a plan looks closely."""
    return plan.cells if plan.design.confirm and not plan.design.find_rate else ()


def confirm(bench: StudyBench, ledger: Ledger, known: Sequence[Cell], listener: StudyListener) -> None:
    """Run what the archive lacks of the confirming trials; ``known``: their cells that it has."""
    recorded = {cell.id for cell in known}
    for cell in close_looks(bench.study.plan):
        turn = _turn(cell, bench)
        if cell.subject.name not in bench.ready or cell.id in bench.left_out:
            continue
        if turn.cell.id not in recorded:
            ledger.writer.record_cell(turn.cell, TrialRole.CONFIRMATION)
        run_turns(bench, [turn], ledger, listener, partial(_of_cell, cell.id))


def _turn(cell: Cell, bench: StudyBench) -> Turn:
    warmup_ns = bench.warmups.get(cell.id, cell.workload.warmup_ns)
    looked_at = replace(
        cell, id=number_of_look(cell.id), workload=replace(cell.workload, warmup_ns=warmup_ns)
    )
    return Turn(looked_at, Position(0, 0, role=TrialRole.CONFIRMATION))


def _of_cell(cell_id: int, trial: Trial) -> Trial:
    close = trial.facts.close
    return replace(trial, facts=replace(trial.facts, close=close and replace(close, cell_id=cell_id)))

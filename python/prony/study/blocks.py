"""One block: every cell once, in its random order, each trial archived as it ends.

A block is always finished: an incomplete one would lack the subjects that come late in it. Must not know
how many blocks the study has.
"""

from collections.abc import Callable, Iterable, Sequence

from prony.analysis.validity import in_words
from prony.model.fault import Fault
from prony.model.trial import Trial, TrialRole
from prony.schedule import Turn, again, block_turns
from prony.study.base import StudyListener
from prony.study.bench import StudyBench, measure
from prony.study.ledger import Ledger

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
            listener.notice(_repeats(len(disturbed), ledger.entries[disturbed[0].key].fault))


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


def _repeats(count: int, fault: Fault | None) -> str:
    trials = "a trial is" if count == 1 else f"{count} trials are"
    return f"{trials} repeated at the block's end: {fault and in_words(fault)}"


def _run_turn(
    bench: StudyBench, turn: Turn, ledger: Ledger, listener: StudyListener, judge: Judge | None
) -> None:
    """Run one trial, archive it, and report it. By force, nothing is waited for."""
    if not bench.study.force and bench.study.retries:
        bench.patience.wait(turn.cell.workload, listener)
    listener.trial_started(turn.cell, *_shown(turn, bench.study.plan.blocks))
    trial = measure(bench, turn, listener)
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

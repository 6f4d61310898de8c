"""One block: every cell once, in its random order, each trial archived as it ends.

A block is always finished: one that breaks off would leave out the subjects that came late in it. Must not
know how many blocks there are to be.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from prony.model import Invalid, Ok, Trial, TrialRole
from prony.schedule import Turn, again, block_turns
from prony.study.base import StudyListener
from prony.study.bench import Bench, measure
from prony.study.ledger import Ledger

__all__ = ["MOST_RETRIES", "Judge", "run_block", "run_turns"]

MOST_RETRIES = 2
"""How often a trial is repeated that the environment spoilt."""

Judge = Callable[[Trial], Trial]
"""Adds to a trial, before it is archived, what is made of it."""


def run_block(bench: Bench, block: int, ledger: Ledger, listener: StudyListener) -> None:
    """Run those trials of one block that are not in the archive yet."""
    run_turns(bench, block_turns(bench.study.plan, block, bench.study.cross_checks), ledger, listener)


def run_turns(
    bench: Bench, turns: Sequence[Turn], ledger: Ledger, listener: StudyListener, judge: Judge | None = None
) -> None:
    """Run those of ``turns``, all of one block, that are not in the archive yet.

    What the environment spoilt is repeated at the end, at most twice, each attempt a trial of its own that is
    kept. A subject's own faults are data. Calibration is not repeated: elsewhere it says nothing.
    """
    position = 1 + max((turn.position.position for turn in turns), default=-1)
    now: Iterable[Turn] = [turn for turn in turns if bench.has(turn)]
    for attempt in range(1 + MOST_RETRIES):
        for turn in now:
            if not ledger.has(turn):
                _run_turn(bench, turn, ledger, listener, judge)
        spoilt = [one for one in ledger.spoilt(now) if one.position.role is not TrialRole.CALIBRATION]
        now = [again(turn, position + place) for place, turn in enumerate(spoilt)]
        position += len(spoilt)
        if spoilt and attempt < MOST_RETRIES:
            listener.notice(_repeats(len(spoilt), ledger.entries[spoilt[0].key].fault))


def _repeats(count: int, fault: str | None) -> str:
    trials = "a trial is" if count == 1 else f"{count} trials are"
    return f"{trials} repeated at the block's end: {fault}"


def _run_turn(bench: Bench, turn: Turn, ledger: Ledger, listener: StudyListener, judge: Judge | None) -> None:
    """Run one trial, archive it, and tell of it."""
    listener.trial_started(turn.cell, *_shown(turn, bench.study.plan.blocks))
    trial = _with_fault(measure(bench, turn, listener), bench.study.force)
    trial = judge(trial) if judge else trial
    ledger.append(trial)
    listener.trial_ended(turn.cell, trial)


def _shown(turn: Turn, blocks: int) -> tuple[int, int]:
    """Return which block this is of how many; of a search, whose length nobody knows, none."""
    at = turn.position
    if at.role is not TrialRole.FIND_RATE:
        return at.block, blocks
    return (at.block - 1, blocks) if at.block else (0, 0)


def _with_fault(trial: Trial, force: bool) -> Trial:
    """Return a trial that the environment spoilt as invalid.

    ``force``: what comes again in the last attempt too is taken as this machine's usual state: that one
    counts, and is flagged.
    """
    fault = trial.facts.environment_fault
    counts = trial.role is TrialRole.CALIBRATION or (force and trial.attempt >= MOST_RETRIES)
    if fault and not counts and isinstance(trial.outcome, Ok):
        return replace(trial, outcome=Invalid(fault))
    return trial

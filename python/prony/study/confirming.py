"""The confirming trials: after the last block, one close look at each subject under each of its loads.

What looks so closely disturbs what it sees, so these trials have cells and a role of their own: their figures
enter no mean and no verdict. Must not know what is looked for.

>>> number_of_look(3) == number_of_look(2) + 1
True
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from prony.model.plan import Cell, Plan
from prony.model.trial import Trial, TrialRole
from prony.schedule import Position, Turn
from prony.study.base import StudyListener
from prony.study.bench import StudyBench
from prony.study.blocks import run_turns
from prony.study.ledger import Ledger

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

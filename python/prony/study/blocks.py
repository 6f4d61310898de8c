"""One block: every cell once, in its random order, each trial archived as it ends.

Must not know how many blocks there are to be.
"""

from functools import partial

from prony.archive import ArchiveWriter
from prony.plan import block_order
from prony.study.base import StudyListener
from prony.study.bench import Bench, make_task
from prony.trial import Position, run_trial

__all__ = ["run_block"]


def run_block(bench: Bench, block: int, writer: ArchiveWriter, listener: StudyListener) -> None:
    """Run the trials of one block."""
    plan = bench.study.plan
    cells = [cell for cell in block_order(plan, block) if cell.subject.name in bench.ready]
    for position, cell in enumerate(cells):
        listener.trial_started(cell, block, plan.blocks)
        task = make_task(bench, cell, Position(block, position))
        trial = run_trial(task, partial(listener.trial_event, cell))
        writer.append(trial)
        bench.run.remove_trial_folder(task.sandbox.folder.name)
        listener.trial_ended(cell, trial)

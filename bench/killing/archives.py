"""What an archive holds after its Prony was killed, and after it was continued."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from prony.archive import open_archive
from prony.core.errors import ArchiveError
from prony.model.plan import Plan
from prony.model.trial import RunStatus
from prony.plan.order import block_turns

_DONE = re.compile(r"^  \[[0-9]+/[0-9]+\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What an archive holds. ``trials``: how many, all attempts."""

    plan: Plan
    trials: int
    is_finished: bool


def said_done(said: str) -> int:
    """Return how many trials Prony said were done."""
    return len(_DONE.findall(said))


def kept(path: Path) -> Kept | str | None:
    """Return what an archive holds, all of it read; null: there is none; text: why it does not open."""
    if not path.exists():
        return None
    try:
        with open_archive(path) as archive:
            finished = any(run.status is RunStatus.FINISHED for run in archive.runs())
            return Kept(archive.plan(), len(list(archive.trials())), finished)
    except ArchiveError as error:
        return error.message


def unlike_its_plan(path: Path, before: Kept) -> str | None:
    """Return in which way a continued archive is not what its plan asked for; null: it is just that."""
    with open_archive(path) as archive:
        plan, trials = archive.plan(), [record.trial for record in archive.trials()]
        finished = archive.runs()[-1].status is RunStatus.FINISHED
    if plan != before.plan:
        return "the plan has changed"
    if not finished:
        return "the last run is not finished"
    places = Counter((one.block, one.position, one.cell_id) for one in trials if not one.attempt)
    turns = (turn for block in range(plan.blocks) for turn in block_turns(plan, block))
    wanted = Counter((one.position.block, one.position.position, one.cell.id) for one in turns)
    return None if places == wanted else f"trials were {sorted(places)}, expected {sorted(wanted)}"

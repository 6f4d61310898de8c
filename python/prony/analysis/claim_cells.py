"""The subject of a claim: its own cells, the cells that they are compared with, and their figures.

Must not know verdicts.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from prony.analysis.missing import Missing
from prony.analysis.resources import LEAST_UNSAMPLED_PERCENT
from prony.analysis.summary import CellSummary
from prony.model.claims import Claim
from prony.model.plan import Cell
from prony.model.subject import is_named


def is_claimed(claim: Claim, cell: Cell) -> bool:
    """Return whether a cell is one of the claim's own."""
    return (
        claim.is_about(cell.subject.name)
        and is_named(cell.subject.name, claim.subject)
        and fnmatchcase(cell.engine.name, claim.engine)
        and cell.is_under(claim.load)
    )


def is_rival(claim: Claim, cell: Cell, other: Cell) -> bool:
    """Return whether ``cell``, one of the claim's own, is compared with the cell ``other``.

    *Definition*: those of other cells that fit ``against``, with the same generator (else
    ``against_engine``) and the same load (else ``against_load``). Where ``subject`` and ``against`` each
    begin with their only ``*``, as in `*+falcon` against `*+flask`, it stands for the same text in both.
    """
    return (
        not is_claimed(claim, other)
        and claim.is_about(other.subject.name)
        and is_named(other.subject.name, claim.against)
        and _alike(claim, cell.subject.name, other.subject.name)
        and _same_engine(claim, cell, other)
        and _same_load(claim, cell, other)
    )


def claimed(claim: Claim, cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the claim's own cells."""
    return [cell for cell in cells if is_claimed(claim, cell.cell)]


def rivals(claim: Claim, cell: CellSummary, cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the cells that ``cell``, one of the claim's own, is compared with."""
    return [other for other in cells if is_rival(claim, cell.cell, other.cell)]


def _star(glob: str, name: str) -> str | None:
    """Return what the leading ``*`` of a glob stands for in ``name``; null if there are more wildcards."""
    end = glob.removeprefix("*")
    if end in ("", glob) or "*" in end:
        return None
    return name.removesuffix(end) if name.endswith(end) else None


def _alike(claim: Claim, name: str, other: str) -> bool:
    mine, theirs = _star(claim.subject, name), _star(claim.against, other)
    return mine is None or theirs is None or mine == theirs


def _same_engine(claim: Claim, cell: Cell, other: Cell) -> bool:
    wanted = claim.against_engine
    return fnmatchcase(other.engine.name, wanted) if wanted else other.engine.name == cell.engine.name


def _same_load(claim: Claim, cell: Cell, other: Cell) -> bool:
    if claim.against_load:
        return other.is_under(claim.against_load)
    # The number of threads belongs to the generator: another generator has another number.
    load = {name: size for name, size in cell.load.items() if name != "threads"}
    return other.is_under(load if claim.against_engine else cell.load)


Place = tuple[int, int]
"""A session and a block in it."""


def by_block(cell: CellSummary, claim: Claim) -> dict[Place, float]:
    """Return the claim's metric by session and block, of the processes of its role where it names one."""
    found = {}
    for trial in cell.counted:
        metrics = trial.roles.get(claim.role, {}) if claim.role else trial.metrics
        value = metrics.get(claim.metric)
        if value is not None and not isinstance(value, Missing):
            found[trial.session, trial.block] = float(value)
    return found


def unsampled(claim: Claim, cell: CellSummary) -> str | None:
    """Return that a role's CPU is not known, because no sample shows the role of some of it; null if it is
    known, or the claim is not about it.
    """
    if not claim.role or not claim.metric.startswith("cpu_"):
        return None
    value = cell.metrics["cpu_unsampled_percent"]
    if isinstance(value, Missing) or value.mean < LEAST_UNSAMPLED_PERCENT:
        return None
    return f"{value.mean:.0f} % of a core belong to processes of unknown role that lived between two samples"


def where(cell: CellSummary) -> str:
    """Return subject and load in words; the name of a generator says its load."""
    if cell.name != cell.cell.subject.name:
        return cell.name
    return f"{cell.name}, {cell.cell.workload.describe()}"

"""A claim that does not hold, asked again of the software of the original's time.

Have the versions changed, or did it not hold then either? Must not know how a claim is tested, or where such
software comes from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from prony.analysis.claims import ClaimResult, ClaimVerdict, evaluate
from prony.analysis.compare import Terms
from prony.analysis.summary import CellSummary
from prony.model import Claim

__all__ = ["Then", "VersionChange", "of_the_time"]


class VersionChange(StrEnum):
    """Why a claim of the original does not hold."""

    VERSIONS = "versions changed"
    """It holds with the software of the time."""
    NOT_THEN = "did not hold"
    """It does not hold with that either."""
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Then:
    """What the subjects with the software of the time say of a claim; ``subjects``: how many there are."""

    change: VersionChange
    result: ClaimResult
    subjects: int


_CHANGES = {ClaimVerdict.HOLDS: VersionChange.VERSIONS, ClaimVerdict.DOES_NOT_HOLD: VersionChange.NOT_THEN}


def of_the_time(
    claim: Claim,
    found: ClaimResult,
    cells: Sequence[CellSummary],
    editions: Mapping[str, str],
    terms: Terms,
) -> Then | None:
    """Return what the software of the original's time says of a claim that does not hold; null for one that
    holds, or where no such subject was measured.

    ``editions``: the subject of today by the name of the one with that software, which takes its place: the
    claim is compared among these alone.
    """
    old = [cell for cell in cells if cell.cell.subject.name in editions and cell.total]
    if found.verdict is not ClaimVerdict.DOES_NOT_HOLD or not old:
        return None
    result = evaluate(claim, [_in_its_place(cell, editions) for cell in old], terms)
    change = _CHANGES.get(result.verdict, VersionChange.UNKNOWN)
    return Then(change, result, len({cell.cell.subject.name for cell in old}))


def _in_its_place(cell: CellSummary, editions: Mapping[str, str]) -> CellSummary:
    name = editions[cell.cell.subject.name]
    own = replace(cell.cell, subject=replace(cell.cell.subject, name=name))
    return replace(cell, cell=own, name=name)

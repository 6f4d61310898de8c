"""A claim that does not hold, or was measured without today's software, asked of that of the original's time.

Have the versions changed, or did it not hold then either? Must not know how a claim is tested, or where such
software comes from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from prony.analysis.claim_parts import ClaimResult, ClaimVerdict
from prony.analysis.claims import evaluate
from prony.analysis.compare import Terms
from prony.analysis.summary import CellSummary
from prony.model.claims import Claim


class VersionChange(StrEnum):
    """Why a claim of the original does not hold, or what is known of it without the software of today."""

    VERSIONS = "versions changed"
    """It holds with the software of the time, and not with that of today."""
    HELD = "held"
    """It holds with the software of the time; that of today was not measured."""
    NOT_THEN = "did not hold"
    """It does not hold with the software of the time."""
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Then:
    """What the subjects with the software of the time say of a claim; ``subjects``: how many there are."""

    change: VersionChange
    result: ClaimResult
    subjects: int


_CHANGES = {ClaimVerdict.HOLDS: VersionChange.VERSIONS, ClaimVerdict.DOES_NOT_HOLD: VersionChange.NOT_THEN}
_ALONE = {**_CHANGES, ClaimVerdict.HOLDS: VersionChange.HELD}


def of_the_time(
    claim: Claim,
    found: ClaimResult,
    cells: Sequence[CellSummary],
    editions: Mapping[str, str],
    terms: Terms,
) -> Then | None:
    """Return what the software of the original's time says of a claim that does not hold, or that could not
    be tested without it; null for any other claim, or where it was not measured.

    ``editions``: the subject of today by the name of the one with that software, which takes its place: the
    claim is compared among these alone.
    """
    changes = {ClaimVerdict.DOES_NOT_HOLD: _CHANGES, ClaimVerdict.NOT_TESTABLE: _ALONE}.get(found.verdict)
    old = in_their_place(cells, editions)
    if changes is None or not old:
        return None
    result = evaluate(claim, old, terms)
    if found.verdict is result.verdict is ClaimVerdict.NOT_TESTABLE:
        return None
    subjects = len({cell.cell.subject.name for cell in old})
    change = changes.get(result.verdict, VersionChange.UNKNOWN)
    # One refutes a claim; that it holds of some is not that it holds of all.
    if result.verdict is ClaimVerdict.HOLDS and subjects < len(editions):
        change = VersionChange.UNKNOWN
    return Then(change, result, subjects)


def in_their_place(cells: Sequence[CellSummary], editions: Mapping[str, str]) -> list[CellSummary]:
    """Return the cells with the software of the time that were measured, each by the name of today's."""
    return [
        _in_its_place(cell, editions) for cell in cells if cell.cell.subject.name in editions and cell.total
    ]


def _in_its_place(cell: CellSummary, editions: Mapping[str, str]) -> CellSummary:
    name = editions[cell.cell.subject.name]
    own = replace(cell.cell, subject=replace(cell.cell.subject, name=name))
    return replace(cell, cell=own, name=name)

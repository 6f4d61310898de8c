"""Whether subjects do the same work: how large their replies are. Pure; must not know words.

D32 of the causes: a note of the report for each load, and beside the limit of each subject.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from prony.analysis.summary import CellSummary, Estimate
from prony.diagnosis import Diagnosis, Frequent
from prony.diagnosis.unequal_work import ALIKE, unequal_work
from prony.reading.groups import Group


@dataclass(frozen=True, slots=True)
class Replies:
    """How large the replies of a cell are, on average."""

    cell: CellSummary
    mean_bytes: float


@dataclass(frozen=True, slots=True)
class UnequalReplies:
    """The smallest and the largest replies of cells that are compared."""

    smallest: Replies
    largest: Replies


def unequal_replies(cells: Iterable[CellSummary]) -> UnequalReplies | None:
    """Return the two of them that differ most; null where none is more than a tenth larger than another."""
    sizes = _sizes(cells)
    if not sizes:
        return None
    ordered = sorted(sizes, key=lambda one: (one.mean_bytes, one.cell.name))
    smallest, largest = ordered[0], ordered[-1]
    return UnequalReplies(smallest, largest) if largest.mean_bytes > ALIKE * smallest.mean_bytes else None


def with_unequal_work(groups: Iterable[Group], diagnoses: Mapping[int, Diagnosis]) -> dict[int, Diagnosis]:
    """Return the diagnoses, by the id of a cell, of which those of unequal work say so beside the limit."""
    found = dict(diagnoses)
    for group in groups:
        sizes = [] if group.of_generators else _sizes(group.cells)
        for one in sizes:
            others = {other.cell.name: other.mean_bytes for other in sizes if other is not one}
            number, finding = one.cell.cell.id, unequal_work(one.mean_bytes, others)
            if finding is not None and number in found:
                known = found[number]
                beside = (*known.beside, Frequent(finding, known.trials))
                found[number] = replace(known, beside=beside)
    return found


def _sizes(cells: Iterable[CellSummary]) -> list[Replies]:
    return [
        Replies(cell, found.mean)
        for cell in cells
        if isinstance(found := cell.metrics["reply_bytes"], Estimate)
    ]

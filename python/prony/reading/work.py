"""Whether subjects do the same work: how large their replies are. Pure; must not know words.

D32 of the causes: a server that sends fewer bytes has less to do, whatever else it does.
*Source*: RFC 9110, 6.3 and 8: a server chooses which header fields it sends.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from prony.analysis.summary import CellSummary, Estimate

__all__ = ["Replies", "UnequalReplies", "unequal_replies"]

_ALIKE = 1.1


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
    sizes = [
        Replies(cell, found.mean)
        for cell in cells
        if isinstance(found := cell.metrics["reply_bytes"], Estimate)
    ]
    if not sizes:
        return None
    ordered = sorted(sizes, key=lambda one: (one.mean_bytes, one.cell.name))
    smallest, largest = ordered[0], ordered[-1]
    return UnequalReplies(smallest, largest) if largest.mean_bytes > _ALIKE * smallest.mean_bytes else None

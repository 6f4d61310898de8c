"""Where the report's JSON has the parts of a Reading."""

from prony.analysis.summary import CellSummary
from prony.reading.groups import Group
from prony.reading.study import Reading
from prony.report.text import pointer


def group_at(reading: Reading, group: Group) -> str:
    """Return the JSON pointer of a group."""
    return pointer("groups", reading.place(group))


def cell_at(reading: Reading, cell: CellSummary) -> str:
    """Return the JSON pointer of one of the plan's cells.

    *Errors*: StopIteration for a cell that is in no group.
    """
    places = (
        pointer("groups", k, "cells", number)
        for k, group in enumerate(reading.groups)
        for number, one in enumerate(group.cells)
        if one.cell.id == cell.cell.id
    )
    return next(places)

"""The cells of a cross-check: the same, under other generators."""

import pytest

from golden.build import subject
from prony.cross_check import cross_check_cells, cross_checked
from prony.errors import UsageError
from prony.model import Cell, ClosedLoop, DurationStop, Plan, Workload

LOADS = [Workload(ClosedLoop(number), DurationStop(1)) for number in (1, 10)]
CELLS = tuple(Cell(number, subject("wsgiref+flask-hello"), load) for number, load in enumerate(LOADS))
PLAN = Plan("p", "P", "", "quick", CELLS, 5, 1, calibration=Cell(2, CELLS[0].subject, LOADS[0]))


def test_each_cell_comes_once_more_for_each_engine_with_an_id_of_its_own():
    cells = cross_check_cells(PLAN, ("wrk", "ab"))
    assert len(cells) == 2 * len(PLAN.cells)
    assert {cell.engine.name for cell in cells} == {"wrk", "ab"}
    ids = [cell.id for cell in (*PLAN.cells, PLAN.calibration, *cells)]
    assert len(set(ids)) == len(ids)


def test_each_of_them_knows_the_cell_that_it_checks():
    cells = cross_check_cells(PLAN, ("wrk", "ab"))
    assert [cross_checked(PLAN.cells, cell) for cell in cells] == [*PLAN.cells, *PLAN.cells]


@pytest.mark.parametrize("engines", [("prony",), ("wrk", "wrk")])
def test_what_would_check_nothing_is_refused(engines):
    with pytest.raises(UsageError, match="checks nothing"):
        cross_check_cells(PLAN, engines)

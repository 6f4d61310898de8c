"""The cells of a cross-check: the same, under other generators."""

import pytest

from golden import build
from golden.build import subject
from prony.core.errors import UsageError
from prony.figures.summary import figures, summarise_cell
from prony.model.plan import Cell, Plan
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.plan.build import cross_check_cells
from prony.reading.checks import cross_checks

LOADS = [Workload(ClosedLoop(number), DurationStop(build.SECOND)) for number in (1, 10)]
CELLS = tuple(Cell(number, subject("wsgiref+flask-hello"), load) for number, load in enumerate(LOADS))
PLAN = Plan("p", "P", "", "quick", CELLS, 5, 1, calibration=Cell(2, CELLS[0].subject, LOADS[0]))
VALUES = [1_000_000] * 200


def test_each_cell_comes_once_more_for_each_engine_with_an_id_of_its_own():
    cells = cross_check_cells(PLAN, ("wrk", "ab"))
    assert len(cells) == 2 * len(PLAN.cells)
    assert {cell.engine.name for cell in cells} == {"wrk", "ab"}
    ids = [cell.id for cell in (*PLAN.cells, PLAN.calibration, *cells)]
    assert len(set(ids)) == len(ids)


def test_each_of_them_is_compared_with_the_cell_that_it_checks():
    checks = cross_check_cells(PLAN, ("wrk", "ab"))
    trials = [figures(build.trial(cell, block, 0, VALUES)) for cell in (*CELLS, *checks) for block in (0, 1)]
    own, others = ([summarise_cell(cell, trials) for cell in cells] for cells in (CELLS, checks))
    found = [
        (one.own.cell, one.other.cell) for one in cross_checks(own, others, 0.02) if one.metric == "ok_per_s"
    ]
    assert found == list(zip((*CELLS, *CELLS), checks, strict=True))


def test_a_cross_check_may_be_of_some_loads_alone():
    cells = cross_check_cells(PLAN, ("wrk",), {"connections": (10, 100)})
    assert [cell.load["connections"] for cell in cells] == [10]


@pytest.mark.parametrize("engines", [("prony",), ("wrk", "wrk")])
def test_what_would_check_nothing_is_refused(engines):
    with pytest.raises(UsageError, match="checks nothing"):
        cross_check_cells(PLAN, engines)

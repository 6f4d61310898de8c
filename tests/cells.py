"""Cells for tests: one value for each block of the metrics that a test is about; nothing else is known."""

from dataclasses import replace
from functools import lru_cache

from golden import build
from prony.core.metrics import METRICS
from prony.figures.missing import Missing
from prony.figures.summary import figures, summarise_cell
from prony.model.exchange import Request
from prony.model.plan import Cell
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop, DurationStop, Workload

UNKNOWN = dict.fromkeys(METRICS, Missing("no part of the test"))


def cell_of(name, loop=None, path="/", seconds=2, number=1, **kwargs):
    """The cell of a subject `server+app` under a load: 10 connections, where none is given."""
    load = Workload(loop or ClosedLoop(10), DurationStop(seconds * build.SECOND), Request(path=path))
    return Cell(number, build.subject(name), load, **kwargs)


@lru_cache
def _figures(lost):
    return figures(build.trial(cell_of("any+hello"), 0, 0, [1_000_000] * 2000, errors={"reset": lost}))


def measured(cell, failed=0, lost=0, **metrics):
    """The summary of a cell with these values of metrics, block by block, and then so many failed trials.
    `lost`: so many requests of each trial, beside 2000 valid ones.
    """
    one = replace(_figures(lost), cell_id=cell.id)
    blocks = max(map(len, metrics.values()), default=0)
    trials = [
        replace(one, block=block, metrics=UNKNOWN | {name: values[block] for name, values in metrics.items()})
        for block in range(blocks)
    ]
    lost_trials = [
        replace(one, block=block, outcome=Failed("load", "it died"))
        for block in range(blocks, blocks + failed)
    ]
    return summarise_cell(cell, [*trials, *lost_trials])

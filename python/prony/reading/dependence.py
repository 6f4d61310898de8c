"""How the blocks of a study depend on each other, in what its answer rests on.

Must not know words.
"""

from collections.abc import Iterable

from prony.analysis.all_pairs import table_of
from prony.analysis.answer import log_values
from prony.analysis.compare import LEAST_BLOCKS
from prony.analysis.dependence import Dependence, dependence
from prony.reading.groups import Group


def dependence_of(groups: Iterable[Group]) -> Dependence | None:
    """Return the dependence in the first primary load that has an answer over five blocks; null where there
    is none, and where sessions are counted.
    """
    for group in (one for one in groups if one.primary and not one.answer.by_session):
        metric = group.answer.metric
        names = {group.answer.first, *group.answer.comparisons}
        logs = {cell.name: log_values(cell, metric) for cell in group.cells if metric and cell.name in names}
        if len(logs) >= 2 and len(table := table_of(logs)) >= LEAST_BLOCKS:
            return dependence(table)
    return None

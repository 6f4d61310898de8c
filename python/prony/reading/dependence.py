"""Whether the blocks of a study depend on each other, by its calibration and by its subjects.

Must not know words.
"""

from collections.abc import Iterable, Sequence
from math import log

from prony.analysis.answer import deciding_metrics
from prony.analysis.dependence import Dependence, dependence
from prony.analysis.drift import CALIBRATED
from prony.analysis.missing import Missing
from prony.analysis.summary import TrialFigures, latest_attempts
from prony.model import Cell, Ok, Plan, TrialRole

__all__ = ["dependence_of"]

_Table = dict[str, dict[int, float]]


def dependence_of(plan: Plan, trials: Sequence[TrialFigures]) -> Dependence | None:
    """Return how the blocks of a study depend on each other; null where it has too few.

    *Definition*: one table of the calibration's trials, whose first, second and further ones of a block are
    as many series of one subject; and one of the subjects under each load that verdicts were planned for.
    """
    loads: dict[object, _Table] = {}
    cells = {cell.id: cell for cell in plan.cells if cell.is_under(plan.design.primary)}
    own = [one for one in trials if one.role is TrialRole.SUBJECT and one.cell_id in cells]
    for trial in latest_attempts(own):
        cell = cells[trial.cell_id]
        _add(loads.setdefault(_load(cell), {}), str(cell.id), trial, deciding_metrics(cell)[0])
    return dependence([_calibrated(trials), *loads.values()])


def _load(cell: Cell) -> object:
    return cell.workload.loop, cell.workload.streams, cell.engine.name


def _calibrated(trials: Iterable[TrialFigures]) -> _Table:
    """Return the calibration's latencies: several a block, by their order in it."""
    table: _Table = {}
    found = [one for one in trials if one.role is TrialRole.CALIBRATION]
    seen: dict[int, int] = {}
    for trial in sorted(found, key=lambda one: (one.block, one.started_unix_ns)):
        seen[trial.block] = seen.get(trial.block, -1) + 1
        _add(table, f"calibration {seen[trial.block]}", trial, CALIBRATED[0])
    return table


def _add(table: _Table, series: str, trial: TrialFigures, metric: str) -> None:
    value = trial.metrics[metric]
    if isinstance(trial.outcome, Ok) and not isinstance(value, Missing) and value > 0:
        table.setdefault(series, {})[trial.block] = log(value)

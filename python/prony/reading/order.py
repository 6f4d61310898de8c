"""Each trial against the mean of its own cell, in the order in which they ran: whether something changed.

Must not know words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from prony.analysis.drift import CALIBRATED
from prony.analysis.summary import TrialFigures
from prony.model import Ok, TrialRole
from prony.reading.groups import Group

__all__ = ["Placed", "in_order"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A trial's figure in ``metric``, as its ``change`` from the mean of its cell; both null where it has
    none, or is neither a subject's nor a calibration.
    """

    metric: str | None = None
    change: float | None = None


def in_order(trials: Sequence[TrialFigures], groups: Sequence[Group]) -> tuple[Placed, ...]:
    """Return where each trial stands, as they ran.

    *Definition*: value / mean - 1, with the mean over the cell's trials that ran their window, in the metric
    that decides under its load; of a calibration, over all calibrations, in the CPU time of a request.
    """
    deciding = {cell.cell.id: group.answer.metric or "ok_per_s" for group in groups for cell in group.cells}
    metrics = [_metric(trial, deciding) for trial in trials]
    values = dict(_values(trials, metrics))
    own: dict[object, list[float]] = {}
    for k, value in values.items():
        own.setdefault(_cell(trials[k]), []).append(value)
    means = {cell: fsum(found) / len(found) for cell, found in own.items()}
    return tuple(
        Placed(metric, values[k] / means[_cell(trials[k])] - 1 if k in values else None)
        for k, metric in enumerate(metrics)
    )


def _metric(trial: TrialFigures, deciding: Mapping[int, str]) -> str | None:
    match trial.role:
        case TrialRole.CALIBRATION:
            return CALIBRATED[1]
        case TrialRole.SUBJECT:
            return deciding.get(trial.cell_id)
        case _:
            return None


def _values(trials: Sequence[TrialFigures], metrics: Sequence[str | None]) -> Iterator[tuple[int, float]]:
    for k, (trial, metric) in enumerate(zip(trials, metrics, strict=True)):
        value = trial.metrics[metric] if metric and isinstance(trial.outcome, Ok) else None
        if isinstance(value, (int, float)) and value > 0:
            yield k, float(value)


def _cell(trial: TrialFigures) -> object:
    return trial.role, trial.cell_id

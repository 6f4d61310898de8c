"""Each trial against the mean of its own cell, in the order in which they ran: whether something changed.

Must not know words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, log1p
from statistics import median, stdev

from prony.analysis.compare import Comparison
from prony.analysis.drift import CALIBRATED
from prony.analysis.order_effect import InBlock, order_effect
from prony.analysis.summary import TrialFigures
from prony.metrics import METRICS, Better
from prony.model.shapes import INLINE
from prony.model.trial import Ok, TrialRole
from prony.reading.causes import Ended, ended
from prony.reading.groups import Group


@dataclass(frozen=True, slots=True)
class Placed:
    """A trial's figure in ``metric``, as its ``change`` from the mean of its cell; both null where it has
    none, or is neither a subject's nor a calibration.
    """

    metric: str | None = None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class TrialPosition:
    """A trial in the order in which they ran, and how it ended."""

    cell_id: int
    role: TrialRole
    """Why it was run."""
    block: int
    position: int
    attempt: int
    """Numbered from 0; of several the last counts."""
    started_unix_ns: int
    ended: Ended = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class PlacedTrial:
    """A trial in the order in which they ran, with its figure against the mean of its cell."""

    trial: TrialPosition = field(metadata=INLINE)
    placed: Placed = field(metadata=INLINE)


def position_of(trial: TrialFigures) -> TrialPosition:
    """Return where a trial stands in the order in which they ran."""
    numbers = (trial.block, trial.position, trial.attempt)
    return TrialPosition(trial.cell_id, trial.role, *numbers, trial.started_unix_ns, ended(trial.outcome))


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


def effect_of_order(
    trials: Sequence[TrialFigures], placed: Sequence[Placed], margin: float
) -> Comparison | None:
    """Return how subjects' trials that ran last in their block compare with those that ran first, in the
    metrics that decide, more being better; null where there are too few. ``placed``: of each trial.

    *Definition*: a trial weighs 1 / (s^2 + m^2), with s the spread of its cell and m the median of these.
    """
    found = {
        k: _achieved(one.metric, one.change)
        for k, (trial, one) in enumerate(zip(trials, placed, strict=True))
        if trial.role is TrialRole.SUBJECT and one.metric is not None and one.change is not None
    }
    by_cell: dict[int, list[float]] = {}
    for k, value in found.items():
        by_cell.setdefault(trials[k].cell_id, []).append(value)
    spreads = {cell: stdev(values) for cell, values in by_cell.items() if len(values) > 1}
    if not any(spreads.values()):
        return None
    usual = median(spread for spread in spreads.values() if spread)
    blocks: dict[int, list[InBlock]] = {}
    for k, value in found.items():
        trial = trials[k]
        if trial.cell_id in spreads:
            weight = 1 / (spreads[trial.cell_id] ** 2 + usual**2)
            blocks.setdefault(trial.block, []).append(InBlock(trial.started_unix_ns, value, weight))
    return order_effect(list(blocks.values()), margin)


def _achieved(metric: str, change: float) -> float:
    return (1 if METRICS[metric].better is Better.HIGHER else -1) * log1p(change)

"""Checks of the study's figures: the calibration over time, other generators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from prony.analysis.answer import log_ratios
from prony.analysis.by_session import in_sessions
from prony.analysis.compare import Comparison, Terms, compare_family
from prony.analysis.drift import CALIBRATED, Drift, drift
from prony.analysis.missing import Missing
from prony.analysis.summary import CellSummary, Estimate, Estimated, TrialFigures
from prony.model.shapes import INLINE, at
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.trial import Ok, TrialRole
from prony.reading.cells import or_null
from prony.reading.order import TrialPosition, position_of
from prony.units import seconds

CHECKED = ("ok_per_s", "service_ok_p50", "service_ok_p99")
"""The metrics in which other generators are compared with Prony's own."""


@dataclass(frozen=True, slots=True)
class Calibrations:
    """The trials of the reference server over a study: ``counted`` of ``trials``, and the drift of each
    metric that it was measured by.
    """

    trials: int
    counted: int
    drifts: Mapping[str, Drift] = field(metadata=at("metrics"))

    @shown
    def uncounted(self) -> int:
        """How many of them do not count."""
        return self.trials - self.counted


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One measurement of the calibration cell."""

    trial: TrialPosition = field(metadata=INLINE)
    metrics: Mapping[str, float | None]


def calibration_trials(trials: Iterable[TrialFigures]) -> tuple[Calibrated, ...]:
    """Return each measurement of the calibration cell."""
    own = (one for one in trials if one.role is TrialRole.CALIBRATION)
    return tuple(
        Calibrated(position_of(one), {name: or_null(one.metrics[name]) for name in CALIBRATED}) for one in own
    )


def calibrations(trials: Iterable[TrialFigures], margin: float) -> Calibrations | None:
    """Return what the calibration shows of the machine during the study; null without one.

    *Definition*: the drift is that of the blocks: calibrations of one block share its state, and three of
    them are not three witnesses.
    *Units*: the times of the drift are seconds, ``margin`` is relative.
    """
    found = [trial for trial in trials if trial.role is TrialRole.CALIBRATION]
    ok = [trial for trial in found if isinstance(trial.outcome, Ok)]
    if not found:
        return None
    drifts = {metric: drift(_points(ok, metric), margin) for metric in CALIBRATED}
    return Calibrations(len(found), len(ok), drifts)


def _points(trials: Iterable[TrialFigures], metric: str) -> list[tuple[float, float]]:
    """Return of each block when its calibrations ran, on average, and the median of what they measured."""
    blocks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for trial in trials:
        value = trial.metrics[metric]
        if not isinstance(value, Missing) and value > 0:
            found = blocks.setdefault((trial.session, trial.block), [])
            found.append((seconds(trial.started_unix_ns), value))
    return [
        (fmean(time for time, _ in found), median(value for _, value in found)) for found in blocks.values()
    ]


@dataclass(frozen=True, slots=True)
class CheckedCells:
    """Which cells a cross-check is of, and their figures."""

    cell_id: int
    check_cell_id: int
    name: str
    generator: str
    own: Estimated
    other: Estimated


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """A cell, the same under another generator, a metric that both have, and their comparison."""

    own: CellSummary = field(metadata=INTERNAL)
    other: CellSummary = field(metadata=INTERNAL)
    metric: str
    comparison: Comparison

    @shown_as("")
    def cells(self) -> CheckedCells:
        """Return which cells these are, with their figures."""
        own, other = self.own, self.other
        figures = own.metrics[self.metric], other.metrics[self.metric]
        return CheckedCells(own.cell.id, other.cell.id, own.name, other.cell.engine.name, *figures)


def cross_checks(
    cells: Iterable[CellSummary], checks: Sequence[CellSummary], margin: float
) -> tuple[CrossCheck, ...]:
    """Return the comparison of each of ``cells`` with its ``checks``: the same cell, another generator.

    *Definition*: all comparisons are one family; each is by block, or by session where there are several,
    over the blocks of a session that both have.
    """
    pairs = [(own, other) for other in checks for own in cells if _checks(own, other)]
    triples = [
        (own, other, metric) for own, other in pairs for metric in CHECKED if _both(own, other, metric)
    ]
    by_session = any(own.by_session is not None for own, _ in pairs)
    family = {k: _ratios(*triple, by_session=by_session) for k, triple in enumerate(triples)}
    found = compare_family(family, Terms(margin=margin, by_session=by_session))
    return tuple(CrossCheck(*triple, found[k]) for k, triple in enumerate(triples))


def _ratios(own: CellSummary, other: CellSummary, metric: str, *, by_session: bool) -> tuple[float, ...]:
    first, second = in_sessions((own, other)) if by_session else (own, other)
    return log_ratios(first, second, metric)


def _checks(own: CellSummary, other: CellSummary) -> bool:
    same = own.cell.subject == other.cell.subject and own.cell.workload == other.cell.workload
    return same and own.cell.engine.name != other.cell.engine.name


def _both(own: CellSummary, other: CellSummary, metric: str) -> bool:
    return isinstance(own.metrics[metric], Estimate) and isinstance(other.metrics[metric], Estimate)

"""Checks of the study's figures: the calibration over time, other generators."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import fsum, log1p
from statistics import fmean, median, stdev

from prony.core.metrics import METRICS, Better
from prony.core.units import seconds
from prony.figures.answer import log_ratios
from prony.figures.by_session import in_sessions
from prony.figures.drift import CALIBRATED, Drift, InBlock, drift, order_effect
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Comparison, Terms, compare_family
from prony.figures.summary import CellSummary, Estimate, Estimated, TrialFigures
from prony.model.json_codec import INLINE, at
from prony.model.plan import Original
from prony.model.shown import INTERNAL, shown, shown_as
from prony.model.subject import is_named
from prony.model.trial import Ok, TrialRole
from prony.reading.cells import or_null
from prony.reading.failures import Ended, ended
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
        # In rounds all servers of a block have every place.
        case TrialRole.SUBJECT if not trial.of_rounds:
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
    metrics that decide, more being better; None where there are too few. ``placed``: of each trial.

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
    """Return what the calibration shows of the machine during the study; None without one.

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
    return own.known(metric) is not None and other.known(metric) is not None


# --- the figures that an experiment published, each beside the cell that repeats it -----------------------


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure, and the cell that repeats it."""

    cell_id: int
    name: str
    metric: str
    role: str | None
    published: float
    note: str | None


@dataclass(frozen=True, slots=True)
class Beside:
    """A published figure, the cell that repeats it, and what was measured there."""

    original: Original = field(metadata=INTERNAL)
    cell: CellSummary = field(metadata=INTERNAL)
    measured: Estimate | Missing

    @shown_as("")
    def published(self) -> Published:
        """Return what was published, and of which cell."""
        said = self.original
        of = self.cell.cell.id, self.cell.name
        return Published(*of, said.metric, said.role or None, said.value, said.note or None)


def beside(cells: Iterable[CellSummary], originals: Sequence[Original]) -> tuple[Beside, ...]:
    """Return each published figure with each cell that repeats it, in the order of the cells."""
    return tuple(
        Beside(original, cell, _measured(original, cell))
        for cell in cells
        for original in originals
        if _repeats(cell, original)
    )


def _measured(original: Original, cell: CellSummary) -> Estimate | Missing:
    """Return the new figure for a published one: of all processes, or of those of its role.

    A subject without processes of that role has no such figure: the figure of all would mean something else.
    """
    if not original.role:
        return cell.metrics[original.metric]
    found = cell.roles.get(original.role, {})
    return found.get(original.metric, Missing(f"no process here has the role {original.role}"))


def _repeats(cell: CellSummary, original: Original) -> bool:
    return (
        is_named(cell.cell.subject.name, original.subject)
        and fnmatchcase(cell.cell.engine.name, original.engine)
        and cell.cell.is_under(original.load)
    )

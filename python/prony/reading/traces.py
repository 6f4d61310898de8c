"""What charts need besides results: whole distributions, and what a trial did second by second."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prony.core.metrics import METRICS, Better
from prony.core.units import SECOND_NS, seconds
from prony.figures.latency import LatencySummary, latency_summaries, read_distribution
from prony.figures.missing import Missing
from prony.figures.resources import cpu_share, roles
from prony.figures.summary import CellSummary, estimate_over
from prony.model.observation import Phase, Sample
from prony.model.recording import Recording, Second
from prony.model.trial import Trial, TrialRecord, TrialRole
from prony.reading.groups import Group
from prony.reading.study import StudyResults

CURVE = (
    *("0", "10", "25", "50", "60", "70", "75", "80", "85", "90", "92.5", "95", "96.5", "97.5", "98.5", "99"),
    *("99.25", "99.5", "99.7", "99.9", "99.95", "99.99", "99.995", "99.999"),
)
"""The percentiles of a curve: about evenly spaced in the number of requests for one that takes longer."""

_BINS_PER_DECADE = 8
_LEAST_APART_NS = SECOND_NS // 5


@dataclass(frozen=True, slots=True)
class PercentileCurve:
    """Latencies of a cell by percentile, each the mean over its trials, as every figure of a cell is.

    ``population``: `ok` or `all`; ``kind``: `response` or `service`. *Units*: nanoseconds. A percentile that
    one of the trials does not have is left out.
    """

    population: str
    kind: str
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Bin:
    """How many valid replies of one second took from ``low_ns`` to less than ``high_ns``."""

    low_ns: float
    high_ns: float
    replies: int


@dataclass(frozen=True, slots=True)
class SecondFigures:
    """What ended in one second of the window or the drain, and the latencies of its valid replies."""

    second: int
    ok: int
    failed: int
    max_ns: int | None
    bins: tuple[Bin, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a role used up to a moment since the sample before. ``at_s``: from the opening of
    the window, so negative in the warm-up; ``cpu_percent``: 100 is one core.
    """

    at_s: float
    phase: Phase
    role: str
    cpu_percent: float
    rss_bytes: int


class Choice(tuple[int, int, int]):
    """Which trial: its cell, block and attempt."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Picked:
    """The trials of a cell that charts show over time: the one in the middle, and the worst."""

    median: Choice
    worst: Choice


@dataclass(frozen=True, slots=True)
class TrialTrace:
    """A trial over time."""

    seconds: tuple[SecondFigures, ...]
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class Traces:
    """Curves by cell, and trials over time; ``picked`` says which trials these are, by cell."""

    curves: Mapping[int, tuple[PercentileCurve, ...]] = field(default_factory=dict)
    trials: Mapping[Choice, TrialTrace] = field(default_factory=dict)
    picked: Mapping[int, Picked] = field(default_factory=dict)


def traces(reading: StudyResults, trials: Iterable[TrialRecord], binned: Collection[int] = ()) -> Traces:
    """Return what charts show of an archive's ``trials``; each is dropped once that is taken.
    ``binned``: the cells whose worst trial is also kept by classes of latency.
    """
    picked = picked_trials(reading)
    shown = {choice for one in picked.values() for choice in (one.median, one.worst)}
    with_bins = {one.worst for cell, one in picked.items() if cell in binned}
    counted = {(one.cell_id, one.block, one.attempt) for cell in reading.cells for one in cell.counted}
    summaries: dict[int, list[dict[tuple[str, str], LatencySummary | None]]] = {}
    found: dict[Choice, TrialTrace] = {}
    for record in trials:
        trial = record.trial
        key = Choice((trial.cell_id, trial.block, trial.attempt))
        if trial.role is not TrialRole.SUBJECT or trial.recording is None or key not in counted:
            continue
        summaries.setdefault(trial.cell_id, []).append(latency_summaries(trial.recording, CURVE))
        if key in shown:
            found[key] = _trace(trial, key in with_bins)
    curves = {cell: tuple(_curves(ones)) for cell, ones in summaries.items()}
    return Traces(curves, found, picked)


# --- which trials -----------------------------------------------------------------------------------------


def picked_trials(reading: StudyResults) -> dict[int, Picked]:
    """Return the trials to show of each cell, by the metric that decides under its load."""
    cells = [(group, cell) for group in reading.groups for cell in group.cells]
    found = {cell.cell.id: _picked(cell, group.answer.metric or "ok_per_s") for group, cell in cells}
    return {cell: one for cell, one in found.items() if one is not None}


def _picked(cell: CellSummary, metric: str) -> Picked | None:
    values = [(trial.metrics[metric], trial) for trial in cell.windows]
    known = [(value, trial) for value, trial in values if not isinstance(value, Missing)]
    if not known:
        return None
    sign = -1.0 if METRICS[metric].better is Better.HIGHER else 1.0
    ranked = [trial for _, trial in sorted(known, key=lambda pair: (sign * pair[0], pair[1].block))]
    keys = [Choice((one.cell_id, one.block, one.attempt)) for one in ranked]
    return Picked(keys[(len(keys) - 1) // 2], keys[-1])


# --- distributions ----------------------------------------------------------------------------------------


def curves_of(recording: Recording) -> tuple[PercentileCurve, ...]:
    """Return the curves of one load."""
    return tuple(_curves([latency_summaries(recording, CURVE)]))


def _curves(
    summaries: Sequence[Mapping[tuple[str, str], LatencySummary | None]],
) -> Iterator[PercentileCurve]:
    for population, kind in (("ok", "response"), ("all", "response"), ("ok", "service"), ("all", "service")):
        own = [one for found in summaries if (one := found[population, kind]) is not None]
        points = tuple(_points(own)) if len(own) == len(summaries) else ()
        if points:
            yield PercentileCurve(population, kind, points)


def _points(summaries: Sequence[LatencySummary]) -> Iterator[tuple[str, float]]:
    for name in CURVE:
        values = [value for one in summaries if (value := one.percentiles[name]) is not None]
        if values and len(values) == len(summaries):
            yield name, estimate_over(values, "").mean


# --- over time --------------------------------------------------------------------------------------------


def _trace(trial: Trial, with_bins: bool) -> TrialTrace:
    recording = trial.recording
    opened = recording.window.open_ns if recording else None
    return TrialTrace(
        seconds_of(recording, with_bins=with_bins) if recording else (),
        tuple(_usage(trial.samples, opened)) if opened is not None else (),
    )


def seconds_of(recording: Recording, *, with_bins: bool) -> tuple[SecondFigures, ...]:
    """Return a load second by second. ``with_bins``: with the latencies of each second by class."""
    return tuple(_second(one, with_bins) for one in recording.series)


def _second(one: Second, with_bins: bool) -> SecondFigures:
    slowest = one.latency.max_ns if one.latency else None
    return SecondFigures(one.second, one.ok, one.failed, slowest, tuple(_bins(one)) if with_bins else ())


def _bins(one: Second) -> Iterator[Bin]:
    """Yield the classes of a second's latencies that have replies, evenly spaced by ratio."""
    times = read_distribution(one.latency)
    if times is None or times.histogram is None or times.min_ns is None or times.max_ns is None:
        return
    edge, below = _edge_below(times.min_ns), 0
    while below < times.count:
        low, high = _edge(edge), _edge(edge + 1)
        upto = times.count if high > times.max_ns else times.histogram.count_below(round(high))
        if upto > below:
            yield Bin(low, high, upto - below)
        edge, below = edge + 1, upto


def _edge(number: int) -> float:
    return float(10 ** (number / _BINS_PER_DECADE))


def _edge_below(value_ns: int) -> int:
    number = 0
    while _edge(number + 1) <= value_ns:
        number += 1
    return number


def _usage(samples: Sequence[Sample], opened_ns: int) -> Iterator[Usage]:
    for earlier, later in pairwise(_apart(samples)):
        if later.phase is Phase.IDLE:
            continue
        at_s = seconds(later.monotonic_ns - opened_ns)
        for role in roles((later,)):
            used = cpu_share((earlier, later), role)
            if not isinstance(used, Missing):
                resident = sum(one.rss_bytes for one in later.processes if one.role == role)
                yield Usage(at_s, later.phase, role, 100 * used, resident)


def _apart(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples without those that follow another at once, as at the opening of the window: CPU time
    counts in ticks of 10 ms, so over a few milliseconds it says nothing.
    """
    last_ns: int | None = None
    for sample in samples:
        if last_ns is None or sample.monotonic_ns - last_ns >= _LEAST_APART_NS:
            last_ns = sample.monotonic_ns
            yield sample


def primary_cells(groups: Iterable[Group]) -> set[int]:
    """Return the cells of the loads that verdicts were planned for."""
    return {cell.cell.id for group in groups if group.primary for cell in group.cells}

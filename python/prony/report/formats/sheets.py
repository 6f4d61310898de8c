"""A study, its sessions, and several archives as tidy tables for other programs: one row for each
observation, one unit for each column. Pure: rows are made on demand.

>>> header("response_ok_p99"), header("error_ratio")
('response_ok_p99 [ns]', 'error_ratio [1]')
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from prony.core.metrics import METRICS, Unit
from prony.figures.account import Tally
from prony.figures.latency import (
    LatencySummary,
    LoadPart,
    load_groups,
    load_paths,
    load_statuses,
    read_distribution,
    summarise,
)
from prony.figures.missing import Missing
from prony.figures.statistics.compare import NO_VERDICT
from prony.figures.steady_state import SteadyState
from prony.figures.summary import CellSummary, Estimate, cell_trimmed_mean, figures
from prony.model.plan import Cell
from prony.model.recording import Recording, Second
from prony.model.trial import Trial, TrialRecord, outcome_parts
from prony.reading.across import Across, LoadOver, SideKind
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.words import group_words

Row = tuple[str | int | float | None, ...]

UNITS: Mapping[Unit, str] = {
    Unit.RATE: "1/s",
    Unit.DURATION: "ns",
    Unit.RATIO: "1",
    Unit.PERCENT: "%",
    Unit.BYTES: "B",
    Unit.COUNT: "1",
}

ESTIMATE = ("count", "mean", "low", "high", "median", "min", "max")
"""The columns of an estimate."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: its name, its columns, and its rows, which are made when they are read."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def header(metric: str) -> str:
    """Return a metric's column: its name and its unit."""
    return f"{metric} [{UNITS[METRICS[metric].unit]}]"


def estimated(value: Estimate | Missing) -> Row:
    """Return the columns of an estimate; empty ones where it is missing."""
    if isinstance(value, Missing):
        return tuple(None for _ in ESTIMATE)
    return value.count, value.mean, value.low, value.high, value.median, value.min, value.max


def reason(value: Estimate | Missing) -> str | None:
    """Return why an estimate is missing; None where it is not."""
    return value.reason if isinstance(value, Missing) else None


_LOAD = ("connections", "rate [1/s]", "streams", "requests", "threads")
_CELL = ("cell_id", "subject", "engine", *_LOAD)


def sheets(reading: StudyResults, trials: Callable[[], Iterable[TrialRecord]]) -> tuple[Sheet, ...]:
    """Return all tables of a study. ``trials`` starts from the archive's first trial at each call."""
    cells = _cells(reading)
    return (
        Sheet("trials", _TRIAL_COLUMNS, (_trial(record, cells) for record in trials())),
        Sheet("cells", (*_CELL, *_CELL_COLUMNS), _cell_rows(reading)),
        Sheet("requests", _REQUEST_COLUMNS, _request_rows(trials())),
        Sheet("statuses", _STATUS_COLUMNS, _status_rows(trials())),
        *_part_sheets(reading, trials),
        Sheet("processes", _PROCESS_COLUMNS, _process_rows(trials())),
        Sheet("series", _SERIES_COLUMNS, _series_rows(trials())),
        Sheet("comparisons", _COMPARISON_COLUMNS, _comparison_rows(reading)),
        Sheet("standings", _STANDING_COLUMNS, _standing_rows(reading)),
        *([Sheet("levels", _LEVEL_COLUMNS, _level_rows(reading))] if reading.sweeps else []),
        Sheet("claims", _CLAIM_COLUMNS, _claim_rows(reading)),
        Sheet("originals", (*_CELL, *_ORIGINAL_COLUMNS), _original_rows(reading)),
        *(over_sheets(reading.across) if reading.across else ()),
    )


def _cells(reading: StudyResults) -> dict[int, Cell]:
    plan = reading.plan
    own = (*plan.cells, *([plan.calibration] if plan.calibration else []))
    added = [summary.cell for summaries in reading.added.values() for summary in summaries]
    return {cell.id: cell for cell in (*own, *added)}


def _load(load: Mapping[str, float]) -> Row:
    return tuple(load.get(name) for name in ("connections", "rate", "streams", "requests", "threads"))


def _cell(cell: Cell) -> Row:
    return cell.id, cell.subject.name, cell.engine.name, *_load(cell.load)


def _reasons(values: Mapping[str, float | Missing]) -> str:
    """Return why metrics are missing: each reason once, with its metrics."""
    by_reason: dict[str, list[str]] = {}
    for name, value in values.items():
        if isinstance(value, Missing):
            by_reason.setdefault(value.reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def _known(value: float | Missing | None) -> float | None:
    return None if isinstance(value, Missing) else value


# --- trials -----------------------------------------------------------------------------------------------

_TRIAL_COLUMNS = (
    *("trial_id", "run_id", "role", *_CELL, "block", "position", "attempt"),
    *("started_unix_ns [ns]", "ended_unix_ns [ns]", "outcome", "stage", "reason"),
    *("server_cpus", "generator_cpus", "pace", *(header(name) for name in METRICS), "missing"),
)


def _trial(record: TrialRecord, cells: Mapping[int, Cell]) -> Row:
    trial, found = record.trial, figures(record.trial)
    cell = cells.get(trial.cell_id)
    named = _cell(cell) if cell else (trial.cell_id, *(None for _ in _CELL[1:]))
    placed = trial.placement
    return (
        *(record.id, record.run_id, trial.role.value, *named, trial.block, trial.position, trial.attempt),
        *(trial.started_unix_ns, trial.ended_unix_ns, *outcome_parts(trial.outcome)),
        " ".join(map(str, placed.server_cpus)) if placed else None,
        " ".join(map(str, placed.generator_cpus)) if placed else None,
        found.steady.kind.value if isinstance(found.steady, SteadyState) else None,
        *(_known(found.metrics[name]) for name in METRICS),
        _reasons(found.metrics),
    )


_REQUEST_COLUMNS = ("trial_id", "cell_id", "block", "class", "status", "requests")


def _request_rows(trials: Iterable[TrialRecord]) -> Iterator[Row]:
    """Yield how the requests of each trial ended: the rows of a trial add up to all of them."""
    for record in trials:
        found = figures(record.trial).account
        own = (record.id, record.trial.cell_id, record.trial.block)
        for status, count in _ok_by_status(found).items():
            yield *own, "ok", status, count
        for ending, count in found.failed.items():
            yield *own, ending.name, ending.status, count


def _ok_by_status(found: Tally) -> Mapping[str | None, int]:
    whole: Mapping[str | None, int] = {None: found.ok} if found.requests else {}
    return dict(found.ok_status.items()) or whole


_STATUS_COLUMNS = (
    *("trial_id", "cell_id", "block", "status", "requests", "errors", "body_bytes [B]"),
    *(f"{kind}_{name} [ns]" for kind in ("response", "service") for name in ("p50", "p99", "max")),
)


def _status_rows(trials: Iterable[TrialRecord]) -> Iterator[Row]:
    """Yield the requests, bytes and times of complete replies of each status of each trial."""
    for record in trials:
        trial = record.trial
        for one in load_statuses(trial.recording):
            times = (_three(one.latency["all"][f"{kind}_ns"]) for kind in ("response", "service"))
            counts = (one.status, one.requests, one.errors, one.body_received)
            yield record.id, trial.cell_id, trial.block, *counts, *chain(*times)


_PART_COLUMNS = (
    *("name", "weight", "asked [1]", "share [1]", "requests", "errors", "body_bytes [B]", "connections"),
    *("of", "p50 [ns]", "p99 [ns]", "max [ns]"),
)


def _part_sheets(reading: StudyResults, trials: Callable[[], Iterable[TrialRecord]]) -> Iterator[Sheet]:
    """Yield the paths of mixes, and the groups of users, where loads have any."""
    loads = [cell.workload for cell in reading.plan.cells]
    for name, parts, has in (
        ("paths", load_paths, any(load.mix for load in loads)),
        ("groups", load_groups, any(load.groups for load in loads)),
    ):
        if has:
            yield Sheet(name, ("trial_id", "cell_id", "block", *_PART_COLUMNS), _part_rows(trials(), parts))


def _part_rows(
    trials: Iterable[TrialRecord], parts: Callable[[Recording | None], Sequence[LoadPart]]
) -> Iterator[Row]:
    """Yield the requests, bytes and times of all requests of each part of each trial's load."""
    for record in trials:
        trial = record.trial
        for one in parts(trial.recording):
            counts = (one.account.requests, one.account.lost, one.bytes.body_received, one.connections)
            own = (one.name, one.weight, one.asked, one.share, *counts, one.kind)
            yield record.id, trial.cell_id, trial.block, *own, *_three(one.all)


def _three(times: LatencySummary | None) -> Row:
    if times is None:
        return (None, None, None)
    return (times.percentiles["50"], times.percentiles["99"], times.max_ns)


_PROCESS_COLUMNS = ("trial_id", "cell_id", "block", "role", "metric", "unit", "value", "reason")


def _process_rows(trials: Iterable[TrialRecord]) -> Iterator[Row]:
    for record in trials:
        trial = record.trial
        for role, metrics in figures(trial).roles.items():
            for name, value in metrics.items():
                reason = value.reason if isinstance(value, Missing) else None
                unit = UNITS[METRICS[name].unit]
                yield record.id, trial.cell_id, trial.block, role, name, unit, _known(value), reason


_SERIES_COLUMNS = (
    *("trial_id", "cell_id", "block", "second [s]", "scheduled", "ok", "failed", "body_bytes [B]"),
    *("latency_count", "latency_min [ns]", "latency_mean [ns]", "latency_p50 [ns]", "latency_p99 [ns]"),
    *("latency_max [ns]", "reason"),
)


def _series_rows(trials: Iterable[TrialRecord]) -> Iterator[Row]:
    for record in trials:
        for second in record.trial.recording.series if record.trial.recording else ():
            yield _second(record.id, record.trial, second)


def _second(trial_id: int, trial: Trial, second: Second) -> Row:
    counts = (second.second, second.scheduled, second.ok, second.failed, second.body_bytes)
    own = (trial_id, trial.cell_id, trial.block, *counts)
    latency = read_distribution(second.latency)
    if latency is None or not latency.count:
        return *own, 0, *(None for _ in range(5)), "no reply in this second"
    found = summarise(latency)
    p99 = found.percentiles["99"]
    reason = "latency_p99: fewer than 10 requests lie above it" if p99 is None else None
    return *own, found.count, found.min_ns, found.mean_ns, found.percentiles["50"], p99, found.max_ns, reason


# --- cells ------------------------------------------------------------------------------------------------

_CELL_COLUMNS = (
    *("name", "trials_ok", "trials", "qualified", "unqualified_reason", "role", "metric", "unit"),
    *(*ESTIMATE, "trimmed_mean", "reason"),
)


def _cell_rows(reading: StudyResults) -> Iterator[Row]:
    for cell in reading.cells:
        yield from _metric_rows(cell, "", cell.metrics)
        for role, metrics in cell.roles.items():
            yield from _metric_rows(cell, role, metrics)


def _metric_rows(cell: CellSummary, role: str, metrics: Mapping[str, Estimate | Missing]) -> Iterator[Row]:
    qualified = "no" if cell.unqualified else "yes"
    own = (*_cell(cell.cell), cell.name, cell.ok, cell.total, qualified, cell.unqualified, role)
    for name, value in metrics.items():
        trimmed = None if role else _known(cell_trimmed_mean(cell, name))
        yield *own, name, UNITS[METRICS[name].unit], *estimated(value), trimmed, reason(value)


# --- what is said of them ---------------------------------------------------------------------------------

_COMPARISON_COLUMNS = (
    *("load", "screening", "metric", "first", "second", "blocks", "effect [1]", "low [1]", "high [1]"),
    *("level", "p_value", "method", "verdict"),
)


def _words(group: Group) -> str:
    return str(group_words(group, 0)) or "each its own"


def _comparison_rows(reading: StudyResults) -> Iterator[Row]:
    for group in reading.groups:
        found = group.answer
        for name, one in found.comparisons.items():
            yield (
                *(_words(group), "no" if group.primary else "yes", found.metric, found.leader, name),
                *(one.blocks, one.effect, one.low, one.high, one.level, one.p_value, one.method),
                one.verdict.value,
            )


_STANDING_COLUMNS = ("load", "measure", "metric", "name", "letters", "best", "blocks", "reason")


def _standing_rows(reading: StudyResults) -> Iterator[Row]:
    for group in reading.groups:
        for one in group.standings:
            own = (_words(group), one.measure, one.metric)
            for name in one.ranked:
                letters = (one.letters or {}).get(name)
                best = "yes" if name in one.best else "no"
                reason = None if letters else one.reason or "too few blocks for a verdict"
                yield *own, name, letters, best if one.decided else None, one.blocks, reason
            if not one.ranked:
                yield *own, None, None, None, one.blocks, one.reason


_LEVEL_COLUMNS = ("load", "sweep", "cell_id", "subject", "setting", "level", "number")


def _level_rows(reading: StudyResults) -> Iterator[Row]:
    for sweep in reading.sweeps:
        group = reading.groups[sweep.group]
        for point in sweep.points:
            own = (_words(group), sweep.name, group.cells[point.cell].cell.id, point.name)
            for factor, level in zip(sweep.factors, sweep.levels(point.name), strict=True):
                yield *own, factor.key, str(level.value), level.number


_CLAIM_COLUMNS = (
    *("claim", "text", "kind", "metric", "unit", "subject", "against", "engine", "role", *_LOAD),
    *("claimed_low", "claimed_high", "verdict", "n", "figure", "interval_low", "interval_high", "reason"),
)


def _claim_rows(reading: StudyResults) -> Iterator[Row]:
    for claim, result in reading.claims:
        yield (
            *(claim.name, claim.text, claim.kind.value, claim.metric, UNITS[METRICS[claim.metric].unit]),
            *(claim.subject, claim.against, claim.engine, claim.role, *_load(claim.load)),
            *(claim.low, claim.high, result.verdict.value, result.n, result.figure),
            *(result.interval or (None, None)),
            result.reason or None,
        )


_ORIGINAL_COLUMNS = ("role", "metric", "unit", "published", *ESTIMATE[:4], "reason", "note")


def _original_rows(reading: StudyResults) -> Iterator[Row]:
    for one in reading.originals:
        original, cell, value = one.original, one.cell, one.measured
        yield (
            *(*_cell(cell.cell), original.role or None),
            *(original.metric, UNITS[METRICS[original.metric].unit], original.value),
            *(*estimated(value)[:4], reason(value), original.note or None),
        )


# --- sessions, or archives, side by side ------------------------------------------------------------------

_SESSION_COLUMNS = (
    *("load", "metric", "unit", "subject", "session", "archive", "value", "first", "effect", "verdict"),
)
_ACROSS_COLUMNS = (
    *("load", "metric", "unit", "subject", "mean", "letters", "within", "between", "first", "effect"),
    *("low", "high", "least", "most", "effect_within", "effect_between", "verdict"),
)


# Of the same cells, whether they are sessions of one plan or archives of several.
_OVER_COLUMNS = (
    *("load", "metric", "unit", "subject", "place", "archive", "started_unix_ns [ns]", "version"),
    *(*ESTIMATE, "reason"),
)


def over_sheets(found: Across) -> tuple[Sheet, ...]:
    """Return the table of each subject on each side, and of how it compares in and over sessions."""
    over = Sheet("over", _OVER_COLUMNS, _over_rows(found))
    if found.kind is SideKind.ARCHIVE:
        return (over,)
    return (
        Sheet("sessions", _SESSION_COLUMNS, _session_rows(found)),
        Sheet("across", _ACROSS_COLUMNS, _across_rows(found)),
        over,
    )


def _own(one: LoadOver, metric: str) -> Row:
    return _words(one.group), metric, UNITS[METRICS[metric].unit]


def _over_rows(found: Across) -> Iterator[Row]:
    for one in found.loads:
        for metric in one.metrics:
            for name, row in one.cells.items():
                for side, cell in zip(found.sides, row, strict=True):
                    value = cell.metrics[metric] if cell else Missing("not measured there")
                    placed = (name, side.number, side.archive or None, side.started_unix_ns)
                    known = (side.versions.get(name), *estimated(value), reason(value))
                    yield *_own(one, metric), *placed, *known


def _session_rows(found: Across) -> Iterator[Row]:
    for one in found.loads:
        for row in one.rows:
            for k, (side, value) in enumerate(zip(found.sides, row.values, strict=True)):
                effect = None if row.ratio is None else row.ratio.effects[k]
                verdict = None if row.ratio is None else row.ratio.verdicts[k]
                own = (row.name, side.number, side.archive or None, value, one.rows[0].name)
                yield *_own(one, one.metric), *own, effect, verdict and verdict.value


def _across_rows(found: Across) -> Iterator[Row]:
    for one in found.loads:
        for row in one.rows:
            own = (row.name, row.mean, row.letters or None, row.within, row.between)
            ends: Row = (None,) * 9
            if (ratio := row.ratio) is not None:
                over = ratio.over
                verdict = None if over.verdict in NO_VERDICT else over.verdict.value
                figures = (over.effect, over.low, over.high, over.least, over.most)
                ends = (one.rows[0].name, *figures, ratio.within, ratio.between, verdict)
            yield *_own(one, one.metric), *own, *ends

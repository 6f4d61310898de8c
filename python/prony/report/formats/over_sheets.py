"""Sessions of one plan, and the same cells of several archives, as tables for other programs. Pure.

A table for other programs: one row for each observation, one unit for each column.

Pure: rows are made on demand.

>>> header("response_ok_p99"), header("error_ratio")
('response_ok_p99 [ns]', 'error_ratio [1]')
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prony.core.metrics import METRICS, Unit
from prony.figures.missing import Missing
from prony.figures.statistics.compare import NO_VERDICT
from prony.figures.summary import Estimate
from prony.reading.across import SameLoad, Sessions
from prony.reading.trend import Trend
from prony.report.words import group_words, load_words

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


def session_sheets(found: Sessions) -> tuple[Sheet, ...]:
    """Return the tables of sessions: each subject in each session, and over all of them."""
    steps = [_Step(one.archive, one.started_unix_ns, one.versions.get) for one in found.parts]
    return (
        Sheet("sessions", _SESSION_COLUMNS, _session_rows(found)),
        Sheet("across", _ACROSS_COLUMNS, _across_rows(found)),
        Sheet("over", _OVER_COLUMNS, _over_rows([one.same for one in found.loads], steps)),
    )


def trend_sheets(found: Trend) -> tuple[Sheet, ...]:
    """Return the table of the same cells in archives of different plans."""
    steps = [_Step(one.name, one.started_unix_ns, one.version) for one in found.editions]
    return (Sheet("over", _OVER_COLUMNS, _over_rows(found.loads, steps)),)


@dataclass(frozen=True, slots=True)
class _Step:
    """A session or an archive: the archive's name, when it began, and the version of a subject's server."""

    archive: str
    started_unix_ns: int
    version: Callable[[str], str | None]


def _over_rows(loads: Iterable[SameLoad], steps: Sequence[_Step]) -> Iterator[Row]:
    for one in loads:
        for metric in one.metrics:
            own = (str(load_words(one.workload, "")), metric, UNITS[METRICS[metric].unit])
            for name, row in one.cells.items():
                for k, (step, cell) in enumerate(zip(steps, row, strict=True)):
                    value = cell.metrics[metric] if cell else Missing("not measured there")
                    placed = (name, k + 1, step.archive or None, step.started_unix_ns, step.version(name))
                    yield *own, *placed, *estimated(value), reason(value)


def _words(found: Sessions, place: int) -> str:
    return str(group_words(found.parts[0].groups[place], 0)) or "each its own"


def _session_rows(found: Sessions) -> Iterator[Row]:
    for one in found.loads:
        words, unit = _words(found, one.place), UNITS[METRICS[one.metric].unit]
        first = one.rows[0].name
        for row in one.rows:
            for k, (part, value) in enumerate(zip(found.parts, row.values, strict=True)):
                effect = None if row.ratio is None else row.ratio.effects[k]
                verdict = None if row.ratio is None else row.ratio.verdicts[k]
                own = (words, one.metric, unit, row.name, k + 1, part.archive or None, value)
                yield *own, first, effect, None if verdict is None else verdict.value


def _across_rows(found: Sessions) -> Iterator[Row]:
    for one in found.loads:
        words, unit = _words(found, one.place), UNITS[METRICS[one.metric].unit]
        first = one.rows[0].name
        for row in one.rows:
            letters = row.letters or None
            own = (words, one.metric, unit, row.name, row.mean, letters, row.within, row.between)
            ratio = row.ratio
            if ratio is None:
                yield *own, *(None,) * 9
                continue
            over = ratio.over
            ends = (over.effect, over.low, over.high, over.least, over.most, ratio.within, ratio.between)
            yield *own, first, *ends, None if over.verdict in NO_VERDICT else over.verdict.value

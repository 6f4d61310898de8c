"""How much an archive may hold, so that a small file does not become gigabytes of memory or hours of time.

The largest built-in study has 696 trials and 171 cells; its texts and objects in JSON are kilobytes. Each
cap is ten times more at least. What is kept in memory as a whole (plan, runs, cells, subjects, the trials'
own rows) has common caps as well; all else is read trial by trial (`prony.archive.rows`).

Of samples every second one stays, third one, and so on: CPU times and switches are cumulative, so fewer
samples lose resolution, and no figure of the whole window. Of threads the busiest stay, of events the
first. Pure.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import nlargest
from math import ceil
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

from prony.archive.guard import columns
from prony.core.errors import ArchiveError
from prony.core.units import KIB, MIB
from prony.model.observation import Sample
from prony.model.plan import Cell
from prony.model.trial import Trial

MOST_ROWS: Mapping[str, int] = MappingProxyType(
    {"meta": 1, "plan": 1, "run": 1000, "cell": 2000, "subject": 1000, "trial": 10_000}
)
"""Rows of a table that is kept in memory."""

MOST_ROWS_OF_A_TRIAL: Mapping[str, int] = MappingProxyType(
    {
        "distribution": 100,
        # A day, and its drain, at one a second; at two a second with eleven processes.
        "series": 200_000,
        "sample": 200_000,
        "process_sample": 2_000_000,
        "gauge": 4_000_000,
        "thread": 100_000,
        "slice": 10_000,
        "counter": 10_000,
        "event": 100_000,
    }
)
"""Rows of one trial."""

MOST_ROLES = 100
"""Of the processes of one trial: each has tables and figures of its own."""

# Whole bodies of requests are in it, as base64.
_MOST_JSON_BYTES = 16 * MIB
_MOST_TEXT_BYTES = 256 * KIB
# Of programs, where the kernel allows 2 MiB, and of Prony itself.
_COMMAND_LINES = frozenset((("plan", "text"), ("subject", "command_line"), ("process", "command")))
_MOST_COMMAND_LINE_BYTES = 4 * MIB
# Kept of a process's, in characters of at most four bytes: it is stored once for each process.
_MOST_COMMAND = 64 * KIB
# A process may listen as often as it has descriptors; each is seven values of the trial's facts.
_MOST_LISTENERS = 1000
# 33,792 counts of at most 9 bytes, deflated, and a log of 4 MiB, deflated.
_MOST_BLOB_BYTES = 4 * MIB
# Values of one JSON text, counted by its punctuation. A value takes some 100 bytes of memory.
_MOST_VALUES = 10_000
_MOST_VALUES_OF: Mapping[tuple[str, str], int] = MappingProxyType(
    {
        ("run", "fingerprint_json"): 100_000,
        ("run", "facts_json"): 100_000,
        ("plan", "originals_json"): 100_000,
        ("recording", "recording_json"): 100_000,
        # Every report shows them in full.
        ("plan", "notes_json"): 1000,
        ("subject", "sandbox_json"): 1000,
    }
)
# Of all that is kept.
_MOST_KEPT_BYTES = 128 * MIB
_MOST_KEPT_VALUES = 1_000_000
# Each is compared with each: 400 take half a minute.
_MOST_SUBJECTS = 250
# What may be below 0: the difference of a counter, a gauge.
_SIGNED = frozenset((("counter", "delta_count"), ("gauge", "value")))


@dataclass(frozen=True, slots=True)
class _Cap:
    """What a column holds at most; null: it holds no number below 0. ``measure`` is SQL, ``unit`` follows
    its number.
    """

    table: str
    column: str
    measure: str
    most: int | None
    unit: str

    @property
    def broken(self) -> str:
        """SQL that is true of a row that breaks it."""
        return f"{self.measure} < 0" if self.most is None else f"{self.measure} > {self.most}"


def _bytes(column: str) -> str:
    return f"length(CAST({column} AS BLOB))"


def _values(column: str) -> str:
    """Return SQL for the number of values in a JSON text, or more: each but the first follows ``,[{``."""
    without = " - ".join(f"length(replace({column}, '{mark}', ''))" for mark in ",[{")
    return f"(3 * length({column}) - {without})"


def _of_column(table: str, column: str, kind: str) -> Iterator[_Cap]:
    match kind:
        case "TEXT" if column.endswith("_json"):
            yield _Cap(table, column, _bytes(column), _MOST_JSON_BYTES, " bytes")
            most = _MOST_VALUES_OF.get((table, column), _MOST_VALUES)
            yield _Cap(table, column, _values(column), most, " values")
        case "TEXT" if (table, column) in _COMMAND_LINES:
            yield _Cap(table, column, _bytes(column), _MOST_COMMAND_LINE_BYTES, " bytes")
        case "TEXT":
            yield _Cap(table, column, _bytes(column), _MOST_TEXT_BYTES, " bytes")
        case "BLOB":
            yield _Cap(table, column, f"length({column})", _MOST_BLOB_BYTES, " bytes")
        case "INTEGER" if (table, column) not in _SIGNED:
            yield _Cap(table, column, column, None, "")


@cache
def _caps() -> Mapping[str, tuple[_Cap, ...]]:
    """Return the caps of the columns of each table."""
    return {
        table: tuple(cap for column, kind in kinds.items() for cap in _of_column(table, column, kind))
        for table, kinds in columns().items()
    }


def check_caps(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of the right tables that holds more than any study, or numbers below 0.

    *Errors*: ArchiveError with table, column, what it has, and what was expected.
    """
    for table, most in MOST_ROWS.items():
        (rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - names of our own
        if rows > most:
            raise _over(path, f"its table `{table}` has {rows:,} rows", f"at most {most:,}")
    for caps in _caps().values():
        _check_columns(database, path, caps)
    for measure, most, unit in (
        (_bytes, _MOST_KEPT_BYTES, "bytes"),
        (_values, _MOST_KEPT_VALUES, "values of JSON"),
    ):
        found = sum(_total(database, table, measure) for table in MOST_ROWS)
        if found > most:
            raise _over(path, f"{', '.join(MOST_ROWS)} have {found:,} {unit} together", f"at most {most:,}")


def check_subjects(cells: Sequence[Cell]) -> None:
    """Refuse cells of more subjects than any study has.

    *Errors*: ValueError.
    """
    found = len({cell.subject.name for cell in cells})
    if found > _MOST_SUBJECTS:
        raise ValueError(f"{found:,} subjects; expected at most {_MOST_SUBJECTS}")


def _check_columns(database: sqlite3.Connection, path: Path, caps: tuple[_Cap, ...]) -> None:
    """Look at all columns of a table in one pass; for the row that is refused, in another."""
    table = caps[0].table
    asked = ", ".join(f"max({cap.broken})" for cap in caps)
    broken = database.execute(f"SELECT {asked} FROM {table}").fetchone()  # noqa: S608 - names of our own
    for cap in (cap for cap, is_broken in zip(caps, broken, strict=True) if is_broken):
        row, found = database.execute(
            f"SELECT rowid, {cap.measure} FROM {table} WHERE {cap.broken} LIMIT 1"  # noqa: S608 - names of our own
        ).fetchone()
        if cap.most is None:
            raise ArchiveError(
                f"`{path}` is damaged: `{table}.{cap.column}` of row {row} is {found}; expected at least 0"
            )
        raise _over(
            path, f"`{table}.{cap.column}` of row {row} has {found:,}{cap.unit}", f"at most {cap.most:,}"
        )


def _total(database: sqlite3.Connection, table: str, measure: Callable[[str], str]) -> int:
    """Return the sum of a measure over the texts of a table: its JSON for values, all for bytes."""
    counted = [
        column
        for column, kind in columns()[table].items()
        if kind == "TEXT" and (measure is _bytes or column.endswith("_json"))
    ]
    if not counted:
        return 0
    summed = " + ".join(f"coalesce(sum({measure(column)}), 0)" for column in counted)
    (found,) = database.execute(f"SELECT {summed} FROM {table}").fetchone()  # noqa: S608 - names of our own
    return int(found)


def _over(path: Path, found: str, expected: str) -> ArchiveError:
    return ArchiveError(f"`{path}` holds more than an archive may: {found}; expected {expected}")


# --- keeps a very large trial within what a reader takes --------------------------------------------------


# Room for the ends of the phases, and for samples with more processes than the usual.
_FILLED = 0.9


def thinned(trial: Trial, most: Mapping[str, int] = MOST_ROWS_OF_A_TRIAL) -> Trial:
    """Return a trial with as many samples, threads, events and listeners as fit, and the beginnings of long
    command lines; what is not kept stands in its facts.

    The first and the last sample of each phase are always kept.
    """
    return _with_fewer_samples(_with_shorter_commands(_with_fewer_rows(trial, most)), most)


def _with_fewer_rows(trial: Trial, most: Mapping[str, int]) -> Trial:
    threads = trial.threads
    if len(threads) > most["thread"]:
        threads = tuple(nlargest(most["thread"], threads, key=attrgetter("cpu_ns")))
    events = trial.events[: most["event"]]
    # First those at which the load arrives.
    listeners = trial.facts.listeners[:_MOST_LISTENERS]
    left_out = {
        "threads_left_out": len(trial.threads) - len(threads),
        "events_left_out": len(trial.events) - len(events),
        "listeners_left_out": len(trial.facts.listeners) - len(listeners),
    }
    if not any(left_out.values()):
        return trial
    facts = replace(trial.facts, listeners=listeners, free={**trial.facts.free, **left_out})
    return replace(trial, threads=threads, events=events, facts=facts)


def _with_shorter_commands(trial: Trial) -> Trial:
    """A process can give itself any command line, and what is no text is written longer than it is."""
    if all(len(one.command) <= _MOST_COMMAND for sample in trial.samples for one in sample.processes):
        return trial

    def shorter(sample: Sample) -> Sample:
        cut = (replace(one, command=one.command[:_MOST_COMMAND]) for one in sample.processes)
        return replace(sample, processes=tuple(cut))

    return replace(trial, samples=tuple(map(shorter, trial.samples)))


def _with_fewer_samples(trial: Trial, most: Mapping[str, int]) -> Trial:
    over = _thinned_over(trial.samples, most)
    if over <= 1:
        return trial
    step = ceil(over / _FILLED)
    facts = replace(trial.facts, free={**trial.facts.free, "one_sample_in": step})
    return replace(trial, samples=_every(trial.samples, step), facts=facts)


def _thinned_over(samples: Sequence[Sample], most: Mapping[str, int]) -> float:
    """Return how many times the rows of samples exceed what fits; 1 and below: they fit."""
    rows = {
        "sample": len(samples),
        "process_sample": sum(len(sample.processes) for sample in samples),
        "gauge": sum(len(sample.gauges) for sample in samples),
    }
    return max(found / most[table] for table, found in rows.items())


def _every(samples: Sequence[Sample], step: int) -> tuple[Sample, ...]:
    last = len(samples) - 1
    return tuple(
        sample
        for k, sample in enumerate(samples)
        if k % step == 0
        or k == last
        or sample.phase is not samples[k - 1].phase
        or sample.phase is not samples[k + 1].phase
    )

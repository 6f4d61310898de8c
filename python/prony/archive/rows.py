"""A trial as rows of the archive's tables, and back. SQL on an open connection; the transaction is the
caller's.

A Recording is taken apart: its distributions and its series become rows with the histogram as a BLOB, the
rest stays JSON. What is read back equals what was written.
"""

import sqlite3
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

from prony.archive.caps import MOST_ROLES, MOST_ROWS_OF_A_TRIAL
from prony.archive.codec import check_steps, dump, load_object, load_value, masked_load
from prony.archive.guard import check_histogram, columns, inflate_log
from prony.core.errors import FailureStage
from prony.model.address import Tls
from prony.model.facts import TrialEvent
from prony.model.json_codec import Json, decode, encode
from prony.model.observation import LogTail, Phase, ProcessRow, Sample, Slice, ThreadUsage
from prony.model.recording import (
    Distribution,
    Distributions,
    Recording,
    Specification,
    decode_recording,
    times_of,
)
from prony.model.trial import (
    Failed,
    Fault,
    Invalid,
    Ok,
    Outcome,
    Trial,
    TrialRecord,
    TrialRole,
    outcome_parts,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
_Row = tuple[Any, ...]
# Columns that are not called as the field.
_RENAMED = {
    "blocks_count": "blocks",
    "run_id": "id",
    "subject_name": "name",
    "unavailable_reason": "unavailable",
}
_OF_OUTCOME = ("outcome", "outcome_stage", "outcome_reason")
_OF_FAULT = ("kind", "slept_ns", "share", "text")
_NO_TIMES = Distributions()
# The table of seconds has no column for them.
_DUE_OK = "series_due_ok"


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[_Row]) -> None:
    for row in rows:
        database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)  # noqa: S608 - table is ours


def insert_row(
    database: sqlite3.Connection, table: str, row: Mapping[str, object], verb: str = "INSERT"
) -> int:
    """Write a row by the names of its columns, and return its number."""
    marks = ",".join("?" * len(row))
    sql = f"{verb} INTO {table} ({','.join(row)}) VALUES ({marks})"
    return database.execute(sql, tuple(row.values())).lastrowid or 0


def columns_of(value: "DataclassInstance", table: str) -> dict[str, object]:
    """Return the fields of a value for which a table has columns; those of `*_json` as JSON."""
    names = {one.name for one in fields(value)}
    return {
        column: _written(getattr(value, name), is_json=column.endswith("_json"))
        for column in columns()[table]
        if (name := _field_of(column)) in names
    }


def _written(value: object, *, is_json: bool) -> object:
    one = encode(value)
    return dump(one) if is_json and one is not None else one


def from_columns(kind: type[T], row: Mapping[str, Any], **more: object) -> T:
    """Return a value from the columns of its fields, and ``more`` fields. *Errors*: ShapeError."""
    hints = _hints(cast("Hashable", kind))
    found = {
        name: decode(hints[name], load_value(value) if is_json and value is not None else value, name)
        for column, value in row.items()
        for name, is_json in [(_field_of(column), column.endswith("_json"))]
    }
    return kind(**found, **more)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _field_of(column: str) -> str:
    return _RENAMED.get(column, column.removesuffix("_json"))


def _of_trial(found: Iterable[_Row], table: str) -> Iterator[_Row]:
    """Yield a trial's rows of a table, and no more than a trial has."""
    most = MOST_ROWS_OF_A_TRIAL[table]
    for number, row in enumerate(found):
        if number == most:
            raise ValueError(f"a trial has more rows in the table `{table}`; expected at most {most:,}")
        yield row


# --- the trial's own row ----------------------------------------------------------------------------------


def _read_outcome(kind: str, stage: str | None, reason: str | None) -> Outcome:
    match kind:
        case "ok":
            return Ok()
        case "failed":
            return Failed(FailureStage(stage or ""), reason or "")
        case "invalid":
            return Invalid(reason or "")
        case _:
            raise ValueError(f"unknown outcome `{kind}`")


def insert_trial(database: sqlite3.Connection, run_id: int, trial: Trial) -> int:
    """Write all rows of one trial and return its id."""
    outcome = dict(zip(_OF_OUTCOME, outcome_parts(trial.outcome), strict=True))
    fault = {f"fault_{name}": value for name, value in (encode(trial.fault) if trial.fault else {}).items()}
    own = columns_of(trial, "trial") | outcome | fault
    trial_id = insert_row(database, "trial", {"run_id": run_id, **own})
    _insert_recording(database, trial_id, trial.recording)
    _insert_samples(database, trial_id, trial.samples)
    _insert(database, "counter", ((trial_id, name, delta, None) for name, delta in trial.counters.items()))
    _insert(database, "counter", ((trial_id, name, None, reason) for name, reason in trial.missing.items()))
    text = trial.log.text.encode("utf-8", "replace")
    _insert(database, "log", [(trial_id, zlib.compress(text), len(text), int(trial.log.truncated))])
    events = ((trial_id, number, dump(encode(event))) for number, event in enumerate(trial.events))
    _insert(database, "event", events)
    _insert(database, "thread", ((trial_id, *astuple(thread)) for thread in trial.threads))
    insert_slices(database, trial_id, trial.slices)
    return trial_id


def insert_slices(database: sqlite3.Connection, trial_id: int, slices: Iterable[Slice]) -> None:
    """Write a trial's slices."""
    _insert(database, "slice", ((trial_id, *astuple(one)) for one in slices))


def latest_trial(database: sqlite3.Connection, cell_id: int, block: int) -> int | None:
    """Return the id of the last attempt at a cell in a block; None: there is none."""
    row = database.execute(
        "SELECT trial_id FROM trial WHERE cell_id = ? AND block = ? AND role = ?"
        " ORDER BY attempt DESC LIMIT 1",
        (cell_id, block, TrialRole.SUBJECT.value),
    ).fetchone()
    return None if row is None else int(row[0])


# --- the recording ----------------------------------------------------------------------------------------


def _distribution_columns(found: Distribution | None) -> _Row:
    return (None,) * 5 if found is None else astuple(found)


def _read_distribution(columns: Sequence[Any]) -> Distribution | None:
    count, min_ns, max_ns, sum_ns, blob = columns
    if count is None:
        return None
    if min(count, min_ns or 0, max_ns or 0, sum_ns or 0) < 0:
        raise ValueError(f"a distribution of {count} times from {min_ns} to {max_ns} ns")
    # The table is STRICT: what is there is of the right type.
    return Distribution(count, min_ns, max_ns, sum_ns, None if blob is None else check_histogram(blob))


def _insert_recording(database: sqlite3.Connection, trial_id: int, recording: Recording | None) -> None:
    if recording is None:
        return
    times = times_of(recording.distributions)
    rest = encode(replace(recording, distributions=_NO_TIMES, series=(), spec=_shown(recording.spec)))
    rest["distributions"] = {one.name: None for one in fields(Distributions) if one.name not in times}
    due = [one for one in recording.series if one.scheduled and one.due_ok is not None]
    rest[_DUE_OK] = {str(one.second): one.due_ok for one in due} if recording.is_open else {}
    _insert(database, "recording", [(trial_id, dump(rest))])
    _insert(database, "distribution", ((trial_id, name, *astuple(found)) for name, found in times.items()))
    _insert(
        database,
        "series",
        (
            (
                *(trial_id, one.second, one.scheduled, one.ok, one.failed, one.body_bytes),
                *_distribution_columns(one.latency),
            )
            for one in recording.series
        ),
    )


def _shown(spec: Specification | None) -> Specification | None:
    """Return a specification that may be published: without the values of secret headers, and of files only
    the names.
    """
    if spec is None:
        return None
    workload = spec.workload and masked_load(spec.workload)
    target = spec.target and replace(spec.target, tls=_without_folder(spec.target.tls))
    return replace(spec, target=target, workload=workload)


def _without_folder(asked: Tls | None) -> Tls | None:
    # A study's generator has no certificate of its own.
    return asked and replace(asked, ca_file=asked.ca_file and asked.ca_file.rpartition("/")[2])


def _read_recording(database: sqlite3.Connection, trial_id: int) -> Recording | None:
    row = database.execute("SELECT recording_json FROM recording WHERE trial_id = ?", (trial_id,)).fetchone()
    if row is None:
        return None
    try:
        frame = load_object(row[0])
        due_ok = frame.pop(_DUE_OK, {})
        if not isinstance(due_ok, dict):
            raise TypeError(f"its {_DUE_OK} is no object")
        series = [
            {**one, "due_ok": due_ok.get(str(one["second"]))} for one in _read_series(database, trial_id)
        ]
        distributions = _read_distributions(database, trial_id)
        found = decode_recording({**frame, "distributions": distributions, "series": series})
        _check_histograms(found)
        return found
    except (ValueError, TypeError) as error:
        raise ValueError(f"trial {trial_id} holds a Recording that cannot be read: {error}") from error


def _check_histograms(found: Recording) -> None:
    """Refuse histograms that are none, of those that are in the JSON and not in columns."""
    optional = (one for one in (found.tls, found.streams) if one is not None)
    of_groups = (one.distributions for one in found.groups)
    holders = (*found.paths, *found.stages, *found.statuses.values(), *of_groups, *optional)
    for value in (times for holder in holders for times in times_of(holder).values()):
        if value.histogram is not None:
            check_histogram(value.histogram)


def _read_distributions(database: sqlite3.Connection, trial_id: int) -> Json:
    found = database.execute(
        "SELECT name, requests_count, min_ns, max_ns, sum_ns, histogram FROM distribution WHERE trial_id = ?",
        (trial_id,),
    )
    return {name: _read_distribution(columns) for name, *columns in _of_trial(found, "distribution")}


def _read_series(database: sqlite3.Connection, trial_id: int) -> tuple[Json, ...]:
    found = database.execute(
        "SELECT second, scheduled_count, ok_count, failed_count, body_bytes, latency_count, latency_min_ns,"
        " latency_max_ns, latency_sum_ns, latency_histogram FROM series WHERE trial_id = ? ORDER BY second",
        (trial_id,),
    )
    names = ("second", "scheduled", "ok", "failed", "body_bytes")
    return tuple(
        {**dict(zip(names, row, strict=False)), "latency": _read_distribution(row[len(names) :])}
        for row in _of_trial(found, "series")
    )


# --- the samples ------------------------------------------------------------------------------------------


def _insert_samples(database: sqlite3.Connection, trial_id: int, samples: Iterable[Sample]) -> None:
    known: dict[_Row, int] = {}
    for sample in samples:
        cursor = database.execute(
            "INSERT INTO sample VALUES (NULL,?,?,?,?,?,?)",
            (
                trial_id,
                sample.monotonic_ns,
                sample.phase.value,
                sample.machine_busy_ns,
                sample.machine_idle_ns,
                sample.machine_steal_ns,
            ),
        )
        sample_id = cursor.lastrowid or 0
        for process in sample.processes:
            row = astuple(process)
            identity, usage = row[:4], row[4:]
            if identity not in known:
                cursor = database.execute(
                    "INSERT INTO process VALUES (NULL,?,?,?,?,?)", (trial_id, *identity)
                )
                known[identity] = cursor.lastrowid or 0
            _insert(database, "process_sample", [(sample_id, known[identity], *usage)])
        _insert(database, "gauge", ((sample_id, name, value) for name, value in sample.gauges.items()))


def _read_samples(database: sqlite3.Connection, trial_id: int) -> tuple[Sample, ...]:
    usage: dict[int, list[ProcessRow]] = {}
    processes = database.execute(
        "SELECT u.sample_id, p.pid, p.start_time_ticks, p.role, p.command, u.user_ns, u.system_ns,"
        " u.rss_bytes, u.vsz_bytes, u.threads_count, u.pss_bytes, u.uss_bytes,"
        " u.rss_peak_bytes, u.voluntary_switches_count, u.involuntary_switches_count, u.descriptors_count"
        " FROM process p JOIN process_sample u ON u.process_id = p.process_id"
        " JOIN sample s ON s.sample_id = u.sample_id"
        " WHERE s.trial_id = ? ORDER BY u.rowid",
        (trial_id,),
    )
    roles: set[str] = set()
    for sample_id, *own in _of_trial(processes, "process_sample"):
        row = ProcessRow(*own)
        usage.setdefault(sample_id, []).append(row)
        roles.add(row.role)
        if len(roles) > MOST_ROLES:
            raise ValueError(f"a trial has more roles of processes; expected at most {MOST_ROLES}")
    gauges: dict[int, dict[str, int]] = {}
    read = database.execute(
        "SELECT g.sample_id, g.name, g.value FROM gauge g JOIN sample s ON s.sample_id = g.sample_id"
        " WHERE s.trial_id = ? ORDER BY g.rowid",
        (trial_id,),
    )
    for sample_id, name, value in _of_trial(read, "gauge"):
        gauges.setdefault(sample_id, {})[name] = value
    found = database.execute(
        "SELECT sample_id, monotonic_ns, phase, machine_busy_ns, machine_idle_ns, machine_steal_ns"
        " FROM sample WHERE trial_id = ? ORDER BY sample_id",
        (trial_id,),
    )
    return tuple(
        Sample(
            monotonic_ns,
            Phase(phase),
            tuple(usage.get(sample_id, ())),
            busy,
            idle,
            steal,
            gauges.get(sample_id, {}),
        )
        for sample_id, monotonic_ns, phase, busy, idle, steal in _of_trial(found, "sample")
    )


# --- reading a trial --------------------------------------------------------------------------------------


def _read_log(database: sqlite3.Connection, trial_id: int) -> LogTail:
    row = database.execute(
        "SELECT text_deflate, truncated FROM log WHERE trial_id = ?", (trial_id,)
    ).fetchone()
    return LogTail("") if row is None else LogTail(inflate_log(row[0]), bool(row[1]))


def read_trial(database: sqlite3.Connection, row: _Row) -> TrialRecord:
    """Return the trial whose row of the table `trial` is ``row``."""
    own = dict(zip(columns()["trial"], row, strict=True))
    trial_id, run_id = own.pop("trial_id"), own.pop("run_id")
    outcome = [own.pop(name) for name in _OF_OUTCOME]
    fault = {name: own.pop(f"fault_{name}") for name in _OF_FAULT}
    found = database.execute(
        "SELECT name, delta_count, missing_reason FROM counter WHERE trial_id = ? ORDER BY rowid", (trial_id,)
    )
    counters = [*_of_trial(found, "counter")]
    threads = database.execute(
        "SELECT pid, tid, name, cpu_ns FROM thread WHERE trial_id = ? ORDER BY rowid", (trial_id,)
    )
    slices = database.execute("SELECT * FROM slice WHERE trial_id = ? ORDER BY round", (trial_id,))
    events = database.execute("SELECT event_json FROM event WHERE trial_id = ? ORDER BY number", (trial_id,))
    trial = from_columns(
        Trial,
        own,
        outcome=_read_outcome(*outcome),
        recording=_read_recording(database, trial_id),
        samples=_read_samples(database, trial_id),
        counters={name: delta for name, delta, _ in counters if delta is not None},
        missing={name: missing or "not known" for name, delta, missing in counters if delta is None},
        log=_read_log(database, trial_id),
        events=tuple(
            decode(TrialEvent, load_object(text), "event") for (text,) in _of_trial(events, "event")
        ),
        threads=tuple(ThreadUsage(*columns) for columns in _of_trial(threads, "thread")),
        fault=None if fault["kind"] is None else decode(Fault, fault, "fault"),
        slices=tuple(
            replace(Slice(*columns), counts=bool(columns[-1])) for _, *columns in _of_trial(slices, "slice")
        ),
    )
    check_steps([trial.facts.find_rate.step] if trial.facts.find_rate else [])
    return TrialRecord(trial_id, run_id, trial)

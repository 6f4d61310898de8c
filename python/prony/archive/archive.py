"""Archives: create one, append trials to it, open one to read.

One transaction per trial with a rollback journal and full synchronisation: a process that is killed loses
at most the trial that was running. (A write-ahead log was rejected: after a kill the main file, copied
alone, holds nothing.)
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prony.archive import codec
from prony.archive.guard import (
    APPLICATION_ID,
    FORMAT_VERSION,
    check_database,
    check_header,
    limit,
    table_columns,
)
from prony.archive.records import Run, RunStatus, SubjectRecord, TrialRecord
from prony.archive.rows import insert_trial, read_trial
from prony.errors import ArchiveError
from prony.model import Cell, Json, Plan, Trial

__all__ = ["Archive", "ArchiveWriter", "create", "open_archive", "resume"]

# Another process may be reading: its quick_check of a large archive takes seconds.
_WAIT_S = 30.0
_CELL_COLUMNS = "cell_id, subject_json, workload_json, engine_json, sandbox_json"


def _prony_version() -> str:
    try:
        return version("prony")
    except PackageNotFoundError:
        return "unknown"


def _schema() -> str:
    return files("prony.archive").joinpath("schema.sql").read_text("utf-8")


@cache
def _expected_columns() -> dict[str, tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_schema())
        return table_columns(database)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a foreign or damaged file causes into one kind of error."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise ArchiveError(f"`{path}` cannot be read: {error}") from error
    except (
        sqlite3.Error,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise ArchiveError(f"`{path}` is damaged: {error}") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_S, isolation_level=None
    )
    limit(database)
    return database


# --- writing ----------------------------------------------------------------------------------------------


class ArchiveWriter:
    """The measuring side's end of an archive: one run. A context manager; leaving it closes the file.

    A run that does not call ``finish`` is `interrupted`.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, fingerprint: Json) -> None:
        self.path = path
        self._database = database
        with self._transaction():
            cursor = database.execute(
                "INSERT INTO run VALUES (NULL,?,?,NULL,?,?)",
                (_prony_version(), time.time_ns(), RunStatus.INTERRUPTED.value, codec.dump(fingerprint)),
            )
        self.run_id = cursor.lastrowid or 0

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # commits, or rolls back
                yield
        except sqlite3.Error as error:
            raise ArchiveError(f"`{self.path}` cannot be written: {error}") from error

    def record_subject(self, record: SubjectRecord) -> None:
        """Store a subject as it was resolved; a later record of the same name replaces it."""
        row = (
            record.name,
            record.server_version,
            record.interpreter,
            record.lock_digest,
            record.command_line,
            codec.dump(dict(record.packages)),
            codec.dump(dict(record.settings)),
            codec.dump(dict(record.sandbox)),
            codec.dump(dict(record.facts)),
            record.unavailable,
        )
        with self._transaction():
            self._database.execute("INSERT OR REPLACE INTO subject VALUES (?,?,?,?,?,?,?,?,?,?)", row)

    def append(self, trial: Trial, facts: Mapping[str, Any] | None = None) -> int:
        """Store a trial in one transaction and return its id. When this returns, it is on the disk.

        ``facts``: what was learnt of the trial's sandbox.
        """
        with self._transaction():
            return insert_trial(self._database, self.run_id, trial, facts or {})

    def finish(self, status: RunStatus = RunStatus.FINISHED) -> None:
        """Say how the run ended."""
        with self._transaction():
            self._database.execute(
                "UPDATE run SET status = ?, ended_unix_ns = ? WHERE run_id = ?",
                (RunStatus(status).value, time.time_ns(), self.run_id),
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _durable(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode=DELETE")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("PRAGMA foreign_keys=ON")


def _insert_plan(database: sqlite3.Connection, plan: Plan) -> None:
    database.execute("INSERT INTO meta VALUES (?,?,?)", (FORMAT_VERSION, _prony_version(), time.time_ns()))
    database.execute(
        "INSERT INTO plan VALUES (?,?,?,?,?,?,?)",
        (plan.name, plan.title, plan.question, plan.text, plan.profile, plan.blocks, plan.seed),
    )
    for cell in plan.cells:
        subject = cell.subject
        row = (
            cell.id,
            subject.name,
            subject.server,
            subject.variant,
            subject.app.name,
            subject.interface.value,
            codec.dump(codec.encode_subject(subject)),
            codec.dump(codec.encode_workload(cell.workload)),
            codec.dump(codec.encode_engine(cell.engine)),
            codec.dump(codec.encode_sandbox(cell.sandbox)),
        )
        database.execute("INSERT INTO cell VALUES (?,?,?,?,?,?,?,?,?,?)", row)


def create(path: Path, plan: Plan, fingerprint: Json) -> ArchiveWriter:
    """Create an archive for ``plan`` and return its writer, with the first run begun.

    *Errors*: ArchiveError when ``path`` exists already (results are never overwritten) or cannot be written.
    """
    try:
        path.open("xb").close()
    except FileExistsError as error:
        raise ArchiveError(f"`{path}` exists already", "Name another file, or move that one away.") from error
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be created: {error.strerror}") from error
    database = _connect(path, "rw")
    try:
        _durable(database)
        stamp = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT_VERSION};"
        database.executescript(f"BEGIN; {_schema()}; {stamp}")
        _insert_plan(database, plan)
        database.execute("COMMIT")
        return ArchiveWriter(path, database, fingerprint)
    except sqlite3.Error as error:
        database.close()
        raise ArchiveError(f"`{path}` cannot be written: {error}") from error


def resume(path: Path, fingerprint: Json) -> ArchiveWriter:
    """Open an existing archive to append to it, as a new run.

    *Errors*: ArchiveError when it is not an archive, is damaged or cannot be written.
    """
    open_archive(path).close()
    with _reading(path):
        database = _connect(path, "rw")
        _durable(database)
    return ArchiveWriter(path, database, fingerprint)


# --- reading ----------------------------------------------------------------------------------------------


class Archive:
    """The reading side's end: values only, nothing is ever executed or changed. A context manager.

    *Errors*: each method raises ArchiveError on a damaged row.
    """

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._database = database

    def _cells(self) -> tuple[Cell, ...]:
        found = self._database.execute(f"SELECT {_CELL_COLUMNS} FROM cell ORDER BY cell_id")  # noqa: S608 - constant
        return tuple(
            Cell(
                id=cell_id,
                subject=codec.decode_subject(codec.load_object(subject)),
                workload=codec.decode_workload(codec.load_object(workload)),
                engine=codec.decode_engine(codec.load_object(engine)),
                sandbox=codec.decode_sandbox(codec.load_object(sandbox)),
            )
            for cell_id, subject, workload, engine, sandbox in found
        )

    def cells(self) -> tuple[Cell, ...]:
        """Return the plan's cells, by id."""
        with _reading(self.path):
            return self._cells()

    def plan(self) -> Plan:
        """Return the plan, as it was resolved. Values of an app's environment are not stored: they read as
        empty.
        """
        with _reading(self.path):
            row = self._database.execute(
                "SELECT name, title, text, profile, blocks_count, seed, question FROM plan"
            )
            name, title, text, profile, blocks, seed, question = row.fetchone()
            return Plan(name, title, text, profile, self._cells(), blocks, seed, question)

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that measured into the archive, oldest first."""
        with _reading(self.path):
            found = self._database.execute(
                "SELECT run_id, prony_version, started_unix_ns, ended_unix_ns, status, fingerprint_json"
                " FROM run ORDER BY run_id"
            )
            return tuple(
                Run(run_id, made_by, started, ended, RunStatus(status), codec.load_object(fingerprint))
                for run_id, made_by, started, ended, status, fingerprint in found
            )

    def fingerprint(self) -> Json:
        """Return what the first run knew of its machine."""
        runs = self.runs()
        return runs[0].fingerprint if runs else {}

    def subjects(self) -> dict[str, SubjectRecord]:
        """Return the resolved subjects by name."""
        with _reading(self.path):
            found = self._database.execute(
                "SELECT subject_name, server_version, interpreter, packages_json, lock_digest, settings_json,"
                " command_line, sandbox_json, facts_json, unavailable_reason FROM subject ORDER BY rowid"
            )
            return {row[0]: _read_subject(row) for row in found}

    def trials(self) -> Iterator[TrialRecord]:
        """Yield the trials in the order in which they were run, one at a time: an archive may exceed
        memory.
        """
        with _reading(self.path):
            rows = self._database.execute("SELECT * FROM trial ORDER BY trial_id").fetchall()
        for row in rows:
            with _reading(self.path):
                record = read_trial(self._database, row)
            yield record

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_subject(row: tuple[Any, ...]) -> SubjectRecord:
    (
        name,
        server_version,
        interpreter,
        packages,
        lock_digest,
        settings,
        command_line,
        sandbox,
        facts,
        reason,
    ) = row
    return SubjectRecord(
        name=name,
        server_version=server_version,
        interpreter=interpreter,
        packages=codec.load_object(packages),
        lock_digest=lock_digest,
        settings=codec.load_object(settings),
        command_line=command_line,
        sandbox=codec.load_object(sandbox),
        facts=codec.load_object(facts),
        unavailable=reason,
    )


def _roll_back_leftovers(path: Path) -> None:
    """Undo a transaction that a killed writer left half done: a read-only connection may not."""
    journal = path.with_name(path.name + "-journal")
    if journal.exists() and journal.stat().st_size > 0:
        with closing(_connect(path, "rw")) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()


def open_archive(path: Path) -> Archive:
    """Return the archive at ``path``, checked and read-only.

    *Errors*: ArchiveError when it is missing, foreign, damaged, or of another format.
    """
    check_header(path)
    with _reading(path):
        _roll_back_leftovers(path)
        database = _connect(path, "ro")
        try:
            check_database(database, path, _expected_columns())
        except BaseException:
            database.close()
            raise
    return Archive(path, database)

"""The measuring side's end of an archive: create one, or resume one, and append trials.

One transaction per trial with a rollback journal and full synchronisation: a process that is killed loses
at most the trial that was running. (A write-ahead log was rejected: after a kill the main file, copied
alone, holds nothing.)
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from prony.archive import codec
from prony.archive.archive import open_archive
from prony.archive.database import connect, reading, schema
from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION, check_version
from prony.archive.rows import insert_trial
from prony.errors import ArchiveError
from prony.model import Cell, Fingerprint, Json, Plan, RunFacts, RunStatus, SubjectRecord, Trial, TrialRole
from prony.model.shapes import encode
from prony.version import prony_version

__all__ = ["ArchiveWriter", "create", "resume"]


class ArchiveWriter:
    """The measuring side's end of an archive: one run. A context manager; leaving it closes the file.

    A run that does not call ``finish`` is `interrupted`.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, fingerprint: Fingerprint) -> None:
        self.path = path
        self._database = database
        with self._transaction():
            known = codec.dump(encode(fingerprint))
            cursor = database.execute(
                "INSERT INTO run VALUES (NULL,?,?,NULL,?,?,'{}')",
                (prony_version(), time.time_ns(), RunStatus.INTERRUPTED.value, known),
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
            codec.dump(encode(record.sandbox)),
            codec.dump(encode(record.facts)),
            record.unavailable,
            record.entry_digest,
        )
        with self._transaction():
            self._database.execute("INSERT OR REPLACE INTO subject VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)

    def record_cell(self, cell: Cell, role: TrialRole) -> None:
        """Store a cell that is not of the plan's grid; its id is that of no other."""
        with self._transaction():
            _insert_cell(self._database, cell, role)

    def append(self, trial: Trial) -> int:
        """Store a trial in one transaction and return its id. When this returns, it is on the disk."""
        with self._transaction():
            return insert_trial(self._database, self.run_id, trial)

    def record_facts(self, facts: RunFacts) -> None:
        """Store what this run decided; a later call replaces it."""
        with self._transaction():
            self._database.execute(
                "UPDATE run SET facts_json = ? WHERE run_id = ?", (codec.dump(encode(facts)), self.run_id)
            )

    def add_to_fingerprint(self, facts: Json) -> None:
        """Add what is learnt of the machine only when the run has ended, such as its kernel's log."""
        with self._transaction():
            (known,) = self._database.execute(
                "SELECT fingerprint_json FROM run WHERE run_id = ?", (self.run_id,)
            ).fetchone()
            self._database.execute(
                "UPDATE run SET fingerprint_json = ? WHERE run_id = ?",
                (codec.dump({**codec.load_object(known), **facts}), self.run_id),
            )

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
    database.execute("INSERT INTO meta VALUES (?,?,?)", (FORMAT_VERSION, prony_version(), time.time_ns()))
    database.execute(
        "INSERT INTO plan VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            plan.name,
            plan.title,
            plan.question,
            plan.text,
            plan.profile,
            plan.blocks,
            plan.seed,
            plan.source,
            codec.encode_design(plan.design),
            codec.encode_claims(plan.claims),
            codec.encode_originals(plan.originals),
            codec.dump(plan.notes),
        ),
    )
    for cell in plan.cells:
        _insert_cell(database, cell, TrialRole.SUBJECT)
    if plan.calibration is not None:
        _insert_cell(database, plan.calibration, TrialRole.CALIBRATION)


def _insert_cell(database: sqlite3.Connection, cell: Cell, role: TrialRole) -> None:
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
        role.value,
    )
    database.execute("INSERT INTO cell VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)


def create(
    path: Path, plan: Plan, fingerprint: Fingerprint, cross_checks: Sequence[Cell] = ()
) -> ArchiveWriter:
    """Create an archive for ``plan`` and its ``cross_checks``; return its writer, with the first run begun.

    *Errors*: ArchiveError when ``path`` exists already (results are never overwritten) or cannot be written.
    """
    try:
        path.open("xb").close()
    except FileExistsError as error:
        raise ArchiveError(f"`{path}` exists already", "Name another file, or move that one away.") from error
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be created: {error.strerror}") from error
    database = connect(path, "rw")
    try:
        _durable(database)
        stamp = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT_VERSION};"
        database.executescript(f"BEGIN; {schema()}; {stamp}")
        _insert_plan(database, plan)
        for cell in cross_checks:
            _insert_cell(database, cell, TrialRole.CROSS_CHECK)
        database.execute("COMMIT")
        return ArchiveWriter(path, database, fingerprint)
    except sqlite3.Error as error:
        database.close()
        raise ArchiveError(f"`{path}` cannot be written: {error}") from error


def resume(path: Path, fingerprint: Fingerprint) -> ArchiveWriter:
    """Open an existing archive to append to it, as a new run.

    *Errors*: ArchiveError when it is not an archive, is damaged, of an older format, or cannot be written.
    """
    open_archive(path).close()
    with reading(path):
        database = connect(path, "rw")
        _durable(database)
    version = check_version(database, path)
    if version < FORMAT_VERSION:
        database.close()
        raise ArchiveError(
            f"`{path}` has archive format {version}, to which this Prony does not add",
            "Continue it with the version of Prony that wrote it.",
        )
    return ArchiveWriter(path, database, fingerprint)

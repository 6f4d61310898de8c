"""The measuring side of an archive: create one, or resume one, and append trials.

One transaction per trial with a rollback journal and full synchronisation: a process that is killed loses
at most the trial that was running. (A write-ahead log was rejected: after a kill the main file, copied
alone, has no trials.)
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from prony.archive import codec
from prony.archive.archive import open_archive
from prony.archive.caps import check_caps, check_subjects, thinned
from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION, open_database, schema
from prony.archive.leftovers import OwnJournal, check_beside, looked_through, roll_back
from prony.archive.rows import columns_of, insert_row, insert_slices, insert_trial, latest_trial
from prony.core.errors import ArchiveError
from prony.core.version import prony_version
from prony.model.facts import Fingerprint, RunFacts
from prony.model.json_codec import Json, encode
from prony.model.observation import Slice
from prony.model.plan import Cell, Plan
from prony.model.trial import RunStatus, SubjectRecord, Trial, TrialRole


class ArchiveWriter:
    """The measuring side of an archive: one run. A context manager; leaving it closes the file.

    A run that does not call ``finish`` is `interrupted`.
    """

    def __init__(self, path: Path, held: "_Held") -> None:
        self.path = path
        self._held = held
        self._database = held.database
        (self.run_id,) = held.database.execute("SELECT max(run_id) FROM run").fetchone()

    @classmethod
    def of_another_run(cls, path: Path, held: "_Held", fingerprint: Fingerprint) -> Self:
        """Begin one more run of an archive."""
        with _transaction(path, held):
            _insert_run(held.database, fingerprint)
        return cls(path, held)

    def _transaction(self) -> AbstractContextManager[None]:
        return _transaction(self.path, self._held)

    def record_subject(self, record: SubjectRecord) -> None:
        """Store a subject as it was resolved; a later record of the same name replaces it."""
        with self._transaction():
            insert_row(self._database, "subject", columns_of(record, "subject"), "INSERT OR REPLACE")

    def record_cell(self, cell: Cell, role: TrialRole) -> None:
        """Store a cell outside of the plan's grid, with an id of its own."""
        with self._transaction():
            _insert_cell(self._database, cell, role)

    def append(self, trial: Trial) -> int:
        """Store a trial in one transaction and return its id. When this returns, it is on the disk.

        Of more samples than a reader takes some are left out.
        """
        return self.append_together([trial])[0]

    def append_together(self, trials: Iterable[Trial]) -> list[int]:
        """Store trials in one transaction, as `append` does."""
        with self._transaction():
            return [insert_trial(self._database, self.run_id, thinned(trial)) for trial in trials]

    def append_slices(self, block: int, slices: Mapping[int, Sequence[Slice]]) -> None:
        """Add what the rounds of a block showed to its trials, by the id of their cell, in one
        transaction.
        """
        with self._transaction():
            for cell_id, each in slices.items():
                trial_id = latest_trial(self._database, cell_id, block)
                if trial_id is not None:
                    insert_slices(self._database, trial_id, each)

    def record_facts(self, facts: RunFacts) -> None:
        """Store what this run decided; a later call replaces it."""
        with self._transaction():
            self._database.execute(
                "UPDATE run SET facts_json = ? WHERE run_id = ?", (codec.dump(encode(facts)), self.run_id)
            )

    def add_to_fingerprint(self, facts: Json) -> None:
        """Add facts of the machine that are known only after the run, such as its kernel's log."""
        with self._transaction():
            (known,) = self._database.execute(
                "SELECT fingerprint_json FROM run WHERE run_id = ?", (self.run_id,)
            ).fetchone()
            self._database.execute(
                "UPDATE run SET fingerprint_json = ? WHERE run_id = ?",
                (codec.dump({**codec.load_object(known), **facts}), self.run_id),
            )

    def finish(self, status: RunStatus = RunStatus.FINISHED) -> None:
        """Store how the run ended."""
        with self._transaction():
            self._database.execute(
                "UPDATE run SET status = ?, ended_unix_ns = ? WHERE run_id = ?",
                (RunStatus(status).value, time.time_ns(), self.run_id),
            )

    def close(self) -> None:
        """Close the file; nothing stays beside it."""
        self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class _Held:
    """What a writer owns of its archive: the right to write to it, its journal, and the connection."""

    database: sqlite3.Connection
    journal: OwnJournal
    lock: int

    def release(self) -> None:
        self.database.close()
        self.journal.remove()
        # Last: whoever is let in now finds nothing that this writer still needs.
        os.close(self.lock)


@contextmanager
def _transaction(path: Path, held: _Held) -> Iterator[None]:
    held.journal.check()
    try:
        held.database.execute("BEGIN IMMEDIATE")
        with held.database:  # commits, or rolls back
            yield
    except sqlite3.Error as error:
        raise ArchiveError(f"`{path}` cannot be written: {error}") from error


def _locked(path: Path) -> int:
    """Return a descriptor by which this process alone writes to an archive, until it is closed.

    SQLite releases its own locks between transactions; two writers would then take each other's journals.

    *Errors*: ArchiveError when another process writes to it, or it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ArchiveError(
            f"`{path}` is being written by another process", "wait until it has ended, or end it"
        ) from error
    return descriptor


def _durable(database: sqlite3.Connection) -> None:
    """Keep what is committed through a loss of power; the journal is emptied, and never makes room for
    another's.
    """
    database.execute("PRAGMA journal_mode=TRUNCATE")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("PRAGMA foreign_keys=ON")


def _insert_plan(database: sqlite3.Connection, plan: Plan) -> None:
    database.execute("INSERT INTO meta VALUES (?,?,?)", (FORMAT_VERSION, prony_version(), time.time_ns()))
    insert_row(database, "plan", columns_of(plan, "plan"))
    for cell in plan.cells:
        _insert_cell(database, cell, TrialRole.SUBJECT)
    if plan.calibration is not None:
        _insert_cell(database, plan.calibration, TrialRole.CALIBRATION)


def _insert_run(database: sqlite3.Connection, fingerprint: Fingerprint) -> None:
    database.execute(
        "INSERT INTO run VALUES (NULL,?,?,NULL,?,?,'{}')",
        (prony_version(), time.time_ns(), RunStatus.INTERRUPTED.value, codec.dump(encode(fingerprint))),
    )


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
        codec.dump(encode(cell.engine)),
        codec.dump(encode(cell.sandbox)),
        role.value,
    )
    database.execute("INSERT INTO cell VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)


def create(
    path: Path, plan: Plan, fingerprint: Fingerprint, cross_checks: Sequence[Cell] = ()
) -> ArchiveWriter:
    """Create an archive for ``plan`` and its ``cross_checks``; return its writer, with the first run begun.

    *Errors*: ArchiveError when ``path`` exists already (results are never overwritten), cannot be written, or
    when the plan is larger than any archive; then there is no file.
    """
    place = Path(os.path.realpath(path))
    check_beside(place)
    try:
        check_subjects(plan.cells)
    except ValueError as error:
        raise ArchiveError(f"the plan of `{path}` has {error}") from error
    content = _first_content(path, plan, fingerprint, cross_checks)
    try:
        _put_new(path, content)
    except FileExistsError as error:
        raise ArchiveError(f"`{path}` exists already", "name another file, or move this one away") from error
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be created: {error.strerror}") from error
    with _holding(path, place, _nothing_to_undo) as held:
        return ArchiveWriter(path, held)


def check_free(path: Path) -> None:
    """Refuse an archive to which another process writes at this moment.

    *Errors*: ArchiveError for that, and for one that cannot be written.
    """
    os.close(_locked(Path(os.path.realpath(path))))


def resume(path: Path, fingerprint: Fingerprint) -> ArchiveWriter:
    """Open an existing archive to append to it, as a new run.

    *Errors*: UsageError when it is missing, or of another format; ArchiveError when it is not an archive, is
    damaged, is being written, or cannot be written.
    """
    open_archive(path).close()
    with _holding(path, Path(os.path.realpath(path)), _rolled_back) as held:
        return ArchiveWriter.of_another_run(path, held, fingerprint)


@contextmanager
def _holding(path: Path, place: Path, begin: Callable[[Path, sqlite3.Connection], None]) -> Iterator[_Held]:
    """Yield all that a writer owns of the archive at ``place``, and release it if that fails."""
    with ExitStack() as undone:
        lock = _locked(place)
        undone.callback(os.close, lock)
        try:
            database = undone.enter_context(closing(open_database(place, "rw")))
            begin(place, database)
            journal = OwnJournal(place)
            undone.callback(journal.remove)
            _durable(database)
        except sqlite3.Error as error:
            raise ArchiveError(f"`{path}` cannot be written: {error}") from error
        yield _Held(database, journal, lock)
        undone.pop_all()


def _first_content(path: Path, plan: Plan, fingerprint: Fingerprint, cross_checks: Sequence[Cell]) -> bytes:
    """Return a new archive with its first run.

    Made in memory: a run that is killed, or a disk that is full, leaves no half of it.

    *Errors*: ArchiveError for a plan that is larger than any archive.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        stamp = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT_VERSION};"
        database.executescript(f"BEGIN; {schema()}; {stamp}")
        _insert_plan(database, plan)
        for cell in cross_checks:
            _insert_cell(database, cell, TrialRole.CROSS_CHECK)
        _insert_run(database, fingerprint)
        # What no reader would accept is not measured.
        check_caps(database, path)
        database.execute("COMMIT")
        return database.serialize()


def _put_new(path: Path, content: bytes) -> None:
    """Create a file, whole or not at all.

    *Errors*: FileExistsError; OSError.
    *Source*: open(2), O_TMPFILE.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            nameless = os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError:
            _write_new(path, content)  # some file systems, as NFS, have no files without a name
        else:
            with os.fdopen(nameless, "wb") as file:
                _write_through(file, content)
                # Any descriptor: it makes Python take the call that follows this link.
                os.link(f"/proc/self/fd/{nameless}", path, src_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        try:
            _write_through(file, content)
        except BaseException:
            path.unlink()
            raise


def _write_through(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _nothing_to_undo(_place: Path, _database: sqlite3.Connection) -> None:
    """A new archive has no unfinished transaction."""


def remove_unheld(path: Path) -> None:
    """Remove an archive, unless another process writes to it.

    *Errors*: ArchiveError then, or when it cannot be removed.
    """
    lock = _locked(Path(os.path.realpath(path)))
    try:
        path.unlink()
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be removed: {error.strerror}") from error
    finally:
        os.close(lock)


def _rolled_back(place: Path, database: sqlite3.Connection) -> None:
    """Undo a killed writer's unfinished transaction, with a copy of its journal that nobody else can change.

    SQLite has opened nothing beside the archive yet, and deletes the copy when it has rolled back.
    """
    if journal := looked_through(place):
        own = OwnJournal(place, journal)
        try:
            roll_back(database)
        finally:
            own.close()

"""Files beside an archive: the journal of a transaction that a killed writer did not finish.

SQLite trusts the files beside a database by their names alone. A journal may name a super-journal, a file
that SQLite deletes after rolling back: whoever can put a file beside an archive could make its reader delete
any file. A write-ahead log would be applied to the archive. So:

- a reader never lets SQLite roll back in place, but in a private copy, with a checked journal; the archive
  and the files beside it stay unchanged;
- a writer checks the journal that it finds and replaces it by one of its own, which nobody else can change
  or, in a folder like /tmp, exchange; before each transaction it checks that its journal is still there.

Users who may rename files in the archive's folder can also give the writer another archive: nothing here
prevents that.

*Source*: SQLite, "Database File Format", sqlite.org/fileformat2.html, section 3, "The Rollback Journal";
pager.c, readSuperJournal and pager_delsuper.
"""

import os
import shutil
import sqlite3
import stat
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import mkstemp

from prony.archive.guard import Deadline, open_database
from prony.core.errors import ArchiveError
from prony.core.temporary import temporary_folder
from prony.core.units import GIB, MIB

_MAGIC = bytes.fromhex("d9d505f920a163d7")  # of a journal, and of a super-journal's name at its end
_HEADER = struct.Struct(">8sIIIII")  # magic, records, nonce, pages before, bytes of a sector, of a page

# A journal holds the pages that a transaction changes, and one trial changes few.
_LARGEST_JOURNAL_BYTES = 64 * MIB
# The largest copy in a temporary folder. A trial takes about 100 KB: this is 40,000 of them.
_LARGEST_COPY_BYTES = 4 * GIB
# Only a writer that starts or ends at this moment changes the journal while the archive is copied.
_TRIES = 5

# How many characters `mkstemp` adds to a name.
_DRAFT_MARKS = 8

_WITHOUT = "move it away to read the archive without it, which then may be damaged"


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")


def check_beside(path: Path) -> None:
    """Refuse files that no archive has beside it, before SQLite opens ``path``, which is no symbolic link.

    *Errors*: ArchiveError for a write-ahead log, or a journal that is no plain file.
    """
    for what in ("wal", "shm"):
        if os.path.lexists(_beside(path, what)):
            raise ArchiveError(
                f"`{path}` cannot be opened: `{_beside(path, what)}` lies beside it, and no archive has a "
                "write-ahead log",
                "move that file away",
            )
    with _plain(_beside(path, "journal")):
        pass


@contextmanager
def _plain(journal: Path) -> Iterator[int | None]:
    """Open a journal, if there is one: no link, no other name of another file, no pipe, no folder."""
    try:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise ArchiveError(f"`{journal}` is no journal: {error.strerror}", "move that file away") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise ArchiveError(
                f"`{journal}` is no journal: expected a plain file with no other name", "move that file away"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def looked_through(path: Path) -> bytes:
    """Return the journal beside ``path``, if SQLite may use it; empty: there is nothing to roll back.

    *Errors*: ArchiveError for one that names another file, is larger than any, or would make the archive
    larger than it is.
    """
    journal = _beside(path, "journal")
    with _plain(journal) as descriptor:
        if descriptor is None:
            return b""
        size = os.fstat(descriptor).st_size
        if size > _LARGEST_JOURNAL_BYTES:
            most = f"expected at most {_LARGEST_JOURNAL_BYTES:,}"
            raise ArchiveError(f"`{journal}` has {size:,} bytes; {most}", _WITHOUT)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(_LARGEST_JOURNAL_BYTES)
    if not content.rstrip(b"\0") or content[0] == 0:  # as SQLite leaves a finished one
        return b""
    if content.endswith(_MAGIC):
        raise ArchiveError(
            f"`{journal}` names another file, which SQLite would delete; an archive's journal never does",
            _WITHOUT,
        )
    if _bytes_before(content) > path.stat().st_size:
        raise ArchiveError(f"`{journal}` is damaged: it belongs to a larger archive", _WITHOUT)
    return content


def _bytes_before(journal: bytes) -> int:
    """Return how large the database was when its transaction began; 0: the journal does not say."""
    if len(journal) < _HEADER.size:
        return 0
    magic, _, _, pages, _, page_bytes = _HEADER.unpack_from(journal)
    return pages * page_bytes if magic == _MAGIC else 0


# --- reading ----------------------------------------------------------------------------------------------


def connect_to_read(path: Path, deadline: Deadline) -> sqlite3.Connection:
    """Return a connection to the last complete state of ``path``, which is no symbolic link. Changes nothing.

    SQLite itself says whether the journal is of a living writer, for which a reader waits, or a leftover: a
    read-only connection cannot roll back, and does not touch what it finds.

    *Errors*: ArchiveError for forbidden files beside an archive; sqlite3.Error.
    """
    check_beside(path)
    database = open_database(path, "ro")
    deadline.watch(database)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        database.close()
        if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise
    else:
        return database
    try:
        copy = _rolled_back_copy(path)
    except OSError as error:
        raise ArchiveError(
            f"`{path}` cannot be copied to undo the transaction of its last writer: {error.strerror}",
            "name a folder with space for it in the environment variable TMPDIR",
        ) from error
    deadline.watch(copy)
    return copy


def _rolled_back_copy(path: Path) -> sqlite3.Connection:
    """Return a connection to a private copy that is rolled back; its file has no name any more.

    A copy that is taken while another process rolls back is whole as well, as long as the journal stays: it
    has the former state of every page that may have been changed.
    """
    for _ in range(_TRIES):
        journal = looked_through(path)
        with temporary_folder("copy") as folder:
            copy = folder / "copy"
            _copy(path, copy)
            if looked_through(path) != journal:
                continue
            _beside(copy, "journal").write_bytes(journal)
            with closing(open_database(copy, "rw")) as database:
                roll_back(database)
            # Immutable: a new file under the former name is never opened.
            return open_database(copy, "ro&immutable=1")
    raise ArchiveError(
        f"`{path}` is being written by another process", "try again when that process has ended"
    )


def _copy(path: Path, copy: Path) -> None:
    size = path.stat().st_size
    if size > _LARGEST_COPY_BYTES:
        raise ArchiveError(
            f"`{path}` has {size:,} bytes; the copy to undo its last writer's transaction is limited to "
            f"{_LARGEST_COPY_BYTES:,}"
        )
    shutil.copyfile(path, copy)


def roll_back(database: sqlite3.Connection) -> None:
    """Let SQLite undo an unfinished transaction: it does so at its first read."""
    database.execute("SELECT count(*) FROM sqlite_master").fetchone()


# --- writing ----------------------------------------------------------------------------------------------


class OwnJournal:
    """The journal of one writer, which stays beside the archive, mostly empty, until the writer has ended.

    SQLite opens a journal by its name for each transaction, and creates it where there is none: one that is
    there already, and is this process's own, leaves no moment in which to put another in its place.

    *Errors*: ArchiveError when it cannot be made.
    """

    def __init__(self, archive: Path, content: bytes = b"") -> None:
        self._archive = archive
        self._path = _beside(archive, "journal")
        # Kept open: otherwise the next file could get the number of a removed one.
        self._descriptor = _put(self._path, content)

    def check(self) -> None:
        """Refuse to continue when another file has replaced the journal; a missing journal is made
        again.

        *Errors*: ArchiveError.
        """
        check_beside(self._archive)
        if not os.path.lexists(self._path):
            self.close()
            self._descriptor = _put(self._path, b"")
        elif not self._is_own():
            raise ArchiveError(f"`{self._path}` is not this run's journal: somebody has replaced it")

    def _is_own(self) -> bool:
        return os.path.samestat(self._path.lstat(), os.fstat(self._descriptor))

    def remove(self) -> None:
        """Remove it, if it is still this writer's own and nothing is in it."""
        with suppress(OSError):
            if self._is_own() and os.fstat(self._descriptor).st_size == 0:
                self._path.unlink()
        self.close()

    def close(self) -> None:
        """Leave it where it is."""
        os.close(self._descriptor)


def _put(journal: Path, content: bytes) -> int:
    """Put a new file in the place of a journal, whole or not at all, and return a descriptor of it."""
    prefix = f".{journal.name}-"
    # Who holds the archive makes the only draft: another is of a writer that was killed.
    for left in journal.parent.glob(f"{escape(prefix)}{'?' * _DRAFT_MARKS}"):
        with suppress(OSError):
            if left.lstat().st_uid == os.geteuid():
                left.unlink()
    try:
        descriptor, draft = mkstemp(prefix=prefix, dir=journal.parent)
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(descriptor)
            Path(draft).replace(journal)
        except BaseException:
            os.close(descriptor)
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArchiveError(f"`{journal}` cannot be written: {error.strerror}") from error
    return descriptor

"""The checks of a file before anything in it is trusted.

An archive may come from anyone. SQLite files can carry expressions that run when read (so all declarations
are compared), values without limit (`prony.archive.caps`), and blobs that inflate without limit.
None of these is accepted, and nothing in an archive is ever executed.

*Source*: SQLite, "Defense Against The Dark Arts", sqlite.org/security.html, section 1.2.

A connection to an archive's file: what its errors mean, which tables it must have, and how long it may
take.

No content of a file can make its reader hang: the CPU time of this thread within the archive's own calls has
an end. A busy machine, a stopped process, and the analysis between two trials do not count. An archive of
real trials takes a twentieth of it.

A reader accepts the tables as SQLite keeps their declarations, and no others. Names of tables and columns say
too little: a column may be computed, a check or an index may evaluate an expression. So the whole text of
each declaration is compared, without regard to white space.
"""

import os
import re
import sqlite3
import stat
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from prony.core.errors import ArchiveError, UsageError, explained
from prony.core.safe_text import shortened
from prony.core.units import GIB, HOUR_NS, KIB, MIB

APPLICATION_ID = 0x50524E59  # "PRNY"
FORMAT_VERSION = 1

# *Source*: SQLite, "Defense Against The Dark Arts", and what our own statements need.
_LIMITS: Mapping[int, int] = MappingProxyType(
    {
        sqlite3.SQLITE_LIMIT_LENGTH: 64 * MIB,  # of a row; `prony.archive.caps` has the caps of values
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
        sqlite3.SQLITE_LIMIT_COLUMN: 100,
        sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
        sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
        sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
        sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
        sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
        sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
        sqlite3.SQLITE_LIMIT_ATTACHED: 0,
        sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
        sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    }
)
# What is kept of a subject's output has 320 KiB at most; a byte that is no text becomes a character of three.
_LARGEST_LOG_BYTES = 3 * MIB // 2
# Rules search it: what they take grows with it.
_LONGEST_LOG = 512 * KIB
_LARGEST_FILE_BYTES = 4 * GIB
# 1 ns to 1 h with 3 digits are 33,792 counts of at most 9 bytes each, and a header of 40.
_LARGEST_HISTOGRAM_BYTES = 40 + 33_792 * 9
# The second-lowest hexadecimal digit is a word size that readers ignore.
_HISTOGRAM_COOKIE = 0x1C849304
_HISTOGRAM_COOKIE_MASK = 0xFFFFFF0F
_HISTOGRAM_INNER = struct.Struct(">IIIIQQd")
_HISTOGRAM_DIGITS = 3
# A count is seven bits a byte, and each byte but its last has the eighth bit set: seven of these in a row are
# a count that no load has, and with which sums would overflow.
_TOO_LARGE = re.compile(rb"[\x80-\xff]{7}")
_HIGHEST_TRACKABLE_NS = 2 * HOUR_NS

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_ROLLBACK_JOURNAL = b"\x01\x01"  # 2: a write-ahead log
_WHICH = "an archive is the file `*.prony` that `prony run` names in its last line"


def limit(database: sqlite3.Connection) -> None:
    """Switch off what neither reader nor writer ever needs, and limit the rest."""
    for name, most in _LIMITS.items():
        database.setlimit(name, most)
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        database.execute(f"PRAGMA {pragma}")


def check_header(path: Path) -> None:
    """Refuse a missing file, or one that is not marked as an archive, before SQLite sees it.

    *Errors*: UsageError for a missing file, ArchiveError for one that is no archive.
    *Source*: SQLite, "Database File Format", sqlite.org/fileformat2.html, section 1.3: the application id
    is at byte 68, the versions of its way of writing at 18 and 19.
    """
    try:
        head = _head(path)
    except FileNotFoundError:
        raise UsageError(f"`{path}`: there is no such file", hint=_WHICH) from None
    except OSError as error:
        raise ArchiveError(f"`{path}` cannot be read: {error.strerror}", hint=_WHICH) from error
    if not head.startswith(_MAGIC):
        raise ArchiveError(f"`{path}` is not a Prony archive", hint=_WHICH)
    if head[68:72] != APPLICATION_ID.to_bytes(4, "big"):
        raise ArchiveError(f"`{path}` is a SQLite file, but not a Prony archive", hint=_WHICH)
    if head[18:20] != _ROLLBACK_JOURNAL:
        raise ArchiveError(f"`{path}` needs a write-ahead log, which SQLite would write beside it")


def _head(path: Path) -> bytes:
    """Return a file's first bytes; none for a pipe, which would block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ArchiveError(f"`{path}` is not a file", hint=_WHICH)
        if status.st_size > _LARGEST_FILE_BYTES:
            raise ArchiveError(
                f"`{path}` has {status.st_size:,} bytes; expected at most {_LARGEST_FILE_BYTES:,}",
                hint=_WHICH,
            )
        return os.read(descriptor, _HEADER_BYTES)
    finally:
        os.close(descriptor)


def check_version(database: sqlite3.Connection, path: Path) -> None:
    """Refuse an archive of another format.

    *Errors*: UsageError.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != FORMAT_VERSION:
        raise UsageError(
            f"`{path}` has archive format {version}; this Prony reads format {FORMAT_VERSION}",
            "run it again with this Prony",
        )


def check_pages(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database whose pages are damaged.

    *Errors*: ArchiveError, with SQLite's reason.
    """
    if (problem := database.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
        raise ArchiveError(f"`{path}` is damaged: {shortened(problem[0], 200)}")


def _inflate(data: bytes, largest_bytes: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, largest_bytes)
    except zlib.error as error:
        raise ValueError(f"compressed data is damaged ({error})") from error
    if decompressor.unconsumed_tail:
        raise ValueError(f"compressed data inflates to more than {largest_bytes} bytes")
    if not decompressor.eof:
        raise ValueError("compressed data is cut off")
    return text


def inflate_log(data: bytes) -> str:
    """Return the text of a log.

    *Errors*: ValueError when it is damaged, or longer than Prony's: 1.5 MiB, or 524,288 characters.
    """
    text = _inflate(data, _LARGEST_LOG_BYTES).decode("utf-8", "replace")
    if len(text) > _LONGEST_LOG:
        raise ValueError(f"log has {len(text):,} characters; expected at most {_LONGEST_LOG:,}")
    return text


def check_histogram(data: bytes) -> bytes:
    """Return ``data`` if it is an HdrHistogram V2 (deflate) of the size, range and counts that Prony writes.

    *Errors*: ValueError. It runs before the engine's decoder allocates the size that the header names.
    """
    if len(data) < 8 or struct.unpack_from(">I", data)[0] & _HISTOGRAM_COOKIE_MASK != _HISTOGRAM_COOKIE:
        raise ValueError("not an HdrHistogram V2")
    inner = _inflate(data[8:], _LARGEST_HISTOGRAM_BYTES)
    if len(inner) < _HISTOGRAM_INNER.size:
        raise ValueError("histogram is cut off")
    _, counts_bytes, _, digits, lowest, highest, _ = _HISTOGRAM_INNER.unpack_from(inner)
    if counts_bytes != len(inner) - _HISTOGRAM_INNER.size:
        raise ValueError(f"histogram says that its counts have {counts_bytes:,} bytes, and they have others")
    if (digits, lowest) != (_HISTOGRAM_DIGITS, 1) or highest > _HIGHEST_TRACKABLE_NS:
        raise ValueError("histogram has another precision or range than Prony's")
    if _TOO_LARGE.search(inner, _HISTOGRAM_INNER.size):
        raise ValueError("histogram has a count of 2**48 or more")
    return data


_AT_LEAST_S = 8.0
_FOR_EACH_MIB_S = 2.0
_AT_MOST_S = 600.0
# Steps of SQLite's virtual machine between two looks: about a millisecond.
_STEPS = 10_000


class Deadline:
    """The time that is left for the file at ``path``: 8 s and 2 s for each MiB, at most 10 minutes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        size_bytes = path.stat().st_size
        self._allowed_s = min(_AT_LEAST_S + _FOR_EACH_MIB_S * size_bytes / MIB, _AT_MOST_S)
        self._left_s = self._allowed_s
        self._since_s: float | None = None

    def watch(self, database: sqlite3.Connection) -> None:
        """Let SQLite give up a statement of this connection when the time is over."""
        database.set_progress_handler(lambda: int(self._is_over()), _STEPS)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the time run within the block.

        *Errors*: ArchiveError when it is over, also at the block's end.
        """
        self._since_s = time.thread_time()
        try:
            yield
        except sqlite3.OperationalError as error:
            if self._is_over():
                raise self._refusal() from error
            raise
        finally:
            self._left_s -= time.thread_time() - self._since_s
            self._since_s = None
        if self._left_s < 0:
            raise self._refusal()

    def _is_over(self) -> bool:
        return self._since_s is not None and time.thread_time() - self._since_s > self._left_s

    def _refusal(self) -> ArchiveError:
        return ArchiveError(
            f"`{self._path}` takes too long to read: expected at most {self._allowed_s:.0f} s of CPU "
            "time for a file of its size"
        )


# Another process may be reading: its quick_check of a large archive takes seconds.
_WAIT_S = 30.0
_LONGEST_REASON = 300


@contextmanager
def reading(path: Path, deadline: Deadline) -> Iterator[None]:
    """Turn all errors of a foreign or damaged file into one kind; the time for it runs."""
    try:
        with deadline.running():
            yield
    except sqlite3.OperationalError as error:
        raise ArchiveError(f"`{path}` cannot be read: {_shown(error)}") from error
    except (
        sqlite3.Error,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise ArchiveError(f"`{path}` is damaged: {_shown(error)}") from error


def _shown(error: Exception) -> str:
    """Return the words of an error; what it quotes of the file may be long."""
    return shortened(str(error), _LONGEST_REASON)


def open_database(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection in SQLite's ``mode`` (`ro` or `rw`), without features that an archive never
    needs.
    """
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_S, isolation_level=None
    )
    limit(database)
    return database


# --- the schema -------------------------------------------------------------------------------------------


# What it is (`table`, `index`), its name, its table's name, and its statement; null: SQLite's own index.
_Declaration = tuple[str, str, str, str | None]


@explained("Prony's own files cannot be read", "install Prony again")
def schema() -> str:
    """Return the statements that create the tables.

    *Errors*: HostError when Prony's own files cannot be read.
    """
    return files("prony.archive").joinpath("schema.sql").read_text("utf-8")


@cache
def columns() -> Mapping[str, Mapping[str, str]]:
    """Return the tables with their columns and the type of each."""
    with closing(_created()) as database:
        tables = [name for kind, name, *_ in _declarations(database) if kind == "table"]
        return {
            table: dict(database.execute("SELECT name, type FROM pragma_table_info(?)", (table,)))
            for table in tables
        }


@cache
def _expected() -> frozenset[_Declaration]:
    with closing(_created()) as database:
        return frozenset(_declarations(database))


def _created() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(schema())
    return database


def _declarations(database: sqlite3.Connection) -> list[_Declaration]:
    """Return what a database has; of a foreign one at most a few more than an archive."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 100")
    return [(*names, None if sql is None else " ".join(sql.split())) for *names, sql in rows]


def check_schema(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database whose tables and indexes are not exactly those of an archive.

    *Errors*: ArchiveError, which names the first difference.
    """
    found, expected = _declarations(database), _expected()
    known = {(kind, name) for kind, name, *_ in expected}
    for kind, name, *rest in found:
        if (kind, name, *rest) not in expected:
            what = "is declared differently" if (kind, name) in known else "is none of them"
            raise _other(path, f"the {kind} `{shortened(name)}` {what}")
    # Tables before indexes: an index is gone with its table.
    for kind, name, *_ in sorted(expected - set(found), key=str, reverse=True):
        raise _other(path, f"the {kind} `{name}` is missing")
    if len(found) != len(expected):
        raise _other(path, "some are there twice")


def _other(path: Path, what: str) -> ArchiveError:
    return ArchiveError(f"`{path}` does not have the tables of an archive, and only these: {what}")

"""The checks of a file before anything in it is trusted.

An archive may come from anyone. SQLite files can carry views and triggers that run when read, and blobs
that inflate without limit. None of these is accepted, and nothing in an archive is ever executed.

*Source*: SQLite, "Defense Against The Dark Arts", sqlite.org/security.html, section 1.2.
"""

import os
import sqlite3
import stat
import struct
import zlib
from pathlib import Path

from prony.errors import ArchiveError, UsageError
from prony.units import HOUR_NS, MIB

__all__ = [
    "APPLICATION_ID",
    "FORMAT_VERSION",
    "check_database",
    "check_header",
    "check_histogram",
    "check_version",
    "inflate_log",
    "limit",
    "table_columns",
]

APPLICATION_ID = 0x50524E59  # "PRNY"
FORMAT_VERSION = 3

# The largest value that is written is the JSON of a recording or the log of a trial: kilobytes.
_LARGEST_VALUE_BYTES = 64 * MIB
_LARGEST_LOG_BYTES = 16 * MIB
# 1 ns to 1 h with 3 digits are 33,792 counts of at most 9 bytes each, and a header of 40.
_LARGEST_HISTOGRAM_BYTES = 40 + 33_792 * 9
# The second-lowest hexadecimal digit is a word size that readers ignore.
_HISTOGRAM_COOKIE = 0x1C849304
_HISTOGRAM_COOKIE_MASK = 0xFFFFFF0F
_HISTOGRAM_INNER = struct.Struct(">IIIIQQd")
_HISTOGRAM_DIGITS = 3
_HIGHEST_TRACKABLE_NS = 2 * HOUR_NS

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_ROLLBACK_JOURNAL = b"\x01\x01"  # 2: a write-ahead log
_WHICH = "an archive is the file `*.prony` that `prony run` names in its last line"


def limit(database: sqlite3.Connection) -> None:
    """Switch off what a reader never needs, and limit the size of values."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        database.execute(f"PRAGMA {pragma}")


def table_columns(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return each table's columns, hidden and generated ones included."""
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: database.execute("SELECT name FROM pragma_table_xinfo(?)", (name,)) for name in names}
    return {name: tuple(column for (column,) in found) for name, found in rows.items()}


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
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ArchiveError(f"`{path}` is not a file", hint=_WHICH)
        return os.read(descriptor, _HEADER_BYTES)
    finally:
        os.close(descriptor)


def check_version(database: sqlite3.Connection, path: Path) -> int:
    """Return the format of an archive, the present one or an older one.

    *Errors*: ArchiveError for any other.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if 1 <= version <= FORMAT_VERSION:
        return int(version)
    raise ArchiveError(
        f"`{path}` has archive format {version}; this Prony reads formats 1 to {FORMAT_VERSION}",
        "read it with the version of Prony that wrote it, or a later one"
        if version > FORMAT_VERSION
        else None,
    )


def check_database(
    database: sqlite3.Connection, path: Path, version: int, expected: dict[str, tuple[str, ...]]
) -> None:
    """Refuse a database that does not have the tables of format ``version``, or is damaged.

    *Errors*: ArchiveError, which says why.
    """
    foreign = database.execute(
        "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') LIMIT 1"
    ).fetchone()
    if foreign is not None:
        raise ArchiveError(f"`{path}` contains a {foreign[0]} (`{foreign[1]}`); an archive has only tables")
    if table_columns(database) != expected:
        raise ArchiveError(f"`{path}` does not have the tables of archive format {version}")
    if (problem := database.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
        raise ArchiveError(f"`{path}` is damaged: {problem[0]}")


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

    *Errors*: ValueError when it is damaged or inflates to more than 16 MiB.
    """
    return _inflate(data, _LARGEST_LOG_BYTES).decode("utf-8", "replace")


def check_histogram(data: bytes) -> bytes:
    """Return ``data`` if it is an HdrHistogram V2 (deflate) of a size that Prony writes.

    *Errors*: ValueError. It runs before the engine's decoder allocates the size that the header names.
    """
    if len(data) < 8 or struct.unpack_from(">I", data)[0] & _HISTOGRAM_COOKIE_MASK != _HISTOGRAM_COOKIE:
        raise ValueError("not an HdrHistogram V2")
    inner = _inflate(data[8:], _LARGEST_HISTOGRAM_BYTES)
    if len(inner) < _HISTOGRAM_INNER.size:
        raise ValueError("histogram is cut off")
    digits, highest = _HISTOGRAM_INNER.unpack_from(inner)[3], _HISTOGRAM_INNER.unpack_from(inner)[5]
    if digits != _HISTOGRAM_DIGITS or highest > _HIGHEST_TRACKABLE_NS:
        raise ValueError("histogram has another precision or range than Prony's")
    return data

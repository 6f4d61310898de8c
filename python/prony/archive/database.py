"""A connection to an archive's file: what its errors mean, which tables it must have, and how long it may
take.

No content of a file can make its reader hang: the CPU time of this thread within the archive's own calls has
an end. A busy machine, a stopped process, and the analysis between two trials do not count. An archive of
real trials takes a twentieth of it.

A reader accepts the tables as SQLite keeps their declarations, and no others. Names of tables and columns say
too little: a column may be computed, a check or an index may evaluate an expression. So the whole text of
each declaration is compared, without regard to white space.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from prony.archive.guard import limit
from prony.core.errors import ArchiveError, explained
from prony.core.safe_text import shortened
from prony.core.units import MIB

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

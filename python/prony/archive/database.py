"""A connection to an archive's file, and its required tables."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from prony.archive.guard import limit, table_columns
from prony.errors import ArchiveError, explained

__all__ = ["expected_columns", "open_database", "reading", "schema"]

# Another process may be reading: its quick_check of a large archive takes seconds.
_WAIT_S = 30.0


@explained("Prony's own files cannot be read", "install Prony again")
def schema() -> str:
    """Return the statements that create an archive's tables.

    *Errors*: HostError when Prony's own files cannot be read.
    """
    return files("prony.archive").joinpath("schema.sql").read_text("utf-8")


@cache
def expected_columns() -> dict[str, tuple[str, ...]]:
    """Return the tables of this format with their columns."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema())
        return table_columns(database)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn all errors of a foreign or damaged file into one kind."""
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


def open_database(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection in SQLite's ``mode`` (`ro` or `rw`), without features that an archive never
    needs.
    """
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_S, isolation_level=None
    )
    limit(database)
    return database

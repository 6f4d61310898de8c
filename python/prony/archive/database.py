"""A connection to an archive's file, and what its errors mean."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.archive.deadline import Deadline
from prony.archive.guard import limit
from prony.errors import ArchiveError
from prony.escapes import shortened

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

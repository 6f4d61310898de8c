"""The tables of an archive as SQLite keeps their declarations: a reader accepts these and no others.

The names of tables and columns say too little: a column may be computed, a check or an index may evaluate an
expression. So the whole text of each declaration is compared, without regard to white space.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path

from prony.errors import ArchiveError, explained
from prony.escapes import shortened

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

"""Archives of older formats are read as ones of the present format, and stay as they are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_archive import WORKLOAD, closed_trial, plan_of

from prony.archive import create, migrations, open_archive, resume
from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION
from prony.archive.migrations import MIGRATIONS
from prony.archive.schema import columns_of, schema
from prony.errors import ArchiveError
from prony.model import Fingerprint

OLDER = (1, 2)


def as_format(source: Path, version: int) -> Path:
    """Return a copy of an archive with the tables that this format had, and what they could hold."""
    target = source.with_name(f"format-{version}.prony")
    with closing(sqlite3.connect(target)) as database, database:
        database.executescript(schema(version))
        database.execute("ATTACH ? AS present", (str(source),))
        for table, columns in columns_of(version).items():
            names = ", ".join(columns)
            database.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM present.{table}")
        database.commit()
        database.execute(f"PRAGMA application_id={APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={version}")
    return target


@pytest.fixture
def present(tmp_path):
    path = tmp_path / "a.prony"
    with create(path, plan_of(WORKLOAD), {"kernel": "6"}) as writer:
        writer.append(closed_trial())
    return path


def test_every_older_format_has_a_step_and_a_schema_to_test_it_with():
    assert set(MIGRATIONS) == set(OLDER) == set(range(1, FORMAT_VERSION))
    assert all("CREATE TABLE meta" in schema(version) for version in OLDER)


@pytest.mark.parametrize("version", OLDER)
def test_an_older_archive_reads_as_the_present_one(present, version):
    older = as_format(present, version)
    before = older.read_bytes()
    with open_archive(older) as archive, open_archive(present) as now:
        assert archive.plan() == now.plan()
        assert archive.runs() == now.runs()
        assert list(archive.trials()) == list(now.trials())
    assert older.read_bytes() == before


@pytest.mark.parametrize("version", OLDER)
def test_an_older_archive_is_not_added_to(present, version):
    with pytest.raises(ArchiveError, match=f"has archive format {version}, to which"):
        resume(as_format(present, version), Fingerprint())


def test_a_migration_that_fails_leaves_no_copy_open(present, monkeypatch):
    opened, real = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: opened.append(real(*given, **named)) or opened[-1]
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: "ALTER TABLE none ADD COLUMN x", 2: ""})
    older = as_format(present, 1)
    del opened[:]
    with pytest.raises(ArchiveError, match="no such table"):
        open_archive(older)
    for database in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            database.execute("SELECT 1")
    assert len(opened) == 2


def test_an_older_archive_with_a_later_ones_table_is_refused(present):
    older = as_format(present, 1)
    with closing(sqlite3.connect(older)) as database, database:
        database.execute("CREATE TABLE gauge (sample_id INTEGER)")
    with pytest.raises(ArchiveError, match="does not have the tables of archive format 1"):
        open_archive(older)

"""Archives of older formats are read as ones of the present format, and stay as they are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_archive import WORKLOAD, closed_trial, plan_of

from prony.archive import create, open_archive, resume
from prony.archive.database import expected_columns
from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION
from prony.archive.migrations import MIGRATIONS, columns_before
from prony.errors import ArchiveError
from prony.model import Fingerprint

SCHEMAS = {version: Path(__file__).with_name(f"schema-{version}.sql") for version in (1, 2)}


def as_format(source: Path, version: int) -> Path:
    """Return a copy of an archive with the tables that this format had, and what they could hold."""
    target = source.with_name(f"format-{version}.prony")
    with closing(sqlite3.connect(target)) as database, database:
        database.executescript(SCHEMAS[version].read_text())
        database.execute("ATTACH ? AS present", (str(source),))
        for table, columns in columns_before(expected_columns(), version).items():
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
    assert set(MIGRATIONS) == set(SCHEMAS) == set(range(1, FORMAT_VERSION))


@pytest.mark.parametrize("version", SCHEMAS)
def test_an_older_archive_reads_as_the_present_one(present, version):
    older = as_format(present, version)
    before = older.read_bytes()
    with open_archive(older) as archive, open_archive(present) as now:
        assert archive.plan() == now.plan()
        assert archive.runs() == now.runs()
        assert list(archive.trials()) == list(now.trials())
    assert older.read_bytes() == before


@pytest.mark.parametrize("version", SCHEMAS)
def test_an_older_archive_is_not_added_to(present, version):
    with pytest.raises(ArchiveError, match=f"has archive format {version}, to which"):
        resume(as_format(present, version), Fingerprint())


def test_an_older_archive_with_a_later_ones_table_is_refused(present):
    older = as_format(present, 1)
    with closing(sqlite3.connect(older)) as database, database:
        database.execute("CREATE TABLE gauge (sample_id INTEGER)")
    with pytest.raises(ArchiveError, match="does not have the tables of archive format 1"):
        open_archive(older)

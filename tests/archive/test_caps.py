"""A small file does not become gigabytes of memory or minutes of time, and every refusal says why."""

import json
import sqlite3
import time
from contextlib import closing

import pytest
from test_archive import WORKLOAD, closed_trial, plan_of

from prony.archive import caps, create, guard, open_archive, rows
from prony.archive.caps import MOST_ROWS, MOST_ROWS_OF_A_TRIAL
from prony.archive.guard import columns, schema
from prony.core.errors import ArchiveError
from prony.model.facts import Fingerprint


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.prony"
    with create(path, plan_of(WORKLOAD), Fingerprint()) as writer:
        writer.append(closed_trial())
    return path


def tamper(path, statement, *values, pragma="trusted_schema=ON"):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA {pragma}")
        database.execute(statement, values)


def read_all(path):
    with open_archive(path) as archive:
        archive.plan()
        archive.subjects()
        archive.runs()
        return list(archive.trials())


# --- the schema -------------------------------------------------------------------------------------------

# What is put in the place of a column's declaration, or of a table's end.
HANGS = "GENERATED ALWAYS AS (length(replace(hex(zeroblob(10000000)), '0', 'abc'))) VIRTUAL"
CHANGED = {
    "a computed column": ("seed INTEGER NOT NULL", f"seed INTEGER NOT NULL {HANGS}"),
    "a check": ("seed INTEGER NOT NULL", "seed INTEGER NOT NULL CHECK (seed <> 8)"),
    "a default": ("seed INTEGER NOT NULL", "seed INTEGER NOT NULL DEFAULT (random())"),
    "a collation": ("title TEXT NOT NULL", "title TEXT COLLATE NOCASE NOT NULL"),
    "a column that may be null": ("seed INTEGER NOT NULL", "seed INTEGER"),
    "another type": ("seed INTEGER NOT NULL", "seed ANY NOT NULL"),
    "no strict types": (") STRICT", ")"),
    "a comment": ("seed INTEGER NOT NULL", "seed INTEGER /* a */ NOT NULL"),
}


def declare(path, before, after):
    (sql,) = asked(path, "SELECT sql FROM sqlite_schema WHERE name = 'plan'")
    assert before in sql
    new = sql.replace(before, after, 1)
    tamper(path, "UPDATE sqlite_schema SET sql = ? WHERE name = 'plan'", new, pragma="writable_schema=ON")


def asked(path, statement):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(statement).fetchone()


@pytest.mark.parametrize("what", CHANGED)
def test_a_table_with_the_same_columns_that_is_declared_differently_is_refused(path, what):
    declare(path, *CHANGED[what])
    started_s = time.monotonic()
    with pytest.raises(ArchiveError, match="the table `plan` is declared differently"):
        open_archive(path)
    assert time.monotonic() - started_s < 5


def test_white_space_in_a_declaration_is_no_difference(path):
    declare(path, "seed INTEGER NOT NULL", "seed  INTEGER\n\tNOT NULL")
    assert read_all(path)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE INDEX i ON trial (abs(block))", "the index `i` is none of them"),
        ("DROP INDEX sample_of_trial", "the index `sample_of_trial` is missing"),
        ("CREATE VIEW v AS SELECT 1", "the view `v` is none of them"),
        ("CREATE TABLE extra (x)", "the table `extra` is none of them"),
        ("ANALYZE", "the table `sqlite_stat1` is none of them"),
        ("DROP TABLE event", "the table `event` is missing"),
    ],
)
def test_a_refused_schema_is_named(path, statement, words):
    tamper(path, statement)
    with pytest.raises(ArchiveError) as refused:
        open_archive(path)
    assert words in str(refused.value)


def test_every_declaration_is_found():
    assert set(columns()) >= {"meta", "plan", "run", "cell", "trial"}
    assert schema().count("CREATE TABLE") == len(columns())


# --- sizes ------------------------------------------------------------------------------------------------

DEEP = "[" * 101 + "]" * 101
HUGE = {
    "a question of 10 MB": (
        "UPDATE plan SET question = ?",
        "x" * 10_000_000,
        "`plan.question` of row 1 has 10,000,000 bytes; expected at most 262,144",
    ),
    "a fingerprint of 57 MB": (
        "UPDATE run SET fingerprint_json = ?",
        json.dumps({"a": "x" * 57_000_000}),
        "`run.fingerprint_json` of row 1 has 57,000,009 bytes",
    ),
    "a fingerprint of many values": (
        "UPDATE run SET fingerprint_json = ?",
        json.dumps({"a": [[]] * 300_000}),
        "has 600,001 values; expected at most 100,000",
    ),
    "notes without end": (
        "UPDATE plan SET notes_json = ?",
        json.dumps(["x"] * 5000),
        "`plan.notes_json` of row 1 has 5,000 values; expected at most 1,000",
    ),
    "a histogram of 10 MB": (
        "UPDATE distribution SET histogram = zeroblob(?)",
        10_000_000,
        "`distribution.histogram` of row 1 has 10,000,000 bytes",
    ),
    "a number below 0": (
        "UPDATE plan SET blocks_count = ?",
        -1,
        "`plan.blocks_count` of row 1 is -1; expected at least 0",
    ),
    "a sample below 0": (
        "UPDATE process_sample SET rss_bytes = ?",
        -5,
        "`process_sample.rss_bytes` of row 1 is -5; expected at least 0",
    ),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_value_beyond_its_cap_is_refused_by_table_column_and_cap(path, what):
    statement, value, words = HUGE[what]
    tamper(path, statement, value)
    with pytest.raises(ArchiveError, match=words):
        open_archive(path)


WRONG_JSON = {
    "levels": (f'{{"a":{DEEP}}}', "JSON of 102 levels; expected at most 100"),
    "digits": (f'{{"a":{"1" * 5000}}}', "a number of 5,000 digits; expected at most 40"),
    "an infinite number": ('{"a":1e999}', "`1e999` is no finite number"),
    "no number": ('{"a":NaN}', "`NaN` is not JSON"),
}


@pytest.mark.parametrize("what", WRONG_JSON)
def test_json_that_python_would_take_is_refused_with_its_reason(path, what):
    value, words = WRONG_JSON[what]
    tamper(path, "UPDATE run SET fingerprint_json = ?", value)
    with pytest.raises(ArchiveError, match="is damaged") as refused:
        read_all(path)
    assert words in str(refused.value)


@pytest.mark.parametrize("column", ["claims_json", "design_json", "originals_json", "notes_json"])
@pytest.mark.parametrize(
    "value", ['[{"name": 5}]', "[3]", '{"margin": "x"}', '"x"', '[{"load": {"rate": ""}}]']
)
def test_no_other_shape_is_taken_for_a_part_of_the_plan(path, column, value):
    tamper(path, f"UPDATE plan SET {column} = ?", value)
    with pytest.raises(ArchiveError, match="is damaged"):
        read_all(path)


SUBJECT = {
    "targets": {"wsgi": 5},
    "requirements": "flask",
    "environment_names": {"a": 1},
    "services": 3,
    "folder": None,
}


@pytest.mark.parametrize("key", SUBJECT)
def test_no_other_shape_is_taken_for_an_app(path, key):
    subject = json.loads(asked(path, "SELECT subject_json FROM cell")[0])
    subject["app"][key] = SUBJECT[key]
    tamper(path, "UPDATE cell SET subject_json = ?", json.dumps(subject))
    with pytest.raises(ArchiveError, match=rf"subject\.app\.{key}"):
        read_all(path)


@pytest.mark.parametrize("value", [[], {"a": []}, {"a": 1.5}, {"a": None}])
def test_a_setting_is_a_number_or_a_text(path, value):
    subject = json.loads(asked(path, "SELECT subject_json FROM cell")[0])
    subject["settings"] = value
    tamper(path, "UPDATE cell SET subject_json = ?", json.dumps(subject))
    with pytest.raises(ArchiveError, match=r"subject\.settings"):
        read_all(path)


def test_what_is_quoted_of_a_damaged_value_is_short(path):
    tamper(path, "UPDATE trial SET role = ?", "x" * 100_000)
    with pytest.raises(ArchiveError) as refused:
        read_all(path)
    assert len(str(refused.value)) < 500


# --- counts -----------------------------------------------------------------------------------------------

MANY = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "


def test_more_trials_than_any_study_has_are_refused(path):
    rest = ", ".join(list(columns()["trial"])[1:])
    tamper(path, f"INSERT INTO trial {MANY.format(200_000)} SELECT i, {rest} FROM n, trial")
    with pytest.raises(ArchiveError, match="its table `trial` has 200,000 rows; expected at most 10,000"):
        open_archive(path)


@pytest.mark.parametrize("table", sorted(MOST_ROWS_OF_A_TRIAL))
def test_more_rows_of_a_trial_than_any_has_are_refused(path, table, monkeypatch):
    tamper(path, "INSERT INTO gauge SELECT max(sample_id), 'x', 1 FROM sample")
    tamper(path, "INSERT INTO thread VALUES (1, 1, 1, 'x', 1)")
    tamper(path, "INSERT INTO slice VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)")
    monkeypatch.setattr(rows, "MOST_ROWS_OF_A_TRIAL", {**MOST_ROWS_OF_A_TRIAL, table: 0})
    with pytest.raises(
        ArchiveError, match=f"a trial has more rows in the table `{table}`; expected at most 0"
    ):
        read_all(path)


def test_more_roles_in_a_trial_than_any_has_are_refused(path, monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROLES", 0)
    with pytest.raises(ArchiveError, match="a trial has more roles of processes; expected at most 0"):
        read_all(path)


def test_what_is_kept_together_has_a_cap(path, monkeypatch):
    monkeypatch.setattr(caps, "_MOST_KEPT_VALUES", 10)
    with pytest.raises(ArchiveError, match=r"have \d+ values of JSON together; expected at most 10"):
        open_archive(path)


def test_more_subjects_than_any_study_has_are_refused(path, monkeypatch):
    monkeypatch.setattr(caps, "_MOST_SUBJECTS", 0)
    with open_archive(path) as archive, pytest.raises(ArchiveError, match="1 subjects; expected at most 0"):
        archive.plan()


def test_a_plan_that_no_reader_would_accept_is_refused_before_it_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(caps, "MOST_ROWS", {**MOST_ROWS, "cell": 0})
    with pytest.raises(ArchiveError, match="its table `cell` has 1 rows; expected at most 0"):
        create(tmp_path / "new.prony", plan_of(WORKLOAD), Fingerprint())
    assert list(tmp_path.iterdir()) == []


# --- time -------------------------------------------------------------------------------------------------


def test_a_file_that_takes_too_long_is_given_up(path, monkeypatch):
    for name, value in (("_AT_LEAST_S", 0.0), ("_FOR_EACH_MIB_S", 0.0), ("_STEPS", 1)):
        monkeypatch.setattr(guard, name, value)
    with pytest.raises(ArchiveError, match="takes too long to read: expected at most 0 s of CPU time"):
        open_archive(path)


def test_time_between_two_trials_does_not_count(path, monkeypatch):
    monkeypatch.setattr(guard, "_AT_LEAST_S", 0.5)
    with open_archive(path) as archive:
        until_s = time.thread_time() + 0.6
        while time.thread_time() < until_s:
            pass
        assert list(archive.trials())


def test_an_index_that_names_rows_again_and_again_does_not_hang_the_reader(path, monkeypatch):
    """An index is not compared with its table: that would take as long as all else. Newer SQLites look at
    the number of its entries.
    """
    monkeypatch.setattr(guard, "_AT_LEAST_S", 0.5)
    with_a_false_index(path, trials=2000, processes=2000)
    started_s = time.thread_time()
    with pytest.raises(ArchiveError, match=r"takes too long to read|wrong # of entries in index"):
        read_all(path)
    assert time.thread_time() - started_s < 5


def with_a_false_index(path, trials, processes):
    """Let every trial have the same sample, of many processes, by an index that says so."""
    (ours,) = asked(path, "SELECT sql FROM sqlite_schema WHERE name = 'sample_of_trial'")
    (sample,) = asked(path, "SELECT max(sample_id) FROM sample")
    rest = ", ".join(list(columns()["trial"])[1:])
    usage = ", ".join(list(columns()["process_sample"])[2:])
    many = [
        f"INSERT INTO trial {MANY.format(trials)} SELECT i, {rest} FROM n, trial",
        f"INSERT INTO process {MANY.format(processes)} SELECT i + 1000, 1, i, 1, 'x', 'x' FROM n",
        f"INSERT INTO process_sample {MANY.format(processes)} SELECT {sample}, i + 1000, {usage} FROM n,"
        " (SELECT * FROM process_sample LIMIT 1)",
        "DROP INDEX sample_of_trial",
        # It is kept as an index is.
        "CREATE TABLE x (trial_id INTEGER, row INTEGER, PRIMARY KEY (trial_id, row)) WITHOUT ROWID",
        f"INSERT INTO x SELECT trial_id, {sample} FROM trial",
        "PRAGMA writable_schema=ON",
    ]
    with closing(sqlite3.connect(path)) as database, database:
        for statement in many:
            database.execute(statement)
        database.execute(
            "UPDATE sqlite_schema SET type = 'index', name = 'sample_of_trial', tbl_name = 'sample', sql = ?"
            " WHERE name = 'x'",
            (ours,),
        )

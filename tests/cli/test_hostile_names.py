"""What strangers call things reaches no terminal as it is: as arguments, and from columns of an archive."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from commands import Done
from golden.build import study_two
from prony.cli import talk
from prony.cli.main import COMMANDS

# It clears the line, goes back, turns red, sets the title, writes from right to left.
HOSTILE = "a\x1b[2K\r\x9b31mb\x1b]0;c\x07\u202ed\x08\x7f"
# What each command makes of a name that it does not know.
CALLS = {
    "run": [(HOSTILE,), ("--app", HOSTILE), ("--app", "hello", "--servers", HOSTILE)],
    "tune": [
        ("--app", HOSTILE),
        ("--app", "hello", "--slo", HOSTILE),
        ("--app", "hello", "--budget", HOSTILE),
    ],
    "load": [
        (HOSTILE,),
        ("http://127.0.0.1:1/", "-H", HOSTILE),
        ("http://127.0.0.1:1/", "--duration", HOSTILE),
    ],
    "report": [(HOSTILE,)],
    "compare": [(HOSTILE, HOSTILE)],
    "why": [(HOSTILE,)],
    "servers": [(HOSTILE,), ("--catalog", HOSTILE)],
    "studies": [(HOSTILE,)],
    "engines": [(HOSTILE,)],
    "doctor": [(HOSTILE,)],
    "host": [("--connections", HOSTILE)],
    "selftest": [(HOSTILE,), ("aa", HOSTILE)],
    "calibrate": [(HOSTILE,)],
    "reference": [("--port", HOSTILE)],
    "fleet": [(HOSTILE, "x"), ("certificates", f"/proc/{HOSTILE}")],
    "env": [("--run-as", HOSTILE)],
    "clean": [("--run-as", HOSTILE)],
}


def controls(text):
    """Return what would steer a terminal."""
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


def test_every_command_is_called():
    assert CALLS.keys() == set(COMMANDS)


@pytest.mark.parametrize(
    ("command", "arguments"), [(command, one) for command, calls in CALLS.items() for one in calls]
)
def test_a_hostile_name_is_refused_without_its_escapes(said, command, arguments):
    done = said(command, *arguments)
    assert done.status in (2, 3)
    assert controls(done.out + done.err) == set()


def test_the_command_line_prints_in_one_place():
    folder = Path(talk.__file__).parent
    printing = {path.name for path in folder.glob("*.py") if re.search(r"\b(echo|print)\(", path.read_text())}
    assert printing == {"load_progress.py", "talk.py"}


def test_a_hostile_option_is_refused_without_its_escapes(said):
    done = said("run", f"--{HOSTILE}")
    assert (done.status, controls(done.err)) == (2, set())


# --- archives ---------------------------------------------------------------------------------------------


def columns(path):
    """Return table and column of all text that an archive holds."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [
            (table, column)
            for table in tables
            for _, column, kind, *_ in database.execute(f"PRAGMA table_info({table})")
            if kind == "TEXT"
        ]


def hostile(value):
    """Return a value with the escapes in each of its texts."""
    match value:
        case str():
            return value + HOSTILE
        case list():
            return [hostile(one) for one in value]
        case dict():
            return {key: hostile(one) for key, one in value.items()}
    return value


def spoil(path, table, column):
    """Put the escapes into each text of a column."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA ignore_check_constraints=ON")
        for row, text in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            if text is not None:
                new = json.dumps(hostile(json.loads(text))) if column.endswith("_json") else hostile(text)
                database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))


def test_no_column_of_an_archive_brings_escapes_to_the_reader(said, folder):
    # Each column is in a study of one block too, and read some forty times.
    study_two(folder / "whole.prony", blocks=1)
    for table, column in columns(folder / "whole.prony"):
        path = folder / f"{table}-{column}.prony"
        path.write_bytes((folder / "whole.prony").read_bytes())
        spoil(path, table, column)
        done = said("report", path.name)
        assert controls(done.out + done.err) == set(), (table, column)
        assert done.status in (0, 2, 3), (table, column, done.err)


READABLE = [
    *[("plan", name) for name in ("title", "question")],
    *[("subject", name) for name in ("server_version", "interpreter", "command_line", "unavailable_reason")],
    ("trial", "log_text"),
]


@pytest.mark.parametrize(
    "command",
    [
        ("report", "out.prony"),
        ("report", "out.prony", "--format", "markdown"),
        ("report", "out.prony", "--json"),
        ("compare", "out.prony", "out.prony"),
        ("why", "out.prony"),
        ("doctor", "out.prony"),
        ("selftest", "aa", "out.prony"),
        ("run", "--app", "hello", "--servers", "gunicorn", "--out", "out.prony"),
    ],
)
def test_no_command_brings_an_archives_escapes_to_the_reader(said, folder, command):
    path = study_two(folder / "out.prony")
    for table, column in set(READABLE) & set(columns(path)):
        spoil(path, table, column)
    done = said(*command)
    assert controls(done.out + done.err) == set()
    assert done.status in (0, 1, 2, 3)


# --- output -----------------------------------------------------------------------------------------------


def changed(prony, change, *arguments):
    """Run a command whose standard streams were changed before it began."""
    begun = (
        f"import os, sys; {change}; os.execv(sys.executable, [sys.executable, '-m', 'prony', *sys.argv[1:]])"
    )
    process = prony.start(*arguments, program=("-c", begun))
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


@pytest.mark.parametrize("arguments", [("studies",), ("studies", "--json"), ("--help",)])
def test_an_output_that_takes_nothing_is_an_error_with_its_reason(prony, arguments):
    done = changed(prony, "os.dup2(os.open('/dev/full', os.O_WRONLY), 1)", *arguments)
    assert done.status == 3
    assert done.err.startswith("error: standard output cannot be written: No space left on device\n\nhint: ")


def test_letters_that_the_outputs_encoding_lacks_are_written_as_escapes(prony):
    done = prony("load", "http://127.0.0.1:1/\u0142", "--requests", "1", PYTHONIOENCODING="ascii")
    assert (done.status, done.out.isascii()) == (3, True), done.err


@pytest.mark.parametrize("change", ["os.close(1)", "os.close(2)", "os.closerange(0, 3)"])
def test_closed_streams_are_no_fault(prony, change):
    assert changed(prony, change, "studies").status == 0

"""What a stranger put beside an archive, or in its place, makes no command write, delete, follow or wait."""

import os
import random
import stat
import subprocess
import sys

import pytest

from fuzz.mutants import BESIDE, journal_naming
from fuzz.workers import everything
from golden.build import study_two

READING = [
    ("report", "out.prony"),
    ("report", "out.prony", "--json"),
    ("report", "out.prony", "--markdown", "-"),
    ("compare", "out.prony", "out.prony"),
    ("why", "out.prony"),
    ("run", "--app", "hello", "--servers", "gunicorn", "--out", "out.prony"),
    ("run", "--app", "hello", "--servers", "gunicorn", "--out", "out.prony", "--force"),
]
PLACES = {
    "a fifo": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a link to itself": lambda path: path.symlink_to(path),
    "an empty file": lambda path: path.write_bytes(b""),
    "a file larger than any": lambda path: os.truncate(study_two(path), 2**40),
}


@pytest.mark.parametrize("command", READING)
def test_a_journal_that_names_another_file_deletes_nothing(said, folder, command):
    study_two(folder / "out.prony")
    victim = folder / "victim"
    victim.write_text("mine")
    (folder / "out.prony-journal").write_bytes(journal_naming(folder / "out.prony", victim))
    before = everything(folder)
    done = said(*command)
    assert everything(folder) == before
    assert done.status == (2 if command[0] == "run" else 3)
    assert "out.prony-journal` names another file, which SQLite would delete" in done.err


def assert_changes_nothing(said, folder, command):
    before = everything(folder)
    done = said(*command)
    assert everything(folder) == before
    assert done.status in (0, 2, 3), done.err
    assert "fault in Prony" not in done.err


@pytest.mark.parametrize("what", ["journal", "wal", "shm"])
@pytest.mark.parametrize("kind", sorted(BESIDE))
def test_a_report_changes_nothing_whatever_lies_beside_the_file(said, folder, kind, what):
    place = study_two(folder / "out.prony", blocks=1)
    BESIDE[kind](random.Random(1), place, folder / f"out.prony-{what}")
    assert_changes_nothing(said, folder, READING[0])


@pytest.mark.parametrize("kind", ["records", "header", "a link", "a write-ahead log"])
@pytest.mark.parametrize("command", READING)
def test_no_reading_command_changes_anything(said, folder, command, kind):
    place = study_two(folder / "out.prony", blocks=1)
    BESIDE[kind](random.Random(1), place, folder / "out.prony-journal")
    assert_changes_nothing(said, folder, command)


HALF_A_TRANSACTION = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size=1")
database.execute("BEGIN IMMEDIATE")
database.execute("DELETE FROM trial")
database.execute("UPDATE sample SET phase = 'x'")
os._exit(0)
"""
# As `mount` would: a minimal machine has no such command.
READ_ONLY = """
import os, sys
from prony.sandbox.linux import make_read_only, own_mounts
own_mounts()
make_read_only([os.getcwd()])
os.chdir(os.getcwd())
try:
    open("x", "w")
except OSError:
    os.execv(sys.argv[1], sys.argv[1:])
"""


def in_a_read_only_folder(prony, command):
    """Run a command where nothing can be written, not even by root."""
    words = [sys.executable, "-m", "prony", *command]
    if os.geteuid() == 0:
        words = [sys.executable, "-c", READ_ONLY, *words]
    else:
        prony.folder.chmod(0o555)
    return subprocess.run(
        words, cwd=prony.folder, env=prony.environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("half_done", [False, True])
def test_an_archive_is_read_where_nothing_can_be_written(prony, folder, half_done):
    place = study_two(folder / "out.prony", blocks=1)
    if half_done:
        subprocess.run([sys.executable, "-c", HALF_A_TRANSACTION, str(place)], check=False)
        assert (folder / "out.prony-journal").stat().st_size > 0
    before = everything(folder)
    done = in_a_read_only_folder(prony, READING[0])
    folder.chmod(0o755)
    assert "Servers embedded in a Python program" in done.stdout, done.stderr
    assert done.returncode == 0
    assert [one[-1] for one in everything(folder).values()] == [one[-1] for one in before.values()]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", [READING[0], READING[3], READING[4], READING[5]])
def test_what_is_no_archive_is_refused_at_once(said, folder, place, command):
    PLACES[place](folder / "out.prony")
    done = said(*command)
    assert done.status == (2 if command[0] == "run" else 3)
    assert done.err.startswith("error: `out.prony` ")
    assert done.err.count("\n") <= 3

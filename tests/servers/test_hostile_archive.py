"""An archive from a stranger never runs what it says: only what its user has typed."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

BEGUN = """
import sys
from prony import study
from prony.archive import create
from prony.cli import main
from prony.machine.fingerprint import fingerprint

def begin(task, listener):
    create(task.out, task.plan, fingerprint(), task.cross_checks).close()
    sys.stdout.flush()
    os._exit(0)

import os
study.run_study = begin
sys.argv = ["prony", *sys.argv[1:]]
main.main()
"""
TYPED = (
    *("run", "--app", "hello", "--servers", "gunicorn", "-c", "2", "--repeats", "1", "--duration", "300ms"),
    *("--warmup", "0s", "--no-calibration", "--out", "out.prony"),
)


@pytest.fixture
def interrupted(prony, folder):
    """Return an archive of a built-in app on Gunicorn, whose study ended before its first trial did."""
    made = subprocess.run(
        [sys.executable, "-c", BEGUN, *TYPED],
        cwd=folder,
        env=prony.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder / "out.prony"


def with_target(archive, target):
    """Change the app's target in an archive, and take away what the change could be seen by."""
    with closing(sqlite3.connect(archive)) as database, database:
        for cell, text in database.execute("SELECT cell_id, subject_json FROM cell").fetchall():
            subject = json.loads(text)
            subject["app"]["targets"] = {"wsgi": target}
            database.execute(
                "UPDATE cell SET subject_json = ? WHERE cell_id = ?", (json.dumps(subject), cell)
            )
        database.execute("DELETE FROM subject")


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_target_that_gunicorn_would_call_is_refused_and_never_called(prony, folder, interrupted, options):
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    victim = open_to_all / "created"
    with_target(interrupted, f"builtins:open({str(victim)!r}, 'w')")
    done = prony(*TYPED, *options, timeout_s=240)
    assert not victim.exists()
    assert done.status == 2, done.err
    assert "`out.prony` holds another study: cell.0.subject.app.targets." in done.err

"""What is shown while a study runs."""

import pytest

from golden import build
from prony.cli.progress import StudyProgress, load_line
from prony.model import Cell, Invalid


@pytest.fixture
def cell():
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    return Cell(1, build.subject("gunicorn+falcon-hello"), workload)


def test_trials_that_are_repeated_are_counted_as_they_come(cell, capsys):
    with StudyProgress(1, 1.0) as progress:
        for attempt in range(3):
            progress.trial_started(cell, 0, 1)
            outcome = Invalid("the machine slept")
            progress.trial_ended(cell, build.trial(cell, 0, 0, [5], outcome=outcome, attempt=attempt))
    shown = [line.split()[0] for line in capsys.readouterr().err.splitlines() if "[" in line]
    assert shown == ["[1/1]", "[2/2]", "[3/3]"]


def test_a_study_that_continues_with_nothing_but_repeats_shows_them(cell, capsys):
    with StudyProgress(4, 1.0) as progress:
        progress.planned(0)
        progress.trial_started(cell, 0, 1)
        progress.trial_ended(cell, build.trial(cell, 0, 0, [5], attempt=1))
    assert "[1/1]" in capsys.readouterr().err


def test_while_connections_are_opened_the_line_says_how_many_are_open():
    workload = build.Workload(build.ClosedLoop(19_000), build.DurationStop(build.SECOND))
    counts = {"ok": 0, "failed": 0, "in_flight": 0, "queued": 0, "connected": 12_300}
    line = load_line(workload, {"phase": "opening", "elapsed_ns": 800_000_000, **counts})
    assert line.startswith("opening ━") and line.endswith("12,300 of 19,000 connections open")

"""What is shown while a study runs."""

import contextlib
import os
import subprocess
import sys
from queue import Queue

import pytest

from golden import build
from prony.catalog.install import prepare
from prony.catalog.install.environment import EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import EnvironmentProgress
from prony.catalog.schema.loader import load_catalog
from prony.cli.load_progress import LoadLine, LoadProgress
from prony.cli.progress import StudyProgress
from prony.model.plan import Cell
from prony.model.trial import Invalid
from prony.model.workload import ConnectionStage, CountStop


@pytest.fixture
def cell():
    workload = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    return Cell(1, build.subject("gunicorn+falcon-hello"), workload)


def test_who_builds_for_a_cpython_that_nobody_maintains_is_warned(capsys):
    with StudyProgress(1, 1.0) as progress:
        for python in ("2.7", ""):
            progress.environment(EnvironmentProgress(f"on-{python}", "building", unmaintained=python))
    shown = [line for line in capsys.readouterr().err.splitlines() if "known weaknesses" in line]
    assert [line.partition(":")[0] for line in shown] == ["on-2.7"]


@pytest.mark.parametrize("version, warned", [("2.7", "2.7"), ("3.9", "3.9"), ("3.10", ""), (None, "")])
def test_a_cpython_that_is_still_maintained_is_known(version, warned):
    server = load_catalog().server("gunicorn")
    old = server.model_copy(update={"install": server.install.model_copy(update={"python": version})})
    states = {}

    class Built:
        def environment(self, _request, on_build):
            on_build("")
            return Unavailable("x", "", "")

    waiting = Queue()
    prepare._prepare_one(Built(), EnvironmentRequest("x", old), waiting)
    while not waiting.empty():
        one = waiting.get()
        states[one.state] = one.unmaintained
    assert states == {"building": warned, "failed": ""}


def test_trials_that_are_repeated_are_counted_as_they_come(cell, capsys):
    with StudyProgress(1, 1.0) as progress:
        for attempt in range(3):
            progress.trial_started(cell, 0, 1)
            outcome = Invalid("the machine slept")
            progress.trial_ended(cell, build.trial(cell, 0, 0, [5], outcome=outcome, attempt=attempt))
    shown = [line.split()[0] for line in capsys.readouterr().err.splitlines() if "[" in line]
    assert shown == ["[1/1]", "[2/2]", "[3/3]"]


def test_of_a_study_that_must_end_soon_the_first_figures_stay_on_a_terminal(cell, capsys, monkeypatch):
    monkeypatch.setattr("prony.cli.progress.LiveLine.is_live", True)
    shown = {}
    for first in (0, 1):
        with StudyProgress(4, 1.0, first) as progress:
            for block in range(2):
                progress.trial_started(cell, block, 2)
                progress.trial_ended(cell, build.trial(cell, block, 0, [5] * 100))
        shown[first] = [line for line in capsys.readouterr().err.splitlines() if "answered" in line]
    assert (len(shown[0]), len(shown[1])) == (0, 1)
    assert ": ok, 100 /s, 100 answered" in shown[1][0]


def test_a_study_that_continues_with_nothing_but_repeats_shows_them(cell, capsys):
    with StudyProgress(4, 1.0) as progress:
        progress.planned(0)
        progress.trial_started(cell, 0, 1)
        progress.trial_ended(cell, build.trial(cell, 0, 0, [5], attempt=1))
    assert "[1/1]" in capsys.readouterr().err


def test_rounds_are_shown_and_their_time_is_part_of_what_is_left(cell, capsys):
    with StudyProgress(1, 10.0) as progress:
        progress.rounds_planned(range(3), 60.0)
        progress.trial_started(cell, 0, 1)
        progress.trial_ended(cell, build.trial(cell, 0, 0, [5]))
        for block in range(3):
            for number in range(6):  # one of them was made up for
                progress.round_started(block, number, 5)
    shown = [line for line in capsys.readouterr().err.splitlines() if "rounds of short windows" in line]
    assert [line.split()[1] for line in shown] == ["1:", "2:", "3:"]
    assert [line[line.index("(") :] for line in shown] == ["(3:00 to go)", "(2:00 to go)", "(1:00 to go)"]


def test_the_line_has_the_rate_and_the_percentiles_of_the_last_second():
    workload = build.Workload(build.OpenLoop(500.0), build.DurationStop(10 * build.SECOND))
    line = LoadLine(workload)
    last = {"second": 1, "ok": 500, "p50_ns": 1_200_000, "p99_ns": None, "max_ns": 9_000_000}
    counts = {"ok": 900, "failed": 0, "in_flight": 2, "queued": 0, "connected": 3, "last_second": None}
    line.show({"phase": "window", "elapsed_ns": 2 * build.SECOND, **counts})
    counts |= {"ok": 1150, "failed": 7, "queued": 4, "last_second": last}
    shown = line.show({"phase": "window", "elapsed_ns": 2_500_000_000, **counts})
    assert shown == (
        "window ━━╌╌╌╌╌╌╌╌ 7.50 s left  500 /s  p50 1.20 ms  max 9.00 ms  1,150 ok  7 failed  2 in flight  "
        "4 queued"
    )
    last["p99_ns"] = 5_000_000
    assert "  p99 5.00 ms  " in line.show({"phase": "window", "elapsed_ns": 2_750_000_000, **counts})


def test_of_a_count_the_time_left_is_estimated():
    workload = build.Workload(build.ClosedLoop(5), CountStop(1000))
    counts = {"ok": 200, "failed": 50, "in_flight": 5, "queued": 0, "connected": 5, "last_second": None}
    shown = LoadLine(workload).show({"phase": "window", "elapsed_ns": build.SECOND, **counts})
    assert shown.startswith("window ━━╌╌╌╌╌╌╌╌ about 3.00 s left  200 ok")


def test_no_line_is_written_where_no_terminal_is(prony, reference):
    assert prony("load", reference, "-d", "600ms").err == ""


def test_a_terminal_gets_the_line_and_is_left_clean(prony, reference):
    master, slave = os.openpty()
    command = [sys.executable, "-m", "prony", "load", reference, "-d", "1500ms"]
    environment = prony.environment() | {"TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR")
    with subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL, env=environment) as process:
        os.close(slave)
        shown = b""
        # The terminal ends with its last writer.
        with contextlib.suppress(OSError):
            while piece := os.read(master, 65536):
                shown += piece
    os.close(master)
    assert process.returncode == 0
    assert b"p50" in shown and b" /s" in shown and b" left" in shown
    assert b"Traceback" not in shown


@pytest.mark.parametrize(("first", "shown"), [(50, "20 of 50"), (0, "20 of 0")])
def test_a_load_in_stages_opens_what_its_first_stage_begins_with(first, shown):
    stages = (ConnectionStage(build.SECOND, first, 800),)
    workload = build.Workload(build.ClosedLoop(800, stages), build.DurationStop(build.SECOND))
    counts = {"ok": 0, "failed": 0, "in_flight": 0, "queued": 0, "connected": 20}
    line = LoadLine(workload).show({"phase": "opening", "elapsed_ns": 800_000_000, **counts})
    assert line.endswith(f"{shown} connections open")


def test_while_connections_are_opened_the_line_says_how_many_are_open():
    workload = build.Workload(build.ClosedLoop(19_000), build.DurationStop(build.SECOND))
    counts = {"ok": 0, "failed": 0, "in_flight": 0, "queued": 0, "connected": 12_300}
    line = LoadLine(workload).show({"phase": "opening", "elapsed_ns": 800_000_000, **counts})
    assert line.startswith("opening ━") and line.endswith("12,300 of 19,000 connections open")


def test_who_waits_for_generators_sees_it(monkeypatch):
    shown = []
    monkeypatch.setattr("prony.cli.load_progress.LiveLine.show", lambda self, line: shown.append(line))
    progress = LoadProgress(build.Workload(build.ClosedLoop(1), CountStop(9)))
    for count in (4, None):
        progress.on_event({"event": "waiting", "generators": count})
    assert shown == ["waiting for the generators to start: 4", "waiting for the generators"]


def test_into_a_pipe_a_line_comes_every_ten_seconds(capsys, monkeypatch):
    clock = iter([0.0, 4.0, 10.0, 10.0, 14.0, 20.0, 20.0])
    monkeypatch.setattr("prony.cli.load_progress.monotonic", lambda: next(clock))
    counts = {"ok": 1, "failed": 0, "in_flight": 1, "queued": 0, "last_second": None}
    event = {"event": "progress", "phase": "window", "elapsed_ns": 10**9, **counts}
    with LoadProgress(build.Workload(build.ClosedLoop(1), build.DurationStop(10**11))) as progress:
        for _ in range(4):
            progress.on_event(event)
    assert capsys.readouterr().err.count("window") == 2

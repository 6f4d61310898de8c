"""How an external generator is run: cancelled, overdue, orphaned, failing, and without privileges."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from prony.core.errors import EngineError
from prony.engine.external.engine import ExternalEngine, InstalledTool
from prony.engine.external.tool import Abilities, Measured, Order, Tool
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload

LOAD = Workload(ClosedLoop(1), DurationStop(200_000_000), timeout_ns=1, grace_ns=1)
ADDRESS = Address("127.0.0.1", 1)
SEAT = EngineSeat((max(os.sched_getaffinity(0)),))


def engine(script, parse=lambda _output, _job: Measured(1, 1), spare_ns=10_000_000_000, **order):
    tool = Tool(
        name="fake",
        title="a shell",
        get="nothing",
        ask_version=(),
        abilities=Abilities(),
        order=lambda _: Order((("/bin/sh", "-c", script),), **order),
        parse=parse,
        caveats=("it is no generator",),
    )
    return ExternalEngine(EngineChoice("fake"), tool, lambda _: InstalledTool("/bin/sh", "1"), spare_ns)


def ignore(_event):
    pass


def gone(pid):
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_what_it_writes_and_the_files_that_are_read_reach_the_parser():
    seen = []

    def parse(output, _job):
        seen.append((output.stdout, output.stderr, dict(output.files)))
        return Measured(1, 1)

    script = "cat given; echo aside >&2; printf told > report; pwd > where"
    engine(script, parse, files={"given": b"caf\xc3\xa9\n"}, reads=("report", "absent")).run(
        LOAD, ADDRESS, SEAT, ignore
    )
    assert seen == [("café\n", "aside\n", {"report": "told", "absent": ""})]


def test_nothing_of_its_folder_is_left():
    seen = []
    engine("pwd", lambda output, _: seen.append(output.stdout.strip()) or Measured(1, 1)).run(
        LOAD, ADDRESS, SEAT, ignore
    )
    assert "prony-engine-" in seen[0]
    assert not Path(seen[0]).exists()


def test_the_tool_of_a_cancelled_run_is_gone(tmp_path):
    running = engine(f"echo $$ > {tmp_path}/pid; exec sleep 600")

    def cancel_when_open(event):
        if event["event"] == "window_close":
            threading.Thread(target=running._child.cancel).start()

    with pytest.raises(EngineError, match="the run was cancelled"):
        running.run(LOAD, ADDRESS, SEAT, cancel_when_open)
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_tool_that_hangs_is_killed_at_the_hard_deadline(tmp_path):
    with pytest.raises(EngineError, match="did not finish within"):
        engine(f"echo $$ > {tmp_path}/pid; trap '' TERM; sleep 600", spare_ns=2_000_000_000).run(
            LOAD, ADDRESS, SEAT, ignore
        )
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_tool_dies_with_the_process_that_started_it(tmp_path):
    def kill_the_starter(event):
        if event["event"] == "window_close":
            tool = int((tmp_path / "pid").read_text())
            os.kill(int(Path(f"/proc/{tool}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)

    with pytest.raises(EngineError, match="ended without a recording"):
        engine(f"echo $$ > {tmp_path}/pid; exec sleep 600").run(LOAD, ADDRESS, SEAT, kill_the_starter)
    assert gone(int((tmp_path / "pid").read_text()))


def test_what_is_left_of_a_starter_that_was_killed_lies_where_the_seat_says(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    seat = replace(SEAT, folder=str(kept))

    def kill_the_starter(event):
        if event["event"] == "window_close":
            os.kill(int((tmp_path / "starter").read_text()), signal.SIGKILL)

    with pytest.raises(EngineError, match="ended without a recording"):
        engine(f"echo $PPID > {tmp_path}/starter; pwd > {tmp_path}/where; exec sleep 600").run(
            LOAD, ADDRESS, seat, kill_the_starter
        )
    assert [str(path) for path in kept.iterdir()] == [(tmp_path / "where").read_text().strip()]


def test_nothing_is_left_of_a_starter_that_was_killed_where_the_seat_names_no_folder(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def kill_the_starter(event):
        if event["event"] == "window_close":
            assert list(temporary.iterdir())
            os.kill(int((tmp_path / "starter").read_text()), signal.SIGKILL)

    with pytest.raises(EngineError, match="ended without a recording"):
        engine(f"echo $PPID > {tmp_path}/starter; exec sleep 600").run(LOAD, ADDRESS, SEAT, kill_the_starter)
    assert list(temporary.iterdir()) == []


def test_a_tool_that_fails_is_told_with_its_last_words():
    def parse(_output, _job):
        raise EngineError("nothing to read")

    with pytest.raises(EngineError, match="fake: nothing to read; it ended with status 7 and said: no way"):
        engine("echo no way >&2; exit 7", parse).run(LOAD, ADDRESS, SEAT, ignore)


def test_the_window_closes_with_a_tool_that_ends_early():
    events = []
    start = time.monotonic()
    engine("true").run(Workload(ClosedLoop(1), DurationStop(60_000_000_000)), ADDRESS, SEAT, events.append)
    assert [event["event"] for event in events] == ["started", "window_open", "window_close"]
    assert time.monotonic() - start < 30


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes the user")
def test_a_tool_has_the_seats_user_and_cpus_and_no_new_privileges():
    seen = []
    seat = EngineSeat(SEAT.cpus, None, 65534, 65534, (65534,))
    script = "id -u; id -G; grep -E '^(NoNewPrivs|Cpus_allowed_list)' /proc/self/status"
    engine(script, lambda output, _: seen.append(output.stdout.split()) or Measured(1, 1)).run(
        LOAD, ADDRESS, seat, ignore
    )
    assert seen[0] == ["65534", "65534", "NoNewPrivs:", "1", "Cpus_allowed_list:", str(seat.cpus[0])]

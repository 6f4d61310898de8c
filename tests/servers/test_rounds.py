"""Rounds of short windows on servers that stay: measured, archived, reported, and nothing is left."""

import json
import signal
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from commands import BESIDE, MAIN, ended, eventually
from prony.archive import open_archive

pytestmark = pytest.mark.usefixtures("nothing_left")

APP = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""
DIES = """\
import os, time

began = None


def app(environ, start_response):
    global began
    began = began or time.monotonic()
    if "waitress" in environ["SERVER_SOFTWARE"] and time.monotonic() - began > 3:
        os._exit(3)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

SLOW = """\
import time


def app(environ, start_response):
    time.sleep(0.15 if "waitress" in environ["SERVER_SOFTWARE"] else 0.0)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

NEVER_IDLE = """\
import sys, threading, time


def burn():
    while True:
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            pass
        time.sleep(0.05)


if "waitress" in sys.modules:
    threading.Thread(target=burn, daemon=True).start()


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

# Apps that work alone, and not beside a twin.
LOCK = """\
import socket

held = socket.socket(socket.AF_UNIX)
held.bind("\\0prony-test-lock-of-the-shop")
"""
SECOND_PORT = """\
import socket

second = socket.create_server(("127.0.0.1", 47123))
"""
# The pool of the first takes all connections that a database has; there are requests before there is load.
ALL_CONNECTIONS = """\
import socket, threading

held, asked, alone = None, 0, threading.Lock()


def limit():
    global held, asked
    with alone:
        asked += 1
        if asked > 9 and not held:
            pool = socket.socket(socket.AF_UNIX)
            pool.bind("\\0prony-test-pool-of-the-shop")
            held = pool
"""
# Waitress answers one request in 400 long after the others.
LATE = """\
import sys, time

asked = 0


def limit():
    global asked
    asked += 1
    if "waitress" in sys.modules and asked % 400 == 0:
        time.sleep(3)
"""
# Waitress has a process more while it has something to do.
SHRINKS = """\
import os, sys, threading, time

last = 0.0


def watch():
    child = 0
    while True:
        is_idle = time.monotonic() - last > 0.5
        if child and is_idle:
            os.kill(child, 9)
            os.waitpid(child, 0)
            child = 0
        elif not child and not is_idle:
            child = os.fork()
            if not child:
                time.sleep(600)
                os._exit(0)
        time.sleep(0.02)


if "waitress" in sys.modules:
    threading.Thread(target=watch, daemon=True).start()


def limit():
    global last
    last = time.monotonic()
"""

SHORT = (
    "--duration",
    "300ms",
    "--warmup",
    "100ms",
    "--repeats",
    "2",
    "--pilot",
    "0s",
    "--no-calibration",
    "--force",
)


def slices_of(path):
    with open_archive(path) as archive:
        return [(one.trial.cell_id, one.trial.block, one.trial.slices) for one in archive.trials()]


def test_each_server_has_a_turn_in_each_round_and_the_report_shows_both_levels(folder, prony):
    (folder / "shop.py").write_text(APP)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "4", *SHORT, "--rounds", "4")
    done = prony(*words, "--out", "r.prony", "--json", "r.json", timeout_s=240)
    assert done.status == 0, done.err
    found = slices_of(folder / "r.prony")
    assert len(found) == 4
    for _, _, slices in found:
        assert [one.round for one in slices][:4] == [0, 1, 2, 3]
        assert all(one.ok > 0 and one.failed == 0 and one.cpu_ns for one in slices)
        assert all(0.45e9 < one.close_ns - one.open_ns < 0.6e9 for one in slices)
    # One at a time: no turn begins before another one has ended.
    turns = sorted((one.began_ns, one.ended_ns) for _, block, slices in found if block == 0 for one in slices)
    assert all(ended_ns <= began_ns for (_, ended_ns), (began_ns, _) in pairwise(turns))
    cells = json.loads((folder / "r.json").read_text())["groups"][0]
    assert cells["levels"] is None or cells["levels"]["rounds"] >= 2


def test_a_study_of_a_length_of_time_has_as_many_blocks_as_it_has_time_for(folder, prony):
    (folder / "shop.py").write_text(APP)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", "--for", "40s")
    short = ("--duration", "300ms", "--warmup", "100ms", "--no-calibration", "--force")
    began_s = time.monotonic()
    done = prony(*words, *short, "--out", "r.prony", "--json", "r.json", timeout_s=240)
    assert done.status == 0, done.err
    extent = json.loads((folder / "r.json").read_text())["extent"]
    assert extent["blocks"] >= 5
    assert f"stopped after {extent['blocks']} blocks: the next would end after 40.0 s" in done.err
    assert "sessions" not in done.out
    # With the set-up, and on a machine with other work.
    assert 15 < time.monotonic() - began_s < 120


def test_a_search_has_no_rounds(folder, prony):
    (folder / "shop.py").write_text(APP)
    words = (
        "run",
        "--app",
        "shop:app",
        "--servers",
        "gunicorn",
        "--find-rate",
        "p99 < 50ms",
        "--rounds",
        "3",
    )
    done = prony(*words, "--out", "r.prony")
    assert done.status == 2
    assert "`--rounds 3`: the servers must be measured in turns: a search for rates has no block" in done.err


def test_what_is_interrupted_goes_on_with_the_rounds_that_it_lacks(folder, prony):
    (folder / "shop.py").write_text(APP)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "6")
    archive = folder / "r.prony"
    with ended(prony.start(*words, "--out", "r.prony")) as process:
        assert eventually(lambda: archive.exists() and len(slices_of(archive)) == 2, timeout_s=240)
        time.sleep(4)  # It is in the rounds of the first block, or still before the first is whole.
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
    assert len(slices_of(archive)) == 2
    again = prony(*words, "--out", "r.prony", timeout_s=240)
    assert again.status == 0, again.err
    found = slices_of(archive)
    assert sorted((cell, block) for cell, block, _ in found) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    # Whole rounds have a slice of each server.
    counted = {(cell, block): {one.round for one in slices if one.counts} for cell, block, slices in found}
    assert counted[0, 0] == counted[1, 0]
    assert counted[0, 1] == counted[1, 1]
    assert all(slices for _, _, slices in found)


def test_a_server_that_dies_in_the_rounds_is_named_and_one_that_is_left_alone_has_none(folder, prony):
    (folder / "shop.py").write_text(DIES)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "5")
    done = prony(*words, "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert "waitress+shop has no rounds from block 1 on: the server exited with status 3" in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


def test_a_server_that_is_too_slow_for_short_windows_has_none(folder, prony):
    (folder / "shop.py").write_text(SLOW)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "8", *SHORT, "--rounds", "3")
    done = prony(*words, "--repeats", "1", "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert "waitress+shop has no rounds from block 1 on: its replies take longer than the lead" in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


def test_a_server_that_is_not_idle_between_its_turns_is_named_and_measured_in_turns(folder, prony):
    (folder / "shop.py").write_text(NEVER_IDLE)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "3")
    done = prony(*words, "--repeats", "1", "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    # Waitress burns a sixth of a CPU while Gunicorn has its turn.
    assert "waitress+shop has no rounds from block 1 on: it is not idle between its turns" in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


# So many blocks have trials, the last has rounds alone.
ALONE = """
protocol = import_module("prony.cli.protocol")
with_rounds = protocol._with_rounds


def with_rounds_alone(plan, rounds):
    plan = with_rounds(plan, rounds)
    return protocol.replace(plan, design=protocol.replace(plan.design, whole_blocks=plan.blocks - 1))


protocol._with_rounds = with_rounds_alone
"""


def with_rounds_alone(prony):
    return replace(prony, program=("-c", BESIDE.removesuffix(MAIN) + ALONE + MAIN))


def windows_of(path):
    """Of each trial its block, whether it has a window, and whether it has rounds."""
    with open_archive(path) as archive:
        trials = [one.trial for one in archive.trials()]
    return [(one.block, one.recording is not None, bool(one.slices)) for one in trials]


def test_the_last_blocks_may_have_rounds_alone_and_the_report_says_so(folder, prony):
    (folder / "shop.py").write_text(APP)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "6")
    done = with_rounds_alone(prony)(*words, "--out", "r.prony", "--json", "r.json", timeout_s=240)
    assert done.status == 0, done.err
    assert windows_of(folder / "r.prony") == [*[(0, True, True)] * 2, *[(1, False, True)] * 2]
    cell = json.loads((folder / "r.json").read_text())["groups"][0]["cells"][0]
    counts = [cell["metrics"][name]["count"] for name in ("ok_per_s", "service_ok_p50")]
    assert counts == [2, 1]
    assert "2 blocks, 1 of rounds alone" in " ".join(prony("report", "r.prony").out.split())


def test_a_block_of_rounds_alone_in_which_a_server_dies_is_measured_whole(folder, prony):
    (folder / "shop.py").write_text(DIES)
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "5")
    done = with_rounds_alone(prony)(*words, "--repeats", "1", "--out", "r.prony", timeout_s=240)
    assert done.status == 0, done.err
    assert "waitress+shop has no rounds from block 1 on: the server exited with status 3" in done.err
    assert "from block 1 on trials have windows: not all servers can" in done.err
    assert windows_of(folder / "r.prony") == [(0, True, False)] * 2


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (LOCK, "the server exited"),
        (ALL_CONNECTIONS, "requests failed beside the block's other servers"),
        (LATE, "requests were still under way half a second after its turns"),
        (SHRINKS, "processes of it end while it is idle between its turns"),
    ],
    ids=["lock", "all connections", "late", "shrinks"],
)
def test_who_cannot_live_beside_its_twin_is_measured_in_turns_and_named(folder, prony, limits, reason):
    body = APP if "def limit" in limits else f"def limit():\n    pass\n\n\n{APP}"
    body = body.replace("    start_response", "    limit()\n    start_response")
    (folder / "shop.py").write_text(f"{limits}\n\n{body}")
    # In a balanced order of two every second turn follows one's own, and two idle times are wanted.
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "8")
    one_process = ("--set", "gunicorn.workers=1")
    done = prony(*words, *one_process, "--out", "r.prony", timeout_s=300)
    assert done.status == 0, done.err
    said = [line for line in done.err.splitlines() if "has no rounds from block 1 on: " in line]
    assert len(said) == 1
    assert reason in said[0]
    # The other one has nobody to take turns with.
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


DATABASE = """\
import os, sqlite3

kept = sqlite3.connect(os.environ["SHOP"], isolation_level=None, check_same_thread=False)
kept.execute("pragma journal_mode = memory")
kept.execute("create table if not exists rows (number)")
"""


@pytest.mark.parametrize(
    ("before", "what"),
    [(SECOND_PORT, "listen on port 47123"), (DATABASE, "keep the database {file} open")],
    ids=["second port", "database"],
)
def test_what_twins_would_share_is_found_before_they_live_together(folder, prony, before, what):
    # In a trial's own `/tmp` is what a variable names.
    file = folder.with_name(f"{folder.name}.db")
    file.touch()
    file.chmod(0o666)
    (folder / "shop.py").write_text(f"{before}\n\n{APP}")
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,waitress", "-c", "2", *SHORT, "--rounds", "3")
    own = ("--set", "gunicorn.workers=1", "--env", f"SHOP={file}", "--out", "r.prony")
    done = prony(*words, *own, timeout_s=300)
    file.unlink()
    assert done.status == 0, done.err
    said = f"gunicorn+shop and waitress+shop {what.format(file=file)}: they are measured in turns"
    assert said in done.err
    assert "has no rounds" not in done.err
    assert not any(slices for _, _, slices in slices_of(folder / "r.prony"))


def test_files_of_the_apps_folder_are_in_a_layer_and_twins_live_together(folder, prony):
    (folder / "shop.py").write_text(f"{DATABASE}\n\n{APP}")
    (folder / "gunicorn.conf.py").write_text(f"pidfile = '{folder}/shop.pid'\n")
    words = ("run", "--app", "shop:app", "--servers", "gunicorn,gunicorn-gthread", "-c", "2", *SHORT)
    own = ("--rounds", "3", "--env", f"SHOP={folder}/shop.db", "--no-current", "--out", "r.prony")
    done = prony(*words, *own, timeout_s=300)
    assert done.status == 0, done.err
    assert "in turns" not in done.err
    assert all(slices for _, _, slices in slices_of(folder / "r.prony"))

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

"""Control groups and containers on real servers: limits hold, what they do is told, and nothing is left."""

import os

import pytest

from commands import BESIDE
from prony.archive import open_archive
from prony.model.trial import Failed, Ok
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.choice import Absent
from prony.sandbox.container_engine import find_engine
from servers.world import groups_of

pytestmark = pytest.mark.usefixtures("nothing_left")

HOG = """
kept = []


def app(environ, start_response):
    if environ["PATH_INFO"] == "/eat":
        kept.append(bytearray(8 * 1024 * 1024))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

BURN = """
import time


def app(environ, start_response):
    end = time.thread_time_ns() + 5_000_000
    while time.thread_time_ns() < end:
        pass
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

FORKS = """
import os


def app(environ, start_response):
    try:
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "60"])
    except OSError:
        pass
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""

# A machine of a few megabytes, as far as the ceiling of memory goes.
SMALL_MACHINE = f"""
from prony.sandbox import choice

choice._MEMORY_SHARE *= 64 * 2**20 / choice.memory_bytes()
{BESIDE}"""


@pytest.fixture(params=["cgroup", pytest.param("container", marks=pytest.mark.slow)])
def kind(request):
    """Return each kind of sandbox that holds limits."""
    if os.geteuid() != 0:
        pytest.skip("needs root, or a delegated part of the control groups")
    if request.param == "container":
        if isinstance(engine := find_engine(), Absent):
            pytest.skip(engine.reason)
        return request.param
    found = open_cgroups()
    if isinstance(found, NoCgroups):
        pytest.skip(found.reason)
    found.close()
    return request.param


def run(prony, folder, kind, script, *more, **options):
    (folder / "shop.py").write_text(script)
    out = folder / "out.prony"
    done = prony(
        *(
            "run",
            "--no-calibration",
            "--app",
            "shop:app",
            "--dir",
            folder,
            "--servers",
            "waitress",
            "-c",
            "4",
            "--net",
            "isolated",
        ),
        *(
            "--duration",
            "2s",
            "--warmup",
            "200ms",
            "--repeats",
            "1",
            "--out",
            out,
            "--full",
            "--sandbox",
            kind,
            *more,
        ),
        timeout_s=180,
        **options,
    )
    assert out.exists(), done.err
    with open_archive(out) as archive:
        records = list(archive.trials())
    assert records, f"{done.out}\n{done.err}"
    assert groups_of() == set()
    # On a busy machine a trial is repeated, and the last counts.
    return done, records[-1].trial


def test_a_server_that_eats_beyond_its_memory_has_failed_with_the_kernels_count(prony, folder, kind):
    done, trial = run(prony, folder, kind, HOG, "--memory", "64M", "--path", "/eat")
    assert isinstance(trial.outcome, Failed), trial.outcome
    assert trial.outcome.stage == "load"
    assert (
        "out of memory: the kernel killed 1 process of the server at its limit of 64.0 MiB"
        in trial.outcome.reason
    )
    assert "out of memory" in done.out
    assert done.status == 3


def test_a_server_that_reaches_the_ceiling_of_memory_did_not_exceed_a_limit_of_the_user(prony, folder, kind):
    done, trial = run(prony, folder, kind, HOG, "--path", "/eat", program=("-c", SMALL_MACHINE))
    assert isinstance(trial.outcome, Failed), trial.outcome
    assert "no limit was asked for, and Prony's own ceiling is 64.0 MiB" in trial.outcome.reason
    assert done.status == 3


@pytest.mark.quiet
def test_half_a_cpu_is_half_a_cpu_and_the_report_says_what_held_it_back(prony, folder, kind):
    done, trial = run(prony, folder, kind, BURN, "--cpus", "0.5")
    assert trial.outcome == Ok()
    counters = trial.counters
    assert counters["cgroup.server.throttled_periods"] > 0.5 * counters["cgroup.server.periods"]
    window_ns = 2_000_000_000
    assert 0.35 < counters["cgroup.server.cpu_ns"] / window_ns < 0.65
    assert "its CPU quota throttled it in" in " ".join(done.out.split())
    holder = {
        "cgroup": "A control group limited the server",
        "container": "A container limited the server and its companions",
    }[kind]
    said = " ".join(done.out.split())
    assert f"{holder} to its CPUs (enforced), 0.5 CPUs (enforced)" in said


def test_a_server_that_forks_without_end_is_held(prony, folder, kind):
    _, trial = run(prony, folder, kind, FORKS, "--pids", "40")
    assert trial.outcome == Ok()
    assert trial.counters["cgroup.server.pids_limit_hits"] > 0
    assert max(len(sample.processes) for sample in trial.samples) <= 40

"""`prony load` judges its own generator: the mistakes of tools whose client was the limit, unsaid."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony import _engine
from prony.model.address import Address
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, OpenLoop, Workload
from prony.plan.engine_spec import to_spec

pytestmark = pytest.mark.quiet

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
HOUR_S = 3600
MS = 1_000_000


RUN = "import sys; from prony._engine import run; print(run(sys.stdin.read()))"


@contextmanager
def server(**config):
    with _engine.ReferenceServer(json.dumps({"port": 0, **config})) as found:
        yield found


def load_on(found, loop, ms, cpus=None):
    """Return the specification of a load on a server."""
    load = Workload(loop, DurationStop(ms * MS), warmup_ns=100 * MS, timeout_ns=5000 * MS, grace_ns=1000 * MS)
    return json.dumps(to_spec(load, Address("127.0.0.1", found.port), EngineChoice(), cpus))


def started(spec, *wrapped, **environment):
    """Start a load in a process of its own."""
    command = [*wrapped, sys.executable, "-c", RUN]
    variables = {**os.environ, **environment}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=variables)
    process.stdin.write(spec)
    process.stdin.close()
    return process


def finished(process):
    with process:
        return json.loads(process.stdout.read())


def delay(ms):
    return {"kind": "fixed", "ns": ms * MS}


def until_sent(found):
    """Wait until a load has begun: its first requests have reached the server."""
    while json.loads(found.counts())["requests"] < 20:
        time.sleep(0.01)


def response(recording):
    found = recording["distributions"]["ok_response"]
    return found["min_ns"], found["max_ns"]


def kinds(recording):
    return {one["kind"] for one in recording["generator"]["evidence"]}


def test_t02_a_stall_of_the_generator_is_in_the_latencies_and_in_its_verdict():
    with server(delay=delay(5)) as found:
        process = started(load_on(found, OpenLoop(500.0), 1500))
        until_sent(found)
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        recording = finished(process)
    assert response(recording)[1] >= 350 * MS
    late = next(one for one in recording["generator"]["evidence"] if one["kind"] == "late")
    assert (recording["generator"]["limited"], late["level"]) == ("yes", "yes")
    assert late["lag_ns"] > 100 * MS


def test_t12_a_wall_clock_that_is_stepped_changes_nothing(tmp_path):
    if not FAKETIME.exists():
        pytest.skip("libfaketime is not installed")
    clock = tmp_path / "clock"
    clock.write_text("+0s")
    faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    with server(delay=delay(5)) as found:
        spec = load_on(found, OpenLoop(200.0), 1000)
        process = started(spec, **faked, FAKETIME_DONT_FAKE_MONOTONIC="1")
        until_sent(found)
        for step in (f"+{HOUR_S}s", f"-{HOUR_S}s"):
            clock.write_text(step)
            time.sleep(0.3)
        recording = finished(process)
    least, most = response(recording)
    assert (recording["account"]["scheduled"], recording["account"]["ok"]) == (200, 200)
    assert 5 * MS <= least <= most < 60_000 * MS
    assert [one["scheduled"] for one in recording["series"] if one["scheduled"]] == [200]


@contextmanager
def busy_on(cpu):
    """Keep a CPU busy with two processes within the block."""
    busy = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    crowd = [subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in crowd:
            process.stdout.readline()
        yield
    finally:
        for process in crowd:
            process.kill()
            process.communicate()


def test_t42_a_generator_without_time_of_its_own_is_named_and_a_slow_server_is_not():
    cpu = max(os.sched_getaffinity(0))
    with server() as fast, server(delay=delay(20)) as slow:
        with busy_on(cpu):
            limited = finished(started(load_on(fast, ClosedLoop(16), 600, (cpu,))))
        healthy = finished(started(load_on(slow, ClosedLoop(16), 600, (cpu,))))
    assert limited["generator"]["limited"] != "no"
    assert kinds(limited) & {"kept_waiting", "busy"}
    if healthy["generator"]["limited"] == "yes":
        pytest.skip(f"others take this machine's CPUs: {healthy['generator']['evidence']}")
    assert "busy" not in kinds(healthy)


def test_t43_a_quota_of_cpu_is_named():
    folder = Path(f"/sys/fs/cgroup/cpu/prony-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of version 1 can be made here: {error.strerror}")
    try:
        (folder / "cpu.cfs_quota_us").write_text("25000")
        enter = ("sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh")
        with server() as found:
            # A closed loop takes all the CPU that it gets, on a fast machine, too.
            recording = finished(started(load_on(found, ClosedLoop(64), 800), *enter))
    finally:
        folder.rmdir()
    throttled = next(one for one in recording["generator"]["evidence"] if one["kind"] == "throttled")
    assert (recording["generator"]["limited"], throttled["level"]) == ("yes", "yes")

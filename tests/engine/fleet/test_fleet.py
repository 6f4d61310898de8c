"""Several generators share one load: real workers on this machine, and what becomes of them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import heed_all_signals_but
from dask_workers import are_there, secure_scheduler
from prony._engine import ReferenceServer
from prony.core.errors import EngineError, HostError
from prony.core.units import SECOND_NS
from prony.core.version import own_command
from prony.engine.fleet import fleet_of
from prony.engine.fleet.certificates import write_certificates
from prony.engine.fleet.cluster import opened
from prony.engine.fleet.engine import FleetEngine
from prony.engine.generator import OnLoss
from prony.figures.drift import machine_key
from prony.figures.latency import latency_summaries
from prony.machine.fingerprint import brief_fingerprint
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Pacing, Workload

CHOICE = EngineChoice(threads=1, pacing=Pacing.ECONOMICAL)
# Started by nobody else's tests: each looks for the workers that are its own children.
WORKER = "prony.engine.fleet.cluster"


@pytest.fixture
def server():
    with ReferenceServer("{}") as reference:
        yield reference


def workers_of(parent):
    """Return the processes of this fleet, in the order of their start."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode()
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            if WORKER in line and int(status[1]) == parent and status[0] != "Z":
                found.append((int(status[19]), int(entry.name)))
    return [pid for _, pid in sorted(found)]


def run(server, loop, stop, fleet="local:2", on_loss=OnLoss.INVALID, on_event=lambda event: None):
    engine = FleetEngine(fleet_of(fleet), CHOICE, on_loss, 1)

    def on_progress(event):
        if event["event"] == "progress":
            on_event(event)

    return engine.run(
        Workload(loop, stop), Address("127.0.0.1", server.port), EngineSeat(cpus=()), on_progress
    )


def counts(server):
    return json.loads(server.counts())


def test_t33_exactly_so_many_requests_whatever_the_number_of_generators(server):
    found = run(server, ClosedLoop(7), CountStop(1003), "local:3")
    assert (found.account.scheduled, found.account.ok) == (1003, 1003)
    assert counts(server)["requests"] == 1003
    assert [one.requests for one in found.machines] == [335, 334, 334]
    assert {machine_key(one.fingerprint) for one in found.machines} == {machine_key(brief_fingerprint())}
    assert found.spec.share is None
    # Nobody else holds their certificates.
    assert not any(one.as_root for one in found.machines)


def test_no_more_generators_take_part_than_the_load_has_connections(server):
    found = run(server, ClosedLoop(2), CountStop(100), "local:3")
    assert [(one.name, one.requests) for one in found.machines] == [("generator-1", 50), ("generator-2", 50)]
    # Too few are above p99 to know it.
    assert [(one.ok_p50_ns is None, one.ok_p99_ns) for one in found.machines] == [(False, None)] * 2


def test_an_open_loop_of_several_generators_sends_what_one_would(server):
    found = run(server, OpenLoop(1101.0), DurationStop(2 * SECOND_NS))
    assert found.account.scheduled == counts(server)["requests"] == 2202
    assert [one.scheduled for one in found.series if one.scheduled] == [1101, 1101]
    assert found.window.length_ns == 2 * SECOND_NS
    # A percentile of all lies among those of the parts.
    whole = latency_summaries(found)["ok", "response"].percentiles
    for name, parts in (
        ("50", [one.ok_p50_ns for one in found.machines]),
        ("99", [one.ok_p99_ns for one in found.machines]),
    ):
        assert min(parts) <= whole[name] <= max(parts)


def test_on_one_machine_all_clocks_are_one_and_the_bound_says_so(server):
    before_ns = time.monotonic_ns()
    found = run(server, OpenLoop(50.0), DurationStop(SECOND_NS))
    now_ns = time.monotonic_ns()
    for one in found.machines:
        # Its threads never begin before the start: what seems so is the error of the clock.
        assert one.start_skew_ns >= -one.clock_bound_ns
        low, high = one.clock_drift_ppm
        assert low <= 0 <= high
    # Had the clocks been found to differ by more than that, the window would lie elsewhere.
    bound_ns = max(one.clock_bound_ns for one in found.machines)
    assert before_ns - bound_ns < found.window.open_ns < found.window.drained_ns < now_ns + bound_ns


class Losing:
    """Does something to a worker in the middle of the window, and says when a load that lost it ended."""

    def __init__(self, with_signal):
        self._signal = with_signal
        self.at_s = None

    def __call__(self, event):
        if self.at_s is None and event["phase"] == "window" and event["elapsed_ns"] > SECOND_NS:
            self.at_s = time.monotonic()
            os.kill(workers_of(os.getpid())[0], self._signal)


LOSSES = pytest.mark.parametrize(
    "with_signal",
    [
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow, id="killed"),
        pytest.param(signal.SIGSTOP, id="stopped"),
    ],
)


@LOSSES
def test_a_lost_generator_makes_the_load_invalid_at_once(server, with_signal):
    losing = Losing(with_signal)
    with pytest.raises(EngineError, match=r"generator `generator-\d` was lost, after \d+ replies"):
        run(server, OpenLoop(200.0), DurationStop(30 * SECOND_NS), on_event=losing)
    # With what it takes to leave the fleet.
    assert time.monotonic() - losing.at_s < 6
    assert workers_of(os.getpid()) == []


@LOSSES
def test_the_account_of_the_others_is_exact_where_it_is_asked_for(server, with_signal):
    events = []
    losing = Losing(with_signal)

    def on_event(event):
        events.append((time.monotonic(), event["ok"]))
        losing(event)

    # Longer than others wait for somebody who asks for their clock.
    found = run(server, OpenLoop(300.0), DurationStop(8 * SECOND_NS), "local:3", OnLoss.PARTIAL, on_event)
    lost = [one for one in found.machines if one.lost]
    assert len(lost) == 1
    assert lost[0].requests is None
    # On this side's clock, as the stamps of the window.
    assert 0 <= lost[0].lost_at_ns / SECOND_NS - losing.at_s <= 1.5
    assert not found.window.interrupted
    # Of 2400 requests each generator has exactly a third.
    assert (found.account.scheduled, found.account.ok) == (1600, 1600)
    # A loss takes its replies out of the progress: that is when it was noticed.
    fell = next(at_s for (at_s, ok), (_, before) in zip(events[1:], events, strict=False) if ok < before)
    # Progress is shown four times a second.
    assert fell - losing.at_s <= 1.5 + 0.3


def started(server, *arguments):
    command = own_command("load", f"http://127.0.0.1:{server.port}/", "--fleet", "local:2", *arguments)
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_all_signals_but,  # noqa: PLW1509 - nothing else runs meanwhile
    )


def until(holds, limit_s=30.0):
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_after_kill_9_of_prony_no_worker_is_left_not_even_a_stopped_one(server):
    process = started(server, "--rate", "100", "-d", "60s")
    until(lambda: counts(server)["requests"] > 50)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGSTOP)
    process.kill()
    process.communicate()
    until(lambda: all(is_gone(pid) for pid in workers), 5)
    before = counts(server)["requests"]
    time.sleep(0.3)
    assert counts(server)["requests"] == before


def test_ctrl_c_gives_the_result_so_far(server):
    process = started(server, "--rate", "100", "-d", "60s", "--warmup", "0s")
    until(lambda: counts(server)["requests"] > 150)
    workers = workers_of(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Interrupted: the figures are of the time before." in out
    assert all(is_gone(pid) for pid in workers)


def listening():
    """Return the addresses, as the kernel writes them, on which this process listens by TCP."""
    inodes = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = [
        line.split()
        for file in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(file).read_text().splitlines()[1:]
    ]
    return {line[1].partition(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes}


def test_nothing_listens_beyond_the_loopback_and_nothing_stays(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seen = set()
    run(server, OpenLoop(50.0), DurationStop(SECOND_NS), on_event=lambda event: seen.update(listening()))
    assert "0100007F" in seen
    assert seen <= {"0100007F"}
    assert list(tmp_path.iterdir()) == []
    assert workers_of(os.getpid()) == []


# --- a scheduler of the user's own ------------------------------------------------------------------------


@pytest.fixture
def secure(tmp_path):
    """The URL of a scheduler with two workers and mutual TLS, and its certificates."""
    with secure_scheduler(tmp_path) as found:
        yield found


def engine_of(secure):
    url, folder = secure
    return FleetEngine(fleet_of(url, folder), CHOICE, OnLoss.INVALID, None)


def when_there(secure):
    """Wait until both workers are connected."""
    until(lambda: are_there(secure))


def test_a_scheduler_of_the_users_own_with_mutual_tls(server, secure, monkeypatch):
    when_there(secure)
    load, seat = Workload(ClosedLoop(4), CountStop(100)), EngineSeat(cpus=())
    address = Address("127.0.0.1", server.port)
    # Twice, for the workers stay.
    for round_ in (1, 2):
        found = engine_of(secure).run(load, address, seat, lambda event: None)
        assert found.account.ok == 100
        assert counts(server)["requests"] == 100 * round_
    assert sorted(one.name for one in found.machines) == ["far-0", "far-1"]
    assert [one.as_root for one in found.machines] == [os.geteuid() == 0] * 2
    monkeypatch.setattr("prony.engine.fleet.engine.prony_version", lambda: "99.0")
    with pytest.raises(EngineError, match=r"this is Prony 99\.0, and of the fleet far-\d has .*, far-\d has"):
        engine_of(secure).run(load, address, seat, lambda event: None)


def test_a_worker_that_does_not_answer_is_named(secure):
    when_there(secure)
    with opened(fleet_of(*secure)) as cluster:
        pids = {cluster.names[address]: one.pid for address, one in cluster.ask_facts().items()}
        os.kill(pids["far-1"], signal.SIGSTOP)
        with pytest.raises(EngineError, match=r"these workers of the fleet do not answer: far-1$"):
            cluster.ask_facts()


def test_a_scheduler_that_dies_is_said_to_have_died(server, secure):
    when_there(secure)
    (scheduler,) = [
        int(entry.parent.name)
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if f"dask_scheduler\0--no-dashboard\0--protocol\0tls\0--host\0{secure[0]}"
        in entry.read_text(errors="replace")
    ]

    def kill(event):
        if event["event"] == "progress" and event["phase"] == "window":
            with contextlib.suppress(ProcessLookupError):
                os.kill(scheduler, signal.SIGKILL)

    load, address = Workload(ClosedLoop(2), DurationStop(30 * SECOND_NS)), Address("127.0.0.1", server.port)
    with pytest.raises(EngineError, match=r"the connection to the fleet's scheduler was lost$"):
        engine_of(secure).run(load, address, EngineSeat(cpus=()), kill)


def test_without_the_extra_one_line_says_what_to_install(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HostError, match="fleets need packages that are not installed") as refused:
        run(server, ClosedLoop(1), CountStop(1))
    assert refused.value.hint == "pip install 'prony[fleet]'"


def test_who_has_other_certificates_is_not_let_in(secure, tmp_path):
    when_there(secure)
    write_certificates(tmp_path / "other", 1)
    with (
        pytest.raises(EngineError, match=r"does not believe these certificates, or has others$"),
        opened(fleet_of(secure[0], tmp_path / "other")),
    ):
        pass

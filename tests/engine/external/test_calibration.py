"""External generators for real, against a server of known behaviour: they and the server count alike."""

import json
import os

import pytest

from prony._engine import ReferenceServer
from prony.core.errors import EngineError
from prony.engine.external import TOOLS
from prony.engine.external.engine import find_tool
from prony.engine.registry import open_engine
from prony.figures.account import rates_of
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload

pytestmark = pytest.mark.servers
CONNECTIONS, DELAY_MS = 4, 10
NOBODY = 65534
CLOSED, SECOND = ClosedLoop(CONNECTIONS), DurationStop(1_000_000_000)
COUNTING = sorted(set(TOOLS) - {"wrk", "vegeta"})


@pytest.fixture
def seat():
    cpus = (max(os.sched_getaffinity(0)),)
    return EngineSeat(cpus, None, NOBODY, NOBODY, (NOBODY,)) if os.geteuid() == 0 else EngineSeat(cpus)


def run(tool, seat, loop=CLOSED, stop=SECOND, warmup_ns=0, **behaviour):
    try:
        find_tool(TOOLS[tool])
    except EngineError as error:
        pytest.skip(f"{error.message}: {error.hint}")
    delay = {"kind": "fixed", "ns": DELAY_MS * 1_000_000}
    events = []
    with ReferenceServer(json.dumps({"delay": delay, **behaviour})) as server:
        load = Workload(loop, stop, warmup_ns=warmup_ns, timeout_ns=1_000_000_000)
        address = Address("127.0.0.1", server.port)
        recording = open_engine(EngineChoice(tool)).run(load, address, seat, events.append)
        return recording, json.loads(server.counts()), [event["event"] for event in events]


@pytest.mark.parametrize("tool", sorted(set(TOOLS) - {"weighttp"}))
def test_it_counts_the_good_replies_as_the_server_does(tool, seat):
    recording, server, events = run(tool, seat, error_every=4)
    good = server["responses_complete"] - server["responses_error_status"]
    # What is on its way at the end, and one request before the load.
    assert good - 3 * CONNECTIONS <= recording.account.ok <= good
    assert events == ["started", "window_open", "window_close"]
    assert 0.2 < rates_of(recording)["error_ratio"] < 0.3


@pytest.mark.parametrize("tool", sorted(set(TOOLS) - {"weighttp"}))
def test_its_latencies_and_its_rate_fit_the_servers_delay(tool, seat):
    recording, server, _ = run(tool, seat)
    most = CONNECTIONS * 1000 / DELAY_MS
    assert 0 < rates_of(recording)["ok_per_s"] <= most * 1.02
    reported = recording.reported_latency
    assert reported.min_ns >= DELAY_MS * 1e6 * 0.99
    if reported.percentiles["50"] is not None:
        assert reported.percentiles["50"] >= DELAY_MS * 1e6 * 0.99
    assert server["responses_complete"] >= recording.account.ok


@pytest.mark.parametrize("tool", COUNTING)
def test_it_sends_exactly_as_many_requests_as_it_is_told(tool, seat):
    recording, server, _ = run(tool, seat, stop=CountStop(40))
    # fortio sends one a connection before.
    assert server["requests"] - recording.account.ok in (0, CONNECTIONS)
    assert recording.account.ok == 40


@pytest.mark.parametrize("tool", ["k6", "vegeta"])
def test_a_constant_rate_does_not_depend_on_the_server(tool, seat):
    recording, _, _ = run(tool, seat, loop=OpenLoop(100.0, connections=32))
    assert recording.loop == "open"
    assert 90 <= recording.account.scheduled <= 110


def test_a_tool_without_a_warm_up_is_run_once_before(seat):
    recording, server, events = run("wrk", seat, warmup_ns=1_000_000_000)
    assert events == ["started", "window_open", "window_close"]
    assert server["responses_complete"] > 1.5 * recording.account.ok
    assert any("no warm-up" in caveat for caveat in recording.engine.caveats)


def test_its_own_cpu_and_memory_are_seen(seat):
    recording, _, _ = run("wrk", seat)
    used = recording.generator.processes
    assert used.processes_max >= 1
    assert used.rss_mean_bytes > 0
    assert used.cpu_percent is not None


def test_a_tool_that_is_not_there_is_named_with_how_to_get_it(seat, monkeypatch):
    from prony.engine.external import engine

    monkeypatch.setattr(engine.shutil, "which", lambda *_, **__: None)
    with pytest.raises(EngineError, match="`wrk` is not installed") as error:
        find_tool(TOOLS["wrk"])
    assert error.value.hint == "install it: apt-get install wrk"


def test_cpu_too_little_for_clock_ticks_is_counted_exactly(seat):
    recording, _, _ = run("wrk", seat)
    # A few hundred requests take some milliseconds, and never none.
    assert 0 < recording.generator.processes.cpu_percent < 100

"""The four Python load scripts: for real against a server of known behaviour, and what they print, read."""

import ast
import json
import os
import re
from pathlib import Path

import pytest

from prony._engine import ReferenceServer
from prony.core.errors import EngineError
from prony.engine.external.tool import Job, Output
from prony.engine.own_program import entry
from prony.engine.registry import cannot_make, open_engine
from prony.engine.scripts import SCRIPTS
from prony.figures.latency import latency_summaries
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload

CODE = Path(open_engine.__code__.co_filename).parent / "scripts" / "python-scripts"
SECOND = 1_000_000_000
LOAD = Workload(ClosedLoop(4), DurationStop(SECOND), warmup_ns=SECOND // 4, timeout_ns=SECOND)
DELAY_MS = 10
COUNTED = {
    "open_ns": 5 * SECOND,
    "close_ns": 6 * SECOND,
    "classes": {"ok": 3, "bad_status": 2, "timed_out": 1},
    "statuses": {"503": 2},
    "microseconds": {"10000": 2, "20000": 1},
    "completed": {"ok": 3, "failed": 2},
    "sum_ns": 40_000_000,
    "min_ns": 10_000_100,
    "max_ns": 20_000_900,
    "body_bytes": 42,
}


def job():
    return Job("python", LOAD, Address("127.0.0.1", 8000))


def parse(text):
    return SCRIPTS["python-threads"].parse(Output(text), job())


def run(name, load=LOAD, threads=2, **behaviour):
    cpus = (max(os.sched_getaffinity(0)),)
    seat = EngineSeat(cpus, None, 65534, 65534, (65534,)) if os.geteuid() == 0 else EngineSeat(cpus)
    events = []
    delay = {"kind": "fixed", "ns": DELAY_MS * 1_000_000}
    with ReferenceServer(json.dumps({"delay": delay, **behaviour})) as server:
        address = Address("127.0.0.1", server.port)
        recording = open_engine(EngineChoice(name, threads)).run(load, address, seat, events.append)
        return recording, json.loads(server.counts()), [event["event"] for event in events]


# --- what they print --------------------------------------------------------------------------------------


def test_what_a_script_counted_is_read():
    measured = parse("warning\nprony " + json.dumps(COUNTED) + "\n")
    assert (measured.ok, measured.bad_status) == (3, {"503": 2})
    assert measured.failed["timed_out"] == 1
    assert measured.duration_ns == SECOND
    assert measured.latencies["microseconds"] == {10000: 2, 20000: 1}


@pytest.mark.parametrize(
    "text", ["", "prony {", "prony []", "prony {}", 'prony {"open_ns": "x"}', "\0" * 1000]
)
def test_nonsense_is_refused(text):
    with pytest.raises(EngineError):
        parse(text)


@pytest.mark.parametrize("name", ["open_ns", "min_ns", "completed", "microseconds"])
def test_a_field_that_is_no_count_is_refused(name):
    spoilt = {**COUNTED, name: {"ok": "NaN", "x": 1} if isinstance(COUNTED[name], dict) else -1}
    with pytest.raises(EngineError):
        parse("prony " + json.dumps(spoilt))


def test_what_a_script_prints_of_itself_is_shown():
    # Two processes, and then all of it.
    own = "workers: 2, 3 to 4 requests each\nqps: 7.0\n"
    whole = "workers: 2, 7 to 7 requests each\nqps: 14.0\n"
    measured = parse(2 * own + whole + "prony " + json.dumps(COUNTED) + "\n")
    words = "2, 3 to 4 requests each; 2, 3 to 4 requests each; 2, 7 to 7 requests each"
    assert measured.caveats == (f"its own output: qps 14.0, failures included; workers: {words}",)
    assert parse("prony " + json.dumps(COUNTED) + "\n").caveats == ()


def test_only_the_printed_ones_are_asked_for_their_own_outputs():
    asked = {name: tool.order(job()).files["order.json"] for name, tool in SCRIPTS.items()}
    printed = {name for name, order in asked.items() if json.loads(order)["as_printed"]}
    assert printed == {name for name in SCRIPTS if name.startswith("printed-")}
    assert len(printed) == 4


def test_no_script_has_an_open_loop_or_a_count():
    address = Address("127.0.0.1", 1)
    for name in SCRIPTS:
        assert "no open loop" in cannot_make(EngineChoice(name), Workload(OpenLoop(1.0), LOAD.stop), address)
        assert "number of requests" in cannot_make(
            EngineChoice(name), Workload(LOAD.loop, CountStop(1)), address
        )
        assert cannot_make(EngineChoice(name), LOAD, address) is None


def test_the_scripts_know_nothing_of_prony():
    for file in CODE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "prony" not in ast.dump(node)


def test_their_packages_are_pinned_and_locked_with_hashes():
    from prony.catalog.install.resolve import committed_lock

    lock = committed_lock(entry(), ())
    assert lock.hashed
    for requirement in entry().install.requirements:
        assert re.search(rf"^{re.escape(requirement)} ", lock.text, re.MULTILINE)


# --- for real ---------------------------------------------------------------------------------------------


@pytest.mark.servers
@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_it_counts_as_the_server_does(name):
    # Without a warm-up all requests belong to the window, and none is left on its way.
    load = Workload(LOAD.loop, LOAD.stop, timeout_ns=SECOND)
    recording, server, events = run(name, load, error_every=4)
    account = recording.account
    assert account.scheduled == server["responses_complete"]
    assert account.bad_status == {"503": server["responses_error_status"]}
    assert events == ["started", "window_open", "window_close"]
    assert recording.completed.ok <= account.ok


@pytest.mark.servers
@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_its_latencies_are_a_distribution_above_the_servers_delay(name):
    recording, server, _ = run(name)
    summary = latency_summaries(recording)["ok", "service"]
    assert summary.count == recording.account.ok < server["responses_complete"]
    assert DELAY_MS * 1e6 * 0.999 <= summary.min_ns <= summary.percentiles["50"] <= summary.max_ns
    assert "distributions" not in recording.engine.missing


@pytest.mark.servers
@pytest.mark.parametrize("name", ["printed-processes", "printed-threads"])
def test_as_printed_a_request_that_is_not_answered_is_sent_again_and_counts_once(name):
    load = Workload(LOAD.loop, LOAD.stop, timeout_ns=SECOND // 4)
    recording, server, _ = run(name, load, silent_every=50)
    assert server["requests"] > server["responses_complete"]
    assert recording.account.count("timed_out") == 0
    assert "its own output: qps" in " ".join(recording.engine.caveats)


@pytest.mark.quiet  # an answer that comes late has timed out, too
@pytest.mark.servers
@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - {"printed-processes", "printed-threads"}))
def test_a_request_that_is_never_answered_times_out(name):
    load = Workload(LOAD.loop, LOAD.stop, timeout_ns=SECOND // 4)
    recording, server, _ = run(name, load, silent_every=50)
    unanswered = server["requests"] - server["responses_complete"]
    assert unanswered > 0
    assert recording.account.count("timed_out") == unanswered


@pytest.mark.servers
def test_its_processes_are_as_many_as_it_says():
    found = {
        name: run(name, threads=2)[0].generator.processes.processes_max
        # A process for each of 4 connections, and one that leads them; 2 and one.
        for name in ("python-processes", "python-threads", "python-asyncio-processes")
    }
    assert found["python-processes"] == 5
    assert found["python-threads"] == 1
    assert found["python-asyncio-processes"] == 3

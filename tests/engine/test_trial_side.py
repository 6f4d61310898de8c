"""The compiled engine beside a real server, with the monitors on."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.core.users import RunAs, resolve_user
from prony.engine.registry import open_engine
from prony.model.address import Address
from prony.model.exchange import Check, Contract
from prony.model.json_codec import Json
from prony.model.launch import Launch
from prony.model.observation import Phase
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, OpenLoop, Workload
from prony.sandbox import open_sandbox
from prony.sandbox.journal import open_run
from prony.sandbox.watch.kernel import KernelCounters
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor

pytestmark = [
    pytest.mark.quiet,
    pytest.mark.skipif(find_spec("prony._engine") is None, reason="needs the compiled engine"),
]

SERVER = """
import http.server, os, sys
class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
"""


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunAs]:
    # Not below pytest's folder, which each other run of pytest closes to all but its own user.
    with TemporaryDirectory(prefix="prony-test-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("PRONY_CACHE", folder)
        yield resolve_user()


@pytest.mark.parametrize(
    "loop", [ClosedLoop(2), OpenLoop(50.0, connections=8)], ids=["closed loop", "open loop"]
)
@pytest.mark.parametrize("network", ["isolated", pytest.param("host", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["prony", "local:2"])
def test_the_engine_loads_a_subject_in_its_own_network(
    user: RunAs, loop: ClosedLoop | OpenLoop, network: str, name: str
) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    placement = Placement(cpus[:1], cpus[-1:], shared=len(cpus) == 1)
    workload = Workload(loop, DurationStop(500_000_000), warmup_ns=100_000_000, expect_body=b"Hello")
    choice = SandboxChoice(network="host" if network == "host" else "isolated")
    events: list[Json] = []
    with open_run(user) as run:
        sandbox = open_sandbox(choice, user, run.trial_folder("1"))
        port = sandbox.free_port()
        python = "/usr/bin/python3" if os.geteuid() == 0 else sys.executable
        launch = Launch((python, "s.py", str(port)), Address("127.0.0.1", port), files={"s.py": SERVER})
        with sandbox.start(launch, placement) as subject:
            subject.wait_until_ready()
            assert subject.verify(Contract((Check(body=b"Hello"),))) is None
            kernel = KernelCounters(subject.network_pid)
            processes = ProcessMonitor(
                CompiledSource(subject.tree_pid), {subject.pids["server"]: launch.roles}, placement
            )

            def on_event(event: Json) -> None:
                events.append(event)
                if event["event"] == "window_open":
                    kernel.open_window()
                    processes.open_window()
                if event["event"] == "window_close":
                    processes.close_window()
                    kernel.close_window()

            with processes:
                engine = open_engine(EngineChoice(name))
                recording = engine.run(workload, subject.address, subject.seat, on_event)
            report = subject.stop()
    assert report.how == "ended"
    account = recording.account
    assert account.scheduled == account.ok > 0
    names = [event["event"] for event in events if event["event"] != "progress"]
    assert names == ["started", "window_open", "window_close"]
    window = [sample for sample in processes.samples() if sample.phase is Phase.WINDOW]
    assert len(window) >= 2
    opened, closed = window[0].processes[0], window[-1].processes[0]
    assert (opened.pid, opened.role) == (subject.pids["server"], "server")
    assert closed.user_ns + closed.system_ns >= opened.user_ns + opened.system_ns
    assert closed.pss_bytes is not None
    counted, _ = kernel.deltas()
    assert counted["ListenOverflows"] >= 0

"""A subject of several processes: started in order, told apart, ended together."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from prony.core.errors import SubjectError
from prony.model.exchange import Check, Contract
from prony.model.launch import Launch, Readiness, RoleRule, StopRule
from prony.model.observation import Phase
from prony.model.sandbox import Placement
from prony.sandbox import Sandbox
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor

from .subjects import PYTHON, SERVER, eventually, launch_script, marked_processes

# Says what it is told to when it has ended in order, after what it was told to wait for.
SERVICE = """
import signal, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def end(*_):
    print("ended", sys.argv[2], flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("began", sys.argv[2], flush=True)
while True:
    signal.pause()
"""

# Passes a request on, as a proxy does, and has a child of its own.
FRONTEND = """
import http.server, subprocess, sys, urllib.request
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[3]])
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/").read() + b" by proxy"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Proxy).serve_forever()
"""


def three(sandbox: Sandbox, mark: str) -> Launch:
    service = replace(
        launch_script(sandbox, SERVICE, "database", mark),
        name="database",
        readiness=Readiness(http=False),
        roles=(RoleRule("database"),),
    )
    server = launch_script(sandbox, SERVER, "0", mark)
    frontend = replace(
        launch_script(sandbox, FRONTEND, str(server.address.port), mark),
        name="frontend",
        roles=(RoleRule("frontend", "main"), RoleRule("frontend-worker", "child")),
    )
    return replace(server, services=(service,), frontend=frontend)


def test_all_are_started_and_the_load_goes_to_the_frontend(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = three(any_sandbox, mark)
    with any_sandbox.start(launch, placement) as subject:
        assert subject.wait_until_ready() > 0
        assert launch.frontend
        assert subject.address == launch.frontend.address
        assert subject.verify(Contract((Check(body=b"Hello by proxy"),))) is None
        assert set(subject.pids) == {"database", "server", "frontend"}
        assert len(marked_processes(mark)) == 4
        assert "began database" in subject.log().text
        report = subject.stop()
    assert (report.how, marked_processes(mark)) == ("ended", [])


def test_the_last_that_was_started_is_ended_first(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    server = launch_script(any_sandbox, SERVICE, "server", mark)
    first, last = (
        replace(launch_script(any_sandbox, SERVICE, name, mark), name=name, readiness=Readiness(http=False))
        for name in ("database", "frontend")
    )
    server = replace(server, readiness=Readiness(http=False), services=(first,), frontend=last)
    with any_sandbox.start(server, placement) as subject:
        subject.wait_until_ready()
        assert eventually(lambda: subject.log().text.count("began") == 3)
        subject.stop()
        ends = [line for line in subject.log().text.splitlines() if line.startswith("ended")]
    assert ends == ["ended frontend", "ended server", "ended database"]


def test_each_has_a_folder_of_its_own(sandbox: Sandbox, placement: Placement, mark: str) -> None:
    launch = three(sandbox, mark)
    with sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        folders = {name: os.readlink(f"/proc/{pid}/cwd") for name, pid in subject.pids.items()}  # noqa: PTH115
    assert folders == {
        "server": str(sandbox.folder),
        "database": str(sandbox.folder / "database"),
        "frontend": str(sandbox.folder / "frontend"),
    }


def test_another_working_directory_may_be_asked_for(
    sandbox: Sandbox, placement: Placement, tmp_path: Path
) -> None:
    launch = replace(launch_script(sandbox, SERVER), folder="/")
    launch = replace(launch, command=(PYTHON, str(sandbox.folder / "script.py"), *launch.command[2:]))
    with sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        assert os.readlink(f"/proc/{subject.pids['server']}/cwd") == "/"  # noqa: PTH115


def test_the_death_of_one_is_told_by_its_name(any_sandbox: Sandbox, placement: Placement, mark: str) -> None:
    with any_sandbox.start(three(any_sandbox, mark), placement) as subject:
        subject.wait_until_ready()
        os.kill(subject.pids["database"], 9)
        assert eventually(lambda: subject.exit_reason() is not None)
        assert subject.exit_reason() == "the database was killed by SIGKILL"
    assert marked_processes(mark) == []


def test_one_that_does_not_become_ready_is_told_by_its_name(
    sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = three(sandbox, mark)
    assert launch.frontend
    broken = replace(launch.frontend, files={"script.py": "import sys; sys.exit('no such directive')"})
    with (
        sandbox.start(replace(launch, frontend=broken), placement) as subject,
        pytest.raises(SubjectError) as caught,
    ):
        subject.wait_until_ready()
    assert caught.value.message == "the frontend exited with status 1 before it was ready"
    assert "no such directive" in caught.value.log
    assert marked_processes(mark) == []


def test_one_that_is_deaf_does_not_keep_the_others(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = three(any_sandbox, mark)
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + FRONTEND
    assert launch.frontend
    frontend = replace(launch.frontend, files={"script.py": deaf}, stop=StopRule(timeout_ns=200_000_000))
    with any_sandbox.start(replace(launch, frontend=frontend), placement) as subject:
        subject.wait_until_ready()
        report = subject.stop()
        assert "ended database" in subject.log().text
    assert (report.how, marked_processes(mark)) == ("killed", [])


def test_roles_come_from_the_process_that_each_descends_from(
    any_sandbox: Sandbox, placement: Placement, mark: str
) -> None:
    launch = three(any_sandbox, mark)
    with any_sandbox.start(launch, placement) as subject:
        subject.wait_until_ready()
        mains = {subject.pids[one.name]: one.roles for one in (launch, *launch.processes)}
        with ProcessMonitor(CompiledSource(subject.tree_pid), mains, placement) as monitor:
            monitor.enter(Phase.WINDOW)
        (*_, last) = monitor.samples()
    roles = sorted(row.role for row in last.processes if mark in row.command)
    assert roles == ["database", "frontend", "frontend-worker", "server"]

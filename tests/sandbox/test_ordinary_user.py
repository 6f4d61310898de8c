"""An ordinary user has namespaces too, where the kernel allows that, and is told where it does not."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import prony
from prony.core.users import RunAs
from prony.model.sandbox import SandboxChoice
from prony.sandbox import describe, linux
from prony.sandbox.choice import gain_namespaces

SOURCE = Path(prony.__file__).parent.parent
SYSTEM_PYTHON = Path("/usr/bin/python3")

SCRIPT = """
import json, os, sys
from pathlib import Path
from prony.sandbox.choice import gain_namespaces
if sys.argv[1] == "gain":
    gain_namespaces()
from prony.engine.registry import open_engine
from prony.model.address import Address
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.core.users import resolve_user
from prony.sandbox import open_sandbox
from prony.sandbox.journal import open_run
user = resolve_user()
SERVER = '''
import http.server, sys
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
'''
cpus = tuple(sorted(os.sched_getaffinity(0)))
with open_run(user) as run:
    sandbox = open_sandbox(SandboxChoice(), user, run.trial_folder("1"))
    facts = sandbox.facts
    port = sandbox.free_port()
    address = Address("127.0.0.1", port)
    launch = Launch((sys.executable, "s.py", str(port)), address, files={"s.py": SERVER})
    with sandbox.start(launch, Placement(cpus[:1], cpus[-1:], len(cpus) == 1)) as subject:
        subject.wait_until_ready()
        pid = subject.pids["server"]
        status = Path(f"/proc/{pid}/status").read_text()
        workload = Workload(ClosedLoop(2), DurationStop(300_000_000))
        recording = open_engine(EngineChoice()).run(workload, address, subject.seat, lambda _event: None)
        found = {
            "network": facts.network, "pids": facts.pid_namespace, "missing": dict(facts.missing),
            "own": os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"),
            "capabilities": status.partition("CapEff:")[2].split()[0],
            "user": os.stat(f"/proc/{pid}").st_uid, "me": os.geteuid(), "ok": recording.account.ok,
            "writable": os.access(user.cache, os.W_OK),
        }
print(json.dumps({**found, "left": len(list((user.cache / "run").iterdir()))}))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder of the user ``nobody``."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    with TemporaryDirectory(prefix="prony-test-") as name:
        os.chown(name, 65534, 65534)
        yield Path(name)


def as_nobody(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what the script says when `nobody` runs it by the system's own interpreter."""
    command = [str(SYSTEM_PYTHON), "-B", "-c", SCRIPT, *arguments]
    environment = {"PYTHONPATH": str(SOURCE), "PRONY_CACHE": str(folder), "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except OSError as error:
        pytest.skip(f"the system has no Python: {error}")
    if "No module named 'prony'" in done.stderr:
        pytest.skip(f"`nobody` cannot read {SOURCE}")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def users_may_have_namespaces() -> bool:
    command = ["unshare", "--user", "--net", "true"]
    done = subprocess.run(command, user=65534, group=65534, extra_groups=[], cwd="/", check=False)
    return done.returncode == 0


def test_a_subject_of_an_ordinary_user_has_a_network_of_its_own(folder: Path) -> None:
    if not users_may_have_namespaces():
        pytest.skip("this kernel gives ordinary users no namespaces")
    found = as_nobody(folder, "gain")
    assert (found["network"], found["own"], found["pids"]) == ("isolated", True, True)
    assert found["missing"] == {}
    # Load reached it, from a generator in the same network.
    assert found["ok"] > 0
    assert (found["user"], found["me"], found["writable"]) == (65534, 65534, True)
    # Rights over its namespaces are not the subject's.
    assert int(found["capabilities"], 16) == 0
    assert found["left"] == 0


def test_a_process_that_did_not_enter_a_user_namespace_is_told_so(folder: Path) -> None:
    found = as_nobody(folder, "stay")
    assert (found["network"], found["own"]) == ("host", False)
    assert found["missing"]["network namespace"]
    assert found["ok"] > 0


def test_where_users_may_have_no_namespaces_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, user: RunAs
) -> None:
    def refuse(_user: int, _group: int) -> None:
        raise PermissionError(1, "planted")

    before = os.readlink("/proc/self/ns/user")  # noqa: PTH115
    monkeypatch.setattr(linux, "_become_own_user", refuse)
    monkeypatch.setattr(linux, "_may_administer", lambda: False)
    monkeypatch.setattr("prony.sandbox.process.can_isolate_networks", lambda: False)
    with pytest.raises(OSError, match="ordinary users may not create namespaces on this machine"):
        linux.own_users()
    gain_namespaces()
    assert os.readlink("/proc/self/ns/user") == before  # noqa: PTH115
    facts = describe(SandboxChoice(), user)
    assert facts.network == "host"
    assert "network namespace" in facts.missing


def test_a_process_of_several_threads_stays_where_it_is() -> None:
    script = (
        "import threading, os\n"
        "from prony.sandbox import linux\n"
        "threading.Thread(target=threading.Event().wait, args=(5,)).start()\n"
        "before = os.readlink('/proc/self/ns/user')\n"
        "try:\n    linux.own_users()\nexcept OSError as error:\n    print(error.errno)\n"
        "print(os.readlink('/proc/self/ns/user') == before, os.geteuid())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-2:] == ["True", str(os.geteuid())]

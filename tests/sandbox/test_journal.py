import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import prony
from prony.core.users import RunAs
from prony.sandbox.identity import Identity, boot_id, identify
from prony.sandbox.journal import Remains, RunFolder, clear_remains, open_run, record

from .subjects import eventually, marked_processes

# A Prony in small: it starts a subject that ignores SIGTERM and has deaf daemons, and waits to be killed.
DRIVER = """
import sys, os
from pathlib import Path
from prony.model.address import Address
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice
from prony.core.users import resolve_user
from prony.sandbox import open_sandbox, process
from prony.sandbox.journal import open_run
python, mark, ordinary = sys.argv[1:]
if ordinary == "yes":
    process.possible_namespaces = lambda: {"network": "denied", "pids": "denied", "files": "denied"}
user = resolve_user()
run = open_run(user)
sandbox = open_sandbox(SandboxChoice(), user, run.trial_folder("1"))
script = '''
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for depth in range(2):
    if os.fork() == 0:
        os.setsid()
time.sleep(600)
'''
launch = Launch((python, "s.py", mark), Address("127.0.0.1", 1), files={"s.py": script})
cpus = tuple(os.sched_getaffinity(0))
subject = sandbox.start(launch, Placement(cpus, cpus, True))
print(subject.network_pid, flush=True)
sys.stdin.read()
"""


def start_driver(tmp_path: Path, mark: str, ordinary: str) -> "tuple[subprocess.Popen[str], int]":
    python = "/usr/bin/python3" if os.geteuid() == 0 else sys.executable
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, python, mark, ordinary],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(prony.__file__).parent.parent)},
    )
    assert driver.stdout is not None
    return driver, int(driver.stdout.readline())


def end(driver: "subprocess.Popen[str]") -> None:
    driver.kill()
    driver.communicate()


def check_killed_prony(tmp_path: Path, user: RunAs, ordinary: str) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}-{ordinary}"
    driver, _ = start_driver(tmp_path, mark, ordinary)
    assert eventually(lambda: len(marked_processes(f"s.py\0{mark}")) == 4)
    assert clear_remains(user) == []
    assert len(marked_processes(f"s.py\0{mark}")) == 4
    end(driver)
    assert eventually(lambda: marked_processes(f"s.py\0{mark}") == [], timeout_s=2)
    remains = clear_remains(user)
    assert [one.processes_ended for one in remains] == [0]
    assert list((user.cache / "run").iterdir()) == []


def test_kill_9_of_prony_leaves_no_process(tmp_path: Path, user: RunAs) -> None:
    check_killed_prony(tmp_path, user, ordinary="no")


def test_kill_9_of_prony_leaves_no_process_without_namespaces(tmp_path: Path, user: RunAs) -> None:
    check_killed_prony(tmp_path, user, ordinary="yes")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a PID namespace")
def test_kill_9_of_the_supervisor_ends_the_namespace(tmp_path: Path, user: RunAs) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    driver, supervisor = start_driver(tmp_path, mark, "no")
    try:
        assert eventually(lambda: len(marked_processes(f"s.py\0{mark}")) == 4)
        os.kill(supervisor, signal.SIGKILL)
        assert eventually(lambda: marked_processes(f"s.py\0{mark}") == [], timeout_s=2)
    finally:
        end(driver)


def test_kill_9_of_both_without_namespaces_is_mended_at_the_next_start(tmp_path: Path, user: RunAs) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    driver, supervisor = start_driver(tmp_path, mark, "yes")
    census = next((user.cache / "run").iterdir()) / "1.census.journal"
    try:
        assert eventually(lambda: census.exists() and len(json.loads(census.read_text())["processes"]) == 4)
        os.kill(supervisor, signal.SIGKILL)
    finally:
        end(driver)
    remains = clear_remains(user)
    assert sum(one.processes_ended for one in remains) >= 3
    assert eventually(lambda: marked_processes(f"s.py\0{mark}") == [])


def test_what_outlived_prony_and_supervisor_is_ended_by_identity(user: RunAs) -> None:
    run = open_run(user)
    folder = run.trial_folder("1")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as left:
        record(folder, {"main": identify(left.pid)})
        abandon(run)
        assert clear_remains(user) == [Remains(run.id, processes_ended=1)]
        assert left.wait(5) == -signal.SIGKILL
    assert not run.folder.exists()


def test_another_process_with_the_same_number_is_left_alone(user: RunAs) -> None:
    run = open_run(user)
    folder = run.trial_folder("1")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        found = identify(other.pid)
        record(folder, {"main": found._replace(start_time_ticks=found.start_time_ticks - 1)})
        abandon(run)
        assert clear_remains(user) == [Remains(run.id, processes_ended=0)]
        assert other.poll() is None
        other.kill()


def test_a_living_prony_is_left_alone(user: RunAs) -> None:
    with open_run(user) as run:
        assert clear_remains(user) == []
        assert run.folder.exists()


def test_a_run_of_another_container_is_left_alone(user: RunAs) -> None:
    run = open_run(user)
    owner = {"owner": [2**22, 1, boot_id()], "pid_namespace": "pid:[1]"}
    abandon(run, owner)
    assert clear_remains(user) == [Remains(run.id, kept="its processes are in another container")]


def test_a_run_before_the_last_boot_is_only_removed(user: RunAs) -> None:
    run = open_run(user)
    record(
        run.trial_folder("1"), {"main": Identity(os.getpid(), identify(os.getpid()).start_time_ticks, "x")}
    )
    abandon(run, {"owner": [1, 1, "another boot"], "pid_namespace": "pid:[1]"})
    assert clear_remains(user) == [Remains(run.id)]


def test_closing_a_run_removes_its_folder(user: RunAs) -> None:
    with open_run(user) as run:
        assert run.trial_folder("1").is_dir()
    assert not run.folder.exists()


def abandon(run: RunFolder, owner: object = None) -> None:
    """Make the run look like one whose Prony was killed."""
    os.close(run._lock)
    gone = {**json.loads((run.folder / "owner.json").read_text()), "owner": [2**22, 1, boot_id()]}
    (run.folder / "owner.json").write_text(json.dumps(owner or gone))

"""What a supervisor ends where neither a PID namespace nor control groups do, and when it cannot."""

import os
import signal
from dataclasses import replace

import pytest

from prony.core.users import RunAs
from prony.model.launch import StopRule
from prony.model.sandbox import EngineSeat, Placement
from prony.sandbox import Sandbox, journal
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.groups import TrialGroups
from prony.sandbox.order import make_order, write_folders
from prony.sandbox.pipe import Supervisor
from prony.sandbox.subject import RunningSubject

from .subjects import eventually, launch_script, marked_processes

# A process that is gone, with its number, before whoever saw it can kill it: each starts the next and ends.
# The first stays. It ends by itself, should it not be ended.
FLEES = """
import os, sys, time
if os.fork() == 0:
    print("fled", flush=True)
    until = time.monotonic() + 30
    while time.monotonic() < until and os.path.exists(sys.argv[0]):
        if os.fork():
            os._exit(0)
    os._exit(0)
time.sleep(600)
"""
HAS_A_CHILD = """
import os, time
os.setsid() if os.fork() == 0 else None
print("there", flush=True)
time.sleep(600)
"""


def hurried(
    sandbox: Sandbox, placement: Placement, user: RunAs, mark: str, groups: TrialGroups
) -> RunningSubject:
    """Start a subject of two processes whose supervisor has no time at all to kill anything."""
    launch = replace(launch_script(sandbox, HAS_A_CHILD, mark), stop=StopRule("SIGKILL", timeout_ns=0))
    write_folders(launch, sandbox.folder_for, user)
    order = make_order(launch, placement, user, sandbox.folder_for, groups.join_paths)
    supervisor = Supervisor.start({**order, "kill_timeout_s": 0.0})
    started = supervisor.wait_for("started", timeout_s=10)
    seat = EngineSeat(placement.generator_cpus)
    numbers = {**started, "network_pid": supervisor.pid}
    subject = RunningSubject(launch, seat, supervisor, numbers, sandbox.folder, groups)
    assert eventually(lambda: subject.log().text.count("there") == 2)
    return subject


@pytest.fixture
def ordinary(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Return a sandbox without privileges for namespaces."""
    denied = {"network": "denied by the test", "pids": "denied by the test", "files": "denied by the test"}
    monkeypatch.setattr("prony.sandbox.process.possible_namespaces", lambda: denied)
    return sandbox


def test_processes_that_follow_one_another_in_their_group_are_ended(
    ordinary: Sandbox, placement: Placement, mark: str
) -> None:
    launch = launch_script(ordinary, FLEES, mark)
    with ordinary.start(launch, placement) as subject:
        assert eventually(lambda: "fled" in subject.log().text)
        report = subject.stop()
    assert report.left == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(subject.pids["server"], 0)


def test_what_could_not_be_killed_in_time_is_told(
    ordinary: Sandbox, placement: Placement, user: RunAs, mark: str
) -> None:
    report = hurried(ordinary, placement, user, mark, TrialGroups({})).stop()
    try:
        assert report.left >= 1
        assert report.leftovers == 0
        assert len(marked_processes(mark)) >= 1
    finally:
        for pid in marked_processes(mark):
            os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: marked_processes(mark) == [])


def test_what_outlasts_the_supervisor_ends_with_its_control_group(
    ordinary: Sandbox, placement: Placement, user: RunAs, mark: str
) -> None:
    tree = open_cgroups()
    if isinstance(tree, NoCgroups):
        pytest.skip(tree.reason)
    with tree:
        groups = TrialGroups({"server": tree.create("server")})
        report = hurried(ordinary, placement, user, mark, groups).stop()
    assert report.left == 0
    assert report.leftovers >= 1
    assert marked_processes(mark) == []


def test_what_a_killed_supervisor_leaves_ends_with_the_trial(
    ordinary: Sandbox, placement: Placement, mark: str
) -> None:
    launch = launch_script(ordinary, HAS_A_CHILD, mark)
    with ordinary.start(launch, placement) as subject:
        census = journal.census_of(ordinary.folder)
        assert eventually(lambda: census.exists() and len(marked_processes(mark)) == 2)
        (apart,) = set(marked_processes(mark)) - {subject.pids["server"]}
        assert eventually(lambda: str(apart) in census.read_text())
        os.kill(subject.network_pid, signal.SIGKILL)
        # The first of them is tied to it, its child to nobody.
        assert eventually(lambda: marked_processes(mark) == [apart])
        report = subject.stop()
    assert report.leftovers == 1
    assert eventually(lambda: marked_processes(mark) == [])
    assert not census.exists()

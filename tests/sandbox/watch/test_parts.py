"""Daemons that left their parents: whose they are, by what they keep."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.watch.processes import main_of

# A main process that enters a group, has a daemon, says its number, and stays.
MAIN = """
import os, sys, time
for path in sys.argv[2:]:
    open(path, "w").write("0")
reading, writing = os.pipe()
if os.fork() == 0:
    if sys.argv[1] == "leaves":
        os.setsid()
    pid = os.fork()
    if pid:
        os.write(writing, str(pid).encode())
        os._exit(0)
    time.sleep(60)
os.wait()
print(os.read(reading, 20).decode(), flush=True)
time.sleep(60)
"""
# The same in a shell, which leaves its session.
SHELL = """setsid -f sh -c 'echo $$; while :; do sleep 1; done'; while :; do sleep 1; done"""

Start = Callable[..., tuple[int, int]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a main process in a session of its own, and returns its number and its daemon's."""
    mains: list[subprocess.Popen[str]] = []
    daemons: list[int] = []

    def started(*command: str) -> tuple[int, int]:
        main = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        mains.append(main)
        assert main.stdout
        daemons.append(int(main.stdout.readline()))
        return main.pid, daemons[-1]

    yield started
    for pid in daemons:
        # It has ended with its control group, and the first process may have reaped it already.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for main in mains:
        main.kill()
        main.communicate()


def python(session: str, *join_paths: str) -> tuple[str, ...]:
    return (sys.executable, "-c", MAIN, session, *join_paths)


def test_a_daemon_of_a_part_with_a_control_group_is_told_by_it(start: Start) -> None:
    tree = open_cgroups()
    if isinstance(tree, NoCgroups):
        pytest.skip(tree.reason)
    with tree, tree.create("server") as one, tree.create("frontend") as other:
        server, _ = start(*python("leaves", *one.join_paths))
        frontend, daemon = start(*python("leaves", *other.join_paths))
        assert main_of(daemon, [server, frontend]) == frontend


def test_a_daemon_that_stays_in_its_session_is_told_by_it(start: Start) -> None:
    server, _ = start(*python("stays"))
    frontend, daemon = start(*python("stays"))
    assert main_of(daemon, [server, frontend]) == frontend


def test_a_daemon_of_another_program_is_told_by_it(start: Start) -> None:
    server, _ = start(*python("leaves"))
    frontend, daemon = start("sh", "-c", SHELL)
    assert Path(f"/proc/{daemon}/exe").readlink() == Path(f"/proc/{frontend}/exe").readlink()
    assert main_of(daemon, [server, frontend]) == frontend


def test_a_daemon_that_nothing_tells_is_the_first_ones(start: Start) -> None:
    server, _ = start(*python("leaves"))
    frontend, daemon = start(*python("leaves"))
    assert main_of(daemon, [server, frontend]) == server


def test_a_child_is_its_parents_whatever_it_shares(start: Start) -> None:
    server, _ = start(*python("stays"))
    assert main_of(os.getpid(), [server, os.getppid()]) == os.getppid()


def test_a_process_that_is_gone_is_the_first_ones(start: Start) -> None:
    server, _ = start(*python("stays"))
    assert main_of(2**22, [server, os.getpid()]) == server

"""Context switches of real threads, and what is said where they cannot be watched."""

import os
import subprocess
import sys
import time

import pytest

from prony.sandbox.watch.native import NativeWatch
from prony.sandbox.watch.waits import SwitchCounters

CPUS = tuple(sorted(os.sched_getaffinity(0)))
BUSY = "while True: pass"
ASLEEP = "import sys; sys.stdin.read()"
NOBODY = 65534


@pytest.fixture
def started():
    children = []

    def start(script):
        words = [sys.executable, "-c", f"print(flush=True)\n{script}"]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        children.append(child)
        return child.pid

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def watched():
    watch = NativeWatch(CPUS)
    try:
        watch.add(os.getpid())
    except RuntimeError as error:
        pytest.skip(f"the kernel refuses: {error}")
    watch.finish()


def counted(pids, spent):
    counters = SwitchCounters(lambda: pids, CPUS, CPUS)
    counters.open_window()
    began_ns = time.monotonic_ns()
    while not spent(began_ns):
        pass
    counters.close_window()
    return counters


def a_fifth_of_a_second(began_ns):
    return time.monotonic_ns() - began_ns > 200_000_000


@pytest.mark.usefixtures("watched")
def test_a_busy_thread_runs_or_is_preempted_and_one_that_reads_is_blocked(started):
    busy, asleep = started(BUSY), started(ASLEEP)
    found = counted([busy, asleep], a_fifth_of_a_second)
    deltas, missing = found.deltas()
    by_process = {one.pid: one for one in found.schedules()}
    length_ns = by_process[asleep].blocked_ns
    assert (missing, deltas["switches.threads"]) == ({}, 2)
    assert by_process[busy].running_ns > 0
    awake_ns = by_process[busy].running_ns + by_process[busy].preempted_ns
    assert awake_ns == pytest.approx(length_ns, rel=0.05)
    assert deltas["switches.running_ns"] >= by_process[busy].running_ns
    assert by_process[asleep].running_ns < 0.05 * length_ns


@pytest.mark.usefixtures("watched")
def test_a_process_that_has_ended_is_told_and_no_fault():
    gone = subprocess.Popen(["true"])
    gone.wait()
    found = counted([gone.pid], lambda _began_ns: True)
    assert found.deltas() == ({}, {"switches.threads": "no thread of the server was watched in the window"})


def test_a_refusal_of_the_kernel_is_the_reason():
    class Refusing:
        def add(self, pid):
            raise RuntimeError(f"the kernel refuses {pid}")

    counters = SwitchCounters(lambda: [1], CPUS, CPUS, lambda cpus: Refusing())
    counters.open_window()
    counters.close_window()
    assert counters.deltas() == ({}, {"switches.threads": "the kernel refuses 1"})
    assert counters.schedules() == ()


def test_a_window_that_was_never_closed_leaves_no_thread():
    counters = SwitchCounters(lambda: [os.getpid()], CPUS, CPUS)
    counters.open_window()
    counters.close()
    counters.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.usefixtures("watched")
def test_an_ordinary_user_sees_the_switches_of_the_own_processes_and_of_no_others():
    """As nobody: its own child is seen, and root's process is refused with the kernel's setting."""
    script = (
        "import os, subprocess, sys\n"
        "from prony.sandbox.watch.native import NativeWatch\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "child = subprocess.Popen(['sleep', '100'])\n"
        f"watch = NativeWatch({CPUS!r})\n"
        "added = watch.add(child.pid)\n"
        "watch.begin(); threads, lost = watch.finish()\n"
        "child.kill(); child.wait()\n"
        "try: watch.add(os.getppid()); told = 'seen'\n"
        "except RuntimeError as error: told = str(error)\n"
        "print(added, len(threads), told)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if "perf_event_paranoid is 3" in done.stderr or "perf_event_paranoid is 4" in done.stderr:
        pytest.skip("this kernel lets no ordinary user watch: " + done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 1 the kernel refuses to watch threads: "), done.stdout

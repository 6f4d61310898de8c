"""Where the time of a server's threads goes: seen of programs whose threads are known to run or to sleep."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.sandbox.watch import waits
from prony.sandbox.watch.waits import STATES, ThreadCounters, state_of

SLEEPERS = """
import threading, time, queue
empty = queue.Queue()
for work in (lambda: time.sleep(99), lambda: time.sleep(99), empty.get):
    threading.Thread(target=work, daemon=True).start()
print(flush=True)
threading.Event().wait(99)
"""


@contextmanager
def program(text):
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process.pid
        process.kill()


def watched(pids, seconds=0.6):
    counters = ThreadCounters(lambda: pids, [0])
    counters.open_window()
    time.sleep(seconds)
    counters.close_window()
    return counters.deltas()


@pytest.mark.quiet
def test_each_thread_is_found_in_the_state_that_it_is_in():
    with program(SLEEPERS) as pid:
        found, missing = watched([pid])
    looks = found["threads.looks"]
    assert missing == {}
    assert found["threads.sleep"] / looks == pytest.approx(2 / 4, abs=0.1)
    assert found["threads.wait"] / looks == pytest.approx(1 / 4, abs=0.1)
    assert found["threads.timed_wait"] / looks == pytest.approx(1 / 4, abs=0.1)


@pytest.mark.quiet
def test_the_looks_add_up():
    with program(SLEEPERS) as pid:
        found, _ = watched([pid], 0.3)
    assert sum(found[f"threads.{state}"] for state in STATES) == found["threads.looks"]


@pytest.mark.quiet
def test_a_thread_that_runs_is_awake_and_the_scheduler_counts_its_time():
    with program("print(flush=True)\nwhile True: pass") as pid:
        found, _ = watched([pid], 0.4)
    assert found["threads.awake"] == found["threads.looks"] > 0
    ran = found["threads.run_ns"] + found["threads.queue_ns"]
    assert ran == pytest.approx(found["threads.alive_ns"], rel=0.3)


@pytest.mark.quiet
def test_of_many_threads_each_has_its_turn(monkeypatch):
    monkeypatch.setattr(waits, "_THREADS_A_LOOK", 1)
    with program(SLEEPERS) as pid:
        found, _ = watched([pid], 1.0)
    assert all(found[f"threads.{state}"] for state in ("sleep", "wait", "timed_wait"))


def test_without_threads_the_reason_is_given():
    found, missing = watched([], 0.1)
    assert found == {}
    assert missing == {"threads.looks": "no thread of the server was looked at in the window"}


@pytest.mark.quiet
def test_a_process_that_may_not_be_read_is_a_reason_and_no_failure(monkeypatch):
    def refuse(path):
        raise PermissionError(13, "permission denied", path)

    monkeypatch.setattr(waits, "_read", refuse)
    with program(SLEEPERS) as pid:
        found, missing = watched([pid], 0.2)
    assert found == {}
    assert "permission denied" in missing["threads.looks"]


@pytest.mark.parametrize(
    ("text", "machine", "state"),
    [
        ("running\n", "x86_64", "awake"),
        ("202 0x7f 0x189 0x0 0x0 0x0 0x0 0x7f 0x7f", "x86_64", "wait"),
        ("98 0x7f 0x189 0x0 0x7f2a 0x0 0x0 0x7f 0x7f", "aarch64", "timed_wait"),
        ("232 0x3 0x7f 0x80 0xffffffff 0x0 0x8 0x7f 0x7f", "x86_64", "events"),
        ("288 0x3 0x7f 0x80 0x0 0x0 0x8 0x7f 0x7f", "x86_64", "accept"),
        ("0 0x3 0x7f 0x80 0x0 0x0 0x8 0x7f 0x7f", "x86_64", "other"),
        ("20 0x3 0x7f 0x2 0x0 0x0 0x8 0x7f 0x7f", "x86_64", "other"),
        ("66 0x3 0x7f 0x2 0x0 0x0 0x8 0x7f 0x7f", "aarch64", "other"),
        ("18 0x3 0x7f 0x80 0x0 0x0 0x8 0x7f 0x7f", "x86_64", "file"),
        ("73 0x3 0x2 0x80 0x0 0x0 0x8 0x7f 0x7f", "x86_64", "file_lock"),
        ("32 0x3 0x2 0x80 0x0 0x0 0x8 0x7f 0x7f", "aarch64", "file_lock"),
        ("232 0x3 0x7f 0x80 0x0 0x0 0x8 0x7f 0x7f", "riscv64", "other"),
        ("-1 0x7f 0x7f", "x86_64", "other"),
    ],
)
def test_a_system_call_is_a_state_by_the_numbers_of_its_machine(text, machine, state):
    assert state_of(text, machine) == state


ASKS = """
import select, socket, sys, threading, time
own = [socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:]]
def poll(one):
    waits = select.poll()
    waits.register(one, select.POLLIN)
    waits.poll()
threading.Thread(target=own[0].recv, args=(1,), daemon=True).start()
threading.Thread(target=poll, args=(own[1],), daemon=True).start()
print(own[0].fileno(), flush=True)
own[2].recv(1)
"""


def test_threads_that_wait_for_another_server_are_told_from_those_that_wait_for_a_client():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        command = [sys.executable, "-c", ASKS, port, port, port]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            inodes = [inode_of(process.pid, number) for number in descriptors(process.pid)]
            found = looked_at(process.pid, frozenset(inodes[:2]))
            process.kill()
    assert found["threads.downstream"] / found["threads.looks"] == pytest.approx(2 / 3, abs=0.1)
    assert found["threads.socket"] / found["threads.looks"] == pytest.approx(1 / 3, abs=0.1)


def descriptors(pid):
    links = {int(one.name): str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
    return [number for number, link in sorted(links.items()) if link.startswith("socket:")]


def inode_of(pid, number):
    return int(str(Path(f"/proc/{pid}/fd/{number}").readlink())[8:-1])


def looked_at(pid, outgoing):
    counters = ThreadCounters(lambda: [pid], [0], lambda: outgoing)
    counters.open_window()
    time.sleep(0.6)
    counters.close_window()
    return counters.deltas()[0]


def test_threads_at_one_lock_are_counted_apart_from_those_at_locks_of_their_own():
    # The C library's: since 3.13 those who wait for a lock of Python's own wait at a place of their own.
    lock = "libc, one = ctypes.CDLL(None), ctypes.create_string_buffer(64)\nlibc.pthread_mutex_lock(one)\n"
    held = f"import ctypes, threading\n{lock}"
    one_more = "threading.Thread(target=libc.pthread_mutex_lock, args=(one,), daemon=True).start()"
    several = f"for _ in range(3): {one_more}\n"
    own = "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    with program(f"{held}{several}{own}print(flush=True)\nthreading.Event().wait()") as pid:
        found, _ = watched([pid])
    waiting = found["threads.wait"] + found["threads.timed_wait"]
    assert found["threads.one_lock"] / waiting == pytest.approx(3 / 5, abs=0.1)

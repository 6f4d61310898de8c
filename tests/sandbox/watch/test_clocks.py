"""CPU time by the clocks of processes: to the nanosecond, by subject, and of what has ended."""

import os
import subprocess
import sys
import time

from prony.sandbox.watch.processes import ClockReader, process_clock_ns, used_ns

BURNS = """
import time
end = time.process_time() + {}
while time.process_time() < end:
    pass
print(flush=True)
input()
"""


def burning(seconds):
    command = [sys.executable, "-c", BURNS.format(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_what_a_subject_used_is_its_own_and_no_one_elses():
    with burning(0.2) as busy, burning(0.0) as idle:
        # `ClockReader` leaves the root out: these have no children, so their own parent is the root.
        reader = ClockReader({1: os.getpid(), 2: idle.pid}, os.sched_getaffinity(0))
        before = reader.read()
        busy.stdout.readline()
        after = reader.read()
        used = used_ns(before.subjects[1], after.subjects[1])
        assert 150_000_000 < used + before.subjects[1].get(busy.pid, 0) < 400_000_000
        assert (before.subjects[2], after.subjects[2]) == ({}, {})
        assert busy.pid not in after.prony
        assert os.getpid() in after.prony
        assert after.busy_ns > before.busy_ns
        for process in (busy, idle):
            process.communicate(b"\n")


def test_a_clock_of_a_process_that_is_gone_has_no_time():
    with burning(0.0) as process:
        process.communicate(b"\n")
    assert process_clock_ns(process.pid) is None


def test_a_clock_is_finer_than_a_tick():
    first = process_clock_ns(os.getpid())
    end = time.process_time() + 0.001
    while time.process_time() < end:
        pass
    assert 0 < process_clock_ns(os.getpid()) - first < 8_000_000


CALLS_ANOTHER = """
import subprocess, sys
burn = "import time; end = time.process_time() + 0.1\\nwhile time.process_time() < end: pass"
for _ in sys.stdin:
    subprocess.run([sys.executable, "-c", burn])
    print(flush=True)
"""


def test_a_process_that_has_waited_for_another_one_says_so_though_its_own_clock_hardly_moved():
    command = [sys.executable, "-c", CALLS_ANOTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        reader = ClockReader({1: os.getpid()}, os.sched_getaffinity(0))
        before = reader.read()
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        after = reader.read()
        process.communicate()
    assert process.pid in after.subjects[1]
    assert after.waited[1] - before.waited[1] > 80_000_000

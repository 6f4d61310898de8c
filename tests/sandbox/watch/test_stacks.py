"""Stacks, sampled by another program: found or named as absent, and its words are the reason; and how often
one of them has CPython's lock.
"""

import os
import sys
import time
from pathlib import Path

import pytest

from prony.sandbox.watch.stacks import LockCounters, PythonStacks, samples_in

RECORDS = f"""#!{sys.executable}
import pathlib, signal, sys
out = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
def stop(*_):
    out.write_text("a (x.py:1);b (x.py:2) 30\\n")
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
pathlib.Path(sys.argv[0] + ".ready").touch()
signal.pause()
"""
SWELLS = f"""#!{sys.executable}
import pathlib, sys, time
time.sleep(0.2)
try:
    kept = bytearray(2 << 30)
finally:
    pathlib.Path(sys.argv[0] + ".ready").touch()
"""
REFUSES = """#!/bin/sh
echo "Permission Denied: try again as root" >&2; touch "$0.ready"; exit 1
"""


def program(folder, text):
    file = folder / "a-sampler"
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def counters_of(sampler):
    return LockCounters(PythonStacks(lambda: [os.getpid()], "--gil", program=sampler))


def test_samples_of_all_stacks_are_added_up():
    assert samples_in("a (x.py:1) 2\nb (y z.py:3) 40\n") == 42
    assert samples_in("") == 0
    with pytest.raises(ValueError, match="invalid literal"):
        samples_in("no number\n")


def test_a_program_that_is_not_there_is_named():
    counters = counters_of("no-such-sampler")
    counters.open_window()
    counters.close_window()
    assert counters.deltas() == (
        {},
        {"gil.looks": "`no-such-sampler` is not installed (pip install no-such-sampler)"},
    )


def test_what_a_program_says_when_it_cannot_is_the_reason(tmp_path):
    sampler = program(tmp_path, REFUSES)
    counters = counters_of(sampler)
    counters.open_window()
    deadline_s = time.monotonic() + 20
    while not Path(f"{sampler}.ready").exists():
        assert time.monotonic() < deadline_s
    counters.close_window()
    _, missing = counters.deltas()
    assert "Permission Denied: try again as root; " in missing["gil.looks"]
    assert "kernel.yama.ptrace_scope=0" in missing["gil.looks"]


def test_a_program_that_takes_too_much_memory_ends(tmp_path):
    sampler = program(tmp_path, SWELLS)
    stacks = PythonStacks(lambda: [os.getpid()], program=sampler)
    stacks.open_window()
    while not Path(f"{sampler}.ready").exists():
        time.sleep(0.01)
    stacks.close_window()
    assert stacks.reason.endswith("MemoryError")


def test_looks_are_as_many_as_the_program_makes_in_the_time(tmp_path):
    sampler = program(tmp_path, RECORDS)
    counters = counters_of(sampler)
    counters.open_window()
    deadline_s = time.monotonic() + 20
    while not Path(f"{sampler}.ready").exists() or time.monotonic() - deadline_s < -19.5:
        assert time.monotonic() < deadline_s
    counters.close_window()
    counted, missing = counters.deltas()
    assert (counted["gil.held"], missing) == (30, {})
    assert counted["gil.looks"] >= 50


def test_more_than_stacks_can_be_is_not_read(tmp_path, monkeypatch):
    """A server chooses the names in its stacks."""
    monkeypatch.setattr("prony.sandbox.watch.stacks._MOST_BYTES", 10)
    sampler = program(tmp_path, RECORDS)
    stacks = PythonStacks(lambda: [os.getpid()], program=sampler)
    stacks.open_window()
    deadline_s = time.monotonic() + 20
    while not Path(f"{sampler}.ready").exists():
        assert time.monotonic() < deadline_s
    stacks.close_window()
    assert stacks.texts() == {}
    assert "File too large" in stacks.reason or "it is too large" in stacks.reason


def test_a_window_that_was_never_closed_leaves_no_program(tmp_path):
    counters = counters_of(program(tmp_path, RECORDS))
    counters.open_window()
    counters.close()
    counters.close()
    assert [one for one in Path("/proc/self/task").iterdir() if _children(one)] == []


def _children(task):
    return [one for one in (task / "children").read_text().split() if _is_sampler(one)]


def _is_sampler(pid):
    try:
        return b"a-sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False

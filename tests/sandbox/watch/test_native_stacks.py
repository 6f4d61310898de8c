"""Stacks of compiled programs: addresses get names, and what the kernel refuses is the reason."""

import ctypes
import os

from prony.sandbox.watch.native_stacks import NativeStacks

QSORT = ctypes.cast(ctypes.CDLL(None).qsort, ctypes.c_void_p).value


class Watch:
    """Samples so; refuses with ``error``."""

    def __init__(self, *stacks, error=None):
        self._stacks, self._error, self.cpus, self.pids = list(stacks), error, (), []

    def __call__(self, cpus):
        self.cpus = cpus
        return self

    def add(self, pid):
        self.pids.append(pid)
        if self._error:
            raise self._error

    def finish(self):
        return self._stacks, 0


def sampled(watch, *pids):
    stacks = NativeStacks(lambda: pids, watch)
    stacks.open_window()
    stacks.close_window()
    stacks.close_window()
    return stacks


def test_the_function_that_runs_is_named_with_its_library():
    own = os.getpid()
    watch = Watch((own, [QSORT + 1, 7]), (own, [QSORT + 1]), (own, []), (own, [1]), (1, [QSORT]))
    stacks = sampled(watch, own)
    lines = stacks.texts()[own].splitlines()
    assert lines == ["(root) (:0);qsort (library:libc.so.6:0) 2", "(root) (:0) 2"]
    assert (watch.cpus, watch.pids) == (sorted(os.sched_getaffinity(0)), [own])
    assert stacks.looked_s > 0


def test_a_kernel_that_refuses_is_the_reason():
    stacks = sampled(Watch(error=RuntimeError("the kernel refuses")), os.getpid())
    assert (stacks.texts(), stacks.reason) == ({}, "the kernel refuses")


def test_a_process_that_has_ended_is_a_reason():
    stacks = sampled(Watch(), 1 << 22)
    assert stacks.texts() == {}
    assert "No such process" in stacks.reason

"""Where the time of a server's threads goes: running, waiting for a CPU, or in which system call they sleep.

`ThreadCounters` looks at the threads in turn, some each time, while the window is open. Counters:

- ``threads.looks``: how often a thread was looked at, and of these looks ``threads.<state>``: ``awake``
  (running, or ready to), ``timed_wait`` (for another thread, with a time-out: a lock such as CPython's),
  ``wait`` (for another thread without one: a lock, or work in a pool), ``accept``, ``events`` (poll, epoll,
  select), ``socket`` (a peer's bytes, or room for own ones), ``downstream`` (the same of a connection to
  another server), ``sleep``, ``file`` (disks), ``file_lock`` (flock and fcntl), ``child``, ``other``
- ``threads.one_lock``: of the looks at threads that wait for another one, those at the lock of a process at
  which most of its threads were found
- ``threads.run_ns``, ``threads.queue_ns``, ``threads.alive_ns``: time on a CPU, time ready without one, and
  all time, of the threads that were there at both edges

*Source*: proc(5), /proc/PID/task/TID/syscall; kernel, Documentation/scheduler/sched-stats.rst, schedstat.

`SwitchCounters` has their switches. Each costs its thread something, and the reader a part of a CPU: this
belongs into a trial of its own. It works for an ordinary user who may read the server's processes, where the
kernel lets such a user watch them. Counters, over all threads that were there:

- ``switches.running_ns``, ``switches.preempted_ns``, ``switches.blocked_ns``: time on a CPU; ready, after
  another thread took the CPU; waiting, until it ran again; ``switches.unknown_ns``: records were lost
- ``switches.preemptions``, ``switches.waits``: how often a CPU was taken from a thread, or left by it
- ``switches.threads``: how many threads there were; ``switches.lost``: records for which there was no room

*Source*: perf_event_open(2), context_switch and PERF_RECORD_SWITCH.

>>> state_of("running\\n"), state_of("-1 0x7ffd 0x7f2a\\n")
('awake', 'other')
>>> SwitchCounters(tuple, (0,), (0,)).deltas()[1]
{'switches.threads': 'no thread of the server was watched in the window'}
"""

import contextlib
import os
import platform
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from prony.model.observation import ThreadSchedule
from prony.sandbox.identity import inode_of
from prony.sandbox.watch.native import NativeSchedule, NativeWatch
from prony.sandbox.watch.processes import step_aside

# 0.2 to 0.4 % of a core, waking included; of more threads each has its turn.
_PERIOD_S = 0.1
_THREADS_A_LOOK = 12
_LOOKS_BETWEEN_LISTS = 10

_FUTEX = "futex"
# linux/futex.h: FUTEX_WAIT has a relative time-out as its fourth argument, the others an absolute one.
_TIMEOUT_AT = 4
_CALLS: Mapping[str, Sequence[tuple[str, tuple[int, ...]]]] = MappingProxyType(
    {
        "x86_64": (
            (_FUTEX, (202,)),
            ("accept", (43, 288)),
            ("events", (7, 23, 232, 270, 271, 281, 441)),
            ("socket", (42, 44, 45, 46, 47, 299, 307)),
            ("sleep", (35, 230)),
            ("file", (74, 75, 17, 18, 277)),
            ("file_lock", (72, 73)),
            ("child", (61, 247)),
        ),
        "aarch64": (
            (_FUTEX, (98,)),
            ("accept", (202, 242)),
            ("events", (22, 72, 73, 441)),
            ("socket", (203, 206, 207, 211, 212, 243, 269)),
            ("sleep", (101, 115)),
            ("file", (67, 68, 82, 83, 84)),
            ("file_lock", (25, 32)),
            ("child", (95, 260)),
        ),
    }
)
STATES = (
    *("awake", "timed_wait", "wait", "accept", "events", "socket", "downstream", "sleep", "file"),
    *("file_lock", "child", "other"),
)
"""What a look may find."""

# Calls that wait for one descriptor: their first argument; or poll(2) of one, in the first bytes of what the
# first argument points at.
_READS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"x86_64": (0, 1, 19, 20, 45, 47), "aarch64": (63, 64, 65, 66, 207, 212)}
)
_POLLS: Mapping[str, tuple[int, ...]] = MappingProxyType({"x86_64": (7, 271), "aarch64": (73,)})
_DESCRIPTOR = struct.Struct("=i")

# States in which the one descriptor of a call may be a connection to another server.
_ON_DESCRIPTORS = ("socket", "events", "other")

_Thread = tuple[int, int]


def state_of(text: str, machine: str = platform.machine()) -> str:
    """Return the state of a thread from its ``syscall`` file. read(2), write(2), readv(2) and writev(2) serve
    sockets, pipes and files alike: they are ``other``.

    >>> state_of("202 0x7f 0x189 0x0 0x7f2a 0x0 0xffffffff 0x7ffd 0x7f", "x86_64")
    'timed_wait'
    >>> state_of("230 0x1 0x1 0x7f 0x0 0x0 0x7f 0x7f 0x7f", "x86_64")
    'sleep'
    """
    fields = text.split()
    if not fields or fields[0] == "running":
        return "awake"
    number = int(fields[0])
    call = next((name for name, numbers in _CALLS.get(machine, ()) if number in numbers), "other")
    if call != _FUTEX:
        return call
    return "timed_wait" if int(fields[_TIMEOUT_AT], 16) else "wait"


def lock_of(text: str, machine: str = platform.machine()) -> int | None:
    """Return the address at which a thread waits for another one; None where it does not.

    >>> lock_of("202 0x7f 0x189 0x0 0x7f2a 0x0 0xffffffff 0x7ffd 0x7f", "x86_64")
    127
    """
    return int(text.split()[1], 16) if state_of(text, machine) in ("timed_wait", "wait") else None


class ThreadCounters:
    """Looks at the threads of the processes that ``serving`` returns, in a thread of the lowest priority on
    ``cpus``, from the opening of the window to its close. ``outgoing``: the inodes of connections to others.
    """

    def __init__(
        self,
        serving: Callable[[], Sequence[int]],
        cpus: Sequence[int],
        outgoing: Callable[[], Set[int]] = frozenset,
    ) -> None:
        self._serving, self._cpus, self._outgoing = serving, cpus, outgoing
        self._sockets: Counter[tuple[int, str]] = Counter()
        self._looks: Counter[str] = Counter()
        self._locks: Counter[tuple[int, int]] = Counter()
        self._opened: Mapping[_Thread, tuple[int, int]] = {}
        self._opened_ns = 0
        self._times: dict[str, int] = {}
        self._reason: str | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def open_window(self) -> None:
        """Begin to look."""
        self._opened_ns, self._opened = time.monotonic_ns(), self._schedules()
        self._thread = threading.Thread(target=self._watch, name="prony-waits", daemon=True)
        self._thread.start()

    def close_window(self) -> None:
        """Stop looking, and take what the scheduler counted."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        closed, length_ns = self._schedules(), time.monotonic_ns() - self._opened_ns
        both = closed.keys() & self._opened.keys()
        if both:
            self._times = {
                "threads.run_ns": sum(closed[one][0] - self._opened[one][0] for one in both),
                "threads.queue_ns": sum(closed[one][1] - self._opened[one][1] for one in both),
                "threads.alive_ns": length_ns * len(both),
            }

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters, or why threads could not be looked at."""
        total = self._looks.total()
        if not total:
            reason = self._reason or "no thread of the server was looked at in the window"
            return dict(self._times), {"threads.looks": reason}
        looks = self._with_downstream()
        states = {f"threads.{state}": looks[state] for state in STATES}
        return {"threads.looks": total, **states, "threads.one_lock": self._one_lock(), **self._times}, {}

    def _watch(self) -> None:
        step_aside(self._cpus)
        turns = self._turns()
        while not self._ended.wait(_PERIOD_S):
            for process, one in islice(turns, _THREADS_A_LOOK):
                if one < 0:
                    break
                self._look(process, one)

    def _turns(self) -> Iterator[_Thread]:
        """Yield the threads one after the other, for ever; a negative one ends a round."""
        while True:
            known = self._threads()
            for _ in range(_LOOKS_BETWEEN_LISTS):
                yield from known
                yield 0, -1

    def _threads(self) -> list[_Thread]:
        return [(process, one) for process in self._serving() for one in _tasks(process)]

    def _look(self, process: int, one: int) -> None:
        try:
            text = _read(f"/proc/{process}/task/{one}/syscall")
        except (ProcessLookupError, FileNotFoundError):
            return
        except OSError as error:
            self._reason = f"cannot read `/proc/{process}/task/{one}/syscall`: {error.strerror}"
            return
        state = state_of(text)
        self._looks[state] += 1
        lock = lock_of(text)
        if lock is not None:
            self._locks[process, lock] += 1
        elif state in _ON_DESCRIPTORS and (inode := _socket_of(process, text)) is not None:
            self._sockets[inode, state] += 1

    def _with_downstream(self) -> Counter[str]:
        """Return the looks, with those at connections to others in a class of their own."""
        outgoing, found = self._outgoing(), Counter(self._looks)
        for (inode, state), count in self._sockets.items():
            if inode in outgoing:
                found[state] -= count
                found["downstream"] += count
        return found

    def _one_lock(self) -> int:
        """Return of how many looks the thread was found at its process's fullest lock."""
        fullest: dict[int, int] = {}
        for (process, _), count in self._locks.items():
            fullest[process] = max(count, fullest.get(process, 0))
        return sum(fullest.values())

    def _schedules(self) -> dict[_Thread, tuple[int, int]]:
        """Return of each thread its time on a CPU, and its time ready without one."""
        found: dict[_Thread, tuple[int, int]] = {}
        for process, one in self._threads():
            with contextlib.suppress(OSError, ValueError):
                run, queue, _ = _read(f"/proc/{process}/task/{one}/schedstat").split()
                found[process, one] = int(run), int(queue)
        return found


def _socket_of(process: int, text: str, machine: str = platform.machine()) -> int | None:
    """Return the inode of the one socket that a thread waits for; None: it waits for several, or for none.

    What poll(2) waits for stands in the process's memory, which only its parent, its own user or root reads.
    """
    fields = text.split()
    number, first = int(fields[0]), int(fields[1], 16)
    try:
        if number in _POLLS.get(machine, ()):
            if int(fields[2], 16) != 1:
                return None
            first = _DESCRIPTOR.unpack(_memory(process, first))[0]
        elif number not in _READS.get(machine, ()):
            return None
        return inode_of(str(Path(f"/proc/{process}/fd/{first}").readlink()))
    except (OSError, struct.error, OverflowError):
        return None


def _memory(process: int, at: int) -> bytes:
    file = os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, _DESCRIPTOR.size, at)
    finally:
        os.close(file)


def _tasks(process: int) -> list[int]:
    try:
        return [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    except OSError:
        return []


def _read(path: str) -> str:
    # Without Python's buffers: a third of the time.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 512).decode()
    finally:
        os.close(file)


# --- context switches of a server's threads, from the opening of the window to its close ------------------


# 256 KiB hold ten thousand switches of a CPU.
_DRAIN_S = 0.02
_ROUNDS_BETWEEN_LISTS = 25
# What an archive keeps; those that did least are left out.
_MOST_THREADS = 32
_TIMES = ("running_ns", "preempted_ns", "blocked_ns", "unknown_ns", "preemptions", "waits")


class SwitchCounters:
    """Watches the threads of the processes that ``serving`` returns, and of what they start, on ``cpus``.

    Reads the kernel's records in a thread of the lowest priority on ``own_cpus``.
    """

    def __init__(
        self,
        serving: Callable[[], Sequence[int]],
        cpus: Sequence[int],
        own_cpus: Sequence[int],
        open_watch: Callable[[Sequence[int]], NativeWatch] = NativeWatch,
    ) -> None:
        self._serving, self._cpus, self._own_cpus = serving, cpus, own_cpus
        self._open_watch = open_watch
        self._watch: NativeWatch | None = None
        self._threads: tuple[ThreadSchedule, ...] = ()
        self._lost = 0
        self._reason = "no thread of the server was watched in the window"
        self._ended = threading.Event()
        self._reader: threading.Thread | None = None

    def open_window(self) -> None:
        """Begin to watch."""
        watch = self._open_watch(self._cpus)
        try:
            self._add(watch)
        except RuntimeError as error:
            self._reason = str(error)
            return
        watch.begin()
        self._watch = watch
        self._reader = threading.Thread(target=self._read, args=(watch,), name="prony-switches", daemon=True)
        self._reader.start()

    def close_window(self) -> None:
        """Stop watching."""
        if self._watch is None or self._reader is None:
            return
        self._ended.set()
        self._reader.join()
        found, self._lost = self._watch.finish()
        self._threads = tuple(map(_schedule, found))
        self._watch = None

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters, or why switches could not be watched."""
        if not self._threads:
            return {}, {"switches.threads": self._reason}
        sums = map(sum, zip(*map(_times, self._threads), strict=True))
        counted = {f"switches.{name}": total for name, total in zip(_TIMES, sums, strict=True)}
        return {"switches.threads": len(self._threads), "switches.lost": self._lost, **counted}, {}

    def schedules(self) -> tuple[ThreadSchedule, ...]:
        """Return what each thread did, the busiest first, and at most 32."""
        return self._threads[:_MOST_THREADS]

    def close(self) -> None:
        """Stop watching, also in a window that was never closed."""
        self.close_window()

    def _read(self, watch: NativeWatch) -> None:
        step_aside(self._own_cpus)
        rounds = 0
        while not self._ended.wait(_DRAIN_S):
            watch.drain()
            rounds += 1
            if rounds % _ROUNDS_BETWEEN_LISTS == 0:
                # What is not a child of a watched thread, as after another parent's fork.
                with contextlib.suppress(RuntimeError):
                    self._add(watch)

    def _add(self, watch: NativeWatch) -> None:
        for process in self._serving():
            watch.add(process)


def _times(one: ThreadSchedule) -> tuple[int, ...]:
    times = one.running_ns, one.preempted_ns, one.blocked_ns, one.unknown_ns
    return *times, one.preemptions, one.waits


def _schedule(one: NativeSchedule) -> ThreadSchedule:
    times = one.running_ns, one.preempted_ns, one.blocked_ns, one.unknown_ns
    return ThreadSchedule(one.pid, one.tid, one.name, *times, one.preemptions, one.waits)

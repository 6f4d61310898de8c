"""Context switches of a server's threads, from the opening of the window to its close.

Each switch costs its thread something, and the reader a part of a CPU: this belongs into a trial of its own.
Works for an ordinary user who may read the server's processes, where the kernel lets such a user watch them.
Must not know figures. Counters, over all threads that were there:

- ``switches.running_ns``, ``switches.preempted_ns``, ``switches.blocked_ns``: time on a CPU; ready, after
  another thread took the CPU; waiting, until it ran again; ``switches.unknown_ns``: records were lost
- ``switches.preemptions``, ``switches.waits``: how often a CPU was taken from a thread, or left by it
- ``switches.threads``: how many threads there were; ``switches.lost``: records for which there was no room

*Source*: perf_event_open(2), context_switch and PERF_RECORD_SWITCH.

>>> SwitchCounters(tuple, (0,), (0,)).deltas()[1]
{'switches.threads': 'no thread of the server was watched in the window'}
"""

import contextlib
import threading
from collections.abc import Callable, Sequence

from prony.model.observation import ThreadSchedule
from prony.monitor.native import NativeSchedule, NativeWatch
from prony.monitor.processes import step_aside

# 256 KiB hold ten thousand switches of a CPU.
_PERIOD_S = 0.02
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
        while not self._ended.wait(_PERIOD_S):
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

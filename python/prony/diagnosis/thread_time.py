"""Where the time of a server's threads goes, as shares that add up to 1.

*Definition*: running and ready as the scheduler counts them, of all time of the threads; the rest as the
looks at sleeping threads divide it. Without the scheduler's count, the looks alone. Idle is who waits for a
connection; and of the threads that wait for events or for other threads, as a pool's do for work, as many as
no open request can keep busy, in equal shares: by Little's law no more threads than requests in flight have
one, so that it is at least so much. *Source*: docs/reference/evidence.md, Counters of threads.

>>> counted = {"threads.looks": 4, "threads.sleep": 3, "threads.awake": 1}
>>> shares = thread_time({**counted, "threads.run_ns": 1, "threads.queue_ns": 0, "threads.alive_ns": 10})
>>> shares[ThreadState.RUNNING], shares[ThreadState.SLEEP]
(0.1, 0.9)
"""

from collections.abc import Mapping
from enum import StrEnum


class ThreadState(StrEnum):
    """What a thread does. Public: the report's JSON holds these names."""

    RUNNING = "running"
    READY = "ready to run"
    LOCK = "a lock"
    THREAD = "another thread"
    IDLE = "idle"
    EVENTS = "events"
    SOCKET = "a socket"
    DOWNSTREAM = "another server"
    SLEEP = "a sleep"
    FILE = "a file"
    FILE_LOCK = "a lock on a file"
    CHILD = "a child"
    OTHER = "another call"


_ASLEEP: Mapping[ThreadState, str] = {
    ThreadState.LOCK: "timed_wait",
    ThreadState.THREAD: "wait",
    ThreadState.IDLE: "accept",
    ThreadState.EVENTS: "events",
    ThreadState.SOCKET: "socket",
    ThreadState.DOWNSTREAM: "downstream",
    ThreadState.SLEEP: "sleep",
    ThreadState.FILE: "file",
    ThreadState.FILE_LOCK: "file_lock",
    ThreadState.CHILD: "child",
    ThreadState.OTHER: "other",
}

# In these a thread without any request may be, and one with a request too. Who wants CPython's lock has work:
# beside threads that compute there may be more of them than requests.
_PERHAPS_IDLE = (ThreadState.EVENTS, ThreadState.THREAD)


def thread_time(counters: Mapping[str, int]) -> dict[ThreadState, float]:
    """Return the share of each state, without those that were not seen; empty where no thread was."""
    looks, alive_ns = counters.get("threads.looks", 0), counters.get("threads.alive_ns", 0)
    asleep = {state: counters.get(f"threads.{name}", 0) for state, name in _ASLEEP.items()}
    seen = sum(asleep.values())
    if not looks:
        return {}
    if alive_ns:
        running = min(counters.get("threads.run_ns", 0) / alive_ns, 1.0)
        ready = min(counters.get("threads.queue_ns", 0) / alive_ns, 1.0 - running)
    else:
        running, ready = (looks - seen) / looks, 0.0
    # Threads that no look found asleep ran all the time, as far as looks can see.
    rest = 1.0 - running - ready
    shares = {state: rest * count / seen for state, count in asleep.items()} if seen else {}
    awake = {ThreadState.RUNNING: running + (0.0 if seen else rest), ThreadState.READY: ready}
    return {state: share for state, share in {**awake, **shares}.items() if share > 0}


def with_idle(shares: Mapping[ThreadState, float], busy: float) -> dict[ThreadState, float]:
    """Return the shares, with what of their waits no request explains as idle. ``busy``: the most of their
    time in which threads can have had a request: requests in flight over threads.

    >>> found = with_idle({ThreadState.RUNNING: 0.1, ThreadState.THREAD: 0.6, ThreadState.EVENTS: 0.3}, 0.25)
    >>> {state.value: round(share, 3) for state, share in found.items()}
    {'running': 0.1, 'another thread': 0.1, 'events': 0.05, 'idle': 0.75}
    """
    idle, perhaps = shares.get(ThreadState.IDLE, 0.0), sum(shares.get(one, 0.0) for one in _PERHAPS_IDLE)
    moved = min(max(1.0 - busy - idle, 0.0), perhaps)
    if not moved:
        return dict(shares)
    left = {
        state: share * (1 - moved / perhaps) if state in _PERHAPS_IDLE else share
        for state, share in shares.items()
    }
    return {state: share for state, share in {**left, ThreadState.IDLE: idle + moved}.items() if share > 0}

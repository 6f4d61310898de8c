"""Where a server's time goes: the states of its threads, and whose code a page's CPU runs.

Where the time of a server's threads goes, as shares that add up to 1.

*Definition*: running and ready as the scheduler counts them, of all time of the threads; the rest as the
looks at sleeping threads divide it. Without the scheduler's count, the looks alone. Idle is who waits for a
connection; and of the threads that wait for events or for other threads, as a pool's do for work, as many as
no open request can keep busy, in equal shares: by Little's law no more threads than requests in flight have
one, so that it is at least so much. *Source*: docs/reference/evidence.md, Counters of threads.

>>> counted = {"threads.looks": 4, "threads.sleep": 3, "threads.awake": 1}
>>> shares = thread_time({**counted, "threads.run_ns": 1, "threads.queue_ns": 0, "threads.alive_ns": 10})
>>> shares[ThreadState.RUNNING], shares[ThreadState.SLEEP]
(0.1, 0.9)

Which code a page's CPU goes to: sampled shares, in time a page. Pure.

*Definition*: CPU time of the subject in the window / its valid replies, times the share of the samples.
*Assumptions*: what was sampled after the window is alike to what ran in it. *Source*: the subject's CPU time
as its control groups or processes count it; `prony.figures.hot_code`.

>>> spot = HotSpot(CodeKind.APP, "f", "a.py:1", 0.9)
>>> code = HotCode(500, {CodeKind.SERVER: 0.04, CodeKind.APP: 0.96}, (spot,))
>>> found = page_code(code, 20e6)
>>> found.hottest[0].cpu_ns, found.times_server
(18000000.0, 25.0)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.facts import CodeKind, HotCode, HotSpot


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


# Fewer samples of the server say nothing of a ratio.
_LEAST_OF_SERVER = 10


@dataclass(frozen=True, slots=True)
class PageSpot:
    """A function that uses the CPU, with what it calls."""

    kind: CodeKind
    function: str
    place: str
    """The app's line that calls it, of Node.js where the calling function begins; empty where the app does
    not.
    """
    share: float
    cpu_ns: float | None
    """Of one page; null: that is not known."""


@dataclass(frozen=True, slots=True)
class PageCode:
    """Where the CPU of a page goes, by so many `samples` in a load after the window."""

    samples: int
    shares: Mapping[CodeKind, float] = field(default_factory=dict)
    """By whose code it is."""
    hottest: tuple[PageSpot, ...] = ()
    """The functions that use most, without the server's own."""
    times_server: float | None = None
    """How many times the server's own code a page costs; null: too few samples are of it."""
    slowed: float | None = None
    """By which share the rate fell while it was sampled; null: an open loop."""
    missing: str = ""
    """Why there is none."""


def page_code(found: HotCode, page_cpu_ns: float | None) -> PageCode:
    """Return shares with the time that they are of a page."""
    server = found.shares.get(CodeKind.SERVER, 0.0)
    return PageCode(
        samples=found.samples,
        shares=found.shares,
        hottest=tuple(_spot(one, page_cpu_ns) for one in found.hottest),
        times_server=1 / server if server * found.samples >= _LEAST_OF_SERVER else None,
        slowed=found.slowed,
        missing=found.missing,
    )


def _spot(found: HotSpot, page_cpu_ns: float | None) -> PageSpot:
    cpu_ns = None if page_cpu_ns is None else found.share * page_cpu_ns
    return PageSpot(found.kind, found.function, found.place, found.share, cpu_ns)

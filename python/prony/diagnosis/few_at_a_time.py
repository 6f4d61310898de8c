"""D43: it worked on few of the open requests at a time, though more could run, and its CPUs were idle.

How long a request takes alone is measured after the window: rate times that is how many it works on (Little's
law). The others waited: for an event loop that a call blocks, a pool of connections or threads, a lock, one
writer, or in what it asks. How many they are, and on how many connections replies are due, says which.
*Source*: J. D. C. Little, Operations Research 9 (1961); AnyIO, CapacityLimiter: total_tokens is 40.
"""

from prony.diagnosis.consumption import (
    Consumption,
    OwnConnections,
    Resource,
    consumption_of,
    outgoing_of,
    pool_of,
)
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Sentence, Symptom, Traits
from prony.diagnosis.one_core import full_process
from prony.diagnosis.shared import NO_LOCK, OF_THE_WAITING, RAISE_POOL
from prony.diagnosis.thread_time import ThreadState, thread_time
from prony.model.facts import SubjectFacts
from prony.model.trial import Ok
from prony.units import MILLISECOND_NS

QUICKER_PEER = Experiment(
    "a quicker partner", "measure with another one that answers at once; throughput rises"
)
NO_BLOCKING = Experiment(
    "a page that blocks nothing", "measure with a call that can be awaited, or in a thread; throughput rises"
)
AWAIT = Advice(
    "await what blocks",
    "await what the page waits for, with a driver that can be awaited, or call it in a thread",
)
MORE_AT_A_TIME = Experiment(
    "more at a time", "measure with what is shared twice as large, or without it; throughput rises"
)
LET_GO_SOONER = Advice(
    "hold what is shared for less", "find what lets one through at a time, and hold it for less"
)
ONE_WRITER = Advice(
    "write in one place",
    "keep transactions short, write ahead (SQLite: journal_mode=WAL), or use a database with many writers",
)
LOOK_AT_PEER = Advice(
    "look at what it asks",
    "look there for what its requests wait for: a lock on the same row, or its number of workers",
)
CHEAPER_QUESTIONS = Advice("ask for less", "ask for less work, or keep the answer")
SHARE_LESS = Advice(
    "enlarge what is shared", "find what the requests share, and make it larger or hold it for less"
)
_HOW_MANY = (
    "it worked on {at_a_time:.1f} of {in_flight:.0f} open requests at a time, by the {alone_ns:duration} "
    "that one takes alone, with CPUs busy {cpu_share:.0%}"
)
LOOP_BLOCKED = Symptom(
    "event loop blocked",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_BLOCKING),
    Sentence(
        _HOW_MANY + "{waits:; it waits for}",
        "it worked on one request at a time in each process{waits:; it waits for}",
    ),
    Traits(cause="its event loop, which a call blocks", closely=Closely.WAITS),
)
"""``at_a_time`` of ``in_flight`` requests, by ``alone_ns``; ``cpu_share``: of its CPUs. Name ``waits``: what
the loop waits for, if known."""
POOL_SMALL = Symptom(
    "pool of connections used up",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME),
    Sentence(
        _HOW_MANY + "; it has {connections:n connection} to others (port {port:d}), and the rest waited",
        "it worked on as many requests at a time as it has connections to others, for which the rest waited",
    ),
    Traits(cause="its pool of connections to others", closely=Closely.WAITS),
)
"""As before, with its ``connections`` to others; ``port``: of the busiest peer."""
ONE_AT_A_TIME = Symptom(
    "one request at a time",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK),
    Sentence(
        _HOW_MANY,
        "it worked on one request at a time",
    ),
    Traits(cause="a lock, or a pool of one", closely=Closely.WAITS),
)
"""As before."""
LOCK_POLLED = Symptom(
    "a lock that is polled",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK),
    Sentence(
        _HOW_MANY + "; the rest slept between tries, {slept:.0%} of their time, as writers of SQLite do",
        "it worked on few requests at a time; the rest slept between tries, as writers of SQLite do",
    ),
    Traits(cause="a lock for which the others sleep and try again, such as a single writer's"),
)
"""As before; ``slept``: the share of its threads' time."""
PEER_FULL = Symptom(
    "what it asks works on few",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, QUICKER_PEER),
    Sentence(
        "replies were due on {due:.0f} connections to others (port {port:d}), which worked on "
        "{at_a_time:.1f} at a time, by the {alone_ns:duration} that a request takes alone",
        "replies were due on more connections to others than these worked on at a time",
    ),
    Traits(cause="what it asks of others, where requests wait for one another", closely=Closely.WAITS),
)
"""As before; replies were due on ``due`` connections to ``port``."""
PEER_COMPUTES = Symptom(
    "what it asks uses its CPU",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, QUICKER_PEER),
    Sentence(
        "{role} computed for it on {cores:.1f} CPUs of this machine all the time, {cpu_ns:duration} for each "
        "request; its own CPUs were busy {cpu_share:.0%}",
        "what it asks computed for it all the time",
    ),
    Traits(cause="the CPU of what it asks", closely=Closely.WAITS),
)
"""``cores``: of what it asks, ``cpu_ns`` for each request; name ``role``: its role."""
FEW_AT_A_TIME = Symptom(
    "few requests at a time",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME),
    Sentence(
        _HOW_MANY + "; the rest waited for what they share{pool:, perhaps}",
        "it worked on few of the open requests at a time; the rest waited for what they share",
    ),
    Traits(cause="what its requests share: its threads, a pool or a lock", closely=Closely.WAITS),
)
"""As before; name ``pool``: what is as large as that, if anything is known to be."""

WAITS_WITHIN = (
    *(LOOP_BLOCKED, POOL_SMALL, ONE_AT_A_TIME, LOCK_POLLED, PEER_FULL, PEER_COMPUTES, FEW_AT_A_TIME),
)

# Requests in flight over those that are worked on; these over its workers and threads, of which one may be
# idle while its next request is on its way.
_LEAST_WAITING, _MOST_OF_SLOTS = 1.5, 0.6
# Of the CPUs' time, or of the cores that its processes can fill: beyond, the waiting is not the only limit.
_MOST_CPU = 0.7
_MOST_READY = 0.3
# A shorter time is mostly the way to the server and back.
_LEAST_ALONE_NS = 2 * MILLISECOND_NS
# Of one request in each process: a loop that is blocked does a little beside it. Of its time in a wait for
# events.
_ONE_EACH, _MOST_EVENTS = (0.7, 1.35), 0.5
_LEAST_LOOKS = 20
_ANYIO_THREADS, _ANYIO = 40, "the 40 threads in which AnyIO runs pages without async (total_tokens)"
_NEAR = 0.2
# What it asks computes for as much of the time of the requests that are worked on.
_COMPUTES = 0.7
# Of the requests that it may have begun: so many wait for a reply of what it asks.
_MOST_DUE = 0.5
_ROLES = ("database", "cache", "service")
_AWAKE = (ThreadState.RUNNING, ThreadState.READY, ThreadState.IDLE)
_MOSTLY = 0.5
_CALLS = {*ThreadState} - {*_AWAKE, ThreadState.THREAD, ThreadState.LOCK, ThreadState.EVENTS}


def few_at_a_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when 1.5 times as many requests were open as it worked on, it worked on fewer than its
    workers and threads could, and it had CPUs to spare.
    """
    usage = consumption_of(evidence)
    if usage is None or not is_known(evidence) or not isinstance(evidence.trial.outcome, Ok):
        return []
    if not has_few(usage) or Resource.CPU not in usage.shares or full_process(evidence):
        return []
    if max(usage.shares[Resource.CPU], usage.shares.get(Resource.CORES, 0.0)) > _MOST_CPU:
        return []
    kind, advice, numbers, names = _cause(evidence, usage)
    # Who sleeps between tries, or waits for a reply of others, does not wait for a CPU.
    if kind not in (LOCK_POLLED, PEER_FULL, PEER_COMPUTES) and _wants_cpu(evidence, usage):
        return []
    known = {
        "at_a_time": usage.at_a_time or 0.0,
        "in_flight": usage.in_flight,
        "alone_ns": float(evidence.trial.counters["alone.service_ns"]),
        "cpu_share": usage.shares[Resource.CPU],
    }
    return [
        Finding(
            rule="D43",
            kind=kind,
            confidence=Confidence.LIKELY,
            numbers=known | numbers,
            names=names,
            advice=advice,
            shareable=True,
        )
    ]


def is_known(evidence: Evidence) -> bool:
    """Return whether it is known how many requests it worked on: one alone takes long enough to show it."""
    return evidence.trial.counters.get("alone.service_ns", 0) >= _LEAST_ALONE_NS


def _wants_cpu(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether more than three of ten requests that it worked on may have waited for a CPU."""
    counters, recording = evidence.trial.counters, evidence.trial.recording
    length_ns = recording.window.length_ns if recording else None
    if "threads.queue_ns" not in counters or not length_ns:
        return usage.contended
    return counters["threads.queue_ns"] / length_ns > _MOST_READY * (usage.at_a_time or 0.0)


def has_few(usage: Consumption) -> bool:
    """Return whether it is known that requests waited for others within the server, and not for a worker or a
    thread.
    """
    if usage.at_a_time is None or usage.in_flight < _LEAST_WAITING * max(usage.at_a_time, 1.0):
        return False
    return usage.slots is None or usage.at_a_time < _MOST_OF_SLOTS * usage.slots


_Cause = tuple[Symptom, Advice, dict[str, float], dict[str, str]]


def _cause(evidence: Evidence, usage: Consumption) -> _Cause:
    """Return what the others waited for: within the server, before what it asks."""
    at_a_time, outgoing = usage.at_a_time or 0.0, outgoing_of(evidence)
    if _is_blocked(evidence, usage):
        return LOOP_BLOCKED, AWAIT, {}, _blocks(usage)
    if _polls(usage):
        return LOCK_POLLED, ONE_WRITER, {"slept": usage.time[ThreadState.SLEEP]}, {}
    asked = outgoing and _asked(evidence, usage, outgoing)
    if asked:
        return asked
    if _ONE_EACH[0] <= at_a_time <= _ONE_EACH[1] and (outgoing is None or outgoing.at_port <= _ONE_EACH[1]):
        return ONE_AT_A_TIME, LET_GO_SOONER, {}, {}
    if outgoing is not None and _is_near(outgoing.at_port, at_a_time):
        numbers = {"connections": float(round(outgoing.at_port)), "port": float(outgoing.port)}
        return POOL_SMALL, RAISE_POOL, numbers, {}
    threads = _threads(evidence) / _processes(evidence)
    is_anyio = threads > _ANYIO_THREADS and _is_near(_ANYIO_THREADS * _processes(evidence), at_a_time)
    return FEW_AT_A_TIME, SHARE_LESS, {}, {"pool": _ANYIO} if is_anyio else {}


def _asked(evidence: Evidence, usage: Consumption, outgoing: OwnConnections) -> _Cause | None:
    """Return what it asks as the cause: it computes for as many as are worked on, or has more questions."""
    at_a_time, counters = usage.at_a_time or 0.0, evidence.trial.counters
    used = {
        role: counters[f"asked.{role}.cpu_ns"] - counters.get(f"asked.{role}.idle_ns", 0)
        for role in _ROLES
        if f"asked.{role}.cpu_ns" in counters
    }
    busiest = max(used, key=lambda role: used[role], default=None)
    recording = evidence.trial.recording
    length_ns = (recording.window.length_ns if recording else None) or 1
    if busiest is not None and used[busiest] / length_ns >= _COMPUTES * max(at_a_time, 1.0):
        numbers = {"cores": used[busiest] / length_ns, "cpu_ns": used[busiest] / usage.done}
        return PEER_COMPUTES, CHEAPER_QUESTIONS, numbers, {"role": f"its {busiest}"}
    # Connections that always wait, for events of a queue for example, are few beside the requests.
    working = min(usage.in_flight, usage.slots or usage.in_flight)
    # Of a question right after a reply the kernel's clock, in ticks, says nothing: threads do.
    pool = pool_of(evidence)
    due = max(outgoing.waits, pool.busy * pool.connections if pool else 0.0)
    if due >= max(_LEAST_WAITING * max(at_a_time, 1.0), _MOST_DUE * working):
        numbers = {"due": due, "port": float(outgoing.waits_port or outgoing.port)}
        return PEER_FULL, LOOK_AT_PEER, numbers, {}
    return None


def _polls(usage: Consumption) -> bool:
    """Return whether its workers and threads sleep for most of their time, between tries."""
    return bool(usage.slots) and usage.time.get(ThreadState.SLEEP, 0.0) >= _MOSTLY


def _is_blocked(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether it is an event loop that works on one request at a time, and hardly waits for events."""
    counters, processes = evidence.trial.counters, _processes(evidence)
    least, most = (share * processes for share in _ONE_EACH)
    if usage.slots is not None or not least <= (usage.at_a_time or 0.0) <= most:
        return False
    if counters.get("threads.looks", 0) < _LEAST_LOOKS:
        return False
    events = thread_time(counters).get(ThreadState.EVENTS, 0.0)
    return events * _threads(evidence) <= _MOST_EVENTS * processes


def _blocks(usage: Consumption) -> dict[str, str]:
    """Return what the loop waits for; empty where it is not asleep. Threads of an idle pool wait for another
    one.
    """
    asleep = {state: usage.time[state] for state in _CALLS if usage.time.get(state)}
    return {"waits": max(asleep, key=lambda state: asleep[state]).value} if asleep else {}


def waits(usage: Consumption) -> dict[str, str]:
    """Return in what its threads are for most of their time; empty where nothing stands out."""
    asleep = {state: share for state, share in usage.time.items() if state not in _AWAKE}
    most = max(asleep, key=lambda state: asleep[state], default=None)
    return {} if most is None or asleep[most] < _MOSTLY else {"waits": most.value}


def _threads(evidence: Evidence) -> float:
    recording = evidence.trial.recording
    length_ns = recording.window.length_ns if recording else None
    return evidence.trial.counters.get("threads.alive_ns", 0) / length_ns if length_ns else 0.0


def _processes(evidence: Evidence) -> int:
    facts = evidence.subject.facts if evidence.subject else SubjectFacts()
    return facts.of_server.processes or 1


def _is_near(size: float, count: float) -> bool:
    return abs(size - count) <= _NEAR * count

"""D43: it worked on few of the open requests at a time, though more could run, and its CPUs were idle.

How long a request takes alone is measured after the window: rate times that is how many it works on (Little's
law). The others waited: for an event loop that a call blocks, a pool of connections or threads, a lock, one
writer, or in what it asks. How many they are, how many nobody has read yet, and on how many connections
replies are due, says which.
*Source*: J. D. C. Little, Operations Research 9 (1961); AnyIO, CapacityLimiter: total_tokens is 40.
"""

import re
from collections import Counter

from prony.core.units import MILLISECOND_NS, seconds
from prony.diagnosis.asked_often import KEEP_OPEN, opened_to_others
from prony.diagnosis.consumption import (
    Consumption,
    OwnConnections,
    Resource,
    consumption_of,
    outgoing_of,
    pool_of,
)
from prony.diagnosis.cpu_time import full_process
from prony.diagnosis.evidence import SERVER_ROLES, Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import NO_LOCK, OF_THE_WAITING, RAISE_POOL
from prony.diagnosis.time_spent import ThreadState, thread_time
from prony.figures.latency import read_distribution
from prony.figures.validity import SERVICE_ROLES
from prony.model.observation import ProcessRow

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
SLOWER = Experiment(
    "a quarter of the load", "measure an open loop at a quarter of this rate; each request is quick"
)
LET_MORE_THROUGH = Advice(
    "let more through", "look for a limit on requests a second, or for work that is done after each reply"
)
MORE_POOL_THREADS = Advice(
    "give the pool more threads",
    "give the pool more threads (AnyIO: total_tokens; ThreadPoolExecutor: max_workers), or await what they "
    "wait for",
)
ONE_WRITER = Advice(
    "write in one place",
    "keep transactions short, write ahead (SQLite: journal_mode=WAL), or use a database with many writers",
)
LOOK_AT_PEER = Advice(
    "look at what it asks",
    "look there for what its requests wait for: a lock on the same row, or its number of workers",
)
MORE_PROCESSES = Advice(
    "add worker processes",
    "add worker processes, or threads in each, or shorten what each waits for (in an event loop: await it)",
)
ASK_SOONER = Advice(
    "wait less for what it asks",
    "more connections carry more (-c); a request is quicker if it asks for less, asks several at the same "
    "time, or gives up sooner",
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
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_BLOCKING, AWAIT),
    _HOW_MANY + "{waits:; it waits for}",
    shared="it worked on one request at a time in each process{waits:; it waits for}",
    traits=Traits(cause="its event loop, or its only thread, which a call blocks", closely=Closely.WAITS),
)
"""``at_a_time`` of ``in_flight`` requests, by ``alone_ns``; ``cpu_share``: of its CPUs. Name ``waits``: what
the loop waits for, if known."""
REQUESTS_UNREAD = Symptom(
    "requests lie unread",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_BLOCKING, AWAIT),
    "{unread:.0f} of {in_flight:.0f} open requests lay unread, while its CPUs were busy {cpu_share:.0%} and "
    "one thread of each process was in a call{waits:; it waits for}",
    shared="most open requests lay unread, while one thread of each process was in a call"
    "{waits:; it waits for}",
    traits=Traits(cause="its event loop, or its only thread, which a call blocks", closely=Closely.WAITS),
)
"""``unread`` of ``in_flight`` requests; ``cpu_share``: of its CPUs. Name ``waits``: what the thread waits
for.
"""
POOL_THREADS = Symptom(
    "pool of threads used up",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME, MORE_POOL_THREADS),
    _HOW_MANY + "; as many threads were in a call{waits:, mostly of}, and the rest waited for a thread",
    shared="it worked on as many requests at a time as threads were in a call, for which the rest waited",
    traits=Traits(cause="its pool of threads", closely=Closely.WAITS),
)
"""As before. Name ``waits``: what they waited for."""
PACED = Symptom(
    "let through at a rate",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, SLOWER, LET_MORE_THROUGH),
    _HOW_MANY + "; but where requests are four times as far apart each takes {spaced_ns:duration}",
    shared="it answered so many requests a second, and each at once where they are far apart",
    traits=Traits(cause="a limit on its rate, or work that it does after each reply"),
)
"""As before; ``spaced_ns``: for a request of those that are far apart."""
POOL_SMALL = Symptom(
    "pool of connections used up",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME, RAISE_POOL),
    _HOW_MANY + "; it has {connections:n connection} to others (port {port:d}), and the rest waited",
    shared="it worked on as many requests at a time as it has connections to others, for which the rest "
    "waited",
    traits=Traits(cause="its pool of connections to others", closely=Closely.WAITS),
)
"""As before, with its ``connections`` to others; ``port``: of the busiest peer."""
ONE_AT_A_TIME = Symptom(
    "one request at a time",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK, LET_GO_SOONER),
    _HOW_MANY + "{waits:; the rest waited for}",
    shared="it worked on one request at a time{waits:; the rest waited for}",
    traits=Traits(cause="a lock, or a pool of one", closely=Closely.WAITS),
)
"""As before. Name ``waits``: for what, if its threads show it."""
LOCK_POLLED = Symptom(
    "a lock that is polled",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK, ONE_WRITER),
    _HOW_MANY + "; the rest slept between tries, {slept:.0%} of their time, as writers of SQLite do",
    shared="it worked on few requests at a time; the rest slept between tries, as writers of SQLite do",
    traits=Traits(cause="a lock for which the others sleep and try again, such as a single writer's"),
)
"""As before; ``slept``: the share of its threads' time."""
PEER_FULL = Symptom(
    "what it asks works on few",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, QUICKER_PEER, LOOK_AT_PEER),
    "replies were due on {due:.0f} connections to others (port {port:d}), which worked on "
    "{at_a_time:.1f} at a time, by the {alone_ns:duration} that a request takes alone",
    shared="replies were due on more connections to others than these worked on at a time",
    traits=Traits(cause="what it asks of others, where requests wait for one another", closely=Closely.WAITS),
)
"""As before; replies were due on ``due`` connections to ``port``."""
PEER_COMPUTES = Symptom(
    "what it asks uses its CPU",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, QUICKER_PEER, CHEAPER_QUESTIONS),
    "{role} computed for it on {cores:.1f} CPUs of this machine all the time, {cpu_ns:duration} for each "
    "request; its own CPUs were busy {cpu_share:.0%}",
    shared="what it asks computed for it all the time",
    traits=Traits(cause="the CPU of what it asks", closely=Closely.WAITS),
)
"""``cores``: of what it asks, ``cpu_ns`` for each request; name ``role``: its role."""
PEER_CONNECTS = Symptom(
    "connecting uses the CPU of what it asks",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, QUICKER_PEER, KEEP_OPEN),
    "for each request {connects:.1f} connections to others were opened, and {role} computed for it on "
    "{cores:.1f} CPUs of this machine all the time, {cpu_ns:duration} for each request",
    shared="for each request it opened connections to others, which computed all the time",
    traits=Traits(cause="the connections that it opens for each request", closely=Closely.WAITS),
)
"""As before; ``connects`` for each request."""
PEER_SLOW = Symptom(
    "what it asks takes long",
    Meaning(Bearing.ADDS, OF_THE_WAITING, QUICKER_PEER, ASK_SOONER),
    "each request took about as long as one alone, {alone_ns:duration}, and for {due:.0f} of the "
    "{in_flight:.0f} open ones a reply of what it asks was due (port {port:d})",
    shared="each request took about as long as one alone, and many waited for a reply of what it asks",
)
"""As before."""
FEW_AT_A_TIME = Symptom(
    "few requests at a time",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME, SHARE_LESS),
    _HOW_MANY + "; the rest waited for what they share",
    shared="it worked on few of the open requests at a time; the rest waited for what they share",
    traits=Traits(cause="what its requests share: its threads, a pool or a lock", closely=Closely.WAITS),
)
"""As before."""

PROCESSES_BUSY = Symptom(
    "worker processes busy",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, MORE_AT_A_TIME, MORE_PROCESSES),
    _HOW_MANY + "; {processes:n process} of one thread each had one, and {unread:.0f} lay unread",
    shared="as many processes of one thread as it worked on requests had one each, and the rest lay unread",
    traits=Traits(cause="its number of worker processes", closely=Closely.WAITS),
)
"""As before, with its ``processes``, and the requests that lay ``unread``."""
STANDS_STILL = Symptom(
    "stands still at times",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK, LET_GO_SOONER),
    "half of its replies took {p50_ns:duration}, all {mean_ns:duration} on average, and one alone takes "
    "{alone_ns:duration}, with CPUs busy {cpu_share:.0%}: at times all that it has read waits",
    shared="most of its replies are quick, and at times all that it has read waits, while its CPUs are idle",
    traits=Traits(cause="a lock that something else holds for long, or a pause of all of it"),
)
"""Replies took ``p50_ns`` in the middle and ``mean_ns`` on average; ``alone_ns``: one alone, on average;
``cpu_share``: of its CPUs."""

WAITS_WITHIN = (
    *(LOOP_BLOCKED, REQUESTS_UNREAD, PACED, POOL_THREADS, PROCESSES_BUSY, POOL_SMALL, ONE_AT_A_TIME),
    *(LOCK_POLLED, PEER_FULL, PEER_CONNECTS, PEER_COMPUTES, FEW_AT_A_TIME),
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
# Of the open requests: a loop that is blocked reads those that came meanwhile all at once, and is half of its
# time behind; one that is not reads each at once.
_LEAST_UNREAD = 0.2
# Of the CPUs' and the generator's time; open requests of those that are worked on; the mean of the middle;
# how long it is at least, and where the kernel's clock is to say that a reply is due.
_HALF, _HELD_UP, _OF_MIDDLE = 0.5, 3, 5
_LEAST_HELD_NS, _LEAST_DUE_NS = 2 * MILLISECOND_NS, 20 * MILLISECOND_NS
# Of the open requests, and at least so many: beside one that is worked on, or on its way, they wait unread.
_MOSTLY_UNREAD, _LEAST_LYING = 0.5, 2.0
# Of how long one takes that follows another at once; of a server that carries as much alone as under load.
_MOST_SPACED, _MOST_SPACED_AT_PACE, _AT_PACE = 0.5, 0.8, 0.05
_NEAR = 0.2
# Of the CPU time of the busiest process; how many share the work.
_MASTER, _LEAST_PROCESSES = 0.25, 2
# Of its working threads those that wait for another one; of the requests that are worked on, those in a call.
_MOST_IDLE, _LEAST_CALLING = 0.8, 0.75
# What it asks computes for as much of the time of the requests that it works on; or on one CPU all the time,
# while the machine's are full, or while connections are opened.
_COMPUTES, _ONE_CPU, _MOST_IDLE_CPUS, _EACH = 0.7, 0.88, 0.1, 0.9
# Of the requests that it may have begun: so many wait for a reply of what it asks.
_MOST_DUE = 0.5
# Of the open requests, which wait for nothing else: a look finds some that have just been answered.
_MOSTLY_DUE = 0.4
_AWAKE = (ThreadState.RUNNING, ThreadState.READY, ThreadState.IDLE)
_MOSTLY = 0.5
_LOCKS = (ThreadState.THREAD, ThreadState.LOCK, ThreadState.FILE_LOCK)
_CALLS = {*ThreadState} - {*_AWAKE, *_LOCKS, ThreadState.EVENTS}
# As runtimes number the threads of a pool: Java's `pool-1-thread-4`.
_NUMBERED = re.compile(r"(.*\D)\d+")


def few_at_a_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when 1.5 times as many requests were open as it worked on, it worked on fewer than its
    workers and threads could, and it had CPUs to spare.

    Where one alone is too quick to show how many it worked on, those that nobody read may show it, or how
    much longer they take beside each other.
    """
    usage = consumption_of(evidence)
    if usage is None or not evidence.is_ok:
        return []
    if not is_known(evidence):
        return _unread(evidence, usage) or _held_up(evidence, usage)
    if not has_few(usage):
        return _slow_peer(evidence, usage)
    busy = max(usage.shares.get(Resource.CPU, 1.0), usage.shares.get(Resource.CORES, 0.0))
    if busy > _MOST_CPU or full_process(evidence):
        return []
    kind, numbers, names = _cause(evidence, usage)
    # Who sleeps between tries, or waits for a reply of others, does not wait for a CPU.
    if kind not in (LOCK_POLLED, PEER_FULL, PEER_CONNECTS, PEER_COMPUTES) and _wants_cpu(evidence, usage):
        return []
    known = {
        "at_a_time": usage.at_a_time or 0.0,
        "in_flight": usage.in_flight,
        "alone_ns": float(evidence.trial.counters["alone.service_ns"]),
        "cpu_share": usage.shares[Resource.CPU],
    }
    return [Finding(kind, Confidence.LIKELY, known | numbers, names)]


def _unread(evidence: Evidence, usage: Consumption) -> list[Finding]:
    """Return a finding when most open requests lay unread, its CPUs were idle, and it has one thread in each
    process that is in a call at each look: a program that waits for a child is a shell.
    """
    unread, looks = evidence.unread, evidence.trial.counters.get("threads.looks", 0)
    if unread is None or usage.slots is not None or looks < _LEAST_LOOKS or usage.contended:
        return []
    if unread < max(_MOSTLY_UNREAD * usage.in_flight, _LEAST_LYING):
        return []
    cpu, processes = usage.shares.get(Resource.CPU, 1.0), evidence.facts.of_server.processes or 1
    asleep = {state: usage.time[state] for state in _CALLS - {ThreadState.CHILD} if usage.time.get(state)}
    in_calls = _threads(evidence) * sum(asleep.values())
    if cpu > _MOST_CPU or not _ONE_EACH[0] * processes <= in_calls <= _ONE_EACH[1] * processes:
        return []
    numbers = {"unread": unread, "in_flight": usage.in_flight, "cpu_share": cpu}
    waits_for = {"waits": max(asleep, key=lambda state: asleep[state]).value}
    return [Finding(REQUESTS_UNREAD, Confidence.LIKELY, numbers, waits_for)]


def _slow_peer(evidence: Evidence, usage: Consumption) -> list[Finding]:
    """Return a finding when requests that wait for no other one of the server mostly wait for a reply of what
    it asks, and its CPUs are idle.
    """
    outgoing, alone_ns = outgoing_of(evidence), evidence.trial.counters["alone.service_ns"]
    cpu, queued = usage.shares.get(Resource.CPU, 1.0), usage.in_flight > (usage.slots or usage.in_flight)
    if outgoing is None or cpu > _MOST_CPU or queued or alone_ns < _LEAST_DUE_NS or not usage.has_each_alone:
        return []
    if outgoing.waits < max(_MOSTLY_DUE * usage.in_flight, 1.0):
        return []
    numbers = {"alone_ns": float(alone_ns), "in_flight": usage.in_flight, "due": outgoing.waits}
    return [Finding(PEER_SLOW, Confidence.LIKELY, numbers | {"port": float(outgoing.waits_port)})]


def _held_up(evidence: Evidence, usage: Consumption) -> list[Finding]:
    """Return a finding when requests of which one alone is quick waited for others, though the server had
    read them, and its CPUs and the generator were half idle: for the reply of what it asks, which does not
    compute for it, or where most were as quick as ever, now and then.

    A mix of quick and slow pages is as slow alone, on average. What is due within a tick of the kernel's
    clock is not known.
    """
    recording, alone_ns = evidence.trial.recording, evidence.trial.counters.get("alone.mean_ns")
    times = read_distribution(recording.distributions.ok_service) if recording else None
    if alone_ns is None or not times or not times.histogram or not times.count or not _is_half_idle(usage):
        return []
    at_a_time, mean_ns = usage.carried_per_s * seconds(alone_ns), (times.sum_ns or 0) / times.count
    is_read = (evidence.unread or 0.0) <= _LEAST_UNREAD * usage.in_flight
    waiting = usage.in_flight / max(at_a_time, 1.0)
    if not is_read or waiting < _LEAST_WAITING or mean_ns < _LEAST_HELD_NS:
        return []
    known = {"alone_ns": float(alone_ns), "cpu_share": usage.shares[Resource.CPU]}
    outgoing = outgoing_of(evidence)
    asked = _asked(evidence, usage, outgoing) if outgoing and mean_ns >= _LEAST_DUE_NS else None
    if asked:
        counted = {"at_a_time": at_a_time, "in_flight": usage.in_flight}
        is_full = asked[0] is PEER_FULL and asked[1]["due"] >= _LEAST_WAITING * max(at_a_time, 1.0)
        return [Finding(PEER_FULL, Confidence.LIKELY, known | counted | asked[1])] if is_full else []
    p50_ns = times.histogram.value_at_quantile(0.5)
    if waiting < _HELD_UP or mean_ns < _OF_MIDDLE * p50_ns:
        return []
    numbers = {"p50_ns": float(p50_ns), "mean_ns": mean_ns}
    return [Finding(STANDS_STILL, Confidence.LIKELY, known | numbers)]


def _is_half_idle(usage: Consumption) -> bool:
    """Return whether neither CPUs, nor the generator, nor all slots were busy."""
    queued = usage.in_flight > (usage.slots or usage.in_flight)
    busy = max(usage.shares.get(Resource.CPU, 1.0), usage.shares.get(Resource.GENERATOR, 0.0))
    return not queued and not usage.contended and busy <= _HALF


def is_known(evidence: Evidence) -> bool:
    """Return whether it is known how many requests it worked on: one alone takes long enough to show it."""
    return evidence.trial.counters.get("alone.service_ns", 0) >= _LEAST_ALONE_NS


def _wants_cpu(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether more than three of ten requests that it worked on may have waited for a CPU."""
    counters, length_ns = evidence.trial.counters, evidence.length_ns
    if "threads.queue_ns" not in counters or not length_ns:
        return usage.contended
    return counters["threads.queue_ns"] / length_ns > _MOST_READY * (usage.at_a_time or 0.0)


def has_few(usage: Consumption) -> bool:
    """Return whether it is known that requests waited for others within the server, and not for a worker or a
    thread.
    """
    return is_few(usage.at_a_time, usage.in_flight, usage.slots)


def is_few(at_a_time: float | None, in_flight: float | None, slots: int | None) -> bool:
    """Return whether so few of the requests in flight are worked on that others wait, and not for slots."""
    if at_a_time is None or in_flight is None or in_flight < _LEAST_WAITING * max(at_a_time, 1.0):
        return False
    return slots is None or at_a_time < _MOST_OF_SLOTS * slots


_Cause = tuple[Symptom, dict[str, float], dict[str, str]]


def _cause(evidence: Evidence, usage: Consumption) -> _Cause:
    """Return what the others waited for: within the server, before what it asks."""
    outgoing = outgoing_of(evidence)
    asked = _asked(evidence, usage, outgoing) if outgoing else None
    return _shown(evidence, usage) or asked or _counted(evidence, usage, outgoing)


def _shown(evidence: Evidence, usage: Consumption) -> _Cause | None:
    """Return what its time, or that of its threads, shows."""
    spaced_ns = _spaced_ns(evidence, usage)
    if spaced_ns is not None:
        return PACED, {"spaced_ns": spaced_ns}, {}
    if _is_blocked(evidence, usage):
        return LOOP_BLOCKED, {}, _blocks(usage)
    if _polls(usage):
        return LOCK_POLLED, {"slept": usage.time[ThreadState.SLEEP]}, {}
    return None


def _counted(evidence: Evidence, usage: Consumption, outgoing: OwnConnections | None) -> _Cause:
    """Return what is as large as the number of requests that it works on."""
    at_a_time = usage.at_a_time or 0.0
    if _ONE_EACH[0] <= at_a_time <= _ONE_EACH[1]:
        waits_for = {"waits": ThreadState.FILE_LOCK.value} if ThreadState.FILE_LOCK in usage.time else {}
        return ONE_AT_A_TIME, {}, waits_for
    if _fills_threads(evidence, usage) or _is_named_pool(evidence, at_a_time):
        return POOL_THREADS, {}, _blocks(usage)
    if processes := _filled_processes(evidence, usage):
        numbers = {"processes": float(processes), "unread": evidence.unread or 0.0}
        return PROCESSES_BUSY, numbers, {}
    if outgoing is not None and _is_near(outgoing.at_port, at_a_time):
        numbers = {"connections": float(round(outgoing.at_port)), "port": float(outgoing.port)}
        return POOL_SMALL, numbers, {}
    return FEW_AT_A_TIME, {}, {}


def _spaced_ns(evidence: Evidence, usage: Consumption) -> float | None:
    """Return how long a request takes that is far from others, where that is much less; None: it is not.

    Of a server that carries the same alone as under load a little less is enough: one that follows another at
    once waits for its turn.
    """
    counters, at_pace = evidence.trial.counters, abs((usage.at_a_time or 0.0) - 1.0) <= _AT_PACE
    spaced_ns, most = counters.get("alone.spaced_ns"), _MOST_SPACED_AT_PACE if at_pace else _MOST_SPACED
    if spaced_ns is None or spaced_ns > most * counters["alone.service_ns"]:
        return None
    return float(spaced_ns)


def _fills_threads(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether it has no fixed number of threads, and as many of them as it works on requests are in a
    call, while few wait for another one: those of a pool do that while idle, or want what others hold.
    """
    at_a_time, time = usage.at_a_time or 0.0, thread_time(evidence.trial.counters)
    threads = _threads(evidence)
    calling = threads * sum(time.get(state, 0.0) for state in _CALLS)
    waiting = threads * sum(time.get(state, 0.0) for state in _LOCKS)
    enough = calling >= max(_LEAST_CALLING * at_a_time, _LEAST_WAITING)
    return usage.slots is None and enough and waiting <= _MOST_IDLE * at_a_time


def _is_named_pool(evidence: Evidence, at_a_time: float) -> bool:
    """Return whether as many threads of one name, with a number each, used CPU as it works on requests."""
    names = (_NUMBERED.fullmatch(one.name) for one in evidence.threads)
    pools = Counter(one[1] for one in names if one)
    return any(count > 1 and _is_near(count, at_a_time) for count in pools.values())


def _filled_processes(evidence: Evidence, usage: Consumption) -> int | None:
    """Return how many processes of one thread worked, where these are as many as it worked on requests and
    the others lay unread; None: they are not. A master does little beside them.
    """
    at_a_time, unread = usage.at_a_time or 0.0, evidence.unread or 0.0
    if usage.slots is not None or unread < _MOSTLY_UNREAD * (usage.in_flight - at_a_time):
        return None
    rows: dict[object, list[ProcessRow]] = {}
    for sample in evidence.samples:
        for row in sample.processes:
            if row.role in SERVER_ROLES:
                rows.setdefault(row.identity, []).append(row)
    used = {key: each[-1].cpu_ns - each[0].cpu_ns for key, each in rows.items()}
    least = _MASTER * max(used.values(), default=0)
    working = [each for key, each in rows.items() if used[key] > least]
    if len(working) < _LEAST_PROCESSES or any(row.threads > 1 for each in working for row in each):
        return None
    return len(working) if _is_near(len(working), at_a_time) else None


def _asked(evidence: Evidence, usage: Consumption, outgoing: OwnConnections) -> _Cause | None:
    """Return what it asks as the cause: it computes for as many as are worked on, or has more questions."""
    at_a_time, counters = usage.at_a_time or 0.0, evidence.trial.counters
    used = {
        role: counters[f"asked.{role}.cpu_ns"] - counters.get(f"asked.{role}.idle_ns", 0)
        for role in SERVICE_ROLES
        if f"asked.{role}.cpu_ns" in counters
    }
    busiest = max(used, key=lambda role: used[role], default=None)
    connects = opened_to_others(evidence) / usage.done
    cores = used[busiest] / (evidence.length_ns or 1) if busiest else 0.0
    all_of_one = cores >= _ONE_CPU and (connects >= _EACH or _fills_machine(evidence))
    if busiest and (cores >= _COMPUTES * max(at_a_time, 1.0) or all_of_one):
        numbers, names = {"cores": cores, "cpu_ns": used[busiest] / usage.done}, {"role": f"its {busiest}"}
        if connects >= _EACH:
            return PEER_CONNECTS, numbers | {"connects": connects}, names
        return PEER_COMPUTES, numbers, names
    # Connections that always wait, for events of a queue for example, are few beside the requests.
    working = min(usage.in_flight, usage.slots or usage.in_flight)
    # Of a question right after a reply the kernel's clock, in ticks, says nothing: threads do.
    pool = pool_of(evidence)
    due = max(outgoing.waits, pool.busy * pool.connections if pool else 0.0)
    if due >= max(_LEAST_WAITING * max(at_a_time, 1.0), _MOST_DUE * working):
        numbers = {"due": due, "port": float(outgoing.waits_port or outgoing.port)}
        return PEER_FULL, numbers, {}
    return None


def _fills_machine(evidence: Evidence) -> bool:
    """Return whether hardly a CPU of the machine was idle."""
    idle_ns, busy_ns = (evidence.trial.counters.get(f"cpus.{name}_ns", 0) for name in ("idle", "busy"))
    return busy_ns > 0 and idle_ns <= _MOST_IDLE_CPUS * (idle_ns + busy_ns)


def _polls(usage: Consumption) -> bool:
    """Return whether its workers and threads sleep for most of their time, between tries."""
    return bool(usage.slots) and usage.time.get(ThreadState.SLEEP, 0.0) >= _MOSTLY


def _is_blocked(evidence: Evidence, usage: Consumption) -> bool:
    """Return whether it works on one request at a time in each process, and others lie unread; or whether it
    is an event loop that hardly waits for events.
    """
    counters, processes = evidence.trial.counters, evidence.facts.of_server.processes or 1
    least, most = (share * processes for share in _ONE_EACH)
    if usage.slots is not None or not least <= (usage.at_a_time or 0.0) <= most:
        return False
    if (evidence.unread or 0.0) >= max(_LEAST_UNREAD * usage.in_flight, 0.5):
        return True
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
    length_ns = evidence.length_ns
    return evidence.trial.counters.get("threads.alive_ns", 0) / length_ns if length_ns else 0.0


def _is_near(size: float, count: float) -> bool:
    return abs(size - count) <= _NEAR * count

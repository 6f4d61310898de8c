"""D01 to D04: connections that found no room in the listen queue, or were lost on their way there.

D01: connections arrived when the listen queue was full.

*Source*: the kernel's LINUX_MIB_LISTENOVERFLOWS, net/ipv4/tcp_ipv4.c, tcp_v4_syn_recv_sock: a completed
handshake is dropped when the accept queue is full. The client repeats its SYN after 1, 3 and 7 s. The
counter is of a network namespace: on the host's own network, of every server of the machine. Each listener
has a queue of its own, which holds one connection more than its limit.

D02: requests to connect were dropped although the listen queue had room.

*Source*: kernel, Documentation/networking/snmp_counter.rst: every ListenOverflow is a ListenDrop too, so
the rest was dropped for another reason: no memory, no route, a full queue of half-open connections.

D03: the kernel gave a smaller listen queue than the server asked for, and it had no room.

*Source*: listen(2): the kernel silently cuts the backlog to net.core.somaxconn.

D04: clients waited for a lost request to connect: 1, 3 or 7 s, the steps of its repetition.

Where the kernel counted what it dropped, D01 and D02 say where. Elsewhere, as on the host's network or on the
way, the times of connects show it all the same.
*Source*: tcp(7), tcp_syn_retries; RFC 6298, section 2: the first timeout is 1 s, each next one twice as long.
"""

from collections.abc import Sequence

from prony.core.units import SECOND_NS
from prony.diagnosis.consumption import opened_by_others
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import CONNECT_WAITS, LONGER_QUEUE
from prony.figures.accept_queue import (
    AcceptQueue,
    Starvation,
    accept_queues,
    are_many,
    entrance,
    overflows_of,
    starvation,
)
from prony.figures.generator import closes_each
from prony.figures.latency import Times, read_distribution
from prony.model.address import AddressKind
from prony.model.observation import Sample
from prony.model.recording import Distribution

RAISE_BACKLOG = Advice(
    "raise the backlog",
    "raise the server's backlog (and net.core.somaxconn if lower), or its number of workers",
    turned=(Turned.BACKLOG,),
)
QUEUE_OVERFLOWED = Symptom(
    "listen queue overflowed",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LONGER_QUEUE, RAISE_BACKLOG),
    "{overflows:n connection} arrived when the listen queue{limit: of}{process: of the} was full: "
    "their clients wait {retries}{without_reply:unanswered}",
    traits=Traits(cause="a full listen queue", turned_away="overflows"),
)
"""``overflows``: connections; ``limit`` of the queue, and the name ``process`` that has it, if known;
    ``without_reply``: connections that it turned away again and again, where there are any."""
SOME_QUEUE_OVERFLOWED = Symptom(
    "a listen queue overflowed",
    Meaning(Bearing.ADDS, CONNECT_WAITS, LONGER_QUEUE, RAISE_BACKLOG),
    "{overflows:n connection} on this machine arrived when a listen queue was full, perhaps this "
    "server's{limit: of}{process: of the}: their clients wait {retries}",
)
"""As before, but the queue may have been another server's."""
QUEUE_FULL = Symptom(
    "listen queue full",
    Meaning(Bearing.ADDS, CONNECT_WAITS, LONGER_QUEUE, RAISE_BACKLOG),
    "the listen queue{process: of the} was full: {longest:n connection} at a limit of {limit}, the "
    "next one would have been dropped",
)
"""``longest`` at a ``limit``, of the name ``process``."""


# Share of the samples: where more of them find room in the queue, the server keeps up with it.
_MOST_FULL = 0.5
# Of the connections that were answered: those it has taken may be a few more, on their first request.
_MOST_TAKEN = 1.1
# So often at most one connect meets a full queue. *Source*: tcp(7), tcp_syn_retries: 6.
_TRIES = 7


def full_queues(evidence: Evidence) -> list[AcceptQueue]:
    """Return the subject's accept queues that a sample of the window shows full; of one that overflows a
    sample may show it one short of that.
    """
    queues = _queues(evidence)
    full = [queue for queue in queues if queue.full]
    if full or not overflows_of(evidence.trial):
        return full
    return _nearly_full(queues)


def overflowed_queue(evidence: Evidence) -> AcceptQueue | None:
    """Return the subject's queue that had no room: the one that a sample shows full, else the one that
    overflowed unseen, which is known where it is the only one; None: nobody knows which.

    A burst fills a queue between two looks. Where another was nearly full too, either may have overflowed;
    and unseen any listener of the subject may, such as that of a database.
    """
    queues, full = _queues(evidence), full_queues(evidence)
    if full:
        return full[0] if len(full) == len(_nearly_full(queues)) == 1 else None
    alone = len(queues) == 1 and _has_one_queue(evidence) and overflows_of(evidence.trial) > 0
    return queues[0] if alone and _is_own(evidence, full) else None


def _has_one_queue(evidence: Evidence) -> bool:
    """Return whether the server listens alone: what overflowed in its network can be its queue only. Where
    nobody read who listens, a subject without frontend and services does.
    """
    facts = evidence.facts
    found = {one.process for one in evidence.trial.facts.listeners if one.kind is not AddressKind.UNIX}
    known = found | {*accept_queues(evidence.samples)}
    return facts.frontend is None and (len(known) == 1 or not (known or facts.services))


def _nearly_full(queues: Sequence[AcceptQueue]) -> list[AcceptQueue]:
    """Return those that may have been full between two looks: a sample shows them one short of that."""
    return [queue for queue in queues if queue.longest >= max(queue.limit, 1)]


def _queues(evidence: Evidence) -> list[AcceptQueue]:
    return list(accept_queues(evidence.samples).values())


def listen_queue(evidence: Evidence) -> list[Finding]:
    """Return a finding when the kernel counted overflows in the window, or a sample shows a full queue."""
    overflows = overflows_of(evidence.trial)
    full = full_queues(evidence)
    if overflows > 0:
        return [_overflowed(evidence, overflows, full)]
    return [_full(queue) for queue in full]


def turned_away(evidence: Evidence) -> int:
    """Return how many connections of a closed loop had no reply because a full queue turned them away: their
    clients wait to try again. 0: no more than a tenth of all, or nobody knows; or kept connections hold the
    server, so that nobody empties its queue.

    *Definition*: those that were not established when most were, accepted or not; at most as many as had no
    reply, and as the kernel counted overflows of the server's own queue. Either each request has a connection
    of its own, or the queue had room at most looks, and all connections that the server had taken were
    answered.
    *Assumptions*: where connections are closed after each reply, looks see the most of them that there are.
    """
    found, recording = starvation(evidence.trial.recording), evidence.trial.recording
    if found is None or recording is None or not _is_own(evidence, full_queues(evidence)):
        return 0
    for_each = not evidence.cell.workload.request.keep_alive or closes_each(recording)
    if not (for_each or _is_emptied(evidence, found)):
        return 0
    without = found.connections - found.served
    outside = min(_outside(evidence, found), without, overflows_of(evidence.trial))
    return outside if are_many(outside, found.connections) else 0


def _outside(evidence: Evidence, found: Starvation) -> int:
    """Return how many of the connections no look found established; 0 where nobody looked."""
    window = evidence.samples
    name = f"established.{entrance(window)}"
    most = max((one.gauges[name] for one in window if name in one.gauges), default=found.connections)
    return max(found.connections - most, 0)


def _is_own(evidence: Evidence, full: Sequence[AcceptQueue]) -> bool:
    """Return whether the overflows are those of the subject's queues: on the host's network only where a
    sample shows one of these full, or hardly anybody else connected, so that no other queue met so many.
    """
    if not evidence.is_on_host or any(queue.full for queue in full):
        return True
    others = opened_by_others(evidence)
    return others is not None and overflows_of(evidence.trial) > _TRIES * others


def _is_emptied(evidence: Evidence, found: Starvation) -> bool:
    window = evidence.samples
    process = entrance(window)
    names = (f"listen.{process}.queued", f"listen.{process}.limit")
    looks = [(one.gauges[names[0]], one.gauges[names[1]]) for one in window if {*names} <= one.gauges.keys()]
    full = sum(queued >= limit for queued, limit in looks)
    taken = max(_taken(window, process), default=0)
    return bool(looks) and full <= _MOST_FULL * len(looks) and 0 < taken <= _MOST_TAKEN * found.served


def _taken(window: Sequence[Sample], process: str) -> list[int]:
    """Return how many connections the server had taken from its queue, at each look."""
    established, queued = f"established.{process}", f"listen.{process}.queued"
    return [
        one.gauges[established] - one.gauges.get(queued, 0) for one in window if established in one.gauges
    ]


def _overflowed(evidence: Evidence, overflows: int, full: list[AcceptQueue]) -> Finding:
    ours = _is_own(evidence, full)
    limit, process = _limit(evidence)
    sure = Confidence.CERTAIN if full or _has_one_queue(evidence) else Confidence.LIKELY
    return Finding(
        QUEUE_OVERFLOWED if ours else SOME_QUEUE_OVERFLOWED,
        sure if ours else Confidence.POSSIBLE,
        {
            "overflows": overflows,
            **({} if limit is None else {"limit": limit}),
            **({"without_reply": without} if ours and (without := turned_away(evidence)) else {}),
        },
        {} if process is None else {"process": process},
    )


def _full(queue: AcceptQueue) -> Finding:
    return Finding(
        QUEUE_FULL,
        Confidence.CERTAIN,
        {"longest": queue.longest, "limit": queue.limit},
        _other(queue.process),
    )


def _limit(evidence: Evidence) -> tuple[int | None, str | None]:
    """Return the limit and the owner of the queue, as the kernel has it, else the server's own setting.

    The server's own queue has no name.
    """
    if (queue := overflowed_queue(evidence)) is not None:
        return queue.limit, _other(queue.process).get("process")
    facts = evidence.facts
    # The kernel counts all queues together.
    return facts.declared.backlog if _has_one_queue(evidence) else None, None


def _other(process: str) -> dict[str, str]:
    return {} if process == "server" else {"process": process}


# --- D02 --------------------------------------------------------------------------------------------------

RAISE_SYN_BACKLOG = Advice("raise the queue of half-open connections", "raise {syn_backlog}")
HALF_OPEN_QUEUE_FULL = Symptom(
    "queue of half-open connections full",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LONGER_QUEUE, RAISE_SYN_BACKLOG),
    "{dropped:n request} to connect dropped although the listen queue had room: the queue of "
    "half-open connections was full",
    traits=Traits(cause="the queue of half-open connections", turned_away="dropped"),
)
"""``dropped`` requests to connect, ``half_open``: those that the kernel counts under this reason."""
CONNECTS_DROPPED = Symptom(
    "connects dropped",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LONGER_QUEUE),
    "{dropped:n request} to connect dropped although the listen queue had room: the kernel lacked "
    "memory or a route",
    traits=Traits(cause="dropped connects", turned_away="dropped"),
)
"""``dropped`` requests to connect."""


def dropped_connects(evidence: Evidence) -> list[Finding]:
    """Return a finding when the kernel dropped more requests to connect than overflows explain."""
    counters = evidence.trial.counters
    if "ListenDrops" not in counters or "ListenOverflows" not in counters:
        return []
    half_open = counters.get("TCPReqQFullDrop", 0)
    others = max(counters["ListenDrops"] - counters["ListenOverflows"], 0)
    dropped = max(others, half_open)
    if dropped <= 0:
        return []
    ours = not evidence.is_on_host
    numbers = {"dropped": dropped, "half_open": half_open}
    sure = Confidence.LIKELY if ours else Confidence.POSSIBLE
    return [Finding(HALF_OPEN_QUEUE_FULL if half_open else CONNECTS_DROPPED, sure, numbers)]


# --- D03 --------------------------------------------------------------------------------------------------

RAISE_SOMAXCONN = Advice(
    "raise somaxconn", "raise net.core.somaxconn: `sysctl -w net.core.somaxconn={asked:d}`"
)
BACKLOG_CLIPPED = Symptom(
    "backlog clipped",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LONGER_QUEUE, RAISE_SOMAXCONN),
    "it asked for a listen queue of {asked:d}, and the kernel gave {given:d}",
    traits=Traits(cause="a listen queue that the kernel cut short"),
)
"""``asked`` for, and ``given``."""


def clipped_backlog(evidence: Evidence) -> list[Finding]:
    """Return a finding when the server's listen queue, seen full or overflowed, was shorter than its
    setting.
    """
    asked = evidence.subject.facts.of_server.backlog if evidence.subject else None
    unseen = overflowed_queue(evidence)
    queues = (*full_queues(evidence), *(() if unseen is None else (unseen,)))
    given = next((queue.limit for queue in queues if queue.process == "server"), None)
    if asked is None or given is None or given >= asked:
        return []
    return [Finding(BACKLOG_CLIPPED, Confidence.CERTAIN, {"asked": asked, "given": given})]


# --- D04 --------------------------------------------------------------------------------------------------

CONNECTS_REPEATED = Symptom(
    "connects repeated",
    Meaning(Bearing.ADDS, CONNECT_WAITS, LONGER_QUEUE),
    "{share:.1%} of {connects:n connect} took {retries}: the first request was lost, and no queue "
    "here counted it",
    shared="connects took {retries}: the first request was lost, and no queue here counted it",
)
"""``share`` of the ``connects`` that took 1, 3 or 7 s."""


_STEPS_S = (1, 3, 7)
# What a connect takes besides, on a busy machine too.
_WIDTH = 0.05
_LEAST_SHARE, _LEAST_CONNECTS = 0.001, 20
_COUNTED = ("ListenOverflows", "ListenDrops", "TCPReqQFullDrop")


def connect_ladder(evidence: Evidence) -> list[Finding]:
    """Return a finding when connects took the times of a repeated request, and no queue counted a drop."""
    recording, counters = evidence.trial.recording, evidence.trial.counters
    times = read_distribution(recording.distributions.connect) if recording else None
    if times is None or times.count < _LEAST_CONNECTS or any(counters.get(name, 0) for name in _COUNTED):
        return []
    share = _share(times)
    if share < _LEAST_SHARE or not counters.get("TCPSynRetrans", 0):
        return []
    return [Finding(CONNECTS_REPEATED, Confidence.LIKELY, {"share": share, "connects": times.count})]


def may_be_a_ladder(found: Distribution | None) -> bool:
    """Return whether this rule could ask for these times: a fifth of what it asks for."""
    times = read_distribution(found)
    return times is not None and times.count > 0 and _share(times) >= _LEAST_SHARE / 5


def _share(times: Times) -> float:
    """Return the share of connects that took one of the steps."""
    if times.histogram is None:
        return 0.0
    edges = [(step * SECOND_NS, round(step * (1 + _WIDTH) * SECOND_NS)) for step in _STEPS_S]
    below = times.histogram.count_below
    return sum(below(last) - below(first) for first, last in edges) / times.count

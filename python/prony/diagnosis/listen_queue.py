"""D01: connections arrived when the listen queue was full.

*Source*: the kernel's LINUX_MIB_LISTENOVERFLOWS, net/ipv4/tcp_ipv4.c, tcp_v4_syn_recv_sock: a completed
handshake is dropped when the accept queue is full. The client repeats its SYN after 1, 3 and 7 s. The
counter is of a network namespace: on the host's own network, of every server of the machine. Each listener
has a queue of its own, which holds one connection more than its limit.
"""

from collections.abc import Sequence

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
from prony.model.address import AddressKind
from prony.model.observation import Sample

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

"""D09: the server has as many connections open as it may, and takes no more: the others wait in its queue.

*Source*: waitress/adjustments.py, connection_limit; gunicorn/workers/gthread.py, worker_connections; what is
taken: sock_diag(7), connections at its address less those that wait to be accepted.
"""

from collections.abc import Sequence

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Concerns, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned, declared_entry
from prony.diagnosis.shared import FEWER_CONNECTIONS, OF_THE_SERVED
from prony.figures.accept_queue import entrance, starvation
from prony.model.observation import Sample

RAISE_CONNECTION_CAP = Advice(
    "raise the cap of connections",
    "raise the number of connections that it may have open, or put a proxy in front",
    turned=(Turned.CONNECTIONS,),
)
CONNECTION_CAP = Symptom(
    "connections at a cap",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS, RAISE_CONNECTION_CAP),
    "it had {cap:n connection} open of {connections}, no more and no fewer, and {waiting} or more "
    "waited in its listen queue all the time: throughput and latency describe only those it took",
    traits=Traits(cause="its cap of open connections", concerns=Concerns.CLIENTS),
)
"""``cap``: how many it has open at most, of ``connections``; ``waiting``: those in its queue, always."""


# Of the cap: what a plateau may vary by, and how far what was served may be from it.
_FLAT = 0.01
_LEAST_LOOKS = 2
# Sockets of its own that a server counts as well.
_MOST_OF_ITS_OWN = 2


def connection_cap(evidence: Evidence) -> list[Finding]:
    """Return a finding when connections starve in the queue, while the server holds a number of others that
    never changes, serves all of these, and works on fewer at once.

    Certain: one of its settings says so many connections.
    """
    starved = starvation(evidence.trial.recording)
    if starved is None or not evidence.is_ok:
        return []
    taken, waiting = _taken(evidence.samples)
    if len(taken) < _LEAST_LOOKS:
        return []
    cap = max(taken)
    sure = _how_sure(evidence, cap)
    if sure is None or not (_alike(min(taken), cap) and _alike(starved.served, cap)):
        return []
    return [
        Finding(CONNECTION_CAP, sure, {"cap": cap, "waiting": waiting, "connections": starved.connections})
    ]


def _taken(window: Sequence[Sample]) -> tuple[list[int], int]:
    """Return how many connections it had taken at each look, and the fewest that waited; none where the queue
    was empty once, or several sockets share the address. Clients that gave up stay in the queue, and are no
    connections any more: looks at a longer queue say nothing.
    """
    process = entrance(window)
    names = (f"established.{process}", f"listen.{process}.queued", f"listen.{process}.sockets")
    looks = [[one.gauges.get(name) for name in names] for one in window]
    known = [
        (held, queued)
        for held, queued, sockets in looks
        if held is not None and queued is not None and sockets == 1
    ]
    shortest = min((queued for _, queued in known), default=0)
    return [held - queued for held, queued in known if shortest and _alike(queued, shortest)], shortest


def _how_sure(evidence: Evidence, cap: int) -> Confidence | None:
    """Return how sure it is that a cap keeps others out; None where its workers and threads may: each holds a
    connection, and each process may have accepted another one. Of a server whose workers nobody knows only
    its settings say.
    """
    declared = evidence.facts.declared
    if cap > (declared.slots or 0) and _is_set(evidence, cap):
        return Confidence.CERTAIN
    if declared.slots is None or cap <= declared.slots + (declared.processes or 1):
        return None
    return Confidence.LIKELY


def _is_set(evidence: Evidence, cap: int) -> bool:
    facts = evidence.facts
    settings = {**declared_entry(facts, "settings"), **evidence.cell.subject.settings}
    limits = [value for name, value in settings.items() if "connection" in name and type(value) is int]
    own = [one * (facts.declared.processes or 1) - cap for one in limits]
    return any(0 <= one <= _MOST_OF_ITS_OWN for one in own)


def _alike(count: int, cap: int) -> bool:
    return abs(count - cap) <= max(1, _FLAT * cap)

"""D02: requests to connect were dropped although the listen queue had room.

*Source*: kernel, Documentation/networking/snmp_counter.rst: every ListenOverflow is a ListenDrop too, so
the rest was dropped for another reason: no memory, no route, a full queue of half-open connections.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import CONNECT_WAITS, LONGER_QUEUE

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

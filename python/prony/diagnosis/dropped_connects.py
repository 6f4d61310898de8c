"""D02: requests to connect were dropped although the listen queue had room.

*Source*: kernel, Documentation/networking/snmp_counter.rst: every ListenOverflow is a ListenDrop as well, so
that the rest was dropped for another reason: no memory, no route, a full queue of half-open connections.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.model import Network

__all__ = ["dropped_connects"]


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
    ours = evidence.subject is None or evidence.subject.sandbox.network is not Network.HOST
    why = "the queue of half-open connections was full" if half_open else "for want of memory or a route"
    return [
        Finding(
            rule="D02",
            confidence=Confidence.LIKELY if ours else Confidence.POSSIBLE,
            sentence=f"{dropped} requests to connect were dropped with room in the listen queue: {why}",
            numbers={"dropped": dropped, "half_open": half_open},
            advice="raise net.ipv4.tcp_max_syn_backlog" if half_open else None,
        )
    ]

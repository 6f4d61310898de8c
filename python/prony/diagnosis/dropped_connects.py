"""D02: requests to connect were dropped although the listen queue had room.

*Source*: kernel, Documentation/networking/snmp_counter.rst: every ListenOverflow is a ListenDrop too, so
the rest was dropped for another reason: no memory, no route, a full queue of half-open connections.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model.sandbox import Network


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
    return [
        Finding(
            rule="D02",
            kind=Symptom.HALF_OPEN_QUEUE_FULL if half_open else Symptom.CONNECTS_DROPPED,
            confidence=Confidence.LIKELY if ours else Confidence.POSSIBLE,
            numbers={"dropped": dropped, "half_open": half_open},
            advice=Advice.RAISE_SYN_BACKLOG if half_open else None,
        )
    ]

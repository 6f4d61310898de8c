"""D03: the kernel gave a smaller listen queue than the server asked for, and it had no room.

*Source*: listen(2): the kernel silently cuts the backlog to net.core.somaxconn.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.listen_queue import full_queues, overflowed_queue
from prony.diagnosis.shared import CONNECT_WAITS, LONGER_QUEUE

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

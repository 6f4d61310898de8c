"""D12: the server closed each connection after one reply, though clients offered to keep it open.

Every request then pays for a connect, on both sides, and leaves a socket in TIME_WAIT with whoever closed.
*Source*: RFC 9112, section 9.3.
"""

from prony.analysis.generator import closes_each
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Concerns, Consequence, Meaning, Sentence, Symptom, Traits
from prony.diagnosis.shared import KEEP_ALIVE, KEPT_OPEN
from prony.model.trial import Ok

WITH_CONNECTS = Consequence("with connects", "CPU and latency of each request contain a connect")
CLOSED_AFTER_EACH = Symptom(
    "closed after each reply",
    Meaning(Bearing.ADDS, WITH_CONNECTS, KEPT_OPEN),
    Sentence(
        "it closed each connection after one reply: {reconnects:n connect} for {done:n request}",
        "it closed each connection after one reply: each request pays for a connect",
    ),
    Traits(concerns=Concerns.CLIENTS),
)
"""``reconnects``, for ``done`` requests."""


_LEAST_REPLIES = 20


def closed_after_each(evidence: Evidence) -> list[Finding]:
    """Return a finding when almost every valid reply was followed by a new connection in place of its own.

    Connections that ended with a failure do not count: of a time-out the generator closes them itself.
    """
    recording, offered = evidence.trial.recording, evidence.cell.workload.request.keep_alive
    if recording is None or not offered or not isinstance(evidence.trial.outcome, Ok):
        return []
    if recording.completed.ok < _LEAST_REPLIES or not closes_each(recording):
        return []
    return [
        Finding(
            rule="D12",
            kind=CLOSED_AFTER_EACH,
            confidence=Confidence.CERTAIN,
            numbers={"reconnects": recording.connections.reconnects or 0, "done": recording.completed.all},
            advice=KEEP_ALIVE,
            shareable=True,
        )
    ]

"""D12: the server closed each connection after one reply, though clients offered to keep it open.

Every request then pays for a connect, on both sides, and leaves a socket in TIME_WAIT with whoever closed.
*Source*: RFC 9112, section 9.3.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok

__all__ = ["closed_after_each"]

# Of the requests: the rest went over connections that were kept.
_LEAST_SHARE = 0.9
_LEAST_REQUESTS = 20


def closed_after_each(evidence: Evidence) -> list[Finding]:
    """Return a finding when almost every request needed a new connection in place of one that had ended."""
    recording, offered = evidence.trial.recording, evidence.cell.workload.request.keep_alive
    if recording is None or not offered or not isinstance(evidence.trial.outcome, Ok):
        return []
    again, done = recording.connections.reconnects or 0, recording.completed.all
    if done < _LEAST_REQUESTS or again < _LEAST_SHARE * done:
        return []
    return [
        Finding(
            rule="D12",
            kind=Symptom.CLOSED_AFTER_EACH,
            confidence=Confidence.CERTAIN,
            numbers={"reconnects": again, "done": done},
            advice=Advice.KEEP_ALIVE,
            shareable=True,
        )
    ]

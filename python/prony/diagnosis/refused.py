"""D38: server or app refuses the request as such: its form, its size, its host, its method.

The page was never made; what was measured is how quickly a request is refused.
*Source*: RFC 9110, 15.5 and 15.6; RFC 6585, 5.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom
from prony.diagnosis.shared import OF_ERRORS, RIGHT_REPLIES
from prony.figures.account import QUALIFIED_ERROR_RATIO

CHANGE_REQUEST = Advice(
    "change the request",
    "send such a request by hand, and change its Host (-H), its method (-m), its headers or its size",
)
REFUSED = Symptom(
    "requests refused",
    Meaning(Bearing.ADDS, OF_ERRORS, RIGHT_REPLIES, CHANGE_REQUEST),
    "it refused {refused:n request} of {done} as they were sent, most with status {status:d}",
)
"""``refused`` of ``done`` replies, most of them with ``status``."""


# Bad request, method not allowed, content too large, URI too long, misdirected request, upgrade required,
# header fields too large, method not implemented, HTTP version not supported.
_REFUSALS = (400, 405, 413, 414, 421, 426, 431, 501, 505)
# As many as make a reply a wrong one.
_LEAST = 5


def refused(evidence: Evidence) -> list[Finding]:
    """Return a finding when more than one reply in a thousand refuses the request as it was sent."""
    recording = evidence.trial.recording
    if recording is None or not evidence.is_ok:
        return []
    account = recording.account
    counts = {status: account.bad_status.get(str(status), 0) for status in _REFUSALS}
    count, done = sum(counts.values()), account.ok + sum(account.bad_status.values())
    if count < _LEAST or count <= QUALIFIED_ERROR_RATIO * done:
        return []
    numbers = {"refused": count, "done": done, "status": max(counts, key=lambda one: counts[one])}
    return [Finding(REFUSED, Confidence.LIKELY, numbers)]

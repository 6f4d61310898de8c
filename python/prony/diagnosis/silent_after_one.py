"""D11: each connection was answered once, and then neither closed nor answered again.

Server and clients differ in their notion of keep-alive: clients send the next request on a connection that
nobody reads any more, and wait until they give up.
*Source*: uwsgi issue 1804 and its `--http` router without `--http-keepalive`.
"""

from prony.diagnosis.clients import slow_share
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Concerns, Meaning, Symptom, Traits
from prony.diagnosis.shared import KEEP_ALIVE, KEPT_OPEN, OF_THE_SERVED

SILENT_AFTER_ONE = Symptom(
    "silent after one reply",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, KEPT_OPEN, KEEP_ALIVE),
    "no connection was answered a second time, and none was closed: {waited:n request} waited in vain",
    traits=Traits(cause="connections that it leaves after one reply", concerns=Concerns.CLIENTS),
)
"""Of ``served`` connections no one got a second reply; ``waited``: requests in vain."""


_LEAST_SHARE = 0.9
_LEAST_CONNECTIONS = 4
_MOST_SLOW = 0.5
# A server that is only slow leaves some connections without any reply, or takes long for the first ones too.
_MOST_WITHOUT_REPLY = 0.1


def silent_after_one(evidence: Evidence) -> list[Finding]:
    """Return a finding when no connection of a closed loop got a second reply, and its next request failed
    for want of one, though the first replies came soon and on nearly all of them.

    *Assumptions*: a fair server whose round of all connections is as long as the window answers each once
    too, but half of them only after a half of it.
    """
    recording = evidence.trial.recording
    if not evidence.cell.workload.request.keep_alive:
        return []
    answered = recording.connections.answered if recording and not recording.is_open else None
    if recording is None or answered is None or not evidence.is_ok:
        return []
    served = answered.connections - answered.without_reply
    waited = recording.account.count("timed_out") + recording.account.count("in_flight_at_end")
    if answered.max != 1 or served < _LEAST_CONNECTIONS or waited < _LEAST_SHARE * served:
        return []
    many = answered.without_reply > _MOST_WITHOUT_REPLY * answered.connections
    if many or slow_share(recording) > _MOST_SLOW:
        return []
    return [Finding(SILENT_AFTER_ONE, Confidence.LIKELY, {"served": served, "waited": waited})]

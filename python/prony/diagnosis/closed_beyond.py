"""D48: the server closes connections beyond a number at once, before it reads or answers their request.

nginx does so where `worker_connections` are used up, and says so in its log. *Source*: nginx,
ngx_get_connection; sock_diag(7) for the open ones.
"""

import re
from statistics import median_low

from prony.diagnosis.connection_cap import RAISE_CONNECTION_CAP
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Concerns, Meaning, Symptom, Traits
from prony.diagnosis.shared import FEWER_CONNECTIONS, OF_ERRORS
from prony.figures.accept_queue import accept_queues, entrance, overflows_of
from prony.figures.resources import turnover
from prony.model.workload import ClosedLoop

CLOSED_BEYOND = Symptom(
    "closes connections beyond a number",
    Meaning(Bearing.LIMITS, OF_ERRORS, FEWER_CONNECTIONS, RAISE_CONNECTION_CAP),
    "{share:.0%} of its requests had their connection closed without a reply, and it held "
    "{held:n connection} of {connections:.0f} all the time: it closes what comes beyond",
    shared="most of its requests had their connection closed without a reply, and it held few connections "
    "all the time: it closes what comes beyond",
    traits=Traits(cause="a cap of connections, beyond which it closes them", concerns=Concerns.CLIENTS),
)
"""``share`` of the requests; it ``held`` so many of ``connections``."""

# A listener that is full refuses or drops: that is no end of a connection that was accepted.
_ENDED = ("reset", "eof")
# Of the requests; looks; of what it holds: how much that may vary; of the connections, and how many of them
# make it unlikely that a look finds as many by chance.
_MOST, _LEAST_LOOKS, _FLAT, _FEWER, _LEAST_CONNECTIONS = 0.5, 3, 0.1, 0.8, 20
# Of the looks; lines of its log: single ones may be of its start.
_MOSTLY, _LEAST_LINES = 0.75, 20
_IN_LOG = re.compile(r"worker_connections are not enough")


def closed_beyond(evidence: Evidence) -> list[Finding]:
    """Return a finding when half of a closed loop's requests were ended without a reply, others answered, the
    server held about the same number of connections at most looks, clearly fewer than there are, its queue
    had room, and no worker died.

    Certain: its log says so, again and again. Of fewer than twenty connections only that shows it.
    """
    recording, loop = evidence.trial.recording, evidence.cell.workload.loop
    if recording is None or not isinstance(loop, ClosedLoop) or not evidence.is_ok:
        return []
    ended = sum(recording.account.others.get(name) or 0 for name in _ENDED)
    if not recording.account.ok or ended <= _MOST * recording.completed.all or _explained(evidence):
        return []
    is_logged = len(_IN_LOG.findall(evidence.trial.log.text)) >= _LEAST_LINES
    held = _held(evidence)
    if held is None or held > _FEWER * loop.connections:
        return []
    if loop.connections < _LEAST_CONNECTIONS and not is_logged:
        return []
    sure = Confidence.CERTAIN if is_logged else Confidence.LIKELY
    numbers = {"share": ended / recording.completed.all, "held": held, "connections": loop.connections}
    return [Finding(CLOSED_BEYOND, sure, numbers)]


def _held(evidence: Evidence) -> int | None:
    """Return how many connections it had, where that is about the same number at three of four looks: one
    finds some that are about to be closed.
    """
    name = f"established.{entrance(evidence.samples)}"
    held = [one.gauges[name] for one in evidence.samples if name in one.gauges]
    middle = median_low(held) if held else 0
    alike = sum(abs(one - middle) <= max(1, _FLAT * middle) for one in held)
    return middle if middle and len(held) >= _LEAST_LOOKS and alike >= _MOSTLY * len(held) else None


def _explained(evidence: Evidence) -> bool:
    """Return whether a worker ended in the window, which takes its connections along, or a queue was full."""
    ended = any(one.restarts or one.lost for one in turnover(evidence.samples).values())
    full = any(one.longest >= one.limit for one in accept_queues(evidence.samples).values())
    return ended or full or overflows_of(evidence.trial) > 0

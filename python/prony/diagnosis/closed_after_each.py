"""D12: the server closed each connection after one reply, though clients offered to keep it open.

Every request then pays for a connect, on both sides, and leaves a socket in TIME_WAIT with whoever closed.
*Source*: RFC 9112, section 9.3.
"""

from prony.core.units import MICROSECOND_NS
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Concerns, Consequence, Meaning, Symptom, Traits
from prony.diagnosis.shared import FULL_CPU, KEEP_ALIVE, KEPT_OPEN
from prony.figures.generator import closes_each

WITH_CONNECTS = Consequence("with connects", "CPU and latency of each request contain a connect")
CLOSED_AFTER_EACH = Symptom(
    "closed after each reply",
    Meaning(Bearing.ADDS, WITH_CONNECTS, KEPT_OPEN, KEEP_ALIVE),
    "it closed each connection after one reply: {reconnects:n connect} for {done:n request}",
    shared="it closed each connection after one reply: each request pays for a connect",
    traits=Traits(concerns=Concerns.CLIENTS),
)
"""``reconnects``, for ``done`` requests."""
CONNECTS_FILL_CPU = Symptom(
    "connects fill its CPU",
    Meaning(Bearing.LIMITS, WITH_CONNECTS, KEPT_OPEN, KEEP_ALIVE),
    "it closed each connection after one reply: {reconnects:n connect} for {done:n request} of "
    "{page_cpu_ns:duration} of CPU each, of which a connect is a large part",
    shared="it closed each connection after one reply, and connects are a large part of what fills its CPU",
    traits=Traits(cause="the connects that it makes necessary", concerns=Concerns.CLIENTS),
)
"""As before; ``page_cpu_ns``: its CPU time for a valid reply."""


_LEAST_REPLIES = 20
# Node.js needed 186 us for a page with a connect here, and 62 us without.
_CHEAP_NS = 200 * MICROSECOND_NS


def closed_after_each(evidence: Evidence) -> list[Finding]:
    """Return a finding when almost every valid reply was followed by a new connection in place of its own.

    Connections that ended with a failure do not count: of a time-out the generator closes them itself.
    """
    recording, offered = evidence.trial.recording, evidence.cell.workload.request.keep_alive
    if recording is None or not offered or not evidence.is_ok:
        return []
    if recording.completed.ok < _LEAST_REPLIES or not closes_each(recording):
        return []
    page_cpu_ns = _of_full_cpu(evidence)
    more = {} if page_cpu_ns is None else {"page_cpu_ns": page_cpu_ns}
    numbers = {"reconnects": recording.connections.reconnects or 0, "done": recording.completed.all, **more}
    sure = Confidence.LIKELY if more else Confidence.CERTAIN
    return [Finding(CONNECTS_FILL_CPU if more else CLOSED_AFTER_EACH, sure, numbers)]


def _of_full_cpu(evidence: Evidence) -> float | None:
    """Return the CPU time for a valid reply, where a connect is a large part of it, and the CPU is full; else
    None.
    """
    usage = consumption_of(evidence)
    if usage is None or usage.page_cpu_ns is None or usage.page_cpu_ns > _CHEAP_NS:
        return None
    full = max(usage.shares.get(one, 0.0) for one in (Resource.CPU, Resource.CORES)) >= FULL_CPU
    return usage.page_cpu_ns if full else None

"""D35: all connections of the server to others, a database for example, were waited on all the time.

What it asks is then its limit, or how many connections it has to ask with.
*Source*: Little's law.
"""

from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.pool import pool_of
from prony.model.trial import Ok

LEAST_BUSY_POOL = 0.6
"""Of the time of the connections to others: threads do something between two waits for one."""

# Of the CPUs' time; requests in flight over those connections.
_MOST_CPU, _LEAST_WAITING = 0.7, 1.2


def downstream(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads waited for 60 % of the time of its connections to others, more requests
    were open than it has of these, and it had CPUs to spare.
    """
    usage, pool = consumption_of(evidence), pool_of(evidence)
    if usage is None or pool is None:
        return []
    if pool.busy < LEAST_BUSY_POOL or usage.shares.get(Resource.CPU, 1.0) > _MOST_CPU:
        return []
    if usage.in_flight < _LEAST_WAITING * pool.connections or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D35",
            kind=Symptom.DOWNSTREAM_BUSY,
            confidence=Confidence.LIKELY,
            numbers={"connections": round(pool.connections), "share": pool.busy, "port": pool.port},
            advice=Advice.RAISE_POOL,
            shareable=True,
        )
    ]

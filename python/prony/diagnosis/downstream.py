"""D35: all connections of the server to others, a database for example, were waited on all the time.

What it asks is then its limit, or how many connections it has to ask with. Where each of its workers and
threads has a connection of its own, more of these are more connections (D17); where it is known how many
requests it worked on, that says more (D43).
*Source*: Little's law.
"""

from prony.diagnosis.consumption import Resource, consumption_of, pool_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.few_at_a_time import has_few, is_known
from prony.diagnosis.kinds import Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_THE_WAITING, RAISE_POOL

LARGER_POOL = Experiment("a larger pool", "measure with twice the connections to others; throughput rises")
DOWNSTREAM_BUSY = Symptom(
    "waited for another server",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, LARGER_POOL, RAISE_POOL),
    "its {connections:n connection} to others (port {port:d}) waited for replies {share:.0%} of the "
    "time, and more requests were open",
    shared="its connections to others waited for replies all the time, and more requests were open",
    traits=Traits(cause="what it asks of others", closely=Closely.WAITS),
)
"""``connections`` to others, on average busy ``share`` of the time; ``port``: of the busiest peer."""


LEAST_BUSY_POOL = 0.6
"""Of the time of the connections to others: threads do something between two waits for one."""

# Of the CPUs' time; requests in flight over those connections.
_MOST_CPU, _LEAST_WAITING = 0.7, 1.2
_MOST_OF_SLOTS = 0.9


def downstream(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads waited for 60 % of the time of its connections to others, more requests
    were open than it has of these, these are fewer than its threads, and it had CPUs to spare.
    """
    usage, pool = consumption_of(evidence), pool_of(evidence)
    if usage is None or pool is None or (is_known(evidence) and has_few(usage)):
        return []
    if usage.slots and pool.connections > _MOST_OF_SLOTS * usage.slots:
        return []
    if pool.busy < LEAST_BUSY_POOL or usage.shares.get(Resource.CPU, 1.0) > _MOST_CPU:
        return []
    if usage.in_flight < _LEAST_WAITING * pool.connections or not evidence.is_ok:
        return []
    numbers = {"connections": round(pool.connections), "share": pool.busy, "port": pool.port}
    return [Finding(DOWNSTREAM_BUSY, Confidence.LIKELY, numbers)]

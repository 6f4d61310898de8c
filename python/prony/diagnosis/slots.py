"""Whether all workers and threads of a trial had requests while its CPUs were idle: what several rules share.

*Source*: Little's law, N = X R: of the requests in flight as many are worked on as there are slots.
"""

from prony.diagnosis.consumption import Consumption, Resource
from prony.diagnosis.evidence import Confidence, Evidence
from prony.diagnosis.one_core import full_process

# The generator's requests in flight include what is on its way; only more of them than slots must queue.
_LEAST_WAITING, _CERTAIN_WAITING = 1.2, 1.5
# Of the CPUs' time, or of the cores that its processes can fill: between the two the waiting is not the only
# limit.
_MOST_CPU, _CERTAIN_CPU = 0.7, 0.5


def slots_busy(evidence: Evidence, usage: Consumption | None) -> Confidence | None:
    """Return how sure it is that more requests waited than can be worked on, with CPUs to spare that it can
    use; null: not. Threads that take turns on one core sleep until theirs comes: they wait for that.
    """
    if usage is None or not usage.slots or usage.contended or Resource.SLOTS not in usage.shares:
        return None
    if Resource.CPU not in usage.shares or full_process(evidence):
        return None
    cpu = max(usage.shares[Resource.CPU], usage.shares.get(Resource.CORES, 0.0))
    waiting = usage.in_flight / usage.slots
    if cpu > _MOST_CPU or waiting < _LEAST_WAITING:
        return None
    certain = cpu <= _CERTAIN_CPU and waiting >= _CERTAIN_WAITING
    return Confidence.CERTAIN if certain else Confidence.LIKELY

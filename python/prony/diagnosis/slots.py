"""Whether all workers and threads of a trial had requests while its CPUs were idle: what several rules share.

*Source*: Little's law, N = X R: of the requests in flight as many are worked on as there are slots.
"""

from prony.diagnosis.consumption import Consumption, Resource
from prony.diagnosis.evidence import Confidence

__all__ = ["slots_busy"]

# The generator's requests in flight include what is on its way; only more of them than slots must queue.
_LEAST_WAITING, _CERTAIN_WAITING = 1.2, 1.5
# Of the CPUs' time: between the two the waiting is not the only limit.
_MOST_CPU, _CERTAIN_CPU = 0.7, 0.5


def slots_busy(usage: Consumption | None) -> Confidence | None:
    """Return how sure it is that more requests waited than can be worked on, with CPUs to spare; null:
    not.
    """
    if usage is None or not usage.slots or usage.contended or Resource.SLOTS not in usage.shares:
        return None
    cpu, waiting = usage.shares.get(Resource.CPU), usage.in_flight / usage.slots
    if cpu is None or cpu > _MOST_CPU or waiting < _LEAST_WAITING:
        return None
    certain = cpu <= _CERTAIN_CPU and waiting >= _CERTAIN_WAITING
    return Confidence.CERTAIN if certain else Confidence.LIKELY

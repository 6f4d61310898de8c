"""D17: all workers and threads were busy while CPUs were idle: each waited for something.

*Source*: Little's law, N = X R: of the requests in flight as many are worked on as there are slots, and the
others wait. A slot's time for each request is then slots / X; what of it is no CPU is waiting: a sleep, a
lock, a database, a slow client.
"""

from prony.diagnosis.consumption import Consumption, Resource, consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok
from prony.units import SECOND_NS

__all__ = ["busy_slots"]

# The generator's requests in flight include what is on its way; only more of them than slots must queue.
_LEAST_WAITING = 1.2
_CERTAIN_WAITING = 1.5
# Of the CPUs' time: between the two the waiting is not the only limit.
_MOST_CPU = 0.7
_CERTAIN_CPU = 0.5


def busy_slots(evidence: Evidence) -> list[Finding]:
    """Return a finding when more requests waited than can be worked on at once, and the CPUs were idle."""
    usage = consumption_of(evidence)
    if usage is None or not usage.slots or Resource.SLOTS not in usage.shares:
        return []
    cpu, waiting = usage.shares.get(Resource.CPU), usage.in_flight / usage.slots
    if (
        not isinstance(evidence.trial.outcome, Ok)
        or cpu is None
        or cpu > _MOST_CPU
        or waiting < _LEAST_WAITING
    ):
        return []
    certain = cpu <= _CERTAIN_CPU and waiting >= _CERTAIN_WAITING
    return [
        Finding(
            rule="D17",
            kind=Symptom.SLOTS_BUSY,
            confidence=Confidence.CERTAIN if certain else Confidence.LIKELY,
            numbers=_numbers(usage, usage.slots, cpu),
            advice=Advice.ADD_THREADS,
            shareable=True,
        )
    ]


def _numbers(usage: Consumption, slots: int, cpu: float) -> dict[str, float]:
    held_ns = slots / usage.done_per_s * SECOND_NS
    return {"slots": slots, "in_flight": usage.in_flight, "cpu_share": cpu, "held_ns": held_ns}

"""D17: all workers and threads were busy while CPUs were idle: each waited for something.

*Source*: Little's law, N = X R: of the requests in flight as many are worked on as there are slots, and the
others wait. A slot's time for each request is then slots / X; what of it is no CPU is waiting: a sleep, a
lock, a database, a slow client.
"""

from prony.diagnosis.consumption import Consumption, Resource, consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.thread_time import ThreadState
from prony.model import Ok
from prony.units import SECOND_NS

__all__ = ["busy_slots"]

# The generator's requests in flight include what is on its way; only more of them than slots must queue.
_LEAST_WAITING = 1.2
_CERTAIN_WAITING = 1.5
# Of the CPUs' time: between the two the waiting is not the only limit.
_MOST_CPU = 0.7
_CERTAIN_CPU = 0.5
# Of the threads' time; threads that only accept or hand out requests are among them.
_MOSTLY = 0.5
_AWAKE = (ThreadState.RUNNING, ThreadState.READY)


def busy_slots(evidence: Evidence) -> list[Finding]:
    """Return a finding when more requests waited than can be worked on at once, and it had CPUs to spare."""
    usage = consumption_of(evidence)
    if usage is None or not usage.slots or usage.contended or Resource.SLOTS not in usage.shares:
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
            names=_waits(usage),
            advice=Advice.ADD_THREADS,
            shareable=True,
        )
    ]


def _waits(usage: Consumption) -> dict[str, str]:
    """Return what its threads wait for most of their time; empty where nothing stands out."""
    asleep = {state: share for state, share in usage.time.items() if state not in _AWAKE}
    most = max(asleep, key=lambda state: asleep[state], default=None)
    return {} if most is None or asleep[most] < _MOSTLY else {"waits": most.value}


def _numbers(usage: Consumption, slots: int, cpu: float) -> dict[str, float]:
    held_ns = slots / usage.done_per_s * SECOND_NS
    return {"slots": slots, "in_flight": usage.in_flight, "cpu_share": cpu, "held_ns": held_ns}

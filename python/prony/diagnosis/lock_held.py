"""D16: threads that had requests stood before one lock, while CPUs were idle.

Whoever holds it waits for something else: a sleep, a disk, another server. A pool's idle threads may stand at
one lock too, so all slots must have requests.
*Source*: proc(5), /proc/PID/task/TID/syscall: futex(2) and its address; Little's law.
"""

from prony.diagnosis.consumption import consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.slots import slots_busy
from prony.model.trial import Ok

# Of the looks at threads that wait for another thread; of all looks.
_LEAST_SAME, _LEAST_OF_ALL = 0.6, 0.3
_LEAST_LOOKS = 20


def lock_held(evidence: Evidence) -> list[Finding]:
    """Return a finding when all slots had requests, and most of its threads waited at one address."""
    counters = evidence.trial.counters
    at_one, looks = counters.get("threads.one_lock", 0), counters.get("threads.looks", 0)
    at_any = counters.get("threads.timed_wait", 0) + counters.get("threads.wait", 0)
    if looks < _LEAST_LOOKS or at_one < _LEAST_OF_ALL * looks or at_one < _LEAST_SAME * at_any:
        return []
    usage = consumption_of(evidence)
    if usage is None or slots_busy(evidence, usage) is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D16",
            kind=Symptom.LOCK_HELD,
            confidence=Confidence.LIKELY,
            numbers={"slots": usage.slots or 0, "in_flight": usage.in_flight, "same_share": at_one / looks},
            advice=Advice.SHORTEN_LOCK,
            shareable=True,
        )
    ]

"""D16: threads that had requests stood before one lock, while CPUs were idle.

Whoever holds it waits for something else: a sleep, a disk, another server. A pool's idle threads may stand at
one lock too, so all slots must have requests.
*Source*: proc(5), /proc/PID/task/TID/syscall: futex(2) and its address; Little's law.
"""

from prony.diagnosis.busy_slots import slots_busy
from prony.diagnosis.consumption import consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Meaning, Symptom, Traits
from prony.diagnosis.shared import NO_LOCK, OF_THE_WAITING

SHORTEN_LOCK = Advice(
    "shorten the lock", "hold the lock for less, or give each process its own: add processes, not threads"
)
LOCK_HELD = Symptom(
    "a lock that all want",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOCK, SHORTEN_LOCK),
    "its {slots:n worker or thread} had requests, and others waited, while {same_share:.0%} of the "
    "time of its threads went to one lock",
    shared="all its workers and threads had requests, and most of them waited for one lock",
    traits=Traits(cause="a lock", closely=Closely.WAITS),
)
"""As workers and threads busy; ``same_share``: of the looks at waiting threads, those at one lock."""


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
    if usage is None or slots_busy(evidence, usage) is None or not evidence.is_ok:
        return []
    numbers = {"slots": usage.slots or 0, "in_flight": usage.in_flight, "same_share": at_one / looks}
    return [Finding(LOCK_HELD, Confidence.LIKELY, numbers)]

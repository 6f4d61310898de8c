"""D34: the server's threads waited for the disk, most of the time in which they did anything.

A log that is written line by line to the disk is the usual cause. *Source*: proc(5), the system calls in
which threads sleep: fsync, fdatasync, pread and pwrite.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import OF_THE_WAITING
from prony.diagnosis.thread_time import ThreadState, thread_time

NO_LOG = Experiment(
    "without its log", "measure with its log off, or in memory; the tail of the latency falls"
)
LOG_LATER = Advice(
    "write logs later",
    "write its log to memory or to another process, and not to the disk line by line",
    turned=(Turned.LOG,),
)
DISK_WAITED = Symptom(
    "waited for the disk",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_WAITING, NO_LOG, LOG_LATER),
    "its threads waited for the disk for {share:.0%} of their time, most of what they did at all",
    shared="its threads mostly waited for the disk",
    traits=Traits(cause="the disk", closely=Closely.WAITS),
)
"""``share``: of its threads' time."""


# Of its threads' time; of the time in which they did not wait, for work or for a CPU.
_LEAST_SHARE, _LEAST_OF_WORK = 0.03, 0.5
_LEAST_LOOKS = 20
_AT_WORK = (
    *(ThreadState.RUNNING, ThreadState.FILE, ThreadState.SLEEP, ThreadState.CHILD, ThreadState.DOWNSTREAM),
)


def disk(evidence: Evidence) -> list[Finding]:
    """Return a finding when its threads, where they were at work, were mostly in a call on a file."""
    counters = evidence.trial.counters
    time = thread_time(counters)
    share = time.get(ThreadState.FILE, 0.0)
    work = sum(time.get(state, 0.0) for state in _AT_WORK)
    if (
        counters.get("threads.looks", 0) < _LEAST_LOOKS
        or share < _LEAST_SHARE
        or share < _LEAST_OF_WORK * work
    ):
        return []
    if not evidence.is_ok:
        return []
    return [Finding(DISK_WAITED, Confidence.LIKELY, {"share": share})]

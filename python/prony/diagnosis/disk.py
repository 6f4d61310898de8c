"""D34: the server's threads waited for the disk, most of the time in which they did anything.

A log that is written line by line to the disk is the usual cause. *Source*: proc(5), the system calls in
which threads sleep: fsync, fdatasync, pread and pwrite, locks on files.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.thread_time import ThreadState, thread_time
from prony.model.trial import Ok

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
    if not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D34",
            kind=Symptom.DISK_WAITED,
            confidence=Confidence.LIKELY,
            numbers={"share": share},
            advice=Advice.LOG_LATER,
            shareable=True,
        )
    ]

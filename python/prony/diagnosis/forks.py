"""D42: the server, or its app, starts a process or a program for each request.

*Source*: proc_stat(5), `processes`: forks of the whole machine since boot, threads too; what its threads do:
some wait for a child. CGI is the oldest form: RFC 3875.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.diagnosis.thread_time import ThreadState, thread_time
from prony.model import Ok

__all__ = ["forks"]

_LEAST_A_REQUEST = 0.7
_LEAST_REQUESTS = 20
# Of its threads' time. A server that starts a thread for each connection waits for none.
_LEAST_WAITING = 0.02


def forks(evidence: Evidence) -> list[Finding]:
    """Return a finding when there were almost as many forks as requests, and its threads wait for
    children.
    """
    counters, recording = evidence.trial.counters, evidence.trial.recording
    counted = counters.get("machine.forks", 0)
    done = recording.completed.all if recording else 0
    waiting = thread_time(counters).get(ThreadState.CHILD, 0.0)
    if done < _LEAST_REQUESTS or counted < _LEAST_A_REQUEST * done or waiting < _LEAST_WAITING:
        return []
    if not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D42",
            kind=Symptom.FORKED_FOR_EACH,
            confidence=Confidence.LIKELY,
            numbers={"forks": counted, "done": done},
            advice=Advice.KEEP_PROGRAMS,
            shareable=True,
        )
    ]

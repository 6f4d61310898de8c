"""D42: the server, or its app, starts a process or a program for each request.

*Source*: proc_stat(5), `processes`: forks of the whole machine since boot, threads too; what its threads do:
some wait for a child. CGI is the oldest form: RFC 3875.
"""

from collections import Counter
from collections.abc import Sequence

from prony.core.units import seconds
from prony.diagnosis.evidence import SERVER_ROLES, Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom
from prony.diagnosis.thread_time import ThreadState, thread_time
from prony.model.observation import Sample

WITH_A_PROGRAM = Consequence(
    "with a program for each", "CPU and latency of each request contain the start of a program"
)
NO_PROGRAM = Experiment(
    "no program for each request", "measure a page that starts none; CPU for a request falls"
)
KEEP_PROGRAMS = Advice(
    "keep programs running", "keep a program running and hand it the work, or do it in the process"
)
FORKED_FOR_EACH = Symptom(
    "a program for each request",
    Meaning(Bearing.ADDS, WITH_A_PROGRAM, NO_PROGRAM, KEEP_PROGRAMS),
    "it started {forks:n process} for {done:n request}",
    shared="it started a process for each request",
)
"""``forks`` for ``done`` requests."""


_LEAST_A_REQUEST = 0.7
_LEAST_REQUESTS = 20
# Of its threads' time. A server that starts a thread for each connection waits for none.
_LEAST_WAITING = 0.02
# Of the forks: where fewer connections arrived, their threads explain few of them.
_MOST_ARRIVED = 0.1
# The count is the machine's: a shell script or health checks beside the server start a few.
_LEAST_A_SECOND = 50
# In one look only, between the first and the last. Half of the looks at a child for each request, of 5 ms and
# 100 a second, find one.
_LEAST_CHILDREN = 2


def forks(evidence: Evidence) -> list[Finding]:
    """Return a finding when there were almost as many forks as requests, and its threads wait for
    children; or, for event loops learn of an end by a signal, nearly all came on connections that were kept.

    Possible: no thread waits for a child, and no look found one: they may be threads, or of another program.
    """
    counters, numbers = evidence.trial.counters, forks_for_each(evidence)
    if numbers is None:
        return []
    counted = numbers["forks"]
    waited, arrived = thread_time(counters).get(ThreadState.CHILD, 0.0), counters.get("PassiveOpens")
    waits, own = waited >= _LEAST_WAITING, _children(evidence.samples) >= _LEAST_CHILDREN
    kept = arrived is not None and arrived <= _MOST_ARRIVED * counted
    if not evidence.is_ok or (not waits and not (kept and (own or _are_many(counted, evidence.length_ns)))):
        return []
    return [Finding(FORKED_FOR_EACH, Confidence.LIKELY if own or waits else Confidence.POSSIBLE, numbers)]


def forks_for_each(evidence: Evidence) -> dict[str, int] | None:
    """Return the `forks` of the machine and the requests that were `done`, where there were almost as many;
    None: there were not, or few requests.
    """
    recording, counted = evidence.trial.recording, evidence.trial.counters.get("machine.forks", 0)
    done = recording.completed.all if recording else 0
    enough = done >= _LEAST_REQUESTS and counted >= _LEAST_A_REQUEST * done
    return {"forks": counted, "done": done} if enough else None


def _children(window: Sequence[Sample]) -> int:
    """Return how many processes of the server only one look found, neither the first nor the last."""
    looks = Counter(row.identity for one in window for row in one.processes if row.role in SERVER_ROLES)
    edges = {row.identity for one in (*window[:1], *window[-1:]) for row in one.processes}
    return sum(count == 1 and one not in edges for one, count in looks.items())


def _are_many(counted: int, length_ns: int | None) -> bool:
    return length_ns is not None and counted >= _LEAST_A_SECOND * seconds(length_ns)

"""D22, D37 and D42: processes that start and end while they are under load.

D22: workers were replaced while they were under load.

*Source*: the sampler, which knows a process by its number and start time. Servers replace workers that hang
(Gunicorn's `timeout`), that were killed, or that reached their number of requests (`max_requests`).

D37: the server was still starting workers while it was measured.

*Source*: the sampler; servers that start processes on demand, such as Apache's prefork and flup's.

D42: the server, or its app, starts a process or a program for each request.

*Source*: proc_stat(5), `processes`: forks of the whole machine since boot, threads too; what its threads do:
some wait for a child. CGI is the oldest form: RFC 3875.
"""

from collections import Counter
from collections.abc import Sequence

from prony.core.units import SECOND_NS, seconds
from prony.diagnosis.evidence import (
    SERVER_ROLES,
    Confidence,
    Evidence,
    Finding,
    carried_its_rate,
    lost_requests,
)
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import CHANGING, LONGER_WARM_UP
from prony.diagnosis.time_spent import ThreadState, thread_time
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.resources import Turnover, turnover
from prony.figures.validity import subject_cpu_ns
from prony.model.observation import Sample
from prony.model.recording import Recording

LONGER_LIVES = Experiment(
    "longer lives of workers", "measure without its limits on a worker's time and requests; none ends"
)
READ_LOG_FOR_LIMITS = Advice(
    "read its log for limits",
    "read its log; the server may limit the time or the requests of a worker",
    turned=(Turned.LIFE,),
)
READ_LOG = Advice("read its log", "read its log")
LIVE_LONGER = Advice(
    "let workers live longer",
    "let each worker answer many requests before it ends, or lift that limit",
    turned=(Turned.LIFE,),
)
RESTARTED = Symptom(
    "restarted",
    Meaning(Bearing.LIMITS_IDLE, CHANGING, LONGER_LIVES, READ_LOG_FOR_LIMITS),
    "a {role} was restarted {restarts:times} within the window: what it worked on may be lost",
    shared="a {role} was restarted within the window: what it worked on may be lost",
    traits=Traits(cause="workers that are replaced", steps_back=True),
)
"""``restarts`` of processes of the name ``role``."""
STARTS_COST = Symptom(
    "starts use its CPU",
    Meaning(Bearing.LIMITS, CHANGING, LONGER_LIVES, READ_LOG_FOR_LIMITS),
    "a {role} was restarted {restarts:times} within the window, and starts use its CPU: {cpu_ns:duration} a "
    "request, of which one alone takes {alone_ns:duration} in all",
    shared="its workers are restarted all the time, and their starts use its CPU",
    traits=Traits(cause="workers that are replaced"),
)
"""``restarts`` of processes of the name ``role``; ``cpu_ns`` a request, ``alone_ns``: how long one takes."""
LOST = Symptom(
    "lost",
    Meaning(Bearing.LIMITS_IDLE, CHANGING, LONGER_LIVES, READ_LOG),
    "{ended:n process} of the role {role} ended within the window without a replacement",
    traits=Traits(cause="workers that ended"),
)
"""``ended``: processes of the name ``role`` that nothing replaced."""


WORKER_FOR_EACH = Symptom(
    "a worker for each request",
    Meaning(Bearing.LIMITS, CHANGING, LONGER_LIVES, LIVE_LONGER),
    "it started {forks:n process} for {done:n request}: its workers end after a request or two",
    shared="its workers end after a request or two, and others are started for them",
    traits=Traits(cause="workers that are replaced"),
)
"""``forks`` for ``done`` requests."""


# A database has a process for each connection, which starts and ends with it.
_SERVING = ("server", "master", "worker", "frontend-master", "frontend-worker")
# A start takes some 0.3 to 1 s of a worker: of lives that are longer, on average, less than a twentieth.
_SHORT_LIFE_NS = 20 * SECOND_NS
# Of the role's processes: with fewer the others can do nearly all that all could.
_LEAST_SHARE = 0.1
# Of so short a life a start is a large part. And CPU of a request to how long one takes alone: that of pages
# that differ is more than the median of those alone, too.
_LIFE_OF_STARTS_NS, _MOSTLY_STARTS = 2 * SECOND_NS, 3.0
_LEAST_REQUESTS = 20
# Of the workers that looks found: those that no other look found.
_LEAST_NEW = 0.5


def restarted(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role whose processes ended in the window of a trial that ran to its end.

    Certain: it mattered. Those that were replaced had lived for a short time, on average, or were a tenth of
    all, and requests failed; those that were not were a tenth, and each took a request with it. Likely: those
    that were replaced had lived for a short time, and took no request along. Else it is what servers do with
    workers that are idle, or have had their number of requests: possible.
    """
    if not evidence.is_ok:
        return []
    if each := _for_each(evidence):
        return [each]
    found = turnover(evidence.samples)
    return [
        _found(evidence, role, one)
        for role, one in found.items()
        # A pool that grows by more than it replaces is a finding of its own.
        if role in _SERVING
        and (one.restarts or one.lost)
        and one.restarts + one.lost > one.started - one.ended
    ]


def _found(evidence: Evidence, role: str, one: Turnover) -> Finding:
    if not one.restarts:
        return Finding(LOST, _sure_of_ends(evidence, role, one), {"ended": one.lost}, {"role": role})
    if costs := _costs_of_starts(evidence, role, one):
        return Finding(STARTS_COST, Confidence.LIKELY, {"restarts": one.restarts, **costs}, {"role": role})
    return Finding(RESTARTED, _sure_of_ends(evidence, role, one), {"restarts": one.restarts}, {"role": role})


def _costs_of_starts(evidence: Evidence, role: str, one: Turnover) -> dict[str, float] | None:
    """Return what a request costs in CPU, and how long one takes alone, where processes of the role live for
    2 s at most, and two thirds of the CPU are no request's: no request uses more CPU than it takes, but in
    several threads. None where an open loop was kept: nothing limits it.
    """
    recording, counters = evidence.trial.recording, evidence.trial.counters
    alone_ns = float(counters.get("alone.service_ns", 0))
    if recording is None or carried_its_rate(recording) or not alone_ns:
        return None
    done, lifetime_ns = (
        recording.completed.all,
        _at_first(evidence, role) * evidence.sampled_ns / one.restarts,
    )
    if done < _LEAST_REQUESTS or lifetime_ns > _LIFE_OF_STARTS_NS:
        return None
    cpu_ns = subject_cpu_ns(counters) / done
    return {"cpu_ns": cpu_ns, "alone_ns": alone_ns} if cpu_ns >= _MOSTLY_STARTS * alone_ns else None


def _at_first(evidence: Evidence, role: str) -> int:
    """Return how many processes of the role there were at first, at least 1."""
    return max(1, sum(row.role == role for row in evidence.samples[0].processes))


def _for_each(evidence: Evidence) -> Finding | None:
    """Return a finding when a server with a fixed number of workers forks for each request or two, half of
    the workers that looks find are found by one alone, and none stays: that would have children of its own.
    """
    numbers, looks = forks_for_each(evidence), evidence.samples
    if numbers is None or evidence.facts.of_server.slots is None:
        return None
    seen = Counter(row.identity for one in looks for row in one.processes if row.role == "worker")
    if not seen or sum(count == 1 for count in seen.values()) < _LEAST_NEW * seen.total():
        return None
    stays = max(seen.values()) == len(looks)
    return None if stays else Finding(WORKER_FOR_EACH, Confidence.LIKELY, numbers)


def _sure_of_ends(evidence: Evidence, role: str, one: Turnover) -> Confidence:
    """Return how sure it is that the ends of a role's processes moved a figure."""
    recording = evidence.trial.recording
    if recording is None or carried_its_rate(recording):
        return Confidence.POSSIBLE
    before = _at_first(evidence, role)
    many = max(one.restarts, one.lost) >= _LEAST_SHARE * before
    short = before * evidence.sampled_ns <= _SHORT_LIFE_NS * one.restarts
    if (short or many) and lost_requests(recording) >= _least_lost(recording, one):
        return Confidence.CERTAIN
    return Confidence.LIKELY if short else Confidence.POSSIBLE


def _least_lost(recording: Recording, one: Turnover) -> float:
    """Return how many lost requests show that processes did not end while they were idle."""
    return max(1, QUALIFIED_ERROR_RATIO * recording.completed.all) if one.restarts else one.lost


# --- D37 --------------------------------------------------------------------------------------------------

WARM_UP_LONGER = Advice("warm up longer", "use a longer warm-up, or start the pool at its full size")
POOL_GREW = Symptom(
    "pool grew",
    Meaning(Bearing.ADDS, CHANGING, LONGER_WARM_UP, WARM_UP_LONGER),
    "{more} more processes of the role {role} ran at the end of the window than at its beginning: the"
    " pool was still growing",
    shared="its pool of processes was still growing within the window",
)
"""``more`` processes of the name ``role`` at the window's end than at its beginning."""


_OF_POOLS = ("server", "worker", "frontend-worker")


def growing_pool(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role with more processes at the window's end than at its beginning, where
    some of those that were started were seen again: else they live for one request.

    Likely: only one was, which may be a helper; or others ended, so that it may only have replaced some.
    """
    found = turnover(evidence.samples)
    return [
        Finding(POOL_GREW, _sure_of_growth(one), {"more": _more(one)}, {"role": role})
        for role, one in found.items()
        if role in _OF_POOLS and one.lasting and _more(one) > 0
    ]


def _more(one: Turnover) -> int:
    return one.started - one.ended


def _sure_of_growth(one: Turnover) -> Confidence:
    return Confidence.CERTAIN if one.lasting > 1 and not one.ended else Confidence.LIKELY


# --- D42 --------------------------------------------------------------------------------------------------

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

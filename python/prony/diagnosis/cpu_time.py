"""D13, D14, D36, D45 and D47: who fills the server's CPUs, one of them, or its quota.

D13: one process used only one core while others were free: it has one thread, or its threads take turns.

*Source*: proc(5), CPU time by thread; CPython's global interpreter lock lets one thread run Python at a time.

D14: the server's CPU quota, and not the server, set its pace.

*Source*: kernel, Documentation/scheduler/sched-bwc.rst: a group that has used its quota waits for the next
period, of 100 ms.

D36: more of its processes and threads are ready to run than its CPUs can take.

They take turns: each request waits for its turn, and the kernel switches between them. Whether fewer would do
the same only a measurement shows: it is never more than possible.
*Source*: /proc/PID/task/TID/schedstat (time on a CPU, time ready without one); the pressure file of the
control group (psi.rst).

D45: the collector of garbage used most of the CPU time of a server.

It runs in threads of its own, which the kernel knows by name: Java's `VM Thread` (the serial collector), `GC
Thread#0` and `G1 Conc#0`, .NET's `.NET Server GC`. Where it runs in those of the code, as in Node.js, its
stacks show it. In a heap that is nearly full of what lives each collection frees little.
*Source*: proc(5), comm and CPU time of a thread; sampled stacks (`prony.figures.hot_code`).

D47: the CPU was full of what no request asked for.

A request that only needs the CPU takes about that much time when it is alone. Where one alone takes many
times as long, and as long as beside many others, the CPU is not full of requests: something polls without a
pause (a `select` with an empty default, a loop on a flag), and requests wait for their turn unread.
"""

from collections.abc import Sequence

from prony.core.units import seconds
from prony.diagnosis.consumption import Resource, capacity_of, consumption_of, fills_one_core
from prony.diagnosis.evidence import (
    SERVER_ROLES,
    Confidence,
    Evidence,
    Finding,
    carried_its_rate,
    each_had_a_core,
    in_flight,
)
from prony.diagnosis.kinds import Advice, Bearing, Closely, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import FULL_CPU, OF_THE_LIMIT
from prony.diagnosis.uneven_work import is_uneven
from prony.figures.missing import Missing
from prony.figures.resources import ProcessThreads, busiest_process, cpu_share
from prony.model.facts import CodeKind
from prony.model.observation import Sample

OF_SOME_CPUS = Consequence("of some CPUs", "throughput is that of a part of its CPUs")
MORE_PROCESSES = Experiment(
    "more processes", "measure with a process for each CPU; throughput rises with them"
)
ADD_PROCESSES = Advice("add processes", "add processes, not threads", turned=(Turned.PROCESSES,))
ONE_THREAD_FULL = Symptom(
    "one thread full",
    Meaning(Bearing.LIMITS_IDLE, OF_SOME_CPUS, MORE_PROCESSES, ADD_PROCESSES),
    "one process{process: of the} filled one core with one thread, while others of its {cpus} CPUs were free",
    traits=Traits(cause="one core", closely=Closely.ONE_CORE),
)
"""``cores``: of the busiest process, ``busiest_thread``: the share of one, ``cpus``: the server's."""
ONE_CORE_FULL = Symptom(
    "one core full",
    Meaning(Bearing.LIMITS_IDLE, OF_SOME_CPUS, MORE_PROCESSES, ADD_PROCESSES),
    "one process{process: of the} filled one core with {threads} threads that took turns, while "
    "others of its {cpus} CPUs were free",
    traits=Traits(cause="one core", closely=Closely.ONE_CORE),
)
"""As before, ``threads``: how many threads took turns."""


# The time of one core, plus the 10 ms steps of the kernel's count; more needs two threads at once. Of those
# that take turns, what the others do meanwhile in calls of the system is beside it. Cheroot: 1.07 to 1.11.
_LEAST_CORES, _MOST_CORES, _MOST_OF_TURNS = 0.93, 1.07, 1.25
_SINGLE_THREAD = 0.90
# Unused cores of the server.
_LEAST_IDLE = 0.5


def one_core(evidence: Evidence) -> list[Finding]:
    """Return a finding when the busiest process used one core's time, and half a core or more was free; none
    where each request in flight had a core, or other workers had little to do: then work was not spread.

    Possible: several threads did, of a language whose threads need not take turns.
    """
    busiest = full_process(evidence)
    if busiest is None or _explained(evidence, busiest) or not evidence.is_ok:
        return []
    single, placement = busiest.threads[0] >= _SINGLE_THREAD, evidence.trial.placement
    numbers = {
        "cores": busiest.cores,
        "busiest_thread": busiest.threads[0],
        "threads": len(busiest.threads),
        "cpus": len(placement.server_cpus) if placement else 0,
    }
    sure = Confidence.LIKELY if single or fills_one_core(evidence) else Confidence.POSSIBLE
    kind = ONE_THREAD_FULL if single else ONE_CORE_FULL
    return [Finding(kind, sure, numbers, _process(evidence.samples, busiest.pid))]


def full_process(evidence: Evidence) -> ProcessThreads | None:
    """Return the busiest process if it used one core's time, and half a core or more was free."""
    trial, cpus = evidence.trial, capacity_of(evidence)
    busiest, used = busiest_process(trial), cpu_share(evidence.samples)
    if cpus is None or busiest is None or isinstance(used, Missing):
        return None
    take_turns = fills_one_core(evidence) and busiest.threads[0] < _SINGLE_THREAD
    full = _LEAST_CORES <= busiest.cores <= (_MOST_OF_TURNS if take_turns else _MOST_CORES)
    return busiest if full and used <= cpus - _LEAST_IDLE else None


def _explained(evidence: Evidence, busiest: ProcessThreads) -> bool:
    """Return whether requests that did not wait for each other explain the subject's CPU time, which fewer of
    them do not; or whether it is a worker, and others have little to do.
    """
    window, recording = evidence.samples, evidence.trial.recording
    if _role(window, busiest.pid) == "worker" and is_uneven(window):
        return True
    cores = cpu_share(window)
    if recording is None or isinstance(cores, Missing) or not each_had_a_core(recording, cores):
        return False
    return cores <= (in_flight(recording) or 0.0) + _MOST_CORES - 1


def _role(window: Sequence[Sample], pid: int) -> str:
    return next((row.role for one in window for row in one.processes if row.pid == pid), "server")


def _process(window: Sequence[Sample], pid: int) -> dict[str, str]:
    """Return which part of the subject a process is of; empty: of the server."""
    role = _role(window, pid)
    if role.startswith("frontend"):
        return {"process": "frontend"}
    return {} if role in SERVER_ROLES else {"process": role}


# --- D14 --------------------------------------------------------------------------------------------------

MORE_QUOTA = Experiment("more quota", "measure with twice the quota; throughput rises with it")
RAISE_QUOTA = Advice(
    "raise the quota",
    "raise the quota, or give it whole CPUs instead; run no more workers than the quota allows",
)
THROTTLED = Symptom(
    "throttled",
    Meaning(Bearing.LIMITS, OF_THE_LIMIT, MORE_QUOTA, RAISE_QUOTA),
    "its CPU quota throttled it in {share:.0%} of its scheduling periods: the quota limited its "
    "throughput and its tail latency",
    shared="its CPU quota throttled it: the quota limited its throughput and its tail latency",
    traits=Traits(cause="its quota", steps_back=True),
)
"""``periods`` of 100 ms, ``throttled``: those in which it had to wait; ``share``: of all."""


# Fewer throttled periods do not change a percentile.
_LEAST_THROTTLED, _MOSTLY = 0.05, 0.5
# Of the quota's time: a server at its limit uses nearly all of it.
_LEAST_USED = 0.8


def throttled(evidence: Evidence) -> list[Finding]:
    """Return a finding when the server had to wait for its quota in over 5 % of the window's periods.

    Not where the quota is all the time of the CPUs that it may run on: these are then the limit, and a larger
    quota changes nothing; the kernel hands a quota out in pieces, so such a server waits for it too.

    Certain: it was throttled in half of them, used nearly all of its quota, and did not carry all that an
    open loop asked for. Likely: two of the three. Else threads that worked at the same moments waited:
    possible.
    """
    counters = evidence.trial.counters
    periods = counters.get("cgroup.server.periods", 0)
    waited = counters.get("cgroup.server.throttled_periods", 0)
    if not periods or waited / periods <= _LEAST_THROTTLED or _is_all(evidence):
        return []
    numbers = {"periods": periods, "throttled": waited, "share": waited / periods}
    return [Finding(THROTTLED, _sure(evidence, waited / periods), numbers)]


def _is_all(evidence: Evidence) -> bool:
    """Return whether the quota is known, and no less than the time of the server's CPUs."""
    quota, placement = evidence.cell.sandbox.cpu_quota, evidence.trial.placement
    return quota is not None and placement is not None and 0 < len(placement.server_cpus) <= quota


def _sure(evidence: Evidence, share: float) -> Confidence:
    usage = consumption_of(evidence)
    # Without a quota that Prony knows, nobody knows how much of it was used.
    known = evidence.cell.sandbox.cpu_quota is not None
    used = usage.shares.get(Resource.CPU, 1.0) if usage and known else 1.0
    signs = share >= _MOSTLY, used >= _LEAST_USED, not carried_its_rate(evidence.trial.recording)
    return {3: Confidence.CERTAIN, 2: Confidence.LIKELY}.get(sum(signs), Confidence.POSSIBLE)


# --- D36 --------------------------------------------------------------------------------------------------

WITH_TURNS = Consequence("with waits for a turn", "latency contains waits for a turn on its CPUs")
FEWER_PROCESSES = Experiment(
    "fewer processes", "measure with half as many; throughput stays, and the tail falls"
)
FEWER_WORKERS = Advice(
    "fewer workers",
    "try half as many workers or threads: they may do the same",
    turned=(Turned.THREADS, Turned.PROCESSES),
)
CROWDED = Symptom(
    "more ready than CPUs",
    Meaning(Bearing.ADDS, WITH_TURNS, FEWER_PROCESSES, FEWER_WORKERS),
    "{ready:.1f} of its threads ran or were ready to, on average, on {cpus:n CPU}: they took turns",
)
"""``ready``: how many of its threads ran or could have run, on average, on ``cpus``."""


# For each of its CPUs: one that runs and one that is ready keep a CPU full without a gap.
_LEAST_READY = 2.0
_LEAST_STALLED = 0.3


def crowded(evidence: Evidence) -> list[Finding]:
    """Return a finding when twice as many threads as the server has CPUs were ready or ran, on average."""
    placement, length_ns, counters = evidence.trial.placement, evidence.length_ns, evidence.trial.counters
    times = [counters.get(name) for name in ("threads.run_ns", "threads.queue_ns")]
    stalled_ns = counters.get("cgroup.server.cpu_stalled_ns")
    if not length_ns or placement is None or not placement.server_cpus or None in times or stalled_ns is None:
        return []
    ready, cpus = sum(time or 0 for time in times) / length_ns, len(placement.server_cpus)
    if ready <= _LEAST_READY * cpus or stalled_ns / length_ns <= _LEAST_STALLED:
        return []
    return [Finding(CROWDED, Confidence.POSSIBLE, {"ready": ready, "cpus": cpus})]


# --- D45 --------------------------------------------------------------------------------------------------

_MEANING = Meaning(
    Bearing.LIMITS,
    Consequence("of the collector", "CPU and latency of each request contain its collections"),
    Experiment("a larger heap", "measure with twice the heap; CPU for a request falls"),
    Advice(
        "collect less often",
        "keep less in its heap, ask for no collection by hand, or enlarge it (Java: -Xmx)",
    ),
)
COLLECTS = Symptom(
    "collects garbage",
    _MEANING,
    "its collector of garbage used {share:.0%} of its CPU time, {cores:.1f} CPUs all the time; most of it: "
    "`{of}`",
    shared="its collector of garbage used most of its CPU time",
    traits=Traits(cause="its collector of garbage"),
)
"""``share`` of the CPU time of its threads, ``cores``; name ``of``: the busiest of the collector."""

STACKS_COLLECT = Symptom(
    "stacks in the collector",
    _MEANING,
    "its CPU was full, and {share:.0%} of its stacks were in its collector of garbage",
    shared="its CPU was full, and most of its stacks were in its collector of garbage",
    traits=Traits(cause="its collector of garbage", once=True),
)
"""``share`` of what was sampled in the first block, after its window."""

_THREADS = ("VM Thread", "GC Thread", "G1 ", "ParGC", "ZWorker", "XWorker", "Shenandoah", ".NET Server GC")
_LEAST_SHARE, _LEAST_CORES_OF_COLLECTOR = 0.4, 0.2
# Of its stacks: what collects in the threads of the code also cleans up after it.
_LEAST_OF_STACKS, _LEAST_STACKS = 0.5, 100


def collector(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads that collect garbage used four tenths of the CPU time of all its threads,
    and a fifth of a CPU; or half of the sampled stacks of a server with a full CPU were in the collector.
    """
    threads, length_ns = evidence.threads, evidence.length_ns
    own = [one for one in threads if one.name.startswith(_THREADS)]
    if not length_ns or not evidence.is_ok:
        return []
    if not own:
        return _sampled(evidence)
    used_ns, all_ns = (sum(one.cpu_ns for one in each) for each in (own, threads))
    cores = seconds(used_ns) / seconds(length_ns)
    if used_ns < _LEAST_SHARE * all_ns or cores < _LEAST_CORES_OF_COLLECTOR:
        return []
    names = {"of": max(own, key=lambda one: one.cpu_ns).name}
    return [Finding(COLLECTS, Confidence.LIKELY, {"share": used_ns / all_ns, "cores": cores}, names)]


def _sampled(evidence: Evidence) -> list[Finding]:
    code, usage = evidence.trial.facts.code, consumption_of(evidence)
    share = code.shares.get(CodeKind.RUNTIME, 0.0) if code else 0.0
    if code is None or usage is None or code.samples < _LEAST_STACKS or share < _LEAST_OF_STACKS:
        return []
    is_full = usage.shares.get(Resource.CPU, 0.0) >= FULL_CPU or full_process(evidence)
    return [Finding(STACKS_COLLECT, Confidence.LIKELY, {"share": share})] if is_full else []


# --- D47 --------------------------------------------------------------------------------------------------

SPINS = Symptom(
    "busy without requests",
    Meaning(
        Bearing.LIMITS,
        Consequence("of what spins", "CPU and latency of each request contain what no request asked for"),
        Experiment("no load", "look at its CPU without a load: it is as busy"),
        Advice(
            "stop what polls",
            "look for what goes on without a request: a loop that polls, a select with an empty default, a "
            "task of its own; let it sleep until something happens",
        ),
    ),
    "its CPUs were busy {cpu_share:.0%} of the time, and one request alone took {alone_ns:duration}: as "
    "long as with {in_flight:.0f} open, and {times:.0f} times its share of that CPU time, which is not for "
    "these requests",
    shared="its CPUs were full, and one request alone took as long as beside many: most of its CPU time is "
    "not for requests",
    traits=Traits(cause="work that goes on without requests"),
)
"""``cpu_share``; one request alone took ``alone_ns``, ``times`` its share of the CPU; ``in_flight``: under
load."""

# Of the CPUs' time; of a request's CPU time; open requests, and of these those that lie unread.
_FULL, _LEAST_TIMES, _LEAST_IN_FLIGHT, _MOSTLY_UNREAD = 0.97, 4, 4, 0.5


def spinning(evidence: Evidence) -> list[Finding]:
    """Return a finding when its CPUs are full, one request alone takes as long as beside the others, and four
    times as long as the CPU time that is counted for each, and most of these lie unread: one that sleeps has
    been read.
    """
    usage = consumption_of(evidence)
    alone_ns = evidence.trial.counters.get("alone.service_ns")
    if usage is None or alone_ns is None or not usage.page_cpu_ns or not evidence.is_ok:
        return []
    cpu, unread = usage.shares.get(Resource.CPU, 0.0), evidence.unread or 0.0
    few = usage.in_flight < _LEAST_IN_FLIGHT or unread < _MOSTLY_UNREAD * usage.in_flight
    times = alone_ns / usage.page_cpu_ns
    if cpu < _FULL or few or not usage.has_each_alone or times < _LEAST_TIMES:
        return []
    numbers = {"cpu_share": cpu, "alone_ns": float(alone_ns), "in_flight": usage.in_flight, "times": times}
    return [Finding(SPINS, Confidence.LIKELY, numbers)]

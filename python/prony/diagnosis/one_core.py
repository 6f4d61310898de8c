"""D13: one process used only one core while others were free: it has one thread, or its threads take turns.

*Source*: proc(5), CPU time by thread; CPython's global interpreter lock lets one thread run Python at a time.
"""

from collections.abc import Sequence

from prony.diagnosis.clients import each_had_a_core, in_flight
from prony.diagnosis.consumption import capacity_of, fills_one_core
from prony.diagnosis.evidence import SERVER_ROLES, Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.uneven_workers import is_uneven
from prony.figures.missing import Missing
from prony.figures.resources import ProcessThreads, busiest_process, cpu_share
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

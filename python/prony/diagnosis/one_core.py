"""D13: one process used only one core while others were free: it has one thread, or its threads take turns.

*Source*: proc(5), CPU time by thread; CPython's global interpreter lock lets one thread run Python at a time.
"""

from prony.analysis.missing import Missing
from prony.analysis.resources import cpu_share, window_samples
from prony.analysis.threads import ProcessThreads, busiest_process
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok

__all__ = ["one_core"]

# The time of one core, plus the 10 ms steps of the kernel's count; more needs two threads at once.
_LEAST_CORES, _MOST_CORES = 0.93, 1.07
_SINGLE_THREAD = 0.90
# Unused cores of the server.
_LEAST_IDLE = 0.5


def one_core(evidence: Evidence) -> list[Finding]:
    """Return a finding when the busiest process used one core's time, and half a core or more was free."""
    placement, busiest = evidence.trial.placement, busiest_process(evidence.trial)
    used = cpu_share(window_samples(evidence.trial.samples))
    if placement is None or busiest is None or isinstance(used, Missing):
        return []
    cpus = len(placement.server_cpus)
    full = _LEAST_CORES <= busiest.cores <= _MOST_CORES
    if not full or used > cpus - _LEAST_IDLE or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [_finding(busiest, cpus)]


def _finding(busiest: ProcessThreads, cpus: int) -> Finding:
    single = busiest.threads[0] >= _SINGLE_THREAD
    return Finding(
        rule="D13",
        kind=Symptom.ONE_THREAD_FULL if single else Symptom.ONE_CORE_FULL,
        confidence=Confidence.LIKELY,
        numbers={
            "cores": busiest.cores,
            "busiest_thread": busiest.threads[0],
            "threads": len(busiest.threads),
            "cpus": cpus,
        },
        advice=Advice.ADD_PROCESSES,
    )

"""D36: more of its processes and threads are ready to run than its CPUs can take.

They take turns: each request waits for its turn, and the kernel switches between them. Whether fewer would do
the same only a measurement shows: it is never more than possible.
*Source*: /proc/PID/task/TID/schedstat (time on a CPU, time ready without one); the pressure file of the
control group (psi.rst).
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom
from prony.diagnosis.knobs import Turned

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

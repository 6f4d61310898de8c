"""D45: the collector of garbage used most of the CPU time of a server.

It runs in threads of its own, which the kernel knows by name: Java's `VM Thread` (the serial collector), `GC
Thread#0` and `G1 Conc#0`, .NET's `.NET Server GC`. In a heap that is nearly full of what lives each
collection frees little. *Source*: proc(5), comm and CPU time of a thread.
"""

from prony.core.units import seconds
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits

COLLECTS = Symptom(
    "collects garbage",
    Meaning(
        Bearing.LIMITS,
        Consequence("of the collector", "CPU and latency of each request contain its collections"),
        Experiment("a larger heap", "measure with twice the heap; CPU for a request falls"),
        Advice("enlarge its heap", "enlarge its heap (Java: -Xmx), or keep less in it"),
    ),
    "its collector of garbage used {share:.0%} of its CPU time, {cores:.1f} CPUs all the time; most of it: "
    "`{of}`",
    shared="its collector of garbage used most of its CPU time",
    traits=Traits(cause="its collector of garbage"),
)
"""``share`` of the CPU time of its threads, ``cores``; name ``of``: the busiest of the collector."""

_THREADS = ("VM Thread", "GC Thread", "G1 ", "ParGC", "ZWorker", "XWorker", "Shenandoah", ".NET Server GC")
_LEAST_SHARE, _LEAST_CORES = 0.4, 0.2


def collector(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads that collect garbage used four tenths of the CPU time of all its threads,
    and a fifth of a CPU.
    """
    threads, length_ns = evidence.threads, evidence.length_ns
    own = [one for one in threads if one.name.startswith(_THREADS)]
    if not own or not length_ns or not evidence.is_ok:
        return []
    used_ns, all_ns = (sum(one.cpu_ns for one in each) for each in (own, threads))
    cores = seconds(used_ns) / seconds(length_ns)
    if used_ns < _LEAST_SHARE * all_ns or cores < _LEAST_CORES:
        return []
    names = {"of": max(own, key=lambda one: one.cpu_ns).name}
    return [Finding(COLLECTS, Confidence.LIKELY, {"share": used_ns / all_ns, "cores": cores}, names)]

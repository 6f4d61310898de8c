"""D45: the collector of garbage used most of the CPU time of a server.

It runs in threads of its own, which the kernel knows by name: Java's `VM Thread` (the serial collector), `GC
Thread#0` and `G1 Conc#0`, .NET's `.NET Server GC`. Where it runs in those of the code, as in Node.js, its
stacks show it. In a heap that is nearly full of what lives each collection frees little.
*Source*: proc(5), comm and CPU time of a thread; sampled stacks (`prony.figures.hot_code`).
"""

from prony.core.units import seconds
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.one_core import full_process
from prony.diagnosis.shared import FULL_CPU
from prony.model.facts import CodeKind

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
_LEAST_SHARE, _LEAST_CORES = 0.4, 0.2
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
    if used_ns < _LEAST_SHARE * all_ns or cores < _LEAST_CORES:
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

"""D47: the CPU was full of what no request asked for.

A request that only needs the CPU takes about that much time when it is alone. Where one alone takes many
times as long, and as long as beside many others, the CPU is not full of requests: something polls without a
pause (a `select` with an empty default, a loop on a flag), and requests wait for their turn unread.
"""

from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits

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

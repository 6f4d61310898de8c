"""D24: processes of the server may run on the generator's CPUs.

*Source*: sched_getaffinity(2) of each of them when the window closed. A server can choose its own CPUs; only
a control group confines it to those that it was given. The report itself names CPUs shared on request.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_BOTH, QUIET_MACHINE

HOLD_TO_CPUS = Advice(
    "hold it to its CPUs", "turn off its own choice of CPUs, or confine it with --sandbox cgroup"
)
STRAYED = Symptom(
    "strayed to other CPUs",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, HOLD_TO_CPUS),
    "{strays} of its processes chose CPUs outside the server's set, perhaps the generator's: "
    "throughput and latency describe both",
    shared="processes of it chose CPUs outside the server's set, perhaps the generator's: throughput and "
    "latency describe both",
    traits=Traits(of_machine=True),
)
"""``strays``: processes of the server that chose other CPUs than the server's."""


def shared_cpus(evidence: Evidence) -> list[Finding]:
    """Return a finding when a process of the server could run on CPUs outside the server's set."""
    strays = evidence.trial.facts.strays or 0
    placement = evidence.trial.placement
    if not strays or placement is None or placement.shared:
        return []
    return [Finding(STRAYED, Confidence.CERTAIN, {"strays": strays})]

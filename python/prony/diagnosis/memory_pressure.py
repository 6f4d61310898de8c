"""D20: the server waited for memory.

*Source*: kernel, Documentation/accounting/psi.rst, `some` of memory: of the server's group where the kernel
reports it, else of the machine.
"""

from prony.diagnosis.clients import carried_its_rate
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import MORE_MEMORY, OF_BOTH, OF_THE_LIMIT, QUIET_MACHINE, RAISE_MEMORY

WAITED_FOR_MEMORY = Symptom(
    "waited for memory",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, MORE_MEMORY, RAISE_MEMORY),
    "it waited for memory in {share:.0%} of the time",
    shared="it waited for memory",
    traits=Traits(cause="memory", steps_back=True),
)
"""``share``: of the window."""
MACHINE_WAITED_FOR_MEMORY = Symptom(
    "machine waited for memory",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, RAISE_MEMORY),
    "programs on this machine waited for memory in {share:.0%} of the time",
    shared="programs on this machine waited for memory",
    traits=Traits(of_machine=True),
)
"""``share``: of the window; other programs may have waited."""


_MOST, _MOSTLY = 0.05, 0.5


def memory_pressure(evidence: Evidence) -> list[Finding]:
    """Return a finding when tasks waited for memory in over 5 % of the window.

    Certain: in half of it. Possible: an open loop got all that it asked for, or the waits of the whole
    machine alone are known.
    """
    counters, length_ns = evidence.trial.counters, evidence.sampled_ns
    own = counters.get("cgroup.server.memory_stalled_ns")
    stalled_ns = counters.get("pressure.memory_some_ns", 0) if own is None else own
    if length_ns <= 0 or stalled_ns / length_ns <= _MOST:
        return []
    share = stalled_ns / length_ns
    numbers = {"share": share}
    sure = Confidence.POSSIBLE if own is None else _sure(evidence, share)
    return [Finding(MACHINE_WAITED_FOR_MEMORY if own is None else WAITED_FOR_MEMORY, sure, numbers)]


def _sure(evidence: Evidence, share: float) -> Confidence:
    if carried_its_rate(evidence.trial.recording):
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if share >= _MOSTLY else Confidence.LIKELY

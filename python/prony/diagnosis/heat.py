"""D27: CPUs were hot and slowed down.

*Source*: /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_BOTH, QUIET_MACHINE

COOL = Advice("cool it", "cool the machine, or limit its CPU frequency to one that it can hold")
HEAT = Symptom(
    "slowed down for heat",
    Meaning(Bearing.ADDS, OF_BOTH, QUIET_MACHINE, COOL),
    "CPUs of this machine were hot and slowed down: compare only within a block ({times:n time})",
    shared="CPUs of this machine were hot and slowed down: compare only within a block",
    traits=Traits(of_machine=True),
)
"""``times``."""


def heat(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU of the machine was hot and slowed down within the window."""
    times = evidence.trial.counters.get("machine.throttles", 0)
    if times <= 0:
        return []
    return [Finding(HEAT, Confidence.LIKELY, {"times": times})]

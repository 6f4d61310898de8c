"""D27: CPUs were slowed down for their heat.

*Source*: /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["heat"]


def heat(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU of the machine was slowed down for its heat within the window."""
    times = evidence.trial.counters.get("machine.throttles", 0)
    if times <= 0:
        return []
    return [
        Finding(
            rule="D27",
            kind=Symptom.HEAT,
            confidence=Confidence.LIKELY,
            numbers={"times": times},
            advice=Advice.COOL,
            shareable=True,
        )
    ]

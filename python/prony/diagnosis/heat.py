"""D27: CPUs were hot and slowed down.

*Source*: /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom


def heat(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU of the machine was hot and slowed down within the window."""
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

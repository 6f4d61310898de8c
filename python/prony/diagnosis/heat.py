"""D27: CPUs were slowed down for their heat.

*Source*: /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["heat"]


def heat(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU of the machine was slowed down for its heat within the window."""
    times = evidence.trial.counters.get("machine.throttles", 0)
    if times <= 0:
        return []
    meaning = "CPUs of this machine were slowed down for their heat: compare within a block only"
    return [
        Finding(
            rule="D27",
            confidence=Confidence.LIKELY,
            sentence=f"{meaning} ({times} times)",
            numbers={"times": times},
            advice="cool it, or hold its frequency below what it can keep",
            shared=meaning,
        )
    ]

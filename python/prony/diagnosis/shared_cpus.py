"""D24: processes of the server may run where the generator does.

*Source*: sched_getaffinity(2) of each of them when the window closed. A server can set its own CPUs, and only
a control group holds it to those that it was given. CPUs shared on request are told by the report itself.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["shared_cpus"]


def shared_cpus(evidence: Evidence) -> list[Finding]:
    """Return a finding when a process of the server was allowed on other CPUs than its own."""
    strays = evidence.trial.facts.strays or 0
    placement = evidence.trial.placement
    if not strays or placement is None or placement.shared:
        return []
    return [
        Finding(
            rule="D24",
            kind=Symptom.STRAYED,
            confidence=Confidence.CERTAIN,
            numbers={"strays": strays},
            advice=Advice.HOLD_TO_CPUS,
            shareable=True,
        )
    ]

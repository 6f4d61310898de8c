"""D24: processes of the server may run on the generator's CPUs.

*Source*: sched_getaffinity(2) of each of them when the window closed. A server can choose its own CPUs; only
a control group confines it to those that it was given. The report itself names CPUs shared on request.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom


def shared_cpus(evidence: Evidence) -> list[Finding]:
    """Return a finding when a process of the server could run on CPUs outside the server's set."""
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

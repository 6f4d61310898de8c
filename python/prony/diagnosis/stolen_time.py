"""D26: the hypervisor gave the trial's CPUs to others.

*Source*: proc_stat(5), steal.
"""

from prony.analysis.environment_faults import steal_share
from prony.analysis.missing import Missing
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

# One per cent is half of the margin of interest.
_MOST = 0.01


def stolen_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when over one per cent of the time of server's and generator's CPUs was stolen."""
    share = steal_share(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST:
        return []
    return [
        Finding(
            rule="D26",
            kind=Symptom.STOLEN,
            confidence=Confidence.CERTAIN,
            numbers={"share": share},
            advice=Advice.REPEAT_ELSEWHERE,
            shareable=True,
        )
    ]

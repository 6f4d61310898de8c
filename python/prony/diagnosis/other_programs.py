"""D28: other programs ran on the trial's CPUs.

*Source*: proc_stat(5) and proc_pid_stat(5): the CPUs' busy time that is neither the subject's nor Prony's.
"""

from prony.analysis.environment_faults import other_load
from prony.analysis.missing import Missing
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["other_programs"]

# The kernel's two accounts differ by up to 3 % of the CPUs' time where nothing else runs.
_MOST = 0.05


def other_programs(evidence: Evidence) -> list[Finding]:
    """Return a finding when other programs used over 5 % of the time of server's and generator's CPUs."""
    share = other_load(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST:
        return []
    return [
        Finding(
            rule="D28",
            kind=Symptom.OTHERS_RAN,
            confidence=Confidence.LIKELY,
            numbers={"share": share},
            advice=Advice.END_OTHERS,
            shareable=True,
        )
    ]

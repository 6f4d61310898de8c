"""D26: the hypervisor gave the trial's CPUs to others.

*Source*: proc_stat(5), steal.
"""

from prony.analysis.environment_faults import steal_share
from prony.analysis.missing import Missing
from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["stolen_time"]

# One per cent is half of the margin of interest.
_MOST = 0.01


def stolen_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when over one per cent of the time of server's and generator's CPUs was stolen."""
    share = steal_share(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST:
        return []
    meaning = "the hypervisor gave CPU time of this machine to others: compare within a block only"
    return [
        Finding(
            rule="D26",
            confidence=Confidence.CERTAIN,
            sentence=f"{meaning} ({share:.1%})",
            numbers={"share": share},
            advice="repeat it at another hour, or on a machine of its own",
            shared=meaning,
        )
    ]

"""D26: the hypervisor gave the trial's CPUs to others.

*Source*: proc_stat(5), steal.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Closely, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_BOTH, QUIET_MACHINE
from prony.figures.missing import Missing
from prony.figures.validity import steal_share

REPEAT_ELSEWHERE = Advice(
    "repeat it elsewhere", "repeat the study at another time, or on a machine of its own"
)
STOLEN = Symptom(
    "stolen time",
    Meaning(Bearing.LIMITS_IDLE, OF_BOTH, QUIET_MACHINE, REPEAT_ELSEWHERE),
    "the hypervisor gave CPU time of this machine to others: compare only within a block ({share:.1%})",
    shared="the hypervisor gave CPU time of this machine to others: compare only within a block",
    traits=Traits(cause="the hypervisor", closely=Closely.OTHERS, least_share=0.1, of_machine=True),
)
"""``share``: of the time of the trial's CPUs."""


# One per cent is half of the margin of interest.
_MOST = 0.01


def stolen_time(evidence: Evidence) -> list[Finding]:
    """Return a finding when over one per cent of the time of server's and generator's CPUs was stolen."""
    share = steal_share(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST:
        return []
    return [Finding(STOLEN, Confidence.CERTAIN, {"share": share})]

"""D28: other programs ran on the trial's CPUs: the server's, or those that the generator has alone.

Beside the generator they limit no server by themselves: whether they kept it waiting is its own verdict.
*Source*: proc_stat(5) and proc_pid_stat(5): the CPUs' busy time that is neither the subject's nor Prony's.
"""

from prony.analysis.environment_faults import load_beside_generator, other_load
from prony.analysis.missing import Missing
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["other_programs"]

# The kernel's two accounts differ by up to 3 % of the CPUs' time where nothing else runs.
_MOST = 0.05


def other_programs(evidence: Evidence) -> list[Finding]:
    """Return a finding when other programs used over 5 % of the time of server's and generator's CPUs: of
    both kinds, where each is as much.
    """
    share = other_load(evidence.trial.counters)
    if isinstance(share, Missing) or share <= _MOST:
        return []
    beside = load_beside_generator(evidence.trial)
    shares = {Symptom.OTHERS_RAN: share - beside, Symptom.OTHERS_RAN_BESIDE_GENERATOR: beside}
    found = {kind: part for kind, part in shares.items() if part > _MOST}
    # Less than that on both: the server's have it, as where nobody counted them apart.
    return [_finding(kind, part) for kind, part in (found or {Symptom.OTHERS_RAN: share}).items()]


def _finding(kind: Symptom, share: float) -> Finding:
    return Finding(
        rule="D28",
        kind=kind,
        confidence=Confidence.LIKELY,
        numbers={"share": share},
        advice=Advice.END_OTHERS,
        shareable=True,
    )

"""D19: the subject was killed for its memory, or died.

*Source*: kernel, Documentation/admin-guide/cgroup-v2.rst, memory.events: `oom_kill`.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.errors import FailureStage
from prony.model import Failed

__all__ = ["killed"]


def killed(evidence: Evidence) -> list[Finding]:
    """Return a finding when the cgroup counted kills for memory, or the subject died during the load."""
    counters, outcome = evidence.trial.counters, evidence.trial.outcome
    kills = sum(value for name, value in counters.items() if name.endswith(".oom_kills"))
    if kills > 0:
        return [
            Finding(
                rule="D19",
                confidence=Confidence.CERTAIN,
                sentence=f"{kills} of its processes were killed for exceeding the memory limit",
                numbers={"kills": kills},
                advice="raise the memory limit, or run fewer workers",
            )
        ]
    if isinstance(outcome, Failed) and outcome.stage == FailureStage.LOAD:
        # A SIGKILL without a counted kill may be anyone's: only the fact is stated.
        return [Finding("D19", Confidence.POSSIBLE, f"it ended during the load: {outcome.reason}")]
    return []

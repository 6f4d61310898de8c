"""D19: the subject was killed for exceeding its memory limit, or died.

*Source*: kernel, Documentation/admin-guide/cgroup-v2.rst, memory.events: `oom_kill`.
"""

import re

from prony.core.errors import OUT_OF_MEMORY, FailureStage
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Bearing, Consequence, Meaning, Symptom, Traits
from prony.diagnosis.shared import MORE_MEMORY, RAISE_MEMORY
from prony.model.trial import Failed, Invalid, Ok

OF_SUCCESSES = Consequence(
    "of the successes only", "requests were lost, and its speed describes only the others"
)
KILLED_FOR_MEMORY = Symptom(
    "killed for memory",
    Meaning(Bearing.LIMITS, OF_SUCCESSES, MORE_MEMORY, RAISE_MEMORY),
    "{kills} of its processes were killed for exceeding the memory limit",
    traits=Traits(cause="its memory limit"),
)
"""``kills``: processes."""
ENDED_UNDER_LOAD = Symptom(
    "ended under load",
    Meaning(Bearing.LIMITS, OF_SUCCESSES, MORE_MEMORY),
    "it ended during the load: {reason}",
    traits=Traits(cause="its own end"),
)
"""Name ``reason``: how it ended."""


# No longer than a count of processes: a stranger's archive may hold any digits.
_PROCESSES = re.compile(r"(?<!\d)(\d{1,9}) process(?:es)? of the ", re.ASCII)


def killed(evidence: Evidence) -> list[Finding]:
    """Return a finding when the cgroup counted kills for memory, or the subject died during the load."""
    counters, outcome = evidence.trial.counters, evidence.trial.outcome
    counted = sum(value for name, value in counters.items() if name.endswith(".oom_kills"))
    kills = counted or _before_window(outcome)
    if kills > 0:
        return [Finding(KILLED_FOR_MEMORY, Confidence.CERTAIN, {"kills": kills})]
    if isinstance(outcome, Failed) and outcome.stage == FailureStage.LOAD:
        # Anyone may have sent a SIGKILL without a counted kill: state only the fact.
        names = {"reason": outcome.reason}
        return [Finding(ENDED_UNDER_LOAD, Confidence.POSSIBLE, names=names)]
    return []


def _before_window(outcome: Ok | Failed | Invalid) -> int:
    """Return how many were killed while the subject was warmed up, which no counter of the window has."""
    if not isinstance(outcome, Failed) or not outcome.reason.startswith(OUT_OF_MEMORY):
        return 0
    return sum(int(count) for count in _PROCESSES.findall(outcome.reason))

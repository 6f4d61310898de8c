"""D23: the generator, not the server, may have limited the figures.

*Source*: the engine's own verdict (docs/reference/engine-wire.md, Generator).
"""

from prony.archive.limits import decode_limit
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import LimitKind, Ok

__all__ = ["generator_limited"]

_FOUND = {
    LimitKind.BUSY: Symptom.GENERATOR_BUSY,
    LimitKind.KEPT_WAITING: Symptom.GENERATOR_KEPT_WAITING,
    LimitKind.LATE: Symptom.GENERATOR_LATE,
    LimitKind.OTHER: Symptom.GENERATOR_LIMITED,
}


def generator_limited(evidence: Evidence) -> list[Finding]:
    """Return a finding when the engine says that it was the limit, in a trial that ran its window.

    A generator that waits for its CPU sends less than it could, and sees replies later than they arrived.
    """
    recording = evidence.trial.recording
    found = decode_limit(recording.generator) if recording else None
    if found is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D23",
            kind=_FOUND[found.kind],
            confidence=Confidence.LIKELY,
            numbers=found.numbers,
            names={"reason": found.reason} if found.kind is LimitKind.OTHER else {},
            advice=Advice.LEAVE_CPUS_TO_GENERATOR,
            shareable=True,
        )
    ]

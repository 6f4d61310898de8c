"""D23: the generator, not the server, may have set the figures.

*Source*: the engine's own verdict (docs/reference/engine-wire.md, Generator).
"""

import re

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.model import Ok

__all__ = ["generator_limited"]

_LIMIT = "the generator may have been the limit"
_MEANING = "throughput may be higher, and latency lower, than shown"
# What is of one trial alone: how much of its time, how late.
_FIGURES = re.compile(r" (?:more than )?[\d.]+ (?:% of the time|ms)")


def generator_limited(evidence: Evidence) -> list[Finding]:
    """Return a finding when the engine says that it was the limit, in a trial that ran its window.

    A generator that waits for its CPU sends less than it could, and sees replies later than they came.
    """
    recording = evidence.trial.recording
    reason = recording.generator.limited if recording else None
    if not reason or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D23",
            confidence=Confidence.LIKELY,
            sentence=f"{_LIMIT} ({reason}): {_MEANING}",
            shared=f"{_LIMIT} ({_FIGURES.sub('', reason)}): {_MEANING}",
            advice="leave the generator's CPUs to it, give it more of them, or lower the load",
        )
    ]

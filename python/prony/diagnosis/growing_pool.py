"""D37: the server was still starting workers while it was measured.

*Source*: the sampler; servers that start processes on demand, such as Apache's prefork and flup's.
"""

from prony.analysis.resources import window_samples
from prony.analysis.turnover import turnover
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["growing_pool"]

_SERVING = ("server", "worker", "frontend-worker")


def growing_pool(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role with more processes at the window's end than at its beginning."""
    found = turnover(window_samples(evidence.trial.samples))
    grown = {role: one.started - one.ended for role, one in found.items() if role in _SERVING}
    return [
        Finding(
            rule="D37",
            kind=Symptom.POOL_GREW,
            confidence=Confidence.CERTAIN,
            numbers={"more": more},
            names={"role": role},
            advice=Advice.WARM_UP_LONGER,
            shareable=True,
        )
        for role, more in grown.items()
        if more > 0
    ]

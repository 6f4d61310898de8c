"""D22: workers were replaced while they were under load.

*Source*: the sampler, which knows a process by its number and start time. Servers replace workers that hang
(Gunicorn's `timeout`), that were killed, or that reached their number of requests (`max_requests`).
"""

from prony.analysis.resources import window_samples
from prony.analysis.turnover import turnover
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok

__all__ = ["restarted"]

# A database has a process for each connection, which starts and ends with it.
_SERVING = ("server", "master", "worker", "frontend-master", "frontend-worker")


def restarted(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role whose processes ended in the window of a trial that ran to its end."""
    if not isinstance(evidence.trial.outcome, Ok):
        return []
    found = turnover(window_samples(evidence.trial.samples))
    return [
        _replaced(role, one.restarts) if one.restarts else _ended(role, one.lost)
        for role, one in found.items()
        # A pool that grows by more than it replaces is a finding of its own.
        if role in _SERVING
        and (one.restarts or one.lost)
        and one.restarts + one.lost > one.started - one.ended
    ]


def _replaced(role: str, times: int) -> Finding:
    return Finding(
        rule="D22",
        kind=Symptom.RESTARTED,
        confidence=Confidence.CERTAIN,
        numbers={"restarts": times},
        names={"role": role},
        advice=Advice.READ_LOG_FOR_LIMITS,
        shareable=True,
    )


def _ended(role: str, count: int) -> Finding:
    return Finding(
        rule="D22",
        kind=Symptom.LOST,
        confidence=Confidence.CERTAIN,
        numbers={"ended": count},
        names={"role": role},
        advice=Advice.READ_LOG,
    )

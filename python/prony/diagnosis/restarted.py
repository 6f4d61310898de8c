"""D22: workers were replaced while they were under load.

*Source*: the sampler, which knows a process by its number and start time. Servers replace workers that hang
(Gunicorn's `timeout`), that were killed, or that have done their number of requests (`max_requests`).
"""

from prony.analysis.resources import window_samples
from prony.analysis.turnover import turnover
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.model import Ok

__all__ = ["restarted"]

# A database has a process for each connection, which comes and goes with it.
_SERVING = ("server", "master", "worker", "frontend-master", "frontend-worker")


def restarted(evidence: Evidence) -> list[Finding]:
    """Return a finding for each role whose processes ended in the window of a trial that ran to its end."""
    if not isinstance(evidence.trial.outcome, Ok):
        return []
    found = turnover(window_samples(evidence.trial.samples))
    return [
        _replaced(role, one.restarts) if one.restarts else _ended(role, one.lost)
        for role, one in found.items()
        if role in _SERVING and (one.restarts or one.lost)
    ]


def _replaced(role: str, times: int) -> Finding:
    return Finding(
        rule="D22",
        confidence=Confidence.CERTAIN,
        sentence=f"a {role} was restarted {_times(times)} within the window: what it had begun was lost",
        numbers={"restarts": times},
        advice="read its log; a limit of time or of requests for each worker may be set",
        shared=f"a {role} was restarted within the window: what it had begun was lost",
    )


def _ended(role: str, count: int) -> Finding:
    several = f"{count} processes of the role {role}" if count > 1 else f"a {role}"
    return Finding(
        rule="D22",
        confidence=Confidence.CERTAIN,
        sentence=f"{several} ended within the window, and nothing took the place",
        numbers={"ended": count},
        advice="read its log",
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")

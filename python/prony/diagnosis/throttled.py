"""D14: the server's CPU quota, and not the server, set its pace.

*Source*: kernel, Documentation/scheduler/sched-bwc.rst: a group that has used its quota waits for the next
period, of 100 ms.
"""

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["throttled"]

# Fewer throttled periods do not change a percentile.
_LEAST_SHARE = 0.05


def throttled(evidence: Evidence) -> list[Finding]:
    """Return a finding when the server had to wait for its quota in over 5 % of the window's periods."""
    counters = evidence.trial.counters
    periods = counters.get("cgroup.server.periods", 0)
    waited = counters.get("cgroup.server.throttled_periods", 0)
    if not periods or waited / periods <= _LEAST_SHARE:
        return []
    return [
        Finding(
            rule="D14",
            kind=Symptom.THROTTLED,
            confidence=Confidence.CERTAIN,
            numbers={"periods": periods, "throttled": waited, "share": waited / periods},
            advice=Advice.RAISE_QUOTA,
            shareable=True,
        )
    ]

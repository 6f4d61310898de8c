"""D14: the server's CPU quota, and not the server, set its pace.

*Source*: kernel, Documentation/scheduler/sched-bwc.rst: a group that has used its quota waits for the next
period, of 100 ms.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["throttled"]

# Fewer throttled periods leave no mark on a percentile.
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
            confidence=Confidence.CERTAIN,
            sentence=f"its CPU quota held it back in {100 * waited / periods:.0f} % of all 100 ms periods: "
            "the quota set its speed and its tail",
            numbers={"periods": periods, "throttled": waited},
            advice="raise the quota, or give it whole CPUs instead; run no more workers than the quota holds",
            shared="its CPU quota held it back: the quota set its speed and its tail",
        )
    ]

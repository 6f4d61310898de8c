"""D14: the server's CPU quota, and not the server, set its pace.

*Source*: kernel, Documentation/scheduler/sched-bwc.rst: a group that has used its quota waits for the next
period, of 100 ms.
"""

from prony.diagnosis.clients import carried_its_rate
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["throttled"]

# Fewer throttled periods do not change a percentile.
_LEAST_SHARE = 0.05
# Of the quota's time: a server at its limit uses nearly all of it.
_LEAST_USED = 0.8


def throttled(evidence: Evidence) -> list[Finding]:
    """Return a finding when the server had to wait for its quota in over 5 % of the window's periods.

    Likely: it carried all that was asked for in an open loop, or used little of its quota, as a server does
    whose threads work at the same moments. Single requests waited.
    """
    counters = evidence.trial.counters
    periods = counters.get("cgroup.server.periods", 0)
    waited = counters.get("cgroup.server.throttled_periods", 0)
    if not periods or waited / periods <= _LEAST_SHARE:
        return []
    return [
        Finding(
            rule="D14",
            kind=Symptom.THROTTLED,
            confidence=_sure(evidence),
            numbers={"periods": periods, "throttled": waited, "share": waited / periods},
            advice=Advice.RAISE_QUOTA,
            shareable=True,
        )
    ]


def _sure(evidence: Evidence) -> Confidence:
    usage = consumption_of(evidence)
    # Without a quota that Prony knows, nobody knows how much of it was used.
    known = evidence.cell.sandbox.cpu_quota is not None
    used = usage.shares.get(Resource.CPU, 1.0) if usage and known else 1.0
    kept = carried_its_rate(evidence.trial.recording)
    return Confidence.LIKELY if kept or used < _LEAST_USED else Confidence.CERTAIN

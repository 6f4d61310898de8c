"""D14: the server's CPU quota, and not the server, set its pace.

*Source*: kernel, Documentation/scheduler/sched-bwc.rst: a group that has used its quota waits for the next
period, of 100 ms.
"""

from prony.diagnosis.clients import carried_its_rate
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_THE_LIMIT

MORE_QUOTA = Experiment("more quota", "measure with twice the quota; throughput rises with it")
RAISE_QUOTA = Advice(
    "raise the quota",
    "raise the quota, or give it whole CPUs instead; run no more workers than the quota allows",
)
THROTTLED = Symptom(
    "throttled",
    Meaning(Bearing.LIMITS, OF_THE_LIMIT, MORE_QUOTA, RAISE_QUOTA),
    "its CPU quota throttled it in {share:.0%} of its scheduling periods: the quota limited its "
    "throughput and its tail latency",
    shared="its CPU quota throttled it: the quota limited its throughput and its tail latency",
    traits=Traits(cause="its quota", steps_back=True),
)
"""``periods`` of 100 ms, ``throttled``: those in which it had to wait; ``share``: of all."""


# Fewer throttled periods do not change a percentile.
_LEAST_SHARE, _MOSTLY = 0.05, 0.5
# Of the quota's time: a server at its limit uses nearly all of it.
_LEAST_USED = 0.8


def throttled(evidence: Evidence) -> list[Finding]:
    """Return a finding when the server had to wait for its quota in over 5 % of the window's periods.

    Certain: it was throttled in half of them, used nearly all of its quota, and did not carry all that an
    open loop asked for. Likely: two of the three. Else threads that worked at the same moments waited:
    possible.
    """
    counters = evidence.trial.counters
    periods = counters.get("cgroup.server.periods", 0)
    waited = counters.get("cgroup.server.throttled_periods", 0)
    if not periods or waited / periods <= _LEAST_SHARE:
        return []
    numbers = {"periods": periods, "throttled": waited, "share": waited / periods}
    return [Finding(THROTTLED, _sure(evidence, waited / periods), numbers)]


def _sure(evidence: Evidence, share: float) -> Confidence:
    usage = consumption_of(evidence)
    # Without a quota that Prony knows, nobody knows how much of it was used.
    known = evidence.cell.sandbox.cpu_quota is not None
    used = usage.shares.get(Resource.CPU, 1.0) if usage and known else 1.0
    signs = share >= _MOSTLY, used >= _LEAST_USED, not carried_its_rate(evidence.trial.recording)
    return {3: Confidence.CERTAIN, 2: Confidence.LIKELY}.get(sum(signs), Confidence.POSSIBLE)

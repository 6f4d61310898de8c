"""D35: all connections of the server to others, a database for example, were waited on all the time.

What it asks is then its limit, or how many connections it has to ask with. An event loop waits for all of its
connections at once: of those nothing is known here.
*Source*: netlink, the connections of the trial's network; proc(5), the descriptor for which a thread waits;
Little's law.
"""

from statistics import fmean

from prony.analysis.resources import window_samples
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok

__all__ = ["downstream"]

_LEAST_LOOKS = 20
# Of the time of its connections to others; of the CPUs' time; requests in flight over those connections.
_LEAST_BUSY, _MOST_CPU, _LEAST_WAITING = 0.6, 0.7, 1.2


def downstream(evidence: Evidence) -> list[Finding]:
    """Return a finding when threads waited for 60 % of the time of its connections to others, more requests
    were open than it has of these, and it had CPUs to spare.
    """
    counters, window = evidence.trial.counters, window_samples(evidence.trial.samples)
    seen = [one.gauges for one in window if one.gauges.get("downstream.connections", 0)]
    looks, waited = counters.get("threads.looks", 0), counters.get("threads.downstream", 0)
    usage, length_ns = consumption_of(evidence), _length_ns(evidence)
    if usage is None or not seen or looks < _LEAST_LOOKS or not length_ns:
        return []
    connections = fmean(one["downstream.connections"] for one in seen)
    threads = counters.get("threads.alive_ns", 0) / length_ns
    busy = min(waited / looks * threads / connections, 1.0)
    if busy < _LEAST_BUSY or usage.shares.get(Resource.CPU, 1.0) > _MOST_CPU:
        return []
    if usage.in_flight < _LEAST_WAITING * connections or not isinstance(evidence.trial.outcome, Ok):
        return []
    return [
        Finding(
            rule="D35",
            kind=Symptom.DOWNSTREAM_BUSY,
            confidence=Confidence.LIKELY,
            numbers={"connections": round(connections), "share": busy, "port": seen[-1]["downstream.port"]},
            advice=Advice.RAISE_POOL,
            shareable=True,
        )
    ]


def _length_ns(evidence: Evidence) -> int:
    recording = evidence.trial.recording
    return (recording.window.length_ns or 0) if recording else 0

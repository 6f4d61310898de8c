"""The server's connections to others, a pool towards a database for example, and how busy they are.

*Definition*: busy is the time that threads wait for the bytes of one such connection / the time of all of
them. Of an event loop, which waits for all of its connections at once, nothing is known; a thread beside it
shows only its own.
*Source*: netlink, the connections of the trial's network; proc(5), the descriptor for which a thread waits;
Little's law. Must not know thresholds of rules.
"""

from dataclasses import dataclass
from statistics import fmean

from prony.analysis.resources import window_samples
from prony.diagnosis.evidence import Evidence

# Of all looks at threads; of those that found one at a connection to others: one alone may be any thread's,
# the share of five has a standard error of less than a half.
_LEAST_LOOKS, _LEAST_WAITED = 20, 5


@dataclass(frozen=True, slots=True)
class Pool:
    """``connections``: how many there were on average; ``busy``: the share of their time in which a thread
    waited for one; ``port``: of the peer that most of them have.
    """

    connections: float
    busy: float
    port: int


def pool_of(evidence: Evidence) -> Pool | None:
    """Return the connections of a trial to others; null: none, or hardly anybody was seen to wait for one."""
    counters, recording = evidence.trial.counters, evidence.trial.recording
    window = [one.gauges for one in window_samples(evidence.trial.samples)]
    seen = [one for one in window if one.get("downstream.connections", 0) and "downstream.port" in one]
    looks, waited = counters.get("threads.looks", 0), counters.get("threads.downstream", 0)
    length_ns = recording.window.length_ns if recording else None
    if not seen or waited < _LEAST_WAITED or looks < _LEAST_LOOKS or not length_ns:
        return None
    connections = fmean(one["downstream.connections"] for one in seen)
    threads = counters.get("threads.alive_ns", 0) / length_ns
    busy = min(waited / looks * threads / connections, 1.0)
    return Pool(connections, busy, seen[-1]["downstream.port"])

"""D25: the kernel's own network work, and not the server, was the limit.

*Source*: proc_stat(5), softirq; kernel, net/core/net-procfs.c: packets dropped because the queue
of a CPU was full (net.core.netdev_max_backlog).
"""

from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.analysis.resources import window_samples
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

_MOST = 0.5
# For each request, as of failures: fewer move no figure. Each costs its connection 200 ms or more.
_LEAST_DROPPED = QUALIFIED_ERROR_RATIO


def network_limit(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU did interrupts for over half of the window, or packets were dropped.

    Possible: fewer were dropped than one for a thousand requests.
    """
    window, counters = window_samples(evidence.trial.samples), evidence.trial.counters
    dropped = counters.get("softnet.dropped", 0)
    length_ns = window[-1].monotonic_ns - window[0].monotonic_ns if window else 0
    share = counters.get("cpus.softirq_most_ns", 0) / length_ns if length_ns > 0 else 0.0
    if share <= _MOST and dropped <= 0:
        return []
    return [
        Finding(
            rule="D25",
            kind=Symptom.PACKETS_DROPPED if dropped > 0 else Symptom.KERNEL_BUSY,
            confidence=Confidence.LIKELY
            if share > _MOST or _matters(evidence, dropped)
            else Confidence.POSSIBLE,
            numbers={"softirq_share": share, "dropped": dropped},
            advice=Advice.RAISE_NETDEV_BACKLOG if dropped > 0 else None,
            shareable=True,
        )
    ]


def _matters(evidence: Evidence, dropped: int) -> bool:
    recording = evidence.trial.recording
    return recording is not None and dropped >= _LEAST_DROPPED * recording.completed.all

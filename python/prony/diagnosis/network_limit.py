"""D25: the kernel's own network work, and not the server, was the limit.

*Source*: proc_stat(5), softirq; kernel, net/core/net-procfs.c: packets dropped because the queue
of a CPU was full (net.core.netdev_max_backlog).
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_THE_LIMIT, QUIET_MACHINE
from prony.figures.account import QUALIFIED_ERROR_RATIO

RAISE_NETDEV_BACKLOG = Advice("raise the queue of packets", "raise net.core.netdev_max_backlog")
PACKETS_DROPPED = Symptom(
    "packets dropped",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, QUIET_MACHINE, RAISE_NETDEV_BACKLOG),
    "the kernel's packet processing may have been the limit: it dropped {dropped:n packet}",
    shared="the kernel's packet processing may have been the limit",
    traits=Traits(cause="the kernel's packet processing"),
)
"""``dropped`` packets, ``softirq_share``: of the window, of the CPU that did most of this work."""
KERNEL_BUSY = Symptom(
    "kernel busy with packets",
    Meaning(Bearing.LIMITS_IDLE, OF_THE_LIMIT, QUIET_MACHINE),
    "the kernel's packet processing may have been the limit: one CPU did nothing else for "
    "{softirq_share:.0%} of the time",
    shared="the kernel's packet processing may have been the limit",
    traits=Traits(cause="the kernel's packet processing"),
)
"""As before."""


_MOST = 0.5
# For each request, as of failures: fewer move no figure. Each costs its connection 200 ms or more.
_LEAST_DROPPED = QUALIFIED_ERROR_RATIO


def network_limit(evidence: Evidence) -> list[Finding]:
    """Return a finding when a CPU did interrupts for over half of the window, or packets were dropped.

    Possible: fewer were dropped than one for a thousand requests.
    """
    counters, length_ns = evidence.trial.counters, evidence.sampled_ns
    dropped = counters.get("softnet.dropped", 0)
    share = counters.get("cpus.softirq_most_ns", 0) / length_ns if length_ns > 0 else 0.0
    if share <= _MOST and dropped <= 0:
        return []
    numbers = {"softirq_share": share, "dropped": dropped}
    sure = Confidence.LIKELY if share > _MOST or _matters(evidence, dropped) else Confidence.POSSIBLE
    return [Finding(PACKETS_DROPPED if dropped > 0 else KERNEL_BUSY, sure, numbers)]


def _matters(evidence: Evidence, dropped: int) -> bool:
    recording = evidence.trial.recording
    return recording is not None and dropped >= _LEAST_DROPPED * recording.completed.all

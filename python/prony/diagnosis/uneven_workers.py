"""D18: one worker had most of the work while another had little: its connections stick to it.

Workers that share a listening socket take what they can when they wake, and keep those connections for good.
*Source*: granian issues 544 and 849; gunicorn, `reuse_port`; proc_pid_stat(5), CPU time by process.
"""

from prony.analysis.resources import window_samples
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom
from prony.model import Ok, Sample

__all__ = ["uneven_workers"]

# In cores: the busiest has hardly room for more, and the least busy much.
_BUSY = 0.8
_MOST_OF_IT = 0.5


def uneven_workers(evidence: Evidence) -> list[Finding]:
    """Return a finding when the busiest worker filled a core, and another did at most half as much."""
    if not isinstance(evidence.trial.outcome, Ok) or evidence.trial.recording is None:
        return []
    used = sorted(_cores(window_samples(evidence.trial.samples)))
    if len(used) < 2 or used[-1] < _BUSY or used[0] > _MOST_OF_IT * used[-1]:
        return []
    return [
        Finding(
            rule="D18",
            kind=Symptom.UNEVEN_WORKERS,
            confidence=Confidence.LIKELY,
            numbers={"workers": len(used), "most_cores": used[-1], "least_cores": used[0]},
            advice=Advice.SPREAD_CONNECTIONS,
            shareable=True,
        )
    ]


def _cores(window: tuple[Sample, ...]) -> list[float]:
    """Return the cores that each worker used, of those that were there at both edges."""
    if len(window) < 2:
        return []
    length_ns = window[-1].monotonic_ns - window[0].monotonic_ns
    first, last = (
        {
            (row.pid, row.start_time_ticks): row.user_ns + row.system_ns
            for row in one.processes
            if row.role == "worker"
        }
        for one in (window[0], window[-1])
    )
    return [(last[one] - first[one]) / length_ns for one in first.keys() & last.keys()] if length_ns else []

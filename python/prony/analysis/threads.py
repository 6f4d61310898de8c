"""How the subject's CPU time was spread over its threads in the window.

*Source*: proc(5), /proc/PID/task/TID/stat.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prony.analysis.missing import Missing, Value
from prony.analysis.resources import window_samples
from prony.model.observation import Sample, ThreadUsage
from prony.model.trial import Trial


@dataclass(frozen=True, slots=True)
class ProcessThreads:
    """One process's threads in the window, the busiest first: the CPU of each in cores.

    *Assumptions*: threads that ended in the window are missing.
    """

    pid: int
    threads: tuple[float, ...]

    @property
    def cores(self) -> float:
        """The sum over its threads."""
        return sum(self.threads)


def busiest_process(trial: Trial) -> ProcessThreads | None:
    """Return the process that used most CPU in the window; null when threads were not read."""
    length_ns = _length_ns(window_samples(trial.samples))
    by_pid: dict[int, list[int]] = {}
    for one in trial.threads:
        by_pid.setdefault(one.pid, []).append(one.cpu_ns)
    if not by_pid or length_ns <= 0:
        return None
    pid = max(by_pid, key=lambda pid: sum(by_pid[pid]))
    return ProcessThreads(pid, tuple(used_ns / length_ns for used_ns in sorted(by_pid[pid], reverse=True)))


def thread_metrics(trial: Trial, role: str | None = None) -> dict[str, Value]:
    """Return the busiest thread's CPU by metric name, of all processes or of those of one role."""
    window = window_samples(trial.samples)
    length_ns = _length_ns(window)
    marked = any(one.voluntary_switches is not None for sample in window for one in sample.processes)
    if length_ns <= 0 or not (trial.threads or marked):
        return {"busiest_thread_percent": Missing("threads were not read at both edges of the window")}
    used_ns = (one.cpu_ns for one in _of_role(trial.threads, window, role))
    return {"busiest_thread_percent": 100 * max(used_ns, default=0) / length_ns}


def _of_role(threads: Sequence[ThreadUsage], window: Sequence[Sample], role: str | None) -> list[ThreadUsage]:
    pids = {one.pid for sample in window for one in sample.processes if one.role == role}
    return [one for one in threads if role is None or one.pid in pids]


def _length_ns(window: Sequence[Sample]) -> int:
    return window[-1].monotonic_ns - window[0].monotonic_ns if window else 0

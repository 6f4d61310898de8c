"""CPU and memory of a subject over the window, from cumulative samples of its processes.

*Source*: proc(5), /proc/PID/stat utime and stime: cumulative, kept per process, lost when it ends.

Processes that were started and that ended while the window was open, by role.

*Source*: the sampler: a process is its number and the clock tick in which it was started.

How the subject's CPU time was spread over its threads in the window.

*Source*: proc(5), /proc/PID/task/TID/stat.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from operator import attrgetter

from prony.core.units import SECOND_NS, seconds
from prony.figures.missing import Missing, Value
from prony.model.observation import Phase, ProcessRow, Sample, ThreadUsage
from prony.model.trial import Trial

_Identity = tuple[int, int]
_NAMES = ("processes_started", "processes_ended", "restarts")


@dataclass(frozen=True, slots=True)
class Turnover:
    """How many processes of a role were started, how many ended, and how many of these were replaced.

    ``lost``: ended without being replaced. ``lasting``: of those that were started. A process that lives for
    one request is none of these.
    """

    started: int
    ended: int
    restarts: int = 0
    lost: int = 0
    lasting: int = 0


def turnover(window: Sequence[Sample]) -> dict[str, Turnover]:
    """Return the processes that started and ended between the window's first sample and its last, by role.

    *Definition*: started: seen, but not in the first sample; ended: seen, but not in the last. A process is
    lasting when it was seen more than once. A restart is one that ended and one that was started, of which at
    least one is lasting: servers that fork for each request restart nothing.
    *Assumptions*: a process that lives for less than the time between two samples may not be seen.
    """
    if len(window) < 2:
        return {}
    seen = Counter(one for sample in window for one in _roles(sample))
    roles = {one: role for sample in window for one, role in _roles(sample).items()}
    started, ended = set(seen) - set(_roles(window[0])), set(seen) - set(_roles(window[-1]))
    lasting = {one for one, count in seen.items() if count > 1}
    found = {}
    for role in sorted(set(roles.values())):
        own = {one for one in seen if roles[one] == role}
        found[role] = _turnover(own & started, own & ended, lasting)
    return found


def _turnover(started: set[_Identity], ended: set[_Identity], lasting: set[_Identity]) -> Turnover:
    lasting_started, lasting_ended = len(started & lasting), len(ended & lasting)
    restarts = max(min(lasting_started, len(ended)), min(len(started), lasting_ended))
    return Turnover(len(started), len(ended), restarts, max(0, lasting_ended - restarts), lasting_started)


def turnover_metrics(window: Sequence[Sample], role: str | None = None) -> dict[str, Value]:
    """Return the counts by metric name, over all roles or of one; restarts are counted role by role."""
    if len(window) < 2:
        return dict.fromkeys(_NAMES, _TOO_FEW)
    counted = [one for name, one in turnover(window).items() if role in (None, name)]
    parts = [(one.started, one.ended, one.restarts) for one in counted]
    return {name: float(sum(part[place] for part in parts)) for place, name in enumerate(_NAMES)}


def _roles(sample: Sample) -> dict[_Identity, str]:
    return {one.identity: one.role for one in sample.processes}


LEAST_UNSAMPLED_PERCENT = 2.0
"""CPU that no sample shows is below this where no process starts or ends: samples and counters are not read
at one moment and count in ticks of 10 ms. In windows of 2 s and 3 s both differed by up to 1.6 % of a core.
"""

_PEAK_NS = SECOND_NS // 2
"""Shorter stretches would show the kernel's ticks of 10 ms."""

_Amount = Callable[[ProcessRow], int | None]

_TOO_FEW = Missing("fewer than two samples of the processes in the window")


def window_samples(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the samples taken while the window was open."""
    return tuple(sample for sample in samples if sample.phase is Phase.WINDOW)


def without_roles(sample: Sample, others: Collection[str]) -> Sample:
    """Return a sample without the processes of these roles."""
    if not others:
        return sample
    return replace(sample, processes=tuple(one for one in sample.processes if one.role not in others))


def _of_role(sample: Sample, role: str | None) -> list[ProcessRow]:
    return [process for process in sample.processes if role is None or process.role == role]


def samples_by_role(samples: Sequence[Sample]) -> dict[str, tuple[Sample, ...]]:
    """Return the samples with the processes of one role alone, by role, sorted."""
    found: dict[str, list[list[ProcessRow]]] = {}
    for place, sample in enumerate(samples):
        for process in sample.processes:
            own = found.setdefault(process.role, [[] for _ in samples])
            own[place].append(process)
    return {
        role: tuple(replace(sample, processes=tuple(own)) for sample, own in zip(samples, rows, strict=True))
        for role, rows in sorted(found.items())
    }


def roles(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return the roles that processes had, sorted."""
    return tuple(sorted({process.role for sample in samples for process in sample.processes}))


def stayed_alone(window: Sequence[Sample], role: str) -> bool:
    """Return whether one process had this role in all samples: so none of it lived between two."""
    seen = [tuple(process.identity for process in _of_role(sample, role)) for sample in window]
    return len(set(seen)) == 1 and len(seen[0]) == 1


def cpu_share(
    samples: Sequence[Sample],
    role: str | None = None,
    used: Callable[[ProcessRow], int] = attrgetter("cpu_ns"),
) -> float | Missing:
    """Return the CPU of the subject's processes in cores (1.0 = one core).

    *Definition*: over the samples s_1 ... s_m of the window and the processes i (identity: pid and start
    time), sum of (c_i(last seen) - c_i(s_1)) / (t_m - t_1); c_i is user + system time or what else ``used``
    says, and c_i(s_1) is 0 for a process that was born later.
    *Assumptions*: what a process used after its last sample is lost: a lower bound when processes end in
    the window.
    """
    length_ns = window_length_ns(samples)
    if length_ns <= 0:
        return _TOO_FEW
    first: dict[_Identity, int] = {}
    last: dict[_Identity, int] = {}
    for index, sample in enumerate(samples):
        for process in _of_role(sample, role):
            now = used(process)
            first.setdefault(process.identity, now if index == 0 else 0)
            last[process.identity] = now
    return sum(last[identity] - first[identity] for identity in last) / length_ns


def _cpu_peak(window: Sequence[Sample], role: str | None) -> float | Missing:
    """Return the most cores used over half a second, or the shortest stretch of samples that is longer."""
    shares = (cpu_share(stretch, role) for stretch in _stretches(window))
    return max((one for one in shares if not isinstance(one, Missing)), default=_TOO_FEW)


def _stretches(window: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    """Yield the shortest stretch of half a second that ends with each sample, where there is one."""
    start = 0
    for end in range(1, len(window)):
        while window_length_ns(window[start + 1 : end + 1]) >= _PEAK_NS:
            start += 1
        if window_length_ns(window[start : end + 1]) >= _PEAK_NS:
            yield window[start : end + 1]


def _peak(samples: Sequence[Sample], role: str | None, amount: Callable[[ProcessRow], int]) -> Value:
    sums = [sum(amount(process) for process in _of_role(sample, role)) for sample in samples]
    return float(max(sums)) if sums else Missing("no sample of the processes in the window")


def _mark(samples: Sequence[Sample]) -> Sample | None:
    """Return the sample at the end of the load, the only one with values that are costly to read.

    It is without the processes that ended before their memory was read, such as those of a database whose
    connections close: the sample after it no longer has them, or they hold no page.
    """
    read = (k for k, one in enumerate(samples) if any(row.pss_bytes is not None for row in one.processes))
    at = max(read, default=None)
    if at is None or at + 1 == len(samples):
        return None if at is None else samples[at]
    there = {row.identity for row in samples[at + 1].processes if row.rss_bytes}
    stayed = (row for row in samples[at].processes if row.pss_bytes is not None or row.identity in there)
    return replace(samples[at], processes=tuple(stayed))


def _amounts(mark: Sample | None, role: str | None, amount: _Amount) -> list[int] | Missing:
    if mark is None:
        return Missing("not read at the end of the load")
    amounts = [amount(process) for process in _of_role(mark, role)]
    known = [value for value in amounts if value is not None]
    if len(known) < len(amounts):
        return Missing(f"could not be read for {len(amounts) - len(known)} of {len(amounts)} processes")
    return known


def _sum_at_end(mark: Sample | None, role: str | None, amount: _Amount) -> Value:
    amounts = _amounts(mark, role, amount)
    return amounts if isinstance(amounts, Missing) else float(sum(amounts))


def _mean_at_end(mark: Sample | None, role: str | None, amount: _Amount) -> Value:
    amounts = _amounts(mark, role, amount)
    if isinstance(amounts, Missing):
        return amounts
    return sum(amounts) / len(amounts) if amounts else Missing("no process at the end of the load")


def memory_metrics(samples: Sequence[Sample], role: str | None = None) -> dict[str, Value]:
    """Return the memory metrics by name, of all processes or of those of one role."""
    window, mark = window_samples(samples), _mark(samples)
    return {
        "rss_peak": _peak(window, role, lambda process: process.rss_bytes),
        "pss_end": _sum_at_end(mark, role, lambda process: process.pss_bytes),
        "uss_end": _sum_at_end(mark, role, lambda process: process.uss_bytes),
        "rss_high_water": _sum_at_end(mark, role, lambda process: process.rss_peak_bytes),
        "vsz_peak": _peak(window, role, lambda process: process.vsz_bytes),
        "rss_per_process": _mean_at_end(mark, role, lambda process: process.rss_bytes),
        "pss_per_process": _mean_at_end(mark, role, lambda process: process.pss_bytes),
        "vsz_per_process": _mean_at_end(mark, role, lambda process: process.vsz_bytes),
        "processes_max": _peak(window, role, lambda _: 1),
        "threads_max": _peak(window, role, lambda process: process.threads),
        "descriptors_end": _sum_at_end(mark, role, lambda process: process.descriptors),
    }


def _cpu_metrics(window: Sequence[Sample], role: str | None) -> dict[str, Value]:
    parts = {"cpu_percent": "cpu_ns", "cpu_user_percent": "user_ns", "cpu_system_percent": "system_ns"}
    cores = {name: cpu_share(window, role, attrgetter(part)) for name, part in parts.items()}
    cores["cpu_percent_peak"] = _cpu_peak(window, role)
    return {name: one if isinstance(one, Missing) else 100 * one for name, one in cores.items()}


def _switches(window: Sequence[Sample], role: str | None, count: _Amount) -> Value:
    """Return the switches per second between the window's marks, where they are counted."""
    marks = [sample for sample in window if any(count(one) is not None for one in sample.processes)]
    if len(marks) < 2:
        return Missing("not counted at both edges of the window")
    per_ns = cpu_share(marks, role, lambda process: count(process) or 0)
    return per_ns if isinstance(per_ns, Missing) else SECOND_NS * per_ns


def process_metrics(samples: Sequence[Sample], role: str | None = None) -> dict[str, Value]:
    """Return the subject's resources by metric name, of all processes or of those of one role."""
    window = window_samples(samples)
    return {
        **_cpu_metrics(window, role),
        **memory_metrics(samples, role),
        "voluntary_switches_per_s": _switches(window, role, lambda process: process.voluntary_switches),
        "involuntary_switches_per_s": _switches(window, role, lambda process: process.involuntary_switches),
        **turnover_metrics(window, role),
    }


def machine_metrics(samples: Sequence[Sample]) -> dict[str, Value]:
    """Return how all CPUs of the machine spent the window, and how much of its memory was in use.

    *Assumptions*: busy, idle and stolen time are disjoint, as in proc_stat(5).
    """
    window = window_samples(samples)
    memory = {"machine_memory_ratio": _memory_in_use(window)}
    names = ("machine_cpu_percent", "machine_cpu_ratio", "machine_steal_percent")
    length_ns = window_length_ns(window)
    if length_ns <= 0:
        return dict.fromkeys(names, _TOO_FEW) | memory
    first, last = window[0], window[-1]
    busy_ns = last.machine_busy_ns - first.machine_busy_ns
    steal_ns = last.machine_steal_ns - first.machine_steal_ns
    total_ns = busy_ns + steal_ns + last.machine_idle_ns - first.machine_idle_ns
    busy = 100 * seconds(busy_ns) / seconds(length_ns)
    shares: tuple[Value, ...] = (_TOO_FEW, _TOO_FEW)
    if total_ns > 0:
        shares = (busy_ns / total_ns, 100 * steal_ns / total_ns)
    return dict(zip(names, (busy, *shares), strict=True)) | memory


def _memory_in_use(window: Sequence[Sample]) -> Value:
    """Return the mean share of the machine's memory that was in use."""
    shares = [
        1 - one.gauges["memory_available_bytes"] / one.gauges["memory_bytes"]
        for one in window
        if one.gauges.get("memory_bytes") and "memory_available_bytes" in one.gauges
    ]
    return fsum(shares) / len(shares) if shares else Missing("no sample has the machine's memory")


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
    """Return the process that used most CPU in the window; None when threads were not read."""
    length_ns = window_length_ns(window_samples(trial.samples))
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
    length_ns = window_length_ns(window)
    marked = any(one.voluntary_switches is not None for sample in window for one in sample.processes)
    if length_ns <= 0 or not (trial.threads or marked):
        return {"busiest_thread_percent": Missing("threads were not read at both edges of the window")}
    used_ns = (one.cpu_ns for one in _threads_of_role(trial.threads, window, role))
    return {"busiest_thread_percent": 100 * max(used_ns, default=0) / length_ns}


def _threads_of_role(
    threads: Sequence[ThreadUsage], window: Sequence[Sample], role: str | None
) -> list[ThreadUsage]:
    pids = {one.pid for sample in window for one in sample.processes if one.role == role}
    return [one for one in threads if role is None or one.pid in pids]


_AT_WORK = 0.01


def threads_at_work(window: Sequence[Sample]) -> int:
    """Return how many threads the processes have together whose role works: a server runs on no more CPUs.

    *Definition*: a role works of which a process used 1 % of a CPU from the first sample of the window to the
    last, or was not in all of them, so that its CPU time is not known. Each of its processes has its most
    threads, idle ones too: they may work under more load.
    *Assumptions*: a role of which all only wait, such as a master, takes no requests under more load either.

    >>> threads_at_work(())
    0
    """
    seen: dict[_Identity, list[ProcessRow]] = {}
    for sample in window:
        for process in sample.processes:
            seen.setdefault(process.identity, []).append(process)
    least_ns = _AT_WORK * window_length_ns(window)
    at_work = {
        rows[0].role
        for rows in seen.values()
        if len(rows) < len(window) or rows[-1].cpu_ns - rows[0].cpu_ns >= least_ns
    }
    return sum(max(row.threads for row in rows) for rows in seen.values() if rows[0].role in at_work)


def window_length_ns(window: Sequence[Sample]) -> int:
    """Return the time from the first sample of a window to its last; 0 without one."""
    return window[-1].monotonic_ns - window[0].monotonic_ns if window else 0

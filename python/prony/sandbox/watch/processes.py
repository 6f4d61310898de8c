"""The subject's processes over time, by role: CPU and memory, twice a second and at both ends of the window.

*Source*: clock_getcpuclockid(3): the clock of a process is the complement of its number, and 2.

>>> role_of((RoleRule("master"), RoleRule("worker", "child")), is_main=False, command="gunicorn: worker")
'worker'

Which part of a subject a process belongs to: server, frontend or service.

>>> main_of(7, [8, 7])
7

The roles of monitors: count between two moments, read the values of one moment.

>>> [one.__name__ for one in (WindowCounters, Gauges)]
['WindowCounters', 'Gauges']

>>> process_clock_ns(os.getpid()) > 0
True
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from prony.core.trees import beginning
from prony.core.units import KIB, MIB
from prony.model.launch import RoleRule
from prony.model.observation import Phase, ProcessRow, Sample, ThreadUsage
from prony.model.sandbox import Placement
from prony.sandbox.identity import stat_fields
from prony.sandbox.watch.machine import parse_cpu_times, read_machine_cpu
from prony.sandbox.watch.native import CompiledSource, NativeDetail, NativeProcess


class WindowCounters(Protocol):
    """Reads cumulative figures at the start and at the end of the window."""

    def open_window(self) -> None:
        """Read the figures at the start of the window."""

    def close_window(self) -> None:
        """Read the figures at the end of the window."""

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences by name, and the reason for each missing one."""


class Gauges(Protocol):
    """Reads momentary values, by name, with each sample of the processes."""

    def read(self) -> dict[str, int]:
        """Return the values that are cheap enough to read with every sample."""

    def missing(self) -> dict[str, str]:
        """Return the reason for each value that could not be read."""

    def close(self) -> None:
        """Stop reading."""


@runtime_checkable
class EdgeGauges(Gauges, Protocol):
    """Reads more, or newer, values at both ends of the window."""

    def read_at_open(self) -> dict[str, int]:
        """Return them at the start of the window."""

    def read_at_close(self) -> dict[str, int]:
        """Return them at the end of the window."""


def main_of(pid: int, mains: Sequence[int]) -> int:
    """Return the one of ``mains`` that ``pid`` is, descends from, or else belongs to.

    A daemon leaves its parent. It keeps its control group (with control groups each part has one of its own),
    or else its session, or its program: the first of these that it shares with exactly one of ``mains``
    decides. If none decides, it belongs to the first of ``mains``.

    *Source*: cgroups(7), setsid(2), proc_pid_exe(5).
    """
    above = _main_above(pid, mains)
    if above is not None:
        return above
    for mark in (_groups, _session, _program):
        own = mark(pid)
        alike = [main for main in mains if own is not None and mark(main) == own]
        if len(alike) == 1:
            return alike[0]
    return mains[0]


def _main_above(pid: int, mains: Sequence[int]) -> int | None:
    while pid > 1 and pid not in mains:
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return pid if pid in mains else None


def _groups(pid: int) -> str | None:
    return _read(lambda: Path(f"/proc/{pid}/cgroup").read_text(errors="replace"))


def _session(pid: int) -> str | None:
    fields = stat_fields(pid)
    return fields[3] if fields else None


def _program(pid: int) -> str | None:
    return _read(lambda: str(Path(f"/proc/{pid}/exe").readlink()))


def _read(action: Callable[[], str]) -> str | None:
    try:
        return action()
    except OSError:
        return None


def step_aside(cpus: Collection[int]) -> None:
    """Give the calling thread the lowest priority, and these CPUs."""
    # On Linux both are of the calling thread alone (sched(7)): the process keeps its own.
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, 19)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, cpus)


Identity = tuple[int, int]
"""What identifies a process: its number, and the clock tick in which it was started."""

_Thread = tuple[Identity, int]


class ThreadTimes:
    """Keeps the threads' CPU times of both edges of the window.

    A thread that started within the window counts with all its time; one that ended within it is lost.
    """

    def __init__(self) -> None:
        self._opened: dict[_Thread, int] = {}
        self._used: dict[_Thread, ThreadUsage] = {}

    def open_window(self, process: Identity, detail: NativeDetail) -> None:
        """Keep the times of one process's threads at the start of the window."""
        self._opened |= {(process, thread.tid): thread.cpu_ns for thread in detail.threads}

    def close_window(self, process: Identity, detail: NativeDetail) -> None:
        """Keep what one process's threads have used by the end of the window."""
        for thread in detail.threads:
            used_ns = thread.cpu_ns - _earlier(self._opened, (process, thread.tid), thread.cpu_ns)
            usage = ThreadUsage(process[0], thread.tid, thread.name, used_ns)
            self._used[process, thread.tid] = usage

    def usage(self) -> tuple[ThreadUsage, ...]:
        """Return what each thread used, the busiest first, without those that used nothing."""
        busy = (one for one in self._used.values() if one.cpu_ns > 0)
        return tuple(sorted(busy, key=lambda one: -one.cpu_ns))


def _earlier(opened: Mapping[_Thread, int], thread: _Thread, cpu_ns: int) -> int:
    before_ns = opened.get(thread, 0)
    # Less than before: the kernel has given the number to another thread.
    return before_ns if before_ns <= cpu_ns else 0


# 2 Hz: 50 processes cost 0.2 % of a core. The kernel counts in clock ticks of 10 ms, so more often adds
# little.
_PERIOD_S = 0.5
# Of one process's command line, of all of a phase, and of each one beyond these. In bytes.
_LONGEST_COMMAND, _MOST_COMMANDS, _SHORT_COMMAND = 64 * KIB, 32 * MIB, 256
_UNKNOWN_ROLE = "other"
_SERVING = ("server", "worker")


def role_of(rules: Sequence[RoleRule], is_main: bool, command: str) -> str:
    """Return the role of a process by the first rule that fits; ``other`` when none fits."""
    for rule in rules:
        match rule.where:
            case "main":
                fits = is_main
            case "child":
                fits = not is_main
            case "command":
                fits = rule.pattern in command
        if fits:
            return rule.role
    return _UNKNOWN_ROLE


class ProcessMonitor:
    """Samples the processes of ``source`` in a thread of the lowest priority on the generator's CPUs, and
    those that ``beside`` returns with their roles.

    ``mains``: for each started process, the rules that give roles to itself and to its descendants (see
    `main_of`).

    As a context manager it starts and stops. ``enter``, ``open_window`` and ``close_window`` mark the phases;
    they sample at once, so that the first and the last sample lie at the ends of the window. These two
    samples also read what is expensive: peaks, switches, descriptors and threads; the last one also PSS and
    USS.
    """

    def __init__(
        self,
        source: CompiledSource,
        mains: Mapping[int, Sequence[RoleRule]],
        placement: Placement,
        gauges: Sequence[Gauges] = (),
        beside: Callable[[], Sequence[tuple[str, NativeProcess]]] = tuple,
    ) -> None:
        self._mains, self._beside = mains, beside
        self._roots: dict[Identity, int] = {}
        self._cpus = placement.generator_cpus
        self._source = source
        self._gauges = tuple(gauges)
        self._edges = [one for one in self._gauges if isinstance(one, EdgeGauges)]
        self._threads = ThreadTimes()
        self._samples: list[Sample] = []
        self._commands: dict[Identity, str] = {}
        self._commands_length = 0
        self._phase = Phase.IDLE
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._watch, name="prony-processes", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def sample(self) -> None:
        """Take a sample now, in the current phase."""
        with self._lock:
            self._look()

    def enter(self, phase: Phase) -> None:
        """End the phase with a sample, and begin the next one with a sample."""
        with self._lock:
            self._look()
            self._phase = phase
            self._look()

    def open_window(self) -> None:
        """Begin the window; its first sample reads more than the others."""
        with self._lock:
            self._look()
            self._phase = Phase.WINDOW
            self._look()
            self._mark(self._threads.open_window, [one.read_at_open() for one in self._edges])

    def close_window(self) -> None:
        """End the window; its last sample reads more than the others, PSS and USS too."""
        with self._lock:
            self._look()
            self._mark(self._threads.close_window, [one.read_at_close() for one in self._edges])
            self._samples[-1] = self._with_memory(self._samples[-1])
            self._phase = Phase.DRAIN
            self._look()

    def threads(self) -> tuple[ThreadUsage, ...]:
        """Return what each thread used in the window, without those that used nothing."""
        return self._threads.usage()

    def serving(self) -> tuple[int, ...]:
        """Return the processes of the last sample that answer requests."""
        with self._lock:
            rows = self._samples[-1].processes if self._samples else ()
            return tuple(row.pid for row in rows if row.role in _SERVING)

    def workers(self) -> tuple[int, ...]:
        """Return the workers of the last sample."""
        with self._lock:
            rows = self._samples[-1].processes if self._samples else ()
            return tuple(row.pid for row in rows if row.role == "worker")

    def stop(self) -> None:
        """Stop watching; a second call does nothing.

        *Errors*: the error that ended the thread.
        """
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def samples(self) -> tuple[Sample, ...]:
        """Return the samples so far, in order."""
        with self._lock:
            return tuple(self._samples)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _watch(self) -> None:
        step_aside(self._cpus)
        next_s = time.monotonic()
        try:
            while not self._ended.wait(max(0.0, next_s - time.monotonic())):
                self.sample()
                next_s += _PERIOD_S
        except Exception as error:  # raised again by stop, in the caller's thread
            self._failure = error

    def _look(self) -> None:
        found = self._source.sample()
        now_ns = time.monotonic_ns()
        machine = read_machine_cpu()
        beside = self._beside()
        rows = (
            *(self._row(one, self._role(one)) for one in found),
            *(self._row(one, role) for role, one in beside),
        )
        gauges = {name: value for one in self._gauges for name, value in one.read().items()}
        times = (machine.busy_ns, machine.idle_ns, machine.steal_ns)
        self._samples.append(Sample(now_ns, self._phase, rows, *times, gauges))

    def _mark(
        self, keep: Callable[[Identity, NativeDetail], None], more: Sequence[Mapping[str, int]]
    ) -> None:
        """Add what is expensive to the last sample: ``keep`` gets each process's detail, ``more`` are
        gauges.
        """
        sample, rows = self._samples[-1], []
        for row in sample.processes:
            detail = self._source.detail(row.pid)
            if detail is not None:
                keep((row.pid, row.start_time_ticks), detail)
            rows.append(row if detail is None else _detailed(row, detail))
        gauges = {name: value for found in more for name, value in found.items()}
        self._samples[-1] = replace(sample, processes=tuple(rows), gauges={**sample.gauges, **gauges})

    def _role(self, process: NativeProcess) -> str:
        return role_of(self._rules(process), process.pid in self._mains, self._command(process))

    def _row(self, process: NativeProcess, role: str) -> ProcessRow:
        return ProcessRow(
            pid=process.pid,
            start_time_ticks=process.start_time_ticks,
            role=role,
            command=self._command(process),
            user_ns=process.user_ns,
            system_ns=process.system_ns,
            rss_bytes=process.rss_bytes,
            vsz_bytes=process.vsz_bytes,
            threads=process.threads,
        )

    def _rules(self, process: NativeProcess) -> Sequence[RoleRule]:
        if len(self._mains) == 1:
            return next(iter(self._mains.values()))
        key = (process.pid, process.start_time_ticks)
        if key not in self._roots:
            self._roots[key] = main_of(process.pid, list(self._mains))
        return self._mains[self._roots[key]]

    def _command(self, process: NativeProcess) -> str:
        # Once for each process and phase: servers rename their workers soon after the start (setproctitle).
        key = (process.pid, process.start_time_ticks)
        if key not in self._commands:
            # Whoever starts many processes of long names keeps the beginnings of them.
            most = _LONGEST_COMMAND if self._commands_length < _MOST_COMMANDS else _SHORT_COMMAND
            self._commands[key] = _read_command(process.pid, most)
            self._commands_length += len(self._commands[key])
        return self._commands[key]

    def _with_memory(self, sample: Sample) -> Sample:
        rows = []
        for row in sample.processes:
            memory = self._source.memory(row.pid)
            pss, uss = (memory.pss_bytes, memory.uss_bytes) if memory else (None, None)
            rows.append(replace(row, pss_bytes=pss, uss_bytes=uss))
        self._commands.clear()
        self._commands_length = 0
        return replace(sample, processes=tuple(rows))


def _detailed(row: ProcessRow, detail: NativeDetail) -> ProcessRow:
    return replace(
        row,
        rss_peak_bytes=detail.rss_peak_bytes,
        voluntary_switches=sum(thread.voluntary_switches for thread in detail.threads),
        involuntary_switches=sum(thread.involuntary_switches for thread in detail.threads),
        descriptors=detail.descriptors,
    )


def _read_command(pid: int, most_bytes: int) -> str:
    """Return the beginning of a process's command line, or its name in brackets where it has none."""
    try:
        command = beginning(f"/proc/{pid}/cmdline", most_bytes).replace(b"\0", b" ").strip()
        name = b"" if command else b"[" + Path(f"/proc/{pid}/comm").read_bytes().strip() + b"]"
    except OSError:
        return ""
    return (command or name).decode(errors="replace")


# --- CPU time by the clocks of processes, which the kernel's ticks do not round ---------------------------


_STAT = Path("/proc/stat")

PidTimes = Mapping[int, int]
"""CPU time in ns by process."""


def process_clock_ns(pid: int) -> int | None:
    """Return the CPU time of a process and its ended threads; None: it is gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def clocks_of(pids: Iterable[int]) -> PidTimes:
    """Return the CPU times of those processes that are there."""
    read = ((pid, process_clock_ns(pid)) for pid in pids)
    return {pid: cpu_ns for pid, cpu_ns in read if cpu_ns is not None}


def used_ns(before: PidTimes, after: PidTimes) -> int:
    """Return what processes used between two readings; one that has ended by then counts for nothing.

    >>> used_ns({7: 100, 8: 5}, {7: 130, 9: 4})
    34
    """
    return sum(cpu_ns - before.get(pid, 0) for pid, cpu_ns in after.items())


@dataclass(frozen=True, slots=True)
class Clocks:
    """CPU times at one moment: of each subject by its number, of Prony with its generators, of the programs
    that subjects ask, of the CPUs. ``waited``: by subject, of the children that it has waited for.
    """

    subjects: Mapping[int, PidTimes]
    prony: PidTimes
    asked: PidTimes
    busy_ns: int
    steal_ns: int
    waited: Mapping[int, int]


class ClockReader:
    """Reads the clocks of subjects, by the roots of their processes. ``cpus``: those that are watched;
    ``asked``: the roots of programs that subjects ask.
    """

    def __init__(self, trees: Mapping[int, int], cpus: Collection[int], asked: Iterable[int] = ()) -> None:
        self._sources = {number: CompiledSource(tree) for number, tree in trees.items()}
        self._own = CompiledSource(os.getpid(), include_root=True)
        self._asked = [CompiledSource(pid, include_root=True) for pid in asked]
        self._cpus = tuple(cpus)

    def read(self) -> Clocks:
        """Return what all have used up to now."""
        sampled = {number: source.sample() for number, source in self._sources.items()}
        subjects = {number: _times(processes) for number, processes in sampled.items()}
        theirs = {pid for times in subjects.values() for pid in times}
        asked = [_times(one.sample()) for one in self._asked]
        times = parse_cpu_times(_STAT.read_text(), self._cpus, os.sysconf("SC_CLK_TCK")).values()
        return Clocks(
            subjects,
            {pid: cpu_ns for pid, cpu_ns in _times(self._own.sample()).items() if pid not in theirs},
            {pid: cpu_ns for one in asked for pid, cpu_ns in one.items() if pid not in theirs},
            sum(one.busy_ns for one in times),
            sum(one.steal_ns for one in times),
            {number: sum(one.waited_ns for one in processes) for number, processes in sampled.items()},
        )


def _times(processes: Sequence[NativeProcess]) -> PidTimes:
    """Return CPU times with those of the children that each process has waited for."""
    clocks = clocks_of(process.pid for process in processes)
    return {one.pid: clocks[one.pid] + one.waited_ns for one in processes if one.pid in clocks}

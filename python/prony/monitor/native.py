"""The parts of the compiled module that monitors use.

Must not know the monitors.

>>> CompiledSource.__name__
'CompiledSource'
"""

from collections.abc import Sequence
from typing import Protocol


class NativeProcess(Protocol):
    """One process. CPU times are cumulative since its start."""

    @property
    def pid(self) -> int: ...  # noqa: D102
    @property
    def parent_pid(self) -> int: ...  # noqa: D102
    @property
    def start_time_ticks(self) -> int: ...  # noqa: D102
    @property
    def user_ns(self) -> int: ...  # noqa: D102
    @property
    def system_ns(self) -> int: ...  # noqa: D102
    @property
    def waited_ns(self) -> int: ...  # noqa: D102
    @property
    def rss_bytes(self) -> int: ...  # noqa: D102
    @property
    def vsz_bytes(self) -> int: ...  # noqa: D102
    @property
    def threads(self) -> int: ...  # noqa: D102


class NativeMemory(Protocol):
    """A process's memory, with shared pages divided among the processes that share them (PSS), or without
    shared pages (USS).
    """

    @property
    def pss_bytes(self) -> int: ...  # noqa: D102
    @property
    def uss_bytes(self) -> int: ...  # noqa: D102


class NativeThread(Protocol):
    """One thread. CPU time and switches are cumulative since its start."""

    @property
    def tid(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def cpu_ns(self) -> int: ...  # noqa: D102
    @property
    def voluntary_switches(self) -> int: ...  # noqa: D102
    @property
    def involuntary_switches(self) -> int: ...  # noqa: D102


class NativeDetail(Protocol):
    """What is read of a process at both ends of the window: peak memory, open descriptors, threads."""

    @property
    def rss_peak_bytes(self) -> int | None: ...  # noqa: D102
    @property
    def descriptors(self) -> int | None: ...  # noqa: D102
    @property
    def threads(self) -> Sequence[NativeThread]: ...  # noqa: D102


class NativeSchedule(Protocol):
    """What one thread did while its switches were watched, in ns; as `observation.ThreadSchedule`."""

    @property
    def pid(self) -> int: ...  # noqa: D102
    @property
    def tid(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def running_ns(self) -> int: ...  # noqa: D102
    @property
    def preempted_ns(self) -> int: ...  # noqa: D102
    @property
    def blocked_ns(self) -> int: ...  # noqa: D102
    @property
    def unknown_ns(self) -> int: ...  # noqa: D102
    @property
    def preemptions(self) -> int: ...  # noqa: D102
    @property
    def waits(self) -> int: ...  # noqa: D102


class NativeWatch(Protocol):
    """Watches the switches of threads. *Errors*: RuntimeError where the kernel refuses."""

    def add(self, pid: int, /) -> int:
        """Watch a process's threads that are not watched yet; return how many were added."""
        ...

    def begin(self) -> None:
        """Count from now on."""
        ...

    def drain(self) -> None:
        """Read what was recorded."""
        ...

    def finish(self) -> tuple[Sequence[NativeSchedule], int]:
        """Return what each thread did, the busiest first, and how many records were lost."""
        ...


class ProcessSource(Protocol):
    """Where samples of the processes below a root come from."""

    def sample(self) -> Sequence[NativeProcess]:
        """Return the processes as they are now."""
        ...

    def memory(self, pid: int) -> NativeMemory | None:
        """Return a process's memory; null when it is gone or may not be read."""
        ...

    def detail(self, pid: int) -> NativeDetail | None:
        """Return a process's detail; null when it is gone or may not be read."""
        ...


class CompiledSource:
    """See ``ProcessSource``: the processes below ``tree_pid``, by the compiled sampler.

    ``include_root``: include ``tree_pid`` itself.
    """

    def __init__(self, tree_pid: int, include_root: bool = False) -> None:
        # Imported where it is used: archives can be read without it.
        from prony import _engine

        self._sampler = _engine.ProcessSampler(tree_pid, include_root)
        self._memory = _engine.process_memory
        self._detail = _engine.process_detail

    def sample(self) -> Sequence[NativeProcess]:
        """Return the processes as they are now."""
        return self._sampler.sample()

    def memory(self, pid: int) -> NativeMemory | None:
        """Return a process's memory; null when it is gone or may not be read."""
        return self._memory(pid)

    def detail(self, pid: int) -> NativeDetail | None:
        """Return a process's detail; null when it is gone or may not be read."""
        return self._detail(pid)


def open_switch_watch(cpus: Sequence[int]) -> NativeWatch:
    """Return a watch of no thread yet; only what runs on ``cpus`` is seen."""
    from prony import _engine

    return _engine.SwitchWatch(list(cpus))


def tree_cpu(root: int) -> dict[tuple[int, int], int]:
    """Return the CPU time (ns) of a process and all below it, by pid and start time.

    Each process counts its own time and that of its children that have ended and were waited for. The sum
    over a tree therefore misses only children whose parent ignores their end.
    """
    from prony import _engine

    found = _engine.ProcessSampler(root, include_root=True).sample()
    return {(one.pid, one.start_time_ticks): one.user_ns + one.system_ns + one.waited_ns for one in found}

"""The parts of the compiled module that monitors use.

>>> CompiledSource.__name__
'CompiledSource'
"""

from collections.abc import Sequence

from prony import _engine

NativeProcess = _engine.ProcessSample
"""One process. CPU times are cumulative since its start."""
NativeDetail = _engine.Detail
"""What is read of a process at both ends of the window: peak memory, open descriptors, threads."""
NativeSchedule = _engine.ThreadSchedule
"""What one thread did while its switches were watched, in ns; as `observation.ThreadSchedule`."""
NativeWatch = _engine.SwitchWatch
"""Watches the switches of threads on the CPUs given. *Errors*: RuntimeError where the kernel refuses."""
NativeStackWatch = _engine.StackWatch
"""Samples the stacks of threads on the CPUs given. *Errors*: RuntimeError where the kernel refuses."""


class CompiledSource:
    """The processes below ``tree_pid``, by the compiled sampler. ``include_root``: itself, too."""

    def __init__(self, tree_pid: int, include_root: bool = False) -> None:
        self._sampler = _engine.ProcessSampler(tree_pid, include_root)

    def sample(self) -> Sequence[NativeProcess]:
        """Return the processes as they are now."""
        return self._sampler.sample()

    def memory(self, pid: int) -> _engine.Memory | None:
        """Return a process's memory: PSS, in which what several share is divided, and USS, without it; None
        when it is gone or may not be read.
        """
        return _engine.process_memory(pid)

    def detail(self, pid: int) -> NativeDetail | None:
        """Return a process's detail; None when it is gone or may not be read."""
        return _engine.process_detail(pid)


def tree_cpu(root: int) -> dict[tuple[int, int], int]:
    """Return the CPU time (ns) of a process and all below it, by pid and start time.

    Each process counts its own time and that of its children that have ended and were waited for. The sum
    over a tree therefore misses only children whose parent ignores their end.
    """
    found = CompiledSource(root, include_root=True).sample()
    return {(one.pid, one.start_time_ticks): one.user_ns + one.system_ns + one.waited_ns for one in found}

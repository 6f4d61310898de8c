"""What each thread of a subject used over the window.

Must not know where threads are read.

>>> ThreadTimes().usage()
()
"""

from collections.abc import Mapping

from prony.model.observation import ThreadUsage
from prony.monitor.native import NativeDetail

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

"""Whether processes stay on their CPUs.

Must not know why they should.

>>> strays(os.getpid(), os.sched_getaffinity(0))
()
"""

import os
from collections.abc import Iterable

from prony.sandbox.identity import descendants


def strays(tree_pid: int, cpus: Iterable[int]) -> tuple[int, ...]:
    """Return the processes below ``tree_pid`` that may run on other CPUs too: servers can change their
    CPUs.
    """
    allowed = set(cpus)
    return tuple(pid for pid in descendants(tree_pid) if not _affinity(pid) <= allowed)


def _affinity(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        # It has ended.
        return set()

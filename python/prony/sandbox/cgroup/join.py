"""How a process enters a group: by itself, between fork and exec, so that all it does is billed there.

Standard library only. Must not know what the group limits.

>>> join(())
"""

import os
from collections.abc import Iterable

__all__ = ["join"]


def join(paths: Iterable[str]) -> None:
    """Move the calling process into the group that these files (``Group.join_paths``) stand for.

    Before privileges are given up, and before the CPU affinity is set: up to Linux 6.1 entering a CPU set
    resets it.

    *Errors*: OSError; the process then is in some of the group's hierarchies and should end.
    """
    for path in paths:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            # 0 is the writer, in whatever PID namespace it lives (cgroup v2: "Processes").
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)

"""How a process enters a group: by itself, between fork and exec, so that the group counts all it does.

Standard library only. Must not know what the group limits.

>>> join(())
"""

import os
from collections.abc import Iterable


def join(paths: Iterable[str]) -> None:
    """Move the calling process into the group that these files (``Group.join_paths``) stand for.

    Call it before dropping privileges, and before setting the CPU affinity: up to Linux 6.1 entering a CPU
    set resets the affinity.

    *Errors*: OSError; the process may then be in some of the group's hierarchies and should exit.
    """
    for path in paths:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            # 0 means the writing process, in any PID namespace (cgroup v2: "Processes").
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)

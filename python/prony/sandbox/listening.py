"""The TCP ports on which a subject's processes listen, wherever they should. Must not know the subject.

>>> listening_ports(-1)
()
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from prony.sandbox.identity import descendants

# *Source*: proc_pid_net(5); include/net/tcp_states.h.
_TABLES = ("net/tcp", "net/tcp6")
_LISTENING = "0A"


def listening_ports(root_pid: int) -> tuple[int, ...]:
    """Return the ports on which ``root_pid`` and the processes below it listen, ascending."""
    pids = descendants(root_pid)
    own = {inode for pid in pids for inode in _sockets(pid)}
    found = {port for pid in pids[:1] for port, inode in _listeners(pid) if inode in own}
    return tuple(sorted(found))


def _listeners(pid: int) -> Iterator[tuple[int, str]]:
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in Path("/proc", str(pid), table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
                if target.startswith("socket:["):
                    yield target[8:-1]

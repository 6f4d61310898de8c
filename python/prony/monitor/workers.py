"""How a server's connections are spread over its workers, at the close of the window.

Must not know rules. Counters: ``workers.watched``, the processes of the role ``worker``;
``workers.connections``, those that they hold open at its address; ``workers.connections_most`` and
``workers.connections_least``, of one of them.

*Source*: sock_diag(7), inodes of accepted sockets; proc_pid_fd(5), links of the form ``socket:[inode]``.

>>> inode_of("socket:[81]"), inode_of("/dev/null")
(81, None)
"""

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from prony.model.address import Address, AddressKind
from prony.monitor.sock_diag import SockDiag

_SOCKET = re.compile(r"socket:\[(\d+)\]")
# Some microseconds for each descriptor, once, after the window.
_MOST_CONNECTIONS = 5000


def inode_of(link: str) -> int | None:
    """Return the inode of the socket that a descriptor is; null for anything else."""
    found = _SOCKET.fullmatch(link)
    return int(found[1]) if found else None


class WorkerConnections:
    """Counts at the close of the window how many connections at ``address`` each of ``workers`` holds."""

    def __init__(
        self, workers: Callable[[], Sequence[int]], address: Address, open_diag: Callable[[], SockDiag]
    ) -> None:
        self._workers, self._address, self._open_diag = workers, address, open_diag
        self._found: dict[str, int] = {}
        self._missing: dict[str, str] = {}

    def open_window(self) -> None:
        """Read nothing: connections that are kept are spread as they are in the end."""

    def close_window(self) -> None:
        """Count."""
        workers = self._workers()
        if len(workers) < 2 or self._address.kind is AddressKind.UNIX:
            return
        try:
            with self._open_diag() as diag:
                accepted = diag.tcp_accepted(self._address.host, self._address.port)
            if len(accepted) > _MOST_CONNECTIONS:
                self._missing["workers.connections"] = f"more than {_MOST_CONNECTIONS} connections"
                return
            held = [_held(process, accepted) for process in workers]
        except OSError as error:
            self._missing["workers.connections"] = f"cannot be read: {error.strerror or error}"
            return
        self._found = {
            "workers.watched": len(held),
            "workers.connections": sum(held),
            "workers.connections_most": max(held),
            "workers.connections_least": min(held),
        }

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return them, and the reason for each missing one."""
        return dict(self._found), dict(self._missing)


def _held(process: int, accepted: Collection[int]) -> int:
    """Return how many of these sockets a process has open; none where it has ended."""
    folder = Path(f"/proc/{process}/fd")
    try:
        numbers = os.listdir(folder)  # noqa: PTH208 - names alone, without a look at each
    except FileNotFoundError:
        return 0
    return len({inode for number in numbers if (inode := _inode(folder / number)) in accepted})


def _inode(descriptor: Path) -> int | None:
    try:
        return inode_of(str(descriptor.readlink()))
    except FileNotFoundError:
        return None

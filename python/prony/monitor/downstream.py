"""Connections of a server to others: databases, caches, further servers.

Must not know the engine or the sandbox. Gauges:

- ``downstream.connections``: connections that were opened from there, and are not the generator's
- ``downstream.port``: the port of the peer that most of them have; ``downstream.at_port``: how many
- ``downstream.waits``: those on which a reply is due, at the port that has most such;
  ``downstream.waits_port``: that port
- ``downstream.sent``: segments with data that all of them sent since the first look, one a question where it
  is short

>>> commonest([Outgoing(5432, 7), Outgoing(5432, 8), Outgoing(6379, 9)]), commonest([])
((5432, 2), (0, 0))
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence, Set

from prony.monitor.sock_diag import Outgoing, SockDiag

# The kernel visits every connection of the network: 0.6 ms for four hundred. After each read it is left
# alone for so many times as long, so that reading takes 0.2 % of a core at most.
_REST = 500


def commonest(found: Sequence[Outgoing]) -> tuple[int, int]:
    """Return the port of the peer that most connections have, and how many these are; zeros without any."""
    ports = Counter(one.peer_port for one in found).most_common(1)
    return ports[0] if ports else (0, 0)


class DownstreamGauges:
    """Reads the connections in the network of ``open_diag`` that have none of ``ports`` at either end: those
    at which the subject listens for the generator. ``own``: the inodes of its sockets, where others are in
    that network too. After a failure it does not try again.
    """

    def __init__(
        self,
        ports: Collection[int],
        open_diag: Callable[[], SockDiag],
        own: Callable[[], Set[int]] | None = None,
    ) -> None:
        self._ports, self._own = frozenset(ports), own
        self._sent_by: dict[int, int] = {}
        self._sent: int | None = None
        self._rested_ns = 0
        self._reason: str | None = None
        self._diag: SockDiag | None = None
        try:
            self._diag = open_diag()
        except OSError as error:
            self._fail(error)

    def read(self) -> dict[str, int]:
        """Return the gauges; none where there is no such connection."""
        if self._diag is None or time.monotonic_ns() < self._rested_ns:
            return {}
        began_ns = time.thread_time_ns()
        try:
            found = self._outgoing(self._diag)
        except OSError as error:
            self._fail(error)
            return {}
        self._rested_ns = time.monotonic_ns() + _REST * (time.thread_time_ns() - began_ns)
        self._count(found)
        if not found:
            return {}
        port, at_port = commonest(found)
        waits_port, waits = commonest([one for one in found if one.waits])
        return {
            "downstream.connections": len(found),
            "downstream.port": port,
            "downstream.at_port": at_port,
            "downstream.waits": waits,
            "downstream.waits_port": waits_port,
            "downstream.sent": self._sent or 0,
        }

    def _count(self, found: Sequence[Outgoing]) -> None:
        """Add what each connection sent since the last look: of one that is new, all."""
        sent = sum(max(0, one.sent - self._sent_by.get(one.inode, 0)) for one in found)
        self._sent = 0 if self._sent is None else self._sent + sent
        self._sent_by |= {one.inode: one.sent for one in found}

    def _outgoing(self, diag: SockDiag) -> list[Outgoing]:
        found = diag.tcp_outgoing(self._ports)
        if self._own is None:
            return found
        own = self._own()
        return [one for one in found if one.inode in own]

    def inodes(self) -> frozenset[int]:
        """Return the inodes of all connections that were seen so far."""
        return frozenset(self._sent_by)

    def read_at_open(self) -> dict[str, int]:
        """Return nothing more."""
        return {}

    def read_at_close(self) -> dict[str, int]:
        """Return nothing more."""
        return {}

    def missing(self) -> dict[str, str]:
        """Return why they could not be read."""
        return {} if self._reason is None else {"downstream.connections": self._reason}

    def close(self) -> None:
        """Stop asking."""
        if self._diag is not None:
            self._diag.close()
            self._diag = None

    def _fail(self, error: OSError) -> None:
        self._reason = f"the kernel does not report connections: {error.strerror or error}"
        self.close()

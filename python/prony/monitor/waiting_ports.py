"""Ports that closed connections keep on the side that opened them, at the end of the window.

Must not know the engine, the sandbox or rules. Counters, in the trial's own network only:

- ``ports.waiting``: sockets in TIME_WAIT of connections that were opened from there, to the peer that most of
  them had; without the generator's, and without those that wait at a listener's port, which cost none
- ``ports.waiting_frontend``: those that a frontend had opened to the server behind it

A port is taken towards one peer only, an address and a port: another may be asked from the same one.
*Source*: RFC 9293, section 3.6.1; kernel, net/ipv4/inet_hashtables.c, __inet_hash_connect.

>>> waiting_ports([Outgoing(8000, 0), Outgoing(8000, 0), Outgoing(5432, 0)], behind=8000)
{'ports.waiting': 2, 'ports.waiting_frontend': 2}
"""

from collections import Counter
from collections.abc import Callable, Sequence

from prony.monitor.sock_diag import Outgoing, SockDiag


def waiting_ports(found: Sequence[Outgoing], behind: int | None) -> dict[str, int]:
    """Return the counters of such sockets; ``behind``: the port of a server behind a frontend."""
    by_peer = Counter((one.peer_port, one.peer_host) for one in found)
    to_server = max((count for (port, _), count in by_peer.items() if port == behind), default=0)
    front = {} if behind is None else {"ports.waiting_frontend": to_server}
    return {"ports.waiting": max(by_peer.values(), default=0), **front}


class WaitingPorts:
    """Reads them in the network of ``open_diag``. ``entrance``: the port to which the generator connects."""

    def __init__(self, entrance: int, behind: int | None, open_diag: Callable[[], SockDiag]) -> None:
        self._entrance, self._behind, self._open_diag = entrance, behind, open_diag
        self._found: dict[str, int] = {}
        self._reason = "the window did not close"

    def open_window(self) -> None:
        """Read nothing: what counts is how many ports are left in the end."""

    def close_window(self) -> None:
        """Read them."""
        try:
            with self._open_diag() as kernel:
                self._found = waiting_ports(kernel.tcp_waiting({self._entrance}), self._behind)
        except OSError as error:
            self._reason = f"the kernel does not report connections: {error.strerror or error}"

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return them, or the reason why there are none."""
        return dict(self._found), {} if self._found else {"ports.waiting": self._reason}

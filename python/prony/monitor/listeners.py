"""How long the accept queues of a subject's listeners are, how long they may be, and who is connected.

Must not know the engine or the sandbox. Gauges, for each process that the trial started (``server``,
``frontend``, a service):

- ``listen.<process>.queued``, ``listen.<process>.limit``: of its listener whose queue is the fullest
- ``listen.<process>.sockets``: how many listeners share its address (SO_REUSEPORT)
- ``established.<process>``: connections at its address, accepted or not; every other second and at marks

*Source*: netlink, sock_diag(7). The kernel compares with "more than": a queue holds one more than its limit.

>>> fullest([Listener(3, 128), Listener(6, 5)])
Listener(queued=6, limit=5)
"""

from collections.abc import Callable, Mapping, Sequence

from prony.model import Address, AddressKind
from prony.monitor.sock_diag import Listener, SockDiag

__all__ = ["ListenerGauges", "fullest"]

# The kernel looks at each connection to count those of one port: 5 ms for ten thousand of them.
_SAMPLES_BETWEEN_COUNTS = 4


def fullest(listeners: Sequence[Listener]) -> Listener:
    """Return the listener whose queue is nearest to its limit; of equals, the longest."""
    return max(listeners, key=lambda one: (one.queued / max(one.limit, 1), one.queued))


class ListenerGauges:
    """Reads the listeners at ``addresses``, by the name of their process, in the network of ``open_diag``.

    A kernel that does not answer is asked no more; ``missing`` has the reason.
    """

    def __init__(self, addresses: Mapping[str, Address], open_diag: Callable[[], SockDiag]) -> None:
        unix = {name for name, one in addresses.items() if one.kind is AddressKind.UNIX}
        self._tcp = {one.port: name for name, one in addresses.items() if name not in unix}
        self._unix = {addresses[name].host: name for name in unix}
        self._reads = 0
        self._reason: str | None = None
        self._seen: set[str] = set()
        self._diag: SockDiag | None = None
        try:
            self._diag = open_diag()
        except OSError as error:
            self._fail(error)

    def read(self) -> dict[str, int]:
        """Return the gauges of now."""
        self._reads += 1
        return self._asked(counting=self._reads % _SAMPLES_BETWEEN_COUNTS == 1)

    def read_at_mark(self) -> dict[str, int]:
        """Return all gauges of now."""
        return self._asked(counting=True)

    def close(self) -> None:
        """Ask no more."""
        if self._diag is not None:
            self._diag.close()
        self._diag = None

    def missing(self) -> dict[str, str]:
        """Return the reasons for what was never read."""
        names = (*self._tcp.values(), *self._unix.values())
        reason = self._reason or "the kernel knows no listener at its address"
        return {f"listen.{name}": reason for name in names if name not in self._seen}

    def _asked(self, *, counting: bool) -> dict[str, int]:
        if self._diag is None:
            return {}
        try:
            found = self._tcp_gauges(self._diag, counting) if self._tcp else {}
            return found | (self._unix_gauges(self._diag) if self._unix else {})
        except OSError as error:
            self._fail(error)
            return {}

    def _tcp_gauges(self, diag: SockDiag, counting: bool) -> dict[str, int]:
        by_name: dict[str, list[Listener]] = {}
        for port, listener in diag.tcp_listeners(self._tcp):
            by_name.setdefault(self._tcp[port], []).append(listener)
        counted = (
            {f"established.{name}": diag.tcp_established(port) for port, name in self._tcp.items()}
            if counting
            else {}
        )
        return self._queues(by_name) | counted

    def _unix_gauges(self, diag: SockDiag) -> dict[str, int]:
        by_name: dict[str, list[Listener]] = {}
        established = {f"established.{name}": 0 for name in self._unix.values()}
        for path, listener in diag.unix(self._unix):
            name = self._unix[path]
            # The kernel does not list those that wait to be accepted, as it does for TCP.
            established[f"established.{name}"] += 1 if listener is None else listener.queued
            if listener is not None:
                by_name.setdefault(name, []).append(listener)
        return self._queues(by_name) | established

    def _queues(self, by_name: Mapping[str, Sequence[Listener]]) -> dict[str, int]:
        self._seen.update(by_name)
        found: dict[str, int] = {}
        for name, listeners in by_name.items():
            one = fullest(listeners)
            found[f"listen.{name}.queued"] = one.queued
            found[f"listen.{name}.limit"] = one.limit
            found[f"listen.{name}.sockets"] = len(listeners)
        return found

    def _fail(self, error: OSError) -> None:
        self._reason = f"the kernel does not tell about sockets: {error.strerror or error}"
        self.close()

"""How long the accept queues of a subject's listeners are, how long they may be, and who is connected.

Must not know the engine or the sandbox. Gauges, for each process that the trial started (``server``,
``frontend``, a service):

- ``listen.<process>.queued``, ``listen.<process>.limit``: of its listener whose queue is the fullest
- ``listen.<process>.sockets``: how many listeners take connections to its address (SO_REUSEPORT)
- ``established.<process>``: connections at its address, accepted or not; every other second and at marks

And of each listener the fullest state in the window, for of several that share an address one may be full and
the others empty.

*Source*: netlink, sock_diag(7). The kernel compares with "more than": a queue holds one more than its limit.

>>> taking(Address("127.0.0.1", 80), [Listener(AddressKind.TCP4, "127.0.0.2", 80, 7, 0, 128)])
[]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from prony.model import Address, AddressKind, ListenerUsage
from prony.monitor.sock_diag import Listener, SockDiag

__all__ = ["ListenerGauges", "Watched", "fullest", "taking"]

# The kernel looks at each connection to count those of one port: 5 ms for ten thousand of them.
_SAMPLES_BETWEEN_COUNTS = 4


class Watched(Enum):
    """Which listeners are the subject's: all of a network of its own, or those at its addresses."""

    NETWORK = "network"
    ADDRESSES = "addresses"


def fullest(listeners: Sequence[Listener]) -> Listener:
    """Return the listener whose queue is nearest to its limit; of equals, the longest."""
    return max(listeners, key=_filled)


def _filled(one: Listener) -> tuple[float, int]:
    return one.queued / max(one.limit, 1), one.queued


def taking(address: Address, listeners: Sequence[Listener]) -> list[Listener]:
    """Return the listeners that the kernel gives connections to ``address``.

    *Definition*: those bound to just it, else those to any address; in each, a socket of IPv6 that takes IPv4
    only where there is none of IPv4. Several share it by SO_REUSEPORT.
    *Source*: kernel, net/ipv4/inet_hashtables.c, __inet_lookup_listener and compute_score; ipv6(7).
    """
    here = [one for one in listeners if one.port == address.port]
    for kind, host in _places(address):
        found = [one for one in here if (one.kind, one.host) == (kind, host) and _takes(one, address)]
        if found:
            return found
    return []


def _places(address: Address) -> Sequence[tuple[AddressKind, str]]:
    own = (address.kind, address.host)
    match address.kind:
        case AddressKind.TCP4:
            mapped = (AddressKind.TCP6, f"::ffff:{address.host}")
            return own, mapped, (AddressKind.TCP4, "0.0.0.0"), (AddressKind.TCP6, "::")  # noqa: S104
        case AddressKind.TCP6:
            return own, (AddressKind.TCP6, "::")
        case AddressKind.UNIX:
            return (own,)


def _takes(listener: Listener, address: Address) -> bool:
    return listener.takes_ipv4 or address.kind is not AddressKind.TCP4


class ListenerGauges:
    """Reads the listeners at ``addresses``, by the name of their process, in the network of ``open_diag``.

    ``watched``: whether all others in that network are the subject's too. A kernel that does not answer is
    asked no more; ``missing`` has the reason.
    """

    def __init__(
        self,
        addresses: Mapping[str, Address],
        open_diag: Callable[[], SockDiag],
        watched: Watched = Watched.ADDRESSES,
    ) -> None:
        self._addresses = addresses
        self._watched = watched
        self._reads = 0
        self._reason: str | None = None
        self._seen: set[str] = set()
        self._window: dict[int, _Kept] = {}
        self._in_window = False
        self._diag: SockDiag | None = None
        try:
            self._diag = open_diag()
        except OSError as error:
            self._fail(error)

    def read(self) -> dict[str, int]:
        """Return the gauges of now."""
        self._reads += 1
        return self._asked(counting=self._reads % _SAMPLES_BETWEEN_COUNTS == 1)

    def read_at_open(self) -> dict[str, int]:
        """Return all gauges of now; from here on, keep the fullest state of each listener."""
        self._window, self._in_window = {}, True
        return self._asked(counting=True)

    def read_at_close(self) -> dict[str, int]:
        """Return all gauges of now, the last that count."""
        found = self._asked(counting=True)
        self._in_window = False
        return found

    def usage(self) -> tuple[ListenerUsage, ...]:
        """Return how full each listener was in the window: first those of a process, by address and inode."""
        return tuple(sorted(map(_usage, self._window.values()), key=_order))

    def close(self) -> None:
        """Ask no more."""
        if self._diag is not None:
            self._diag.close()
        self._diag = None

    def missing(self) -> dict[str, str]:
        """Return the reasons for what was never read."""
        reason = self._reason or "the kernel knows no listener at its address"
        return {f"listen.{name}": reason for name in self._addresses if name not in self._seen}

    def _asked(self, *, counting: bool) -> dict[str, int]:
        if self._diag is None:
            return {}
        try:
            listeners = self._listeners(self._diag)
            by_name = {name: taking(address, listeners) for name, address in self._addresses.items()}
            counted = self._established(self._diag, by_name) if counting else {}
        except OSError as error:
            self._fail(error)
            return {}
        if self._in_window:
            self._keep(listeners, by_name)
        return self._queues(by_name) | counted

    def _listeners(self, diag: SockDiag) -> list[Listener]:
        """Return the listeners that may be the subject's."""
        unix = [one.host for one in self._addresses.values() if one.kind is AddressKind.UNIX]
        ports = {one.port for one in self._addresses.values() if one.kind is not AddressKind.UNIX}
        if self._watched is Watched.NETWORK:
            return diag.tcp_listeners() + diag.unix_listeners()
        return (diag.tcp_listeners(ports) if ports else []) + (diag.unix_listeners() if unix else [])

    def _established(self, diag: SockDiag, by_name: Mapping[str, Sequence[Listener]]) -> dict[str, int]:
        found = {}
        for name, address in self._addresses.items():
            if address.kind is AddressKind.UNIX:
                # The kernel does not list those that wait to be accepted, as it does for TCP.
                waiting = sum(one.queued for one in by_name[name])
                found[f"established.{name}"] = diag.unix_accepted(address.host) + waiting
            else:
                found[f"established.{name}"] = diag.tcp_established(address.host, address.port)
        return found

    def _queues(self, by_name: Mapping[str, Sequence[Listener]]) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, listeners in by_name.items():
            if listeners:
                self._seen.add(name)
                one = fullest(listeners)
                found[f"listen.{name}.queued"] = one.queued
                found[f"listen.{name}.limit"] = one.limit
                found[f"listen.{name}.sockets"] = len(listeners)
        return found

    def _keep(self, listeners: Sequence[Listener], by_name: Mapping[str, Sequence[Listener]]) -> None:
        names = {one.inode: name for name, found in by_name.items() for one in found}
        for one in listeners:
            if one.inode in names or self._watched is Watched.NETWORK:
                kept = self._window.setdefault(one.inode, _Kept(names.get(one.inode), one))
                kept.fullest = fullest((kept.fullest, one))
                kept.samples += 1

    def _fail(self, error: OSError) -> None:
        self._reason = f"the kernel does not tell about sockets: {error.strerror or error}"
        self.close()


@dataclass(slots=True)
class _Kept:
    """A listener in its fullest state so far."""

    process: str | None
    fullest: Listener
    samples: int = 0


def _usage(kept: _Kept) -> ListenerUsage:
    one = kept.fullest
    return ListenerUsage(
        kept.process, one.kind, _address(one), one.inode, one.queued, one.limit, kept.samples
    )


def _order(one: ListenerUsage) -> tuple[bool, str, str, str, int]:
    return one.process is None, one.process or "", one.kind, one.address, one.inode


def _address(listener: Listener) -> str:
    match listener.kind:
        case AddressKind.TCP4:
            return f"{listener.host}:{listener.port}"
        case AddressKind.TCP6:
            return f"[{listener.host}]:{listener.port}"
        case AddressKind.UNIX:
            return listener.host

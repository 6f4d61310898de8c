"""The accept queues of a subject's listeners, their limits, and the number of connections.

Gauges, for each process that the trial started (``server``, ``frontend``, a service):

- ``listen.<process>.queued``, ``listen.<process>.limit``: of its listener with the fullest queue
- ``listen.<process>.sockets``: how many listeners take connections to its address (SO_REUSEPORT)
- ``established.<process>``: connections at its address, accepted or not; every other second and at both
  ends of the window
- ``unread.<process>``: those whose bytes nobody has read yet, as often; not of Unix sockets

Also the fullest state of each listener in the window: of several that share an address one may be full while
the others are empty.

*Source*: netlink, sock_diag(7). The kernel tests for "more than": a queue holds one more than its limit.

How connections are spread over workers, at the close of the window: ``workers.watched``, the processes of the
role ``worker``; ``workers.connections``, those that they hold open at its address;
``workers.connections_most`` and ``workers.connections_least``, of one of them.

*Source*: sock_diag(7), inodes of accepted sockets; proc_pid_fd(5), links of the form ``socket:[inode]``.

>>> taking(Address("127.0.0.1", 80), [Listener(AddressKind.TCP4, "127.0.0.2", 80, 7, 0, 128)])
[]

Ports that closed connections keep on the side that opened them, at the end of the window. Counters, in the
trial's own network only:

- ``ports.waiting``: sockets in TIME_WAIT of connections that were opened from there, to the peer that most of
  them had; without the generator's, and without those that wait at a listener's port, which cost none
- ``ports.waiting_frontend``: those that a frontend had opened to the server behind it

A port is taken towards one peer only, an address and a port: another may be asked from the same one.
*Source*: RFC 9293, section 3.6.1; kernel, net/ipv4/inet_hashtables.c, __inet_hash_connect.

>>> waiting_ports([Outgoing(8000, 0), Outgoing(8000, 0), Outgoing(5432, 0)], behind=8000)
{'ports.waiting': 2, 'ports.waiting_frontend': 2}
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from prony.model.address import Address, AddressKind
from prony.model.observation import ListenerUsage
from prony.sandbox.identity import open_sockets
from prony.sandbox.watch.sock_diag import Listener, Outgoing, SockDiag


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


# To count the connections of one port the kernel visits all connections: 5 ms for ten thousand.
_SAMPLES_BETWEEN_COUNTS = 4


class Watched(Enum):
    """Which listeners belong to the subject: all in a network of its own, or those at its addresses."""

    NETWORK = "network"
    ADDRESSES = "addresses"


def fullest(listeners: Sequence[Listener]) -> Listener:
    """Return the listener whose queue is closest to its limit; among equals, the one with the longest
    queue.
    """
    return max(listeners, key=_filled)


def _filled(one: Listener) -> tuple[float, int]:
    return one.queued / max(one.limit, 1), one.queued


def taking(address: Address, listeners: Sequence[Listener]) -> list[Listener]:
    """Return the listeners that the kernel gives connections to ``address``.

    *Definition*: those bound to exactly this address, else those bound to any address; in both cases an IPv6
    socket that takes IPv4 counts only if there is no IPv4 socket. SO_REUSEPORT lets several share an address.
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

    ``watched``: whether all other listeners in that network belong to the subject too. If the kernel does not
    answer, it is not asked again; ``missing`` has the reason.
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
        """Return the gauges."""
        self._reads += 1
        return self._asked(counting=self._reads % _SAMPLES_BETWEEN_COUNTS == 1)

    def read_at_open(self) -> dict[str, int]:
        """Return all gauges; from now on, keep the fullest state of each listener."""
        self._window, self._in_window = {}, True
        return self._asked(counting=True)

    def read_at_close(self) -> dict[str, int]:
        """Return all gauges; later samples do not count."""
        found = self._asked(counting=True)
        self._in_window = False
        return found

    def usage(self) -> tuple[ListenerUsage, ...]:
        """Return how full each listener was in the window, sorted by process, address and inode."""
        return tuple(sorted(map(_usage, self._window.values()), key=_order))

    def close(self) -> None:
        """Stop asking the kernel."""
        if self._diag is not None:
            self._diag.close()
        self._diag = None

    def missing(self) -> dict[str, str]:
        """Return the reason for each value that was never read."""
        reason = self._reason or "the kernel has no listener at its address"
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
        """Return the listeners that may belong to the subject."""
        unix = [one.host for one in self._addresses.values() if one.kind is AddressKind.UNIX]
        ports = {one.port for one in self._addresses.values() if one.kind is not AddressKind.UNIX}
        if self._watched is Watched.NETWORK:
            return diag.tcp_listeners() + diag.unix_listeners()
        return (diag.tcp_listeners(ports) if ports else []) + (diag.unix_listeners() if unix else [])

    def _established(self, diag: SockDiag, by_name: Mapping[str, Sequence[Listener]]) -> dict[str, int]:
        found = {}
        for name, address in self._addresses.items():
            if address.kind is AddressKind.UNIX:
                # Unlike for TCP, the kernel does not list connections that wait to be accepted.
                waiting = sum(one.queued for one in by_name[name])
                found[f"established.{name}"] = diag.unix_accepted(address.host) + waiting
            else:
                found[f"established.{name}"], found[f"unread.{name}"] = diag.tcp_established(
                    address.host, address.port
                )
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
        self._reason = f"the kernel gives no information about sockets: {error.strerror or error}"
        self.close()


@dataclass(slots=True)
class _Kept:
    """The fullest state of a listener so far."""

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


# --- how a server's connections are spread over its workers, at the close of the window -------------------


# Some microseconds for each descriptor, once, after the window.
_MOST_CONNECTIONS = 5000


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
            if hidden := [pid for pid in workers if _is_hidden(f"/proc/{pid}/fd")]:
                raise PermissionError(errno.EACCES, f"the files of process {hidden[0]} may not be listed")
            held = Counter(pid for pid, inode in set(open_sockets(workers)) if inode in accepted)
        except OSError as error:
            self._missing["workers.connections"] = f"cannot be read: {error.strerror or error}"
            return
        self._found = {
            "workers.watched": len(workers),
            "workers.connections": held.total(),
            "workers.connections_most": max(held[pid] for pid in workers),
            "workers.connections_least": min(held[pid] for pid in workers),
        }

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return them, and the reason for each missing one."""
        return dict(self._found), dict(self._missing)


def _is_hidden(folder: str) -> bool:
    return os.access(folder, os.F_OK) and not os.access(folder, os.R_OK)

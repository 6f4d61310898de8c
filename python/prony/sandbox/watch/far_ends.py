"""Where sockets lead to on this machine: within their network, and into others of it, as of containers.

>>> from prony.model.address import AddressKind
>>> here = bytes((172, 18, 0, 1)) + bytes(12)
>>> there = bytes((172, 18, 0, 2)) + bytes(12)
>>> database = Listener(AddressKind.TCP4, "0.0.0.0", 5432, 90, 0, 128, uid=7, network=3)
>>> far_ends({1}, [Connected(here, 40000, there, 5432, 1)], [], [database], {there: 3})[0].name
'172.18.0.2:5432'
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from prony.sandbox.watch.sock_diag import Connected, ConnectedUnix, Listener, host_literal, packed_host

# Everybody's sockets: who logs or looks up a name there asks no service of its own.
_OF_THE_SYSTEM = ("/run/systemd/", "/run/dbus/", "/var/run/dbus/", "/run/nscd/", "/var/run/nscd/")

# By network, address and port.
_Listeners = Mapping[tuple[int, bytes, int], Listener]


class FarEnd(NamedTuple):
    """Where a subject's sockets lead to on this machine, with how many of them.

    ``inodes``: of the sockets at the other end, the listener's first; 0: not known. ``uid``: of who opened
    that; null: not known. ``cgroup``: the control group in which that was, by its inode; 0: not known.
    ``network``: the number of its network; 0: this one.
    """

    name: str
    inodes: tuple[int, ...]
    uid: int | None
    connections: int
    cgroup: int = 0
    network: int = 0


def far_ends(
    own: Collection[int],
    tcp: Sequence[Connected],
    unix: Sequence[ConnectedUnix],
    listeners: Sequence[Listener],
    hosts: Mapping[bytes, int] = MappingProxyType({}),
) -> list[FarEnd]:
    """Return where the sockets ``own`` (inodes) lead to, without each other and without those that were
    accepted. ``hosts``: the other network that has an address.
    """
    by_name: dict[tuple[str, int], list[tuple[Listener, int]]] = {}
    for name, listener, inode in (*_over_tcp(own, tcp, listeners, hosts), *_over_unix(own, unix, listeners)):
        by_name.setdefault((name, listener.network), []).append((listener, inode))
    return [
        FarEnd(name, (one.inode, *(inode for _, inode in found)), one.uid, len(found), one.cgroup, network)
        for (name, network), found in by_name.items()
        for one, _ in found[:1]
    ]


def _over_tcp(
    own: Collection[int], tcp: Sequence[Connected], listeners: Sequence[Listener], hosts: Mapping[bytes, int]
) -> Iterator[tuple[str, Listener, int]]:
    """Yield name, listener and the other end's inode of each connection that was opened by one of ``own``."""
    at = {(one.network, packed_host(one.host), one.port): one for one in listeners if one.port}
    ends = {(one.network, *one[:4]): one for one in tcp}
    rewritten = _rewritten(tcp, at)
    for end in tcp:
        if end.inode not in own or _listener_of(end, at):
            continue
        back = (end.peer_host, end.peer_port, end.host, end.port)
        other = ends.get((end.network, *back))
        if other is None and end.peer_host in hosts:
            other = Connected(*back, 0, hosts[end.peer_host])
        elif other is None and end.host == end.peer_host:
            other = rewritten.get(end.port)
        if other and other.inode not in own and (listener := _listener_of(other, at)):
            yield _name(other), listener, other.inode


def _rewritten(tcp: Sequence[Connected], at: _Listeners) -> dict[int, Connected]:
    """Return the accepted ends in other networks whose other ends nobody has, by the ports of these, where
    that is one alone.

    *Assumptions*: the kernel may lead a connection to an address of this machine into another network (DNAT,
    as for published ports of containers): both ends have other addresses then, but the port of who opened it
    is the same.
    """
    seen, found = {one[:4] for one in tcp}, defaultdict[int, list[Connected]](list)
    for one in tcp:
        back = (one.peer_host, one.peer_port, one.host, one.port)
        if one.network and back not in seen and _listener_of(one, at):
            found[one.peer_port].append(one)
    return {port: ends[0] for port, ends in found.items() if len(ends) == 1}


def _listener_of(end: Connected, at: _Listeners) -> Listener | None:
    """Return the listener that accepted a connection at this end; None: it was opened there."""
    return at.get((end.network, end.host, end.port)) or at.get((end.network, bytes(16), end.port))


def _name(end: Connected) -> str:
    if not end.network:
        return f"port {end.port}"
    host = host_literal(end.host)
    return f"[{host}]:{end.port}" if ":" in host else f"{host}:{end.port}"


def _over_unix(
    own: Collection[int], unix: Sequence[ConnectedUnix], listeners: Sequence[Listener]
) -> Iterator[tuple[str, Listener, int]]:
    at_path = {one.host: one for one in listeners if not one.port}
    ends = {one.inode: one for one in unix}
    for end in unix:
        other = ends.get(end.peer)
        if end.inode not in own or other is None or other.inode in own:
            continue
        if other.path in at_path and not other.path.startswith(_OF_THE_SYSTEM):
            yield other.path, at_path[other.path], other.inode

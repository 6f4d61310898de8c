"""What the kernel reports about sockets over netlink: listeners with their queues, established connections.

Needs no privileges. A netlink socket always sees the network namespace in which it was created. Must not
know subjects.

*Source*: sock_diag(7); kernel, include/uapi/linux/inet_diag.h, unix_diag.h; net/ipv4/inet_diag.c.

>>> with SockDiag() as kernel:
...     kernel.tcp_listeners({0})
[]
"""

import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from prony.model.address import AddressKind

_SOCK_DIAG = 4  # netlink's protocol
_BY_FAMILY, _DUMP_REQUEST = 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")

_FAMILIES = {AddressKind.TCP4: socket.AF_INET, AddressKind.TCP6: socket.AF_INET6}
# include/net/tcp_states.h
_ESTABLISHED, _TIME_WAIT, _LISTEN = 1, 6, 10

# Of struct inet_diag_req_v2: no address is requested; a cookie of all ones matches any socket.
_ANY_ADDRESS = struct.pack("!HH32xI8s", 0, 0, 0, b"\xff" * 8)
_INET_REQUEST = struct.Struct("=BBBxI")
# Asked for, and answered, with a connection: of struct tcp_info the milliseconds since it last sent and since
# it last received, and how many segments with data it sent (from Linux 4.6 on).
_INFO = 2
_SINCE, _SINCE_AT, _SENT, _SENT_AT = struct.Struct("=I4xI"), 44, struct.Struct("=I"), 156
# Of struct inet_diag_msg: the source's port, in the network's order, and its address; then, behind what does
# not matter of a listener, queues and inode.
_SOURCE_PORT, _SOURCE_PORT_AT = struct.Struct("!H"), 4
_INET_ANSWER = struct.Struct("=8x16s32xII4xI")
# Of the first of these queues, with the header of the message.
_QUEUED_AT = _HEADER.size + 56
_UID = struct.Struct("=64xI")
_ONLY_IPV6, _CGROUP = 11, 21

# Of a connection: the ports of both ends; both addresses, which have 4 bytes of an IPv4 one.
_PORTS, _PORTS_AT = struct.Struct("!HH"), 4
_HOST_FROM, _PEER_FROM, _PEER_TO = 8, 24, 40
# RFC 4291, section 2.5.5.2: an IPv4 address as an IPv6 socket has it.
_MAPPED = bytes(10) + b"\xff\xff"

# Of a filter: source address and port are (INET_DIAG_BC_S_COND, struct inet_diag_hostcond); 4 bytes behind
# the end of all conditions is "no". An IPv4 address may also be that of an IPv6 socket that takes both.
_IS_AT = 7
_CONDITION, _HOST = struct.Struct("=BBH"), struct.Struct("=BBxxi")
# The same of the destination, and a jump, which always goes its "no".
_IS_TO, _JUMP = 8, 1

_UNIX_REQUEST = struct.Struct("=BBHIIIII")
_UNIX_ANSWER = struct.Struct("=BBBxI8x")
_SHOW_NAME, _SHOW_PEER, _SHOW_QUEUE, _SHOW_UID = 0x01, 0x04, 0x10, 0x40
_NAME, _PEER, _QUEUE, _OWNER = 0, 2, 4, 7
_QUEUES, _NUMBER = struct.Struct("=II"), struct.Struct("=I")

_BUFFER_BYTES = 1 << 16
# The kernel normally answers at once; this is the limit for one that does not.
_TIMEOUT_S = 2.0


class Listener(NamedTuple):
    """A listening socket: where, its inode, how many connections wait to be accepted, and how many may.

    ``host`` is a literal, or the path of a Unix socket, whose ``port`` is 0; an abstract path begins with
    ``@``. ``takes_ipv4``: false for an IPv6 socket that does not accept IPv4. ``uid``: of who opened it; null
    where the kernel does not say. ``cgroup``: the inode of the control group (v2) in which it was opened; 0:
    not known. ``network``: the number of its network, 0 for this one.
    """

    kind: AddressKind
    host: str
    port: int
    inode: int
    queued: int
    limit: int
    takes_ipv4: bool = True
    uid: int | None = None
    cgroup: int = 0
    network: int = 0


class Outgoing(NamedTuple):
    """A connection that was opened from here: its peer's port, its inode, and the peer's address in 16 bytes.

    An IPv4 address is the same whichever kind of socket it is of. ``waits``: it sent after it last received,
    so that a reply is due; ``sent``: its segments with data so far. Both are 0 where the kernel says neither.
    """

    peer_port: int
    inode: int
    peer_host: bytes = bytes(16)
    waits: bool = False
    sent: int = 0


class Connected(NamedTuple):
    """One end of an established connection: its own address and its peer's, hosts in 16 bytes as in
    ``Outgoing``; its inode, 0 until it is accepted; the number of its network, 0 for this one.
    """

    host: bytes
    port: int
    peer_host: bytes
    peer_port: int
    inode: int
    network: int = 0


class ConnectedUnix(NamedTuple):
    """One end of a connected Unix socket: its inode, its peer's (0: hidden), and its path, empty at the end
    that connected.
    """

    inode: int
    peer: int
    path: str


class SockDiag:
    """Asks the kernel about the sockets of the network namespace in which it was created.

    As a context manager it is closed on exit. *Errors*: OSError, from every method.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        self._socket.settimeout(_TIMEOUT_S)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def tcp_listeners(self, ports: Collection[int] | None = None) -> list[Listener]:
        """Return the listeners on ``ports``, None: on any; several may share an address (SO_REUSEPORT)."""
        return [
            _tcp_listener(kind, message)
            for kind, family in _FAMILIES.items()
            for data in self._ask(_inet_request(family, _LISTEN))
            for message in _messages(data)
            if ports is None or _port(message) in ports
        ]

    def tcp_established(self, host: str, port: int) -> tuple[int, int]:
        """Return how many connections are established at a local address, accepted or not, and of how many
        nobody has read yet what came.

        The kernel visits every connection of the network to count them: about 0.4 ms for a thousand.
        """
        at = _at_address(host, port)
        requests = (_inet_request(family, _ESTABLISHED) + at for family in _FAMILIES.values())
        counts = [count_messages(data) for request in requests for data in self._ask(request)]
        return sum(count for count, _ in counts), sum(unread for _, unread in counts)

    def tcp_accepted(self, host: str, port: int) -> frozenset[int]:
        """Return the inodes of the connections at a local address that were accepted, and are open."""
        at = _at_address(host, port)
        inodes = (
            _INET_ANSWER.unpack_from(message)[-1]
            for family in _FAMILIES.values()
            for data in self._ask(_inet_request(family, _ESTABLISHED) + at)
            for message in _messages(data)
        )
        return frozenset(inode for inode in inodes if inode)

    def tcp_outgoing(self, ports: Collection[int]) -> list[Outgoing]:
        """Return the connections that were opened from here, without those that have one of ``ports`` at
        either end.

        Of a connection within the network the kernel has both ends; the one at a listener's port is left out.
        """
        return self._outgoing(ports, _ESTABLISHED)

    def tcp_waiting(self, ports: Collection[int]) -> list[Outgoing]:
        """Return what was opened from here and is in TIME_WAIT, chosen as by ``tcp_outgoing``: no inodes."""
        return self._outgoing(ports, _TIME_WAIT)

    def tcp_connected(self, ports: Collection[int]) -> list[Connected]:
        """Return all ends of established connections, without those that have one of ``ports`` at either
        end.
        """
        without = _without_ports(sorted(ports))
        return [
            _connected(message)
            for family in _FAMILIES.values()
            for data in self._ask(_inet_request(family, _ESTABLISHED) + without)
            for message in _messages(data)
        ]

    def _outgoing(self, ports: Collection[int], state: int) -> list[Outgoing]:
        listening = {one.port for one in self.tcp_listeners()} | set(ports)
        without = _without_ports(sorted(ports))
        return [
            _outgoing(message)
            for family in _FAMILIES.values()
            for data in self._ask(_inet_request(family, state, 1 << (_INFO - 1)) + without)
            for message in _messages(data)
            if _port(message) not in listening
        ]

    def unix_listeners(self) -> list[Listener]:
        """Return the listening Unix sockets."""
        found = []
        for inode, attributes in self._unix(_LISTEN, _SHOW_NAME | _SHOW_QUEUE | _SHOW_UID):
            queued, limit = _QUEUES.unpack(attributes[_QUEUE])
            path, uid = _path(attributes), attributes.get(_OWNER)
            owner = None if uid is None else _NUMBER.unpack(uid)[0]
            found.append(Listener(AddressKind.UNIX, path, 0, inode, queued, limit, False, owner))
        return found

    def unix_connected(self) -> list[ConnectedUnix]:
        """Return all ends of connected Unix sockets."""
        return [
            ConnectedUnix(inode, _NUMBER.unpack(attributes.get(_PEER, bytes(4)))[0], _path(attributes))
            for inode, attributes in self._unix(_ESTABLISHED, _SHOW_NAME | _SHOW_PEER)
        ]

    def unix_accepted(self, path: str) -> int:
        """Return how many accepted connections of the listener at ``path`` are still open."""
        return sum(_path(attributes) == path for _, attributes in self._unix(_ESTABLISHED, _SHOW_NAME))

    def _unix(self, state: int, shown: int) -> Iterator[tuple[int, Mapping[int, bytes]]]:
        """Yield inode and attributes of each Unix socket in a state."""
        request = _UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, 1 << state, 0, shown, *[0xFFFFFFFF] * 2)
        for data in self._ask(request):
            for message in _messages(data):
                inode = _UNIX_ANSWER.unpack_from(message)[3]
                yield inode, dict(_attributes(message[_UNIX_ANSWER.size :]))

    def _ask(self, request: bytes) -> Iterator[bytes]:
        """Yield the kernel's answer, one buffer of messages at a time."""
        length = _HEADER.size + len(request)
        self._socket.send(_HEADER.pack(length, _BY_FAMILY, _DUMP_REQUEST, 1, 0) + request)
        while True:
            data = self._socket.recv(_BUFFER_BYTES)
            kind = _HEADER.unpack_from(data)[1]
            if kind == _ERROR:
                number = -struct.unpack_from("=i", data, _HEADER.size)[0]
                raise OSError(number, os.strerror(number))
            if kind == _DONE:
                return
            yield data
            if not _equal_messages(data) and _last_kind(data) == _DONE:
                return


def count_messages(data: bytes) -> tuple[int, int]:
    """Return how many messages about connections a buffer holds, without the final one that marks the end,
    and how many of them have bytes that nobody has read.
    """
    equal = _equal_messages(data)
    if equal:
        size = len(data) // equal
        queues = struct.iter_unpack(f"={_QUEUED_AT}xI{size - _QUEUED_AT - 4}x", data)
        return equal, sum(queued > 0 for (queued,) in queues)
    read = [_INET_ANSWER.unpack_from(message)[1] == 0 for message in _messages(data)]
    return len(read), read.count(False)


def _equal_messages(data: bytes) -> int:
    """Return how many messages fill a buffer if all are of one kind and length, else 0.

    Thousands of connections give as many messages, and those about sockets of one kind have the same length.
    If the last message begins where this implies, they need not be visited one by one.
    """
    header = data[: _HEADER.size]
    length, kind, *_ = _HEADER.unpack(header)
    count, rest = divmod(len(data), max(_aligned(length), _HEADER.size))
    alike = kind != _DONE and rest == 0 and data[-_aligned(length) :].startswith(header)
    return count if alike else 0


def _inet_request(family: int, state: int, attributes: int = 0) -> bytes:
    return _INET_REQUEST.pack(family, socket.IPPROTO_TCP, attributes, 1 << state) + _ANY_ADDRESS


def _at_address(host: str, port: int) -> bytes:
    """Return the attribute of a request that selects sockets with this source address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address = socket.inet_pton(family, host)
    own = _HOST.pack(family, 8 * len(address), port) + address
    length = _CONDITION.size + len(own)
    conditions = _CONDITION.pack(_IS_AT, length, length + 4) + own
    return struct.pack("=HH", 4 + length, 1) + conditions


def _without_ports(ports: Sequence[int]) -> bytes:
    """Return the attribute of a request that leaves out sockets with one of these ports at either end.

    A condition that holds goes on to a jump behind the end, which is "no"; one that does not skips that jump.
    """
    host_bytes, jump_bytes = _CONDITION.size + _HOST.size, _CONDITION.size
    kinds = [(kind, port) for port in ports for kind in (_IS_AT, _IS_TO)]
    conditions = b""
    for place, (kind, port) in enumerate(kinds):
        left = (len(kinds) - place) * (host_bytes + jump_bytes) - host_bytes
        conditions += _CONDITION.pack(kind, host_bytes, host_bytes + jump_bytes)
        conditions += _HOST.pack(socket.AF_UNSPEC, 0, port) + _CONDITION.pack(_JUMP, jump_bytes, left + 4)
    return struct.pack("=HH", 4 + len(conditions), 1) + conditions if conditions else b""


def _outgoing(message: bytes) -> Outgoing:
    _, peer = _PORTS.unpack_from(message, _PORTS_AT)
    *_, inode = _INET_ANSWER.unpack_from(message)
    info = dict(_attributes(message[_INET_ANSWER.size :])).get(_INFO, b"")
    sent_ms, received_ms = (
        _SINCE.unpack_from(info, _SINCE_AT) if len(info) >= _SINCE_AT + _SINCE.size else (0, 0)
    )
    sent = _SENT.unpack_from(info, _SENT_AT)[0] if len(info) >= _SENT_AT + _SENT.size else 0
    return Outgoing(peer, inode, unmapped(message[_PEER_FROM:_PEER_TO]), sent_ms < received_ms, sent)


def unmapped(host: bytes) -> bytes:
    """Return 16 bytes of an IPv6 socket as ``Outgoing`` has them."""
    return host[12:] + bytes(12) if host.startswith(_MAPPED) else host


def packed_host(host: str) -> bytes:
    """Return a literal as ``Outgoing`` has it; all addresses of either kind are zeros.

    >>> packed_host("127.0.0.1") == packed_host("::ffff:127.0.0.1")
    True
    >>> packed_host("0.0.0.0") == packed_host("::") == bytes(16)
    True
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return unmapped(socket.inet_pton(family, host).ljust(16, b"\0"))


def host_literal(host: bytes) -> str:
    """Return the literal of 16 bytes as ``Outgoing`` has them.

    >>> host_literal(packed_host("172.18.0.2")), host_literal(packed_host("fd00::2"))
    ('172.18.0.2', 'fd00::2')
    """
    if any(host[4:]):
        return socket.inet_ntop(socket.AF_INET6, host)
    return socket.inet_ntop(socket.AF_INET, host[:4])


def _connected(message: bytes) -> Connected:
    own, _ = _PORTS.unpack_from(message, _PORTS_AT)
    port, inode, peer, *_ = _outgoing(message)
    return Connected(unmapped(message[_HOST_FROM:_PEER_FROM]), own, peer, port, inode)


def _port(message: bytes) -> int:
    port: int = _SOURCE_PORT.unpack_from(message, _SOURCE_PORT_AT)[0]
    return port


def _tcp_listener(kind: AddressKind, message: bytes) -> Listener:
    address, queued, limit, inode = _INET_ANSWER.unpack_from(message)
    attributes = dict(_attributes(message[_INET_ANSWER.size :]))
    if kind is AddressKind.TCP4:
        host, takes_ipv4 = socket.inet_ntop(socket.AF_INET, address[:4]), True
    else:
        host = socket.inet_ntop(socket.AF_INET6, address)
        # If the kernel does not report it, it is not known.
        takes_ipv4 = attributes.get(_ONLY_IPV6, b"\0") == b"\0"
    (uid,), cgroup = _UID.unpack_from(message), int.from_bytes(attributes.get(_CGROUP, b""), sys.byteorder)
    return Listener(kind, host, _port(message), inode, queued, limit, takes_ipv4, uid, cgroup)


def _path(attributes: Mapping[int, bytes]) -> str:
    name = attributes.get(_NAME, b"")
    shown = b"@" + name[1:] if name.startswith(b"\0") else name.rstrip(b"\0")
    return shown.decode(errors="backslashreplace")


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if kind == _DONE or length < _HEADER.size:
            return
        yield data[at + _HEADER.size : at + length]
        at += _aligned(length)


def _last_kind(data: bytes) -> int:
    at = kind = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        at += max(_aligned(length), _HEADER.size)
    return kind


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind, data[at + 4 : at + length]
        at += max(_aligned(length), 4)


def _aligned(length: int) -> int:
    return (length + 3) & ~3

"""What the kernel says of sockets over netlink: listeners with their queues, and how many are established.

Needs no privileges. A socket of this kind sees the network namespace that it was made in, from wherever it
is used. Must not know subjects.

*Source*: sock_diag(7); kernel, include/uapi/linux/inet_diag.h, unix_diag.h; net/ipv4/inet_diag.c.

>>> with SockDiag() as kernel:
...     kernel.tcp_listeners({0})
[]
"""

import os
import socket
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

__all__ = ["Listener", "SockDiag", "count_messages"]

_SOCK_DIAG = 4  # netlink's protocol
_BY_FAMILY, _DUMP_REQUEST = 20, 0x301
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")

# include/net/tcp_states.h
_ESTABLISHED, _LISTEN = 1, 10

# Of struct inet_diag_req_v2: nothing is asked for by address; a cookie of all ones is any socket.
_ANY_ADDRESS = struct.pack("!HH32xI8s", 0, 0, 0, b"\xff" * 8)
_INET_REQUEST = struct.Struct("=BBBxI")
# Of struct inet_diag_msg: family, state, source port; then, behind addresses, queues.
_INET_ANSWER = struct.Struct("=BBxx")
_SOURCE_PORT, _QUEUES = struct.Struct("!H"), struct.Struct("=II")
_SOURCE_PORT_AT, _QUEUES_AT = 4, 56

# Of a filter: the source port is at least, and at most (INET_DIAG_BC_S_GE, _LE); then 4 more bytes is "no".
_AT_LEAST, _AT_MOST = 2, 3
_FILTER = struct.Struct("=BBHxxH")

_UNIX_REQUEST = struct.Struct("=BBHIIIII")
_UNIX_ANSWER = struct.Struct("=BBBxI8x")
_SHOW_NAME_AND_QUEUE = 0x01 | 0x10
_NAME, _QUEUE = 0, 4

_BUFFER_BYTES = 1 << 16
# What is asked is answered by the kernel at once; this is for a kernel that does not.
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket: how many connections wait to be accepted, and how many may."""

    queued: int
    limit: int


class SockDiag:
    """Asks the kernel about the sockets of the network namespace it was made in.

    As a context manager its exit closes it. *Errors*: OSError, from every method.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def tcp_listeners(self, ports: Collection[int]) -> list[tuple[int, Listener]]:
        """Return the listeners on ``ports``, each with its port; several may share one (SO_REUSEPORT)."""
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            for data in self._ask(_inet_request(family, _LISTEN)):
                for message in _messages(data):
                    (port,) = _SOURCE_PORT.unpack_from(message, _SOURCE_PORT_AT)
                    if port in ports:
                        queued, limit = _QUEUES.unpack_from(message, _QUEUES_AT)
                        found.append((port, Listener(queued, limit)))
        return found

    def tcp_established(self, port: int) -> int:
        """Return how many connections are established at a local port, accepted or not.

        The kernel looks at every connection of the network for it: some 0.4 ms for a thousand.
        """
        families = (socket.AF_INET, socket.AF_INET6)
        requests = (_inet_request(family, _ESTABLISHED, port) for family in families)
        return sum(count_messages(data) for request in requests for data in self._ask(request))

    def unix(self, paths: Collection[str]) -> list[tuple[str, Listener | None]]:
        """Return the listeners bound to ``paths``, and null for each connection that they have accepted."""
        states = 1 << _LISTEN | 1 << _ESTABLISHED
        request = _UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, states, 0, _SHOW_NAME_AND_QUEUE, *[0xFFFFFFFF] * 2)
        found: list[tuple[str, Listener | None]] = []
        for data in self._ask(request):
            for message in _messages(data):
                _, _, state, _ = _UNIX_ANSWER.unpack_from(message)
                attributes = dict(_attributes(message[_UNIX_ANSWER.size :]))
                path = attributes.get(_NAME, b"").rstrip(b"\0").decode(errors="surrogateescape")
                if path in paths:
                    queues = _QUEUES.unpack(attributes[_QUEUE])
                    found.append((path, Listener(*queues) if state == _LISTEN else None))
        return found

    def _ask(self, request: bytes) -> Iterator[bytes]:
        """Yield what the kernel answers, a buffer of messages each time."""
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


def count_messages(data: bytes) -> int:
    """Return how many messages a buffer holds, without the one that says that there are no more."""
    return _equal_messages(data) or sum(1 for _ in _messages(data))


def _equal_messages(data: bytes) -> int:
    """Return how many messages fill a buffer if all are of one kind and length, else 0.

    Thousands of connections make as many messages, and those about sockets of one kind are alike: they are
    not walked over where the last one begins where it then must.
    """
    header = data[: _HEADER.size]
    length, kind, *_ = _HEADER.unpack(header)
    count, rest = divmod(len(data), max(_aligned(length), _HEADER.size))
    alike = kind != _DONE and rest == 0 and data[-_aligned(length) :].startswith(header)
    return count if alike else 0


def _inet_request(family: int, state: int, port: int | None = None) -> bytes:
    request = _INET_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << state) + _ANY_ADDRESS
    if port is None:
        return request
    # The first condition goes on to the second, 8 bytes each; "no" leaves the filter by 4 bytes.
    conditions = _FILTER.pack(_AT_LEAST, 8, 20, port) + _FILTER.pack(_AT_MOST, 8, 12, port)
    return request + struct.pack("=HH", 4 + len(conditions), 1) + conditions


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

"""One request and its complete reply on a connection of its own; stops at once when the subject has ended.

For readiness and contracts only. The engine encodes the request and reads the reply, as those of a load.

>>> request_bytes(Request(), Address("127.0.0.1", 8000)).splitlines()[0]
b'GET / HTTP/1.1'
>>> headers_in(b"HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nServer: a\\r\\nX-Y:b\\r\\n\\r\\n")
{'server': 'a', 'x-y': 'b'}
"""

import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from prony.core.errors import EngineError
from prony.core.units import MIB
from prony.model.address import Address, AddressKind, Tls, Wire
from prony.model.exchange import Request
from prony.plan.engine_spec import encode_request, encode_target

# The interval for checking that the subject still runs.
_SLICE_S = 0.1
# No contract has a longer reply, and a probe must not fill the memory.
_LARGEST_REPLY_BYTES = 64 * MIB
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_INTERIM = re.compile(r"HTTP/1\.\d 1\d\d")


class NobodyThereError(Exception):
    """The subject ended while its reply was awaited."""


class BrokenReplyError(Exception):
    """What came is no reply, or no whole one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply. ``headers``: by names in lower case; of HTTP only."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str:
        """Return a header's value; empty without it."""
        return self.headers.get(name, "")


class _Incoming:
    """What comes on a connection until ``deadline_s``."""

    def __init__(self, connection: socket.socket, deadline_s: float, is_alive: Callable[[], bool]) -> None:
        self._connection, self._deadline_s, self._is_alive = connection, deadline_s, is_alive
        self._left_bytes = _LARGEST_REPLY_BYTES

    def take(self) -> bytes:
        """Return whatever waits; nothing at the end.

        *Errors*: OSError (TimeoutError after the deadline), NobodyThereError, BrokenReplyError for too much.
        """
        self._connection.settimeout(_SLICE_S)
        while time.monotonic() < self._deadline_s:
            try:
                data = self._connection.recv(MIB)
            except TimeoutError:
                if not self._is_alive():
                    raise NobodyThereError from None
                continue
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                raise BrokenReplyError(f"the reply is longer than {_LARGEST_REPLY_BYTES} bytes")
            return data
        raise TimeoutError


def connect(address: Address, timeout_s: float) -> socket.socket:
    """Return a connection. *Errors*: OSError."""
    if address.kind is AddressKind.UNIX:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            _connect_at(connection, address.host)
        except OSError:
            connection.close()
            raise
    else:
        connection = socket.create_connection((address.host, address.port), timeout_s)
    return _encrypted(connection, address) if address.tls else connection


def _connect_at(connection: socket.socket, path: str) -> None:
    """Connect to a socket, but to none that a link leads to: a subject could make one to root's."""
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{place}")
    finally:
        os.close(place)


def _encrypted(connection: socket.socket, address: Address) -> socket.socket:
    try:
        context = _context(address.tls or Tls())
        if address.wire is Wire.HTTP2:
            context.set_alpn_protocols(["h2"])
        return context.wrap_socket(connection, server_hostname=address.host)
    except OSError:
        connection.close()
        raise


def _context(asked: Tls) -> ssl.SSLContext:
    """Return what is asked of a server: whom to believe, as the engine does."""
    context = ssl.create_default_context(cafile=asked.ca_file)
    if not asked.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def request_bytes(request: Request, address: Address) -> bytes:
    """Return the request as bytes; it asks to close the connection, so that a single thread is free again.

    *Errors*: EngineError for a request that the wire cannot express, and for HTTP/2, where it is not sent at
    once.
    """
    # Imported where it is used: the supervisor starts without it.
    from prony import _engine

    try:
        return _engine.encode_request(*_specified(request, address))
    except _engine.EngineError as error:
        raise EngineError(str(error)) from error


def _specified(request: Request, address: Address) -> tuple[str, str]:
    """Return target and request as the engine reads them; what is typed of the connection does not hold."""
    headers = tuple((name, value) for name, value in request.headers if name.lower() != "connection")
    closing = replace(request, headers=headers, keep_alive=False)
    return json.dumps(encode_target(address)), json.dumps(encode_request(closing))


class _Conversation(Protocol):
    """What is said on a connection for one request."""

    def pending(self) -> bytes:
        """Return what is to be sent now, once; empty while the server is to say something first."""

    def received(self, data: bytes) -> Reply | None:
        """Take what came, nothing at the end of the connection; return the reply once it is complete."""


class _Document:
    """A request that is sent at once, and a reply that is read from its beginning."""

    def __init__(self, request: Request, address: Address) -> None:
        self._pending = request_bytes(request, address)
        self._wire, self._method = address.wire, request.method
        self._data = bytearray()

    def pending(self) -> bytes:
        pending, self._pending = self._pending, b""
        return pending

    def received(self, data: bytes) -> Reply | None:
        self._data += data
        return _decode(bytes(self._data), self._wire, self._method, not data)


class _Stream:
    """HTTP/2: of a long body the server says when it takes more."""

    def __init__(self, request: Request, address: Address) -> None:
        from prony import _engine

        try:
            self._stream = _engine.Stream(*_specified(request, address))
        except _engine.EngineError as error:
            raise EngineError(str(error)) from error

    def pending(self) -> bytes:
        return self._stream.take_pending()

    def received(self, data: bytes) -> Reply | None:
        from prony import _engine

        try:
            reply = self._stream.receive(data)
        except _engine.EngineError as error:
            raise BrokenReplyError(str(error)) from error
        return Reply(*reply) if reply is not None else None


def exchange(
    address: Address, request: Request, deadline_s: float, is_alive: Callable[[], bool] = lambda: True
) -> Reply:
    """Return the reply to one request. ``deadline_s`` is a time of ``time.monotonic``.

    *Errors*: OSError (TimeoutError after the deadline), BrokenReplyError when the reply is not of the
    address's wire, NobodyThereError, EngineError for a request that the wire cannot express.
    """
    with connect(address, _left_s(deadline_s)) as connection:
        incoming = _Incoming(connection, deadline_s, is_alive)
        conversation: _Conversation
        conversation = (_Stream if address.wire is Wire.HTTP2 else _Document)(request, address)
        while True:
            while pending := conversation.pending():
                _send(connection, pending, deadline_s)
            # All that waits already: a reply of most wires is read from its beginning each time.
            data = incoming.take()
            reply = conversation.received(data)
            if reply is not None:
                return reply
            if not data:
                raise BrokenReplyError("the connection ended before the reply did")


def _send(connection: socket.socket, data: bytes, deadline_s: float) -> None:
    left = memoryview(data)
    while left:
        if time.monotonic() >= deadline_s:
            raise TimeoutError
        connection.settimeout(_left_s(deadline_s))
        left = left[connection.send(left) :]


def _left_s(deadline_s: float) -> float:
    return max(deadline_s - time.monotonic(), _SLICE_S)


def _decode(received: bytes, wire: Wire, method: str, ended: bool) -> Reply | None:
    """Return the reply if it is complete. At the end of the stream it is complete, or never will be."""
    from prony import _engine

    try:
        reply = _engine.decode_reply(wire, method, received, ended)
    except _engine.EngineError as error:
        raise BrokenReplyError(str(error)) from error
    return None if reply is None else Reply(*reply, headers_in(received) if wire is Wire.HTTP else {})


def headers_in(received: bytes) -> dict[str, str]:
    """Return the headers of a reply over HTTP, by names in lower case, without those of heads before it."""
    start = 0
    while end := _END_OF_HEAD.search(received, start):
        head = received[start : end.start()].decode("latin-1")
        if not _INTERIM.match(head):
            named = (line.partition(":") for line in head.splitlines()[1:])
            return {name.strip().lower(): value.strip() for name, _, value in named}
        start = end.end()
    return {}

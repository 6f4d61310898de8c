"""One request and its complete reply on a connection of its own; stops at once when the subject has ended.

For readiness and contracts only. The engine sends the load; it also encodes every wire except HTTP/1. Must
not know subjects.

>>> request_bytes(Request(), Address("127.0.0.1", 8000)).splitlines()[0]
b'GET / HTTP/1.1'
"""

import http.client
import io
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from prony.errors import EngineError
from prony.model.address import Address, AddressKind, Tls, Wire
from prony.model.exchange import Request
from prony.specification import encode_request, encode_target
from prony.units import MIB

# The interval for checking that the subject still runs.
_SLICE_S = 0.1
# No contract has a longer reply, and a probe must not fill the memory.
_LARGEST_REPLY_BYTES = 64 * MIB
_PIECE_BYTES = 65536


class NobodyThereError(Exception):
    """The subject ended while its reply was awaited."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply. ``headers``: by names in lower case; of HTTP only."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str:
        """Return a header's value; empty without it."""
        return self.headers.get(name, "")


class _Incoming(io.RawIOBase):
    """What comes on a connection until ``deadline_s``, in the shape that http.client reads from."""

    def __init__(self, connection: socket.socket, deadline_s: float, is_alive: Callable[[], bool]) -> None:
        super().__init__()
        self._connection, self._deadline_s, self._is_alive = connection, deadline_s, is_alive
        self._left_bytes = _LARGEST_REPLY_BYTES

    def take(self, most_bytes: int) -> bytes:
        """Return what comes next; nothing at the end.

        *Errors*: OSError (TimeoutError after the deadline), NobodyThereError, HTTPException for too much.
        """
        self._connection.settimeout(_SLICE_S)
        while time.monotonic() < self._deadline_s:
            try:
                data = self._connection.recv(most_bytes)
            except TimeoutError:
                if not self._is_alive():
                    raise NobodyThereError from None
                continue
            self._left_bytes -= len(data)
            _refuse_longer(_LARGEST_REPLY_BYTES - self._left_bytes)
            return data
        raise TimeoutError

    def makefile(self, _mode: str) -> "_Pieces":
        """Return itself, as http.client asks for it."""
        return _Pieces(self, _PIECE_BYTES)

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Take at most what fits into the buffer, and return how much that was."""
        data = self.take(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Pieces(io.BufferedReader):
    """Asks for no more at once than a reply may have: memory is taken for what is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        """Read. *Errors*: as `_Incoming.take`."""
        _refuse_longer(size or 0)
        return super().read(size)


def _refuse_longer(size: int) -> None:
    if size > _LARGEST_REPLY_BYTES:
        raise http.client.HTTPException(f"the reply is longer than {_LARGEST_REPLY_BYTES} bytes")


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
    return _render_http(request, address) if address.wire is Wire.HTTP else _encode(request, address)


def _render_http(request: Request, address: Address) -> bytes:
    given = {name.lower() for name, _ in request.headers}
    host = f"[{address.host}]" if address.kind is AddressKind.TCP6 else address.host
    body = request.body or b""
    headers = [(name, value) for name, value in request.headers if name.lower() != "connection"]
    if "host" not in given:
        headers.insert(
            0, ("Host", "localhost" if address.kind is AddressKind.UNIX else f"{host}:{address.port}")
        )
    if body and "content-length" not in given:
        headers.append(("Content-Length", str(len(body))))
    if "user-agent" not in given:
        headers.append(("User-Agent", "prony"))
    headers.append(("Connection", "close"))
    lines = [
        f"{request.method} {request.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers),
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1") + body


def _encode(request: Request, address: Address) -> bytes:
    # Imported where it is used: most subjects speak HTTP/1.
    from prony import _engine

    try:
        return _engine.encode_request(*_specified(request, address))
    except _engine.EngineError as error:
        raise EngineError(str(error)) from error


def _specified(request: Request, address: Address) -> tuple[str, str]:
    """Return target and request as the engine reads them."""
    target, closing = encode_target(address), encode_request(replace(request, keep_alive=False))
    return json.dumps(target), json.dumps(closing)


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
            raise http.client.HTTPException(str(error)) from error
        return Reply(*reply) if reply is not None else None


def exchange(
    address: Address, request: Request, deadline_s: float, is_alive: Callable[[], bool] = lambda: True
) -> Reply:
    """Return the reply to one request. ``deadline_s`` is a time of ``time.monotonic``.

    *Errors*: OSError (TimeoutError after the deadline), http.client.HTTPException when the reply is not of
    the address's wire, NobodyThereError, EngineError for a request that the wire cannot express.
    """
    with connect(address, _left_s(deadline_s)) as connection:
        incoming = _Incoming(connection, deadline_s, is_alive)
        if address.wire is Wire.HTTP:
            _send(connection, request_bytes(request, address), deadline_s)
            return _http_reply(incoming, request.method)
        conversation: _Conversation
        conversation = (_Stream if address.wire is Wire.HTTP2 else _Document)(request, address)
        while True:
            while pending := conversation.pending():
                _send(connection, pending, deadline_s)
            # Whatever waits already: a reply of most wires is read from its beginning each time.
            data = incoming.take(MIB)
            reply = conversation.received(data)
            if reply is not None:
                return reply
            if not data:
                raise http.client.HTTPException("the connection ended before the reply did")


def _send(connection: socket.socket, data: bytes, deadline_s: float) -> None:
    left = memoryview(data)
    while left:
        if time.monotonic() >= deadline_s:
            raise TimeoutError
        connection.settimeout(_left_s(deadline_s))
        left = left[connection.send(left) :]


def _left_s(deadline_s: float) -> float:
    return max(deadline_s - time.monotonic(), _SLICE_S)


def _http_reply(incoming: _Incoming, method: str) -> Reply:
    response = http.client.HTTPResponse(incoming, method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, response.read(), headers)
    except ValueError as error:
        raise http.client.HTTPException(f"it is no reply of HTTP: {error}") from error


def _decode(received: bytes, wire: Wire, method: str, ended: bool) -> Reply | None:
    """Return the reply if it is complete. At the end of the stream it is complete, or never will be."""
    from prony import _engine

    try:
        reply = _engine.decode_reply(wire, method, received, ended)
    except _engine.EngineError as error:
        raise http.client.HTTPException(str(error)) from error
    return Reply(*reply) if reply is not None else None

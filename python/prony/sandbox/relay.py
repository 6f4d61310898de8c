"""The only way out of a build's network: an HTTP proxy that knows a few hosts and looks into nothing.

TLS is between the build and the host: the relay carries bytes.

>>> with Relay(frozenset({("pypi.org", 443)})) as relay:
...     relay.allows("pypi.org", 80)
False
"""

import base64
import contextlib
import selectors
import socket
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

_HEAD_BYTES = 32_768
_HEAD_S, _CONNECT_S, _IDLE_S = 30.0, 30.0, 600.0
# More than any tool that fetches packages opens; a build could open as many as it likes.
_AT_ONCE = 64
_NO_PROXIES: Mapping[str, str] = MappingProxyType({})

Host = tuple[str, int]


class _Asked(NamedTuple):
    """The first request of a connection. ``head``: what a server without a proxy before it would get."""

    host: Host
    is_tunnel: bool
    head: bytes
    whole: bytes


class Relay:
    """Carries what one build sends to ``hosts``, by the user's own ``proxies`` (as urllib names them) if
    there are any. As a context manager it ends all connections on exit.
    """

    def __init__(self, hosts: frozenset[Host], proxies: Mapping[str, str] = _NO_PROXIES) -> None:
        self._hosts = hosts
        self._proxies = dict(proxies)
        self._open: set[socket.socket] = set()
        self._ended = False
        self._lock = threading.Lock()
        self._seats = threading.Semaphore(_AT_ONCE)
        self._here, self.there = socket.socketpair()
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        """Wait in a thread for the socket that listens in the build's network."""
        threading.Thread(target=self._accept, name="prony-relay", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        with self._lock:
            self._ended = True
            opened = tuple(self._open)
        for one in (self._here, self.there, *opened):
            _end(one)

    def allows(self, host: str, port: int) -> bool:
        """Return whether a build may reach ``host``."""
        return (host.lower().rstrip("."), port) in self._hosts

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._here, 1, 1)
            # None: the build ended before it had a network.
            listener = self._kept(socket.socket(fileno=descriptors[0])) if descriptors else None
            while listener is not None:
                self._seats.acquire()
                client = self._kept(listener.accept()[0])
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _kept(self, one: socket.socket) -> socket.socket:
        with self._lock:
            if not self._ended:
                self._open.add(one)
                return one
        _end(one)
        raise ConnectionAbortedError

    def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        try:
            asked = _asked(client)
            if asked is None:
                client.sendall(_answer("400 Bad Request", "expected CONNECT, or an address with http://"))
            elif not self.allows(*asked.host):
                self._refuse(client, asked.host)
            else:
                server = self._kept(self._reached(asked, client))
                _carry(client, server)
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError):
                client.sendall(_answer("502 Bad Gateway", str(error)))
        finally:
            self._seats.release()
            for one in (client, server):
                if one is not None:
                    with self._lock:
                        self._open.discard(one)
                    _end(one)

    def _refuse(self, client: socket.socket, host: Host) -> None:
        name = f"{host[0]}:{host[1]}"
        if len(self.refused) < _AT_ONCE and name not in self.refused:
            self.refused.append(name)
        client.sendall(_answer("403 Forbidden", f"{name} is no configured package index"))

    def _reached(self, asked: _Asked, client: socket.socket) -> socket.socket:
        """Return a connection with the request sent; answer a client that wants a tunnel."""
        proxy = self._proxy(asked)
        server = socket.create_connection(proxy.address if proxy else asked.host, _CONNECT_S)
        if proxy:
            server.sendall(proxy.request(asked))
        elif asked.is_tunnel:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(asked.head)
        return server

    def _proxy(self, asked: _Asked) -> "_Proxy | None":
        if _is_direct(asked.host[0], self._proxies.get("no", "")):
            return None
        kinds = ("https" if asked.is_tunnel else "http", "all")
        url = next((self._proxies[kind] for kind in kinds if self._proxies.get(kind)), None)
        return _Proxy.parse(url) if url else None


def _is_direct(host: str, no_proxy: str) -> bool:
    """Return whether the user's proxies are not for this host.

    >>> _is_direct("pypi.lan", "localhost, .lan"), _is_direct("pypi.org", "localhost, .lan")
    (True, False)
    """
    words = [word.strip().lstrip(".").lower() for word in no_proxy.split(",") if word.strip()]
    return any(word in ("*", host) or host.endswith(f".{word}") for word in words)


class _Proxy(NamedTuple):
    """The user's own proxy; ``word`` is the header by which it knows the user, or empty."""

    address: Host
    word: bytes

    @classmethod
    def parse(cls, url: str) -> "_Proxy":
        """Return the proxy at ``url``. *Errors*: ValueError for another kind than HTTP."""
        found = urlsplit(url if "://" in url else f"http://{url}")
        if found.scheme != "http" or not found.hostname:
            raise ValueError(f"builds reach no proxy of the kind `{found.scheme}`; expected `http`")
        word = b""
        if found.username:
            pair = f"{unquote(found.username)}:{unquote(found.password or '')}".encode()
            word = b"Proxy-Authorization: Basic " + base64.b64encode(pair) + b"\r\n"
        return cls((found.hostname, found.port or 80), word)

    def request(self, asked: _Asked) -> bytes:
        """Return what the proxy is asked: the same, in the user's name."""
        line, _, rest = asked.whole.partition(b"\r\n")
        return line + b"\r\n" + self.word + rest


def _asked(client: socket.socket) -> _Asked | None:
    """Return what a client asks a proxy for; None: nothing that this one does.

    *Errors*: OSError, ValueError. *Source*: RFC 9110, 9.3.6 (CONNECT); RFC 9112, 3.2.2 (absolute-form).
    """
    client.settimeout(_HEAD_S)
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(_HEAD_BYTES)
        data += more
        if not more or len(data) > _HEAD_BYTES:
            return None
    line, _, rest = data.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    # In the middle of a host urllib leaves out what another proxy would take for its end.
    if not target.isprintable():
        return None
    if method == "CONNECT":
        url = urlsplit(f"//{target}")
        return _Asked(
            (url.hostname or "", 443 if url.port is None else url.port), is_tunnel=True, head=b"", whole=data
        )
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        return None
    path = url._replace(scheme="", netloc="").geturl() or "/"
    # One request a connection: the next one could be for another host.
    closed = b"Connection: close\r\n" + _without(rest, (b"connection", b"proxy-connection"))
    head = f"{method} {path} {version}\r\n".encode("latin-1") + closed
    whole = line + b"\r\n" + closed
    return _Asked(
        (url.hostname, 80 if url.port is None else url.port), is_tunnel=False, head=head, whole=whole
    )


def _without(rest: bytes, names: tuple[bytes, ...]) -> bytes:
    headers, end, body = rest.partition(b"\r\n\r\n")
    kept = [line for line in headers.split(b"\r\n") if line.partition(b":")[0].strip().lower() not in names]
    return b"\r\n".join(kept) + end + body


def _answer(status: str, text: str) -> bytes:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def _carry(client: socket.socket, server: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended, or nothing came for ten minutes."""
    other = {client: server, server: client}
    with selectors.DefaultSelector() as ready:
        for one in other:
            one.settimeout(_IDLE_S)
            ready.register(one, selectors.EVENT_READ)
        while ready.get_map():
            events = ready.select(_IDLE_S)
            if not events:
                return
            for key, _ in events:
                one = client if key.fd == client.fileno() else server
                data = one.recv(1 << 16)
                if data:
                    other[one].sendall(data)
                else:
                    ready.unregister(one)
                    with contextlib.suppress(OSError):
                        other[one].shutdown(socket.SHUT_WR)


def _end(one: socket.socket) -> None:
    # A thread may wait in it: closing alone would not wake it.
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        one.close()

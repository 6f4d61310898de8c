"""What ``prony load`` is pointed at: a URL as people type it, as an address and the path of the request.

>>> target_of("fcgi://unix:/run/app.sock:/cart?n=1").path
'/cart?n=1'
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit

from prony.engine.allowed_hosts import address_of, is_loopback
from prony.errors import UsageError
from prony.model import Address, AddressKind, Wire

__all__ = ["LoadTarget", "target_of"]

_WIRES: Mapping[str, Wire] = MappingProxyType(
    {"http": Wire.HTTP, "fcgi": Wire.FASTCGI, "uwsgi": Wire.UWSGI, "scgi": Wire.SCGI}
)
_HTTP_PORT = 80
# As nginx writes it: the socket's path ends at the next colon, the path of the request follows.
_UNIX = re.compile(r"(?:([a-z]+)://)?unix:(/[^:?#]*)(?::(/.*))?")
# `sun_path` has 108 bytes, the last of them 0 (unix(7)).
_LONGEST_SOCKET_BYTES = 107
_EXPECTED = (
    "expected `http://HOST[:PORT][/PATH]`, `fcgi://HOST:PORT[/PATH]`, `uwsgi://...` or `scgi://...`, "
    "or a Unix socket, `unix:/SOCKET[:/PATH]` or `fcgi://unix:/SOCKET[:/PATH]`"
)


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """Where the load goes. ``host``: a name or a literal; for a Unix socket its path, and ``port`` is 0.

    ``path``: of the request, with its query. ``name``: the ``Host`` that the server must read, null: what the
    engine writes.
    """

    wire: Wire
    host: str
    port: int
    path: str
    is_unix: bool = False
    name: str | None = None

    def address(self, allowed: Sequence[str]) -> Address:
        """Return the address of the target, if it may be loaded: a Unix socket is always this machine's.

        *Errors*: those of `address_of`.
        """
        if self.is_unix:
            return Address(self.host, 0, AddressKind.UNIX, wire=self.wire)
        return replace(address_of(self.host, self.port, allowed), wire=self.wire)


def target_of(url: str) -> LoadTarget:
    """Return what a URL means.

    *Errors*: UsageError, without the user and the password that it may hold.
    """
    # The parser would drop some of these, and the engine would refuse others.
    if re.search(r"[\x00-\x20\x7f]", url):
        raise _refusal(url)
    if unix := _UNIX.fullmatch(url):
        return _unix_target(url, unix)
    return _tcp_target(url)


def _refusal(url: str) -> UsageError:
    return UsageError(
        f"`{_without_credentials(url)}` is not a target; {_EXPECTED}",
        hint="prony load http://127.0.0.1:8000/",
    )


def _unix_target(url: str, found: re.Match[str]) -> LoadTarget:
    scheme, socket, path = found.groups()
    wire = _WIRES.get(scheme or "http")
    if wire is None or socket.endswith("/"):
        raise _refusal(url)
    length = len(socket.encode())
    if length > _LONGEST_SOCKET_BYTES:
        raise UsageError(
            f"`{url}`: the path of the socket has {length} bytes; expected at most {_LONGEST_SOCKET_BYTES}",
            hint="make a symbolic link to its folder with a shorter name",
        )
    return LoadTarget(wire, socket, 0, (path or "/").partition("#")[0], is_unix=True)


def _tcp_target(url: str) -> LoadTarget:
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        raise _refusal(url) from None
    if parts.scheme == "https":
        raise UsageError(
            f"`{_without_credentials(url)}`: TLS is not supported yet; expected `http://HOST[:PORT][/PATH]`"
        )
    if "//" not in url and port is None and not is_loopback(parts.hostname or ""):
        raise _refusal(url)
    wire = _WIRES.get(parts.scheme)
    if wire is None or not parts.hostname or port == 0 or parts.username is not None:
        raise _refusal(url)
    if wire is not Wire.HTTP and port is None:
        raise UsageError(
            f"`{url}` names no port, and {parts.scheme} has no usual one; "
            f"expected `{parts.scheme}://HOST:PORT[/PATH]`"
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return LoadTarget(wire, parts.hostname, port or _HTTP_PORT, path, name=_name(parts))


def _name(parts: SplitResult) -> str | None:
    """The engine writes `Host` from the address; a name in the URL must reach the server as typed."""
    is_literal = is_loopback(parts.hostname or "") and parts.hostname != "localhost"
    return None if is_literal else parts.netloc


def _without_credentials(url: str) -> str:
    """Return the URL without user and password: messages end in logs.

    >>> _without_credentials("http://me:secret@host/a@b")
    'http://...@host/a@b'
    """
    return re.sub(r"^([a-zA-Z][a-zA-Z0-9+.-]*://)?[^/?#]*@", lambda found: f"{found[1] or ''}...@", url)

"""What ``prony load`` is pointed at: a URL as people type it, as an address and the path of the request.

>>> target_of("fcgi://unix:/run/app.sock:/cart?n=1").path
'/cart?n=1'
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit

from prony.core.errors import UsageError
from prony.engine.allowed_hosts import address_of, check_behind, is_loopback, typed_address
from prony.engine.ways import Proxy, Way, credentials, is_address, without_credentials
from prony.model.address import Address, AddressKind, Behind, HttpVersion, Tls, Wire
from prony.model.exchange import as_sent

# With TLS on the connection.
_SECURE = "https"
_WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "http": Wire.HTTP,
        _SECURE: Wire.HTTP,
        "fcgi": Wire.FASTCGI,
        "uwsgi": Wire.UWSGI,
        "scgi": Wire.SCGI,
    }
)
_PORTS: Mapping[str, int] = MappingProxyType({"http": 80, _SECURE: 443})
# As nginx writes it: the socket's path ends at the next colon, the path of the request follows.
_UNIX = re.compile(r"(?:([a-z]+)://)?unix:(/[^:?#]*)(?::(/.*))?")
# `sun_path` has 108 bytes, the last of them 0 (unix(7)).
_LONGEST_SOCKET_BYTES = 107
_EXPECTED = (
    "expected `http://HOST[:PORT][/PATH]`, `https://...`, `fcgi://HOST:PORT[/PATH]`, `uwsgi://...`, "
    "`scgi://...`, or a Unix socket, `unix:/SOCKET[:/PATH]` or `fcgi://unix:/SOCKET[:/PATH]`"
)


_USUAL_TLS = Tls()
_STRAIGHT = Way()


@dataclass(frozen=True, slots=True)
class HttpForm:
    """How HTTP is spoken, and the ``option`` that asks for it; null: HTTP/1.1, as URLs mean it."""

    option: str | None = None
    wire: Wire = Wire.HTTP
    version: HttpVersion = HttpVersion.HTTP_1_1


_USUAL_FORM = HttpForm()


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """Where the load goes. ``host``: a name or a literal; for a Unix socket its path, and ``port`` is 0.

    ``path``: of the request, with its query. ``name``: the ``Host`` that the server must read, null: what the
    engine writes. ``certified``: with TLS the name that the server's certificate must have; null: no TLS.
    ``authorization``: user and password of the URL, as a header's value; null: it has none.
    """

    wire: Wire
    host: str
    port: int
    path: str
    is_unix: bool = False
    name: str | None = None
    certified: str | None = None
    authorization: str | None = field(default=None, repr=False)

    @property
    def authority(self) -> str:
        """The server's host and port, as a header has them: without the usual port."""
        usual = self.port == _PORTS["http" if self.certified is None else _SECURE]
        return self.host_in_url if usual else f"{self.host_in_url}:{self.port}"

    @property
    def host_in_url(self) -> str:
        """The host as a URL has it: an IPv6 address stands in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def address(
        self,
        allowed: Sequence[str],
        tls: Tls = _USUAL_TLS,
        form: HttpForm = _USUAL_FORM,
        say: Callable[[str], None] = lambda _words: None,
        way: Way = _STRAIGHT,
    ) -> Address:
        """Return the address of the target, if it may be loaded: a Unix socket is always this machine's.

        ``tls``: what is asked of it, where it has TLS. ``form``: how it is spoken to. ``say``: gets words
        on a name with several addresses. ``way``: where the connections go instead.

        *Errors*: those of `address_of`; UsageError for a form of HTTP where another protocol was typed.
        """
        asked = None if self.certified is None else _named(tls, self.certified)
        wire = self._wire_in(form)
        if self.is_unix and way != _STRAIGHT:
            raise UsageError(
                f"`unix:{self.host}` is on this machine, and no `--resolve`, `--connect-to` or `--proxy` "
                "leads there",
                hint="leave it out",
            )
        if self.is_unix:
            found = Address(self.host, 0, AddressKind.UNIX)
        elif way.proxy is not None:
            found = self._behind(way.proxy, allowed)
        else:
            found = self._reached(way, allowed, say)
        return replace(found, tls=asked, wire=wire, version=form.version)

    def along(self, way: Way) -> "LoadTarget":
        """Return the target as it is asked for on this way: by the URL's name, wherever connections go."""
        is_elsewhere = bool(way.resolve or way.connect_to) and not self.is_unix
        return replace(self, name=self.name or self.authority) if is_elsewhere else self

    def looked_up(self, way: Way) -> str:
        """Return the name that has to be looked up on this way.

        *Errors*: UsageError where there is none.
        """
        place = way.place(self.host, self.port)
        if self.is_unix or place.addresses or is_address(place.host.partition("%")[0]):
            where = f"unix:{self.host}" if self.is_unix else ", ".join(place.addresses) or place.host
            raise UsageError(
                f"`--re-resolve` has no name to look up: connections go to `{where}`",
                hint="leave it out, or load the server by its name",
            )
        return place.host

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that the URL asks for."""
        found = (("Host", self.name), ("Authorization", self.authorization))
        return tuple((name, value) for name, value in found if value is not None)

    def _reached(self, way: Way, allowed: Sequence[str], say: Callable[[str], None]) -> Address:
        place = way.place(self.host, self.port)
        if place.addresses:
            return typed_address(place.host, place.port, place.addresses, allowed, say)
        return address_of(place.host, place.port, allowed, say=say)

    def _behind(self, proxy: Proxy, allowed: Sequence[str]) -> Address:
        found = replace(address_of(proxy.host, proxy.port, allowed), others=())
        check_behind(self.host, allowed, found)
        return replace(found, proxy=Behind(f"{self.host_in_url}:{self.port}", proxy.authorization))

    def _wire_in(self, form: HttpForm) -> Wire:
        if form.option is None:
            return self.wire
        if self.wire is not Wire.HTTP:
            raise UsageError(
                f"`{form.option}` does not work with {self.wire}; expected an `http://` or `https://` URL",
                hint=f"leave out {form.option}",
            )
        return form.wire


def _named(tls: Tls, name: str) -> Tls:
    return replace(tls, server_name=tls.server_name or name)


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
        f"`{without_credentials(url)}` is not a target; {_EXPECTED}",
        hint="prony load http://127.0.0.1:8000/",
    )


def _unix_target(url: str, found: re.Match[str]) -> LoadTarget:
    scheme, socket, path = found.groups()
    wire = _WIRES.get(scheme or "http")
    certified = "localhost" if scheme == _SECURE else None
    if wire is None or socket.endswith("/"):
        raise _refusal(url)
    length = len(socket.encode())
    if length > _LONGEST_SOCKET_BYTES:
        raise UsageError(
            f"`{url}`: the path of the socket has {length} bytes; expected at most {_LONGEST_SOCKET_BYTES}",
            hint="make a symbolic link to its folder with a shorter name",
        )
    return LoadTarget(wire, socket, 0, as_sent(path or "/"), is_unix=True, certified=certified)


def _tcp_target(url: str) -> LoadTarget:
    whole = url if "//" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        port, host = parts.port, _host(parts.hostname or "")
    except ValueError:
        raise _refusal(url) from None
    if "//" not in url and port is None and not is_loopback(host):
        raise _refusal(url)
    wire = _WIRES.get(parts.scheme)
    if wire is None or not parts.hostname or port == 0 or _has_useless_user(parts):
        raise _refusal(url)
    if wire is not Wire.HTTP and port is None:
        raise UsageError(
            f"`{url}` names no port, and {parts.scheme} has no usual one; "
            f"expected `{parts.scheme}://HOST:PORT[/PATH]`"
        )
    certified = _ascii(parts.hostname).partition("%")[0] if parts.scheme == _SECURE else None
    usual = _PORTS.get(parts.scheme, 0)
    path = as_sent(_path(whole, parts.netloc))
    return LoadTarget(
        *(wire, host, port or usual, path),
        name=_name(parts, host),
        certified=certified,
        authorization=credentials(parts),
    )


def _has_useless_user(parts: SplitResult) -> bool:
    """Return whether a URL has a user that its protocol has no place for."""
    return parts.username is not None and _WIRES.get(parts.scheme) is not Wire.HTTP


def _path(url: str, netloc: str) -> str:
    """Return what follows the server's name: an empty query is one, which the parser forgets.

    >>> _path("http://h:1/x?#top", "h:1"), _path("http://h?q", "h")
    ('/x?#top', '/?q')
    """
    rest = url.partition("//")[2][len(netloc) :]
    return rest if rest.startswith("/") else f"/{rest}"


# What listens everywhere is reached here, as uvicorn and others print it.
_HERE = MappingProxyType({"0.0.0.0": "127.0.0.1", "::": "::1"})  # noqa: S104 - nothing is bound


def _host(typed: str) -> str:
    """Return the host to connect to: names below `localhost` are this machine's (RFC 6761 section 6.3),
    the zone of an address is behind a `%` (RFC 6874), and a name of other letters has its form in ASCII.

    *Errors*: ValueError for a name that has none.

    >>> _host("app.localhost"), _host("fe80::1%25eth0"), _host("b\u00fccher.example")
    ('localhost', 'fe80::1%eth0', 'xn--bcher-kva.example')
    """
    if typed.removesuffix(".").endswith(".localhost"):
        return "localhost"
    name = _ascii(typed).replace("%25", "%", 1)
    return _HERE.get(name, name)


def _ascii(name: str) -> str:
    return name if name.isascii() else name.encode("idna").decode()


def _name(parts: SplitResult, host: str) -> str | None:
    """The engine writes `Host` from the address; a name in the URL must reach the server as typed. A zone is
    of this machine alone.
    """
    if is_loopback(host) and host != "localhost":
        return None
    if not parts.netloc.isascii():
        return _ascii(parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    return re.sub(r"%[^\]]*\]", "]", parts.netloc.rpartition("@")[2])

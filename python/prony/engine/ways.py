"""Which way a load takes to its server: by addresses that were typed, to another place, or through a proxy.

A way changes where the connections go, never what the server is asked for: `Host` and the name of the
certificate stay those of the URL.

>>> way = Way(connect_to=(connect_to_of("shop.example:80:127.0.0.1:8000"),))
>>> way.place("shop.example", 80)
Destination(host='127.0.0.1', port=8000, addresses=())

>>> list(changes_of("shop", ("192.0.2.1",), ("192.0.2.2", "192.0.2.1")))
['`shop` has changed: new connections also go to 192.0.2.2']
"""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from prony.core.errors import PronyError, UsageError

_PART = r"(\[[^\]]*\]|[^:\[\]]*)"
_RESOLVE = re.compile(rf"\+?{_PART}:([0-9]+):(.+)")
_CONNECT_TO = re.compile(rf"{_PART}:([0-9]*):{_PART}:([0-9]*)")
_MOST_PORTS = 65535
# Up to the last `@` before the path.
_USER = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*://)?([^/?#]*)@")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where connections go: a host and its port; ``addresses`` in place of those that the host has."""

    host: str
    port: int
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Addresses that were typed for a host and a port; the host `*` is any."""

    host: str
    port: int
    addresses: tuple[str, ...]

    def is_for(self, host: str, port: int) -> bool:
        """Return whether it speaks of this server."""
        return self.port == port and self.host in ("*", host)


@dataclass(frozen=True, slots=True)
class Diverted:
    """Where connections to one server go instead. What is null is any, or stays."""

    host: str | None
    port: int | None
    to_host: str | None
    to_port: int | None

    def is_for(self, host: str, port: int) -> bool:
        """Return whether it speaks of this server."""
        return self.host in (None, host) and self.port in (None, port)


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. ``authorization``: the value of that header for it; null: none."""

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Way:
    """All that was typed of it. ``resolve`` and ``connect_to``: the first that fits a server applies."""

    resolve: tuple[Resolved, ...] = ()
    connect_to: tuple[Diverted, ...] = ()
    proxy: Proxy | None = None

    def place(self, host: str, port: int) -> Destination:
        """Return where connections to a server go."""
        diverted = next((one for one in self.connect_to if one.is_for(host, port)), None)
        if diverted is not None:
            host, port = diverted.to_host or host, diverted.to_port or port
        resolved = next((one for one in self.resolve if one.is_for(host, port)), None)
        return Destination(host, port, resolved.addresses if resolved else ())

    def check(self, servers: Sequence[tuple[str, int]]) -> None:
        """Refuse what speaks of none of the servers: it would change nothing.

        *Errors*: UsageError naming the option.
        """
        reached = [(place.host, place.port) for place in (self.place(*one) for one in servers)]
        for option, typed, hosts in (
            ("--connect-to", self.connect_to, servers),
            ("--resolve", self.resolve, reached),
        ):
            for one in typed:
                if not any(one.is_for(*server) for server in hosts):
                    shown = ", ".join(f"{host}:{port}" for host, port in hosts)
                    raise UsageError(f"`{option} {one.host or ''}:{one.port or ''}:...` is not for `{shown}`")


def resolve_of(text: str) -> Resolved:
    """Return what ``HOST:PORT:ADDRESS[,ADDRESS]`` means.

    *Errors*: UsageError.

    >>> resolve_of("shop.example:443:127.0.0.1,[::1]").addresses
    ('127.0.0.1', '::1')
    """
    found = _RESOLVE.fullmatch(text)
    addresses = [_bare(one.strip()) for one in found[3].split(",")] if found else []
    if not found or not found[1] or not all(map(is_address, addresses)):
        raise UsageError(
            f"`--resolve {text}`: expected `HOST:PORT:ADDRESS`, such as `shop.example:443:127.0.0.1`"
        )
    return Resolved(_bare(found[1]).lower(), _port("--resolve", text, found[2]), tuple(addresses))


def connect_to_of(text: str) -> Diverted:
    """Return what ``HOST1:PORT1:HOST2:PORT2`` means; each part may be empty.

    *Errors*: UsageError.

    >>> connect_to_of("::[::1]:8000")
    Diverted(host=None, port=None, to_host='::1', to_port=8000)
    """
    found = _CONNECT_TO.fullmatch(text)
    if not found:
        raise UsageError(
            f"`--connect-to {text}`: expected `HOST1:PORT1:HOST2:PORT2`, such as "
            "`shop.example:443:127.0.0.1:8443`"
        )
    ports = [_port("--connect-to", text, found[n]) if found[n] else None for n in (2, 4)]
    hosts = [_bare(found[n]).lower() or None for n in (1, 3)]
    return Diverted(hosts[0], ports[0], hosts[1], ports[1])


def proxy_of(text: str, user: str | None = None) -> Proxy:
    """Return the proxy at ``[http://][USER:PASSWORD@]HOST:PORT``; ``user``: as `USER:PASSWORD`.

    *Errors*: UsageError, without the password.
    """
    whole = text if "://" in text else f"http://{text}"
    parts = _split(whole)
    if parts is None or parts.scheme != "http" or not parts.hostname or not parts.port:
        raise UsageError(
            f"`--proxy {without_credentials(text)}`: expected `http://HOST:PORT`, such as "
            "`http://127.0.0.1:3128`"
        )
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"`--proxy {without_credentials(text)}`: expected no path behind the port")
    typed = basic(*_user(user)) if user is not None else credentials(parts)
    return Proxy(parts.hostname, parts.port, typed)


def credentials(parts: SplitResult) -> str | None:
    """Return user and password of a URL, as a header's value; None: it has none.

    >>> credentials(urlsplit("http://me:p%40ss@host/")) == basic("me", "p@ss")
    True
    """
    if parts.username is None:
        return None
    return basic(unquote(parts.username), unquote(parts.password or ""))


def basic(user: str, password: str) -> str:
    """Return the value of an ``Authorization`` (RFC 7617).

    >>> basic("Aladdin", "open sesame")
    'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='
    """
    return f"Basic {b64encode(f'{user}:{password}'.encode(errors='surrogateescape')).decode()}"


def without_credentials(url: str) -> str:
    """Return the URL without user and password: messages end in logs.

    >>> without_credentials("http://me:secret@host/a@b")
    'http://...@host/a@b'
    """
    return _USER.sub(lambda found: f"{found[1] or ''}...@", url)


def password_in(url: str) -> tuple[str, ...]:
    """Return user and password of a URL as they are typed; none where it has none.

    >>> password_in("http://me:secret@host/"), password_in("http://host/a@b")
    (('me:secret',), ())
    """
    found = _USER.match(url)
    return () if found is None else (found[2],)


_Parsed = TypeVar("_Parsed")


def each(texts: Sequence[str] | None, parse: Callable[[str], _Parsed]) -> tuple[_Parsed, ...]:
    """Return what each of the texts of an option means."""
    return tuple(parse(text) for text in texts or ())


def _user(text: str) -> tuple[str, str]:
    user, _, password = text.partition(":")
    return user, password


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def _port(option: str, text: str, digits: str) -> int:
    if not 1 <= int(digits) <= _MOST_PORTS:
        raise UsageError(f"`{option} {text}`: `{digits}` is no port; expected 1 to {_MOST_PORTS}")
    return int(digits)


def _bare(text: str) -> str:
    return text.removeprefix("[").removesuffix("]")


def is_address(text: str) -> bool:
    """Return whether a text is an address of IPv4 or IPv6, which needs no look-up."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


# --- A name that is looked up again while a load runs -----------------------------------------------------


class Renewal:
    """Looks a name up again every so often, in a thread of its own, from ``with`` on.

    ``look_up``: returns the addresses that may be loaded; where it raises a PronyError, for a name that has
    none or one that is not allowed, the addresses stay as they are. ``say``: gets the words for each change,
    in the thread that calls ``fresh``.
    """

    def __init__(
        self,
        name: str,
        addresses: Sequence[str],
        look_up: Callable[[], Sequence[str]],
        every_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._name, self._addresses, self._look_up, self._say = name, tuple(addresses), look_up, say
        self._every_s = every_s
        self._found: SimpleQueue[tuple[str, ...] | str] = SimpleQueue()
        self._is_over = Event()
        self._last = ""

    def __enter__(self) -> Self:
        # A look-up may take longer than the load.
        Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def fresh(self) -> list[str] | None:
        """Return the addresses for new connections where they have changed since the last call."""
        before = self._addresses
        try:
            while True:
                self._take(self._found.get_nowait())
        except Empty:
            return list(self._addresses) if self._addresses != before else None

    def _look(self) -> None:
        while not self._is_over.wait(self._every_s):
            try:
                self._found.put(tuple(self._look_up()))
            except PronyError as error:
                self._found.put(str(error))

    def _take(self, found: tuple[str, ...] | str) -> None:
        """Take what a look-up found, or why it failed; what is as before is not said again."""
        if isinstance(found, str):
            words = [f"{found}; new connections go on to {', '.join(self._addresses)}"]
        else:
            words = list(changes_of(self._name, self._addresses, found))
        for one in words:
            if one != self._last:
                self._say(one)
        self._last = words[-1] if words else ""
        # A server of names may give them in any order.
        if not isinstance(found, str) and set(found) != set(self._addresses):
            self._addresses = found


def changes_of(name: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield words for what has changed of the addresses of a name: none where nothing has."""
    added = [one for one in after if one not in before]
    gone = [one for one in before if one not in after]
    also = " also" if len(gone) < len(before) else ""
    words = [f"new connections{also} go to {', '.join(added)}"] if added else []
    words += [f"none go to {', '.join(gone)} any more"] if gone else []
    if words:
        yield f"`{name}` has changed: {', '.join(words)}"

"""Which hosts ``prony load`` may load, and at which address: a name is resolved once, and checked whole.

The address that was checked is the address that is loaded: a name may have another one the next time.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prony.core.errors import HostError, UsageError
from prony.engine.ways import is_address
from prony.model.address import Address, AddressKind

Say = Callable[[str], None]

Resolve = Callable[[str, int], Sequence[str]]
"""Return all addresses of a name. *Errors*: OSError."""

# How long to look for the one of several addresses at which somebody listens.
_CONNECT_S = 1.0
_MOST_AT_ONCE = 32


def address_of(
    host: str,
    port: int,
    allowed: Sequence[str],
    resolve: Resolve | None = None,
    say: Say = lambda _words: None,
) -> Address:
    """Return where to send the load for a host, as an address without a name.

    This machine is always allowed, another host if ``allowed`` has its name, or all of its addresses. Of one
    with several, the load goes to all of one family that accept a connection; ``say`` gets the words for it.

    *Errors*: UsageError for a host that is not allowed; HostError for a name without an address.
    """
    guard = _Guard(host, tuple(allowed))
    if not guard.may_be_allowed:
        raise guard.refusal(host)
    try:
        addresses = (resolve or _resolved)(host, port)
    except OSError as error:
        raise HostError(f"no address for `{host}`: {error.strerror}") from error
    if not addresses:
        raise HostError(f"no address for `{host}`: the name has none")
    for one in addresses:
        if not guard.allows(one):
            raise guard.refusal(one)
    if host == "localhost":
        return _address(_listening(addresses, port)[0], port)
    return _of_several(host, port, addresses, say)


def typed_address(
    host: str, port: int, addresses: Sequence[str], allowed: Sequence[str], say: Say = lambda _words: None
) -> Address:
    """Return where to send the load for a host whose addresses were typed. The name is not looked up, and
    that it is allowed says nothing of them: each must be of this machine, or allowed itself.

    *Errors*: UsageError for an address that is not allowed.
    """
    for one in addresses:
        if not (_is_loopback_address(_bare(one)) or _is_allowed(one, allowed)):
            raise _Guard(one, tuple(allowed)).refusal(one)
    return _of_several(host, port, addresses, say)


def check_behind(host: str, allowed: Sequence[str], proxy: Address) -> None:
    """Refuse a host that the proxy may not be asked for: the proxy looks it up, so its name decides, and
    this machine is behind a proxy of this machine alone.

    *Errors*: UsageError.
    """
    is_own = is_loopback(host) and is_loopback(proxy.host)
    if not is_own and host not in allowed and not _is_allowed(host, allowed):
        raise _Guard(host, tuple(allowed)).refusal(host)


def _of_several(host: str, port: int, addresses: Sequence[str], say: Say) -> Address:
    used = _listening(addresses, port)
    if len(addresses) > 1:
        say(_several_words(host, addresses, used))
    return replace(_address(used[0], port), others=tuple(used[1:]))


def _several_words(host: str, addresses: Sequence[str], used: Sequence[str]) -> str:
    """Return which addresses a name has.

    >>> _several_words("shop", ("192.0.2.1", "192.0.2.2", "192.0.2.3"), ("192.0.2.1", "192.0.2.3"))
    '`shop` has 3 addresses; connections go in turn to 192.0.2.1, 192.0.2.3; not to 192.0.2.2'
    """
    left = [one for one in addresses if one not in used]
    turn = " in turn" if len(used) > 1 else ""
    others = f"; not to {', '.join(left)}" if left else ""
    return f"`{host}` has {len(addresses)} addresses; connections go{turn} to {', '.join(used)}{others}"


def is_loopback(host: str) -> bool:
    """Return whether a host, by its name or address, is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    return host == "localhost" or _is_loopback_address(host)


@dataclass(frozen=True, slots=True)
class _Guard:
    """What was typed: a host, and the hosts that are allowed."""

    host: str
    allowed: tuple[str, ...]

    @property
    def may_be_allowed(self) -> bool:
        """Whether it must be resolved to know: no name is looked up for nothing."""
        named = is_loopback(self.host) or self._is_named
        return named or (not is_address(self.host) and any(map(is_address, self.allowed)))

    @property
    def _is_named(self) -> bool:
        """Whether it stands among the allowed ones, whichever zone an address has."""
        return self.host in self.allowed or _is_allowed(self.host, self.allowed)

    def allows(self, address: str) -> bool:
        return self._is_named or _is_loopback_address(_bare(address)) or _is_allowed(address, self.allowed)

    def refusal(self, found: str) -> UsageError:
        which = f"`{found}`" if found == self.host else f"`{self.host}` has the address `{found}`, which"
        return UsageError(
            f"{which} is not this machine; a load can do harm, so other hosts must be named",
            hint=f"if you may load it: prony load ... --allow-host {self.host}",
        )


def _resolved(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(_with_zone(*one[4]) for one in found))


def _with_zone(address: str | int, _port: int | bytes, _flow: int = 0, zone: int = 0) -> str:
    """Return an address as `getaddrinfo` has it, whose zone stands apart there.

    >>> _with_zone("fe80::1", 80, 0, 1), _with_zone("192.0.2.1", 80)
    ('fe80::1%lo', '192.0.2.1')
    """
    return f"{address}%{socket.if_indextoname(zone)}" if zone else str(address)


def _listening(addresses: Sequence[str], port: int) -> Sequence[str]:
    """Return those of several addresses that accept a connection, all of the first one's family; else the
    first.
    """
    if len(addresses) == 1:
        return addresses
    # Only names with several addresses need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(addresses), _MOST_AT_ONCE)) as threads:
        accepted = list(threads.map(lambda one: _accepts(one, port), addresses))
    found = [one for one, accepts in zip(addresses, accepted, strict=True) if accepts]
    return [one for one in found if (":" in one) == (":" in found[0])] or addresses[:1]


def _accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _address(host: str, port: int) -> Address:
    return Address(host, port, AddressKind.TCP6 if ":" in host else AddressKind.TCP4)


def _is_loopback_address(text: str) -> bool:
    return is_address(text) and ipaddress.ip_address(text).is_loopback


def _is_allowed(address: str, allowed: Sequence[str]) -> bool:
    bare = _bare(address)
    return is_address(bare) and any(_is_same(bare, _bare(one)) for one in allowed)


def _bare(address: str) -> str:
    """Return an address without its zone, which is of this machine alone."""
    return address.partition("%")[0]


def _is_same(one: str, other: str) -> bool:
    return is_address(other) and ipaddress.ip_address(one) == ipaddress.ip_address(other)

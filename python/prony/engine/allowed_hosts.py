"""Which hosts ``prony load`` may load, and at which address: a name is resolved once, and checked whole.

The address that was checked is the address that is loaded: a name may have another one the next time.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.errors import HostError, UsageError
from prony.model.address import Address, AddressKind

Resolve = Callable[[str, int], Sequence[str]]
"""Return all addresses of a name. *Errors*: OSError."""

# How long to look for the one of several addresses at which somebody listens.
_CONNECT_S = 1.0


def address_of(host: str, port: int, allowed: Sequence[str], resolve: Resolve | None = None) -> Address:
    """Return where to send the load for a host, as an address without a name.

    This machine is always allowed, another host if ``allowed`` has its name, or all of its addresses.

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
    return _address(_listening(addresses, port), port)


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
        named = is_loopback(self.host) or self.host in self.allowed
        return named or (not _is_address(self.host) and any(map(_is_address, self.allowed)))

    def allows(self, address: str) -> bool:
        bare = address.partition("%")[0]
        by_name = self.host in self.allowed
        return by_name or _is_loopback_address(bare) or any(_is_same(bare, one) for one in self.allowed)

    def refusal(self, found: str) -> UsageError:
        which = f"`{found}`" if found == self.host else f"`{self.host}` has the address `{found}`, which"
        return UsageError(
            f"{which} is not this machine; a load can do harm, so other hosts must be named",
            hint=f"if you may load it: prony load ... --allow-host {self.host}",
        )


def _resolved(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(one[4][0]) for one in found))


def _listening(addresses: Sequence[str], port: int) -> str:
    """Return the first of several addresses that accepts a connection; else the first."""
    for one in addresses if len(addresses) > 1 else ():
        try:
            socket.create_connection((one, port), timeout=_CONNECT_S).close()
        except OSError:
            continue
        return one
    return addresses[0]


def _address(host: str, port: int) -> Address:
    return Address(host, port, AddressKind.TCP6 if ":" in host else AddressKind.TCP4)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_loopback_address(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_loopback


def _is_same(one: str, other: str) -> bool:
    return _is_address(other) and ipaddress.ip_address(one) == ipaddress.ip_address(other)

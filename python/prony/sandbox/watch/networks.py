"""Other networks of this machine, as containers have them: who listens there, who is connected, and where.

None is entered: of each process /proc shows the network that it is in, to everybody who sees the process. A
network's number is the inode of its table of TCP sockets. Must not know subjects.

*Source*: proc_pid_net(5); kernel, net/ipv4/tcp_ipv4.c, get_tcp4_sock; net/ipv4/fib_trie.c,
fib_trie_seq_show; net/ipv6/addrconf.c, if6_seq_show.

>>> own_hosts("|-- 172.18.0.2\\n   /32 host LOCAL\\n|-- 127.0.0.1\\n   /32 host LOCAL\\n", "")
['172.18.0.2']

What `docker-proxy` does, by its command, which everybody may read:

>>> words = ["docker-proxy", "-proto", "tcp", "-host-ip", "0.0.0.0", "-host-port", "5433"]
>>> forwarded([*words, "-container-ip", "172.18.0.2", "-container-port", "5432"])
Forwarded(entrance=5433, host='172.18.0.2', port=5432)
"""

import os
import re
import socket
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from prony.model.address import AddressKind
from prony.sandbox.watch.sock_diag import Connected, Listener, host_literal, packed_host, unmapped

_TABLES = {"tcp": AddressKind.TCP4, "tcp6": AddressKind.TCP6}
# As these tables have them, of include/net/tcp_states.h.
_ESTABLISHED, _LISTEN = "01", "0A"
# A tenth of a second's work. Listeners come first.
_MOST_ROWS = 50_000
_OWN_HOST = re.compile(r"\|-- (\S+)\n +/32 host LOCAL")
_LOOPBACK = ("127.", "::1")


@dataclass(frozen=True, slots=True)
class OtherNetworks:
    """The TCP sockets of all networks but this one; ``hosts``: the network that has an address (in 16 bytes,
    as in ``Outgoing``), where only one of them has it.
    """

    listeners: list[Listener] = field(default_factory=list)
    connected: list[Connected] = field(default_factory=list)
    hosts: dict[bytes, int] = field(default_factory=dict)


def other_networks() -> OtherNetworks:
    """Read what may be seen of them: 6 us for each process, and 3 ms for each network that has an address;
    the others, of programs that are shut in, lead nowhere.
    """
    found, shared = OtherNetworks(), set[bytes]()
    for network, pids in by_network(all_pids()).items():
        folder = Path(f"/proc/{pids[0]}/net")
        trie, interfaces = ("".join(_lines(folder / name)) for name in ("fib_trie", "if_inet6"))
        hosts = {packed_host(one) for one in own_hosts(trie, interfaces)}
        for name, kind in _TABLES.items() if hosts else ():
            listeners, connected = tcp_sockets(_lines(folder / name)[1:], kind, network)
            found.listeners.extend(listeners)
            found.connected.extend(connected)
        shared |= hosts & found.hosts.keys()
        found.hosts.update(dict.fromkeys(hosts, network))
    for host in shared:
        del found.hosts[host]
    return found


def all_pids() -> list[int]:
    """Return all processes that may be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names alone


def by_network(pids: Iterable[int]) -> dict[int, list[int]]:
    """Return the processes in each network but this one, by its number."""
    found, own = defaultdict[int, list[int]](list), _number("self")
    for pid in pids:
        if (number := _number(pid)) not in (0, own):
            found[number].append(pid)
    return found if own else {}


def _number(pid: int | str) -> int:
    """Return the number of a process's network; 0: it has ended, or nothing shows it."""
    try:
        return os.stat(f"/proc/{pid}/net/tcp").st_ino  # noqa: PTH116 - hundreds at a time
    except OSError:
        return 0


def _lines(table: Path) -> list[str]:
    """Return a table's lines; none of one that the network has not."""
    with suppress(OSError), table.open() as lines:
        return [*islice(lines, _MOST_ROWS)]
    return []


def tcp_sockets(
    rows: Iterable[str], kind: AddressKind, network: int
) -> tuple[list[Listener], list[Connected]]:
    """Return the listeners, and the ends of established connections, in a table without its title."""
    listeners, connected = [], []
    for row in rows:
        _, own, peer, state, _, _, _, uid, _, inode, *_ = row.split()
        if state == _LISTEN:
            host, port = _end(own)
            place = (kind, host_literal(host), port)
            listeners.append(Listener(*place, int(inode), 0, 0, True, int(uid), 0, network))
        elif state == _ESTABLISHED:
            connected.append(Connected(*_end(own), *_end(peer), int(inode), network))
    return listeners, connected


def _end(text: str) -> tuple[bytes, int]:
    """Return an address, which has words of 32 bits in this machine's order, and a port."""
    host, _, port = text.partition(":")
    words = (int(host[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(host), 8))
    return unmapped(b"".join(words).ljust(16, b"\0")), int(port, 16)


def own_hosts(trie: str, interfaces: str) -> list[str]:
    """Return the addresses in a `fib_trie` and an `if_inet6`, without those of the loopback device."""
    six = (socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[:32])) for row in interfaces.splitlines())
    return [one for one in (*_OWN_HOST.findall(trie), *six) if not one.startswith(_LOOPBACK)]


# --- docker-proxy -----------------------------------------------------------------------------------------


class Forwarded(NamedTuple):
    """The port at which a program takes connections, and where it leads them."""

    entrance: int
    host: str
    port: int


def forwarded(words: Sequence[str]) -> Forwarded | None:
    """Return what a command forwards; None where it is no `docker-proxy` of TCP."""
    said = dict(pairwise(words))
    if not words or Path(words[0]).name != "docker-proxy" or said.get("-proto") != "tcp":
        return None
    with suppress(KeyError, ValueError, OSError):
        found = Forwarded(int(said["-host-port"]), said["-container-ip"], int(said["-container-port"]))
        packed_host(found.host)
        return found
    return None


def forwarded_by(pid: int) -> Forwarded | None:
    """Return what a process forwards; None where it is no `docker-proxy`, or may not be seen."""
    try:
        return forwarded(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0"))
    except OSError:
        return None

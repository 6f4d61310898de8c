"""Whether a subject gives the replies of its app's contract: checked before its speed is measured.

>>> difference(Check(body=b"Hello"), Reply(200, b"Hell"))
'GET /: expected the body `Hello` (5 bytes), got `Hell` (4 bytes)'

>>> listeners_of([])
()
"""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from prony.model.address import Address
from prony.model.exchange import Check, Contract
from prony.sandbox.exchange import BrokenReplyError, NobodyThereError, Reply, exchange
from prony.sandbox.identity import open_sockets
from prony.sandbox.linux import in_network

# Enough to see the difference, without a whole page in a message.
_EXCERPT_BYTES = 60


def verify(
    contract: Contract, address: Address, network: str | None = None, timeout_s: float = 10.0
) -> str | None:
    """Return None when every check passes, else why the first failing one fails.

    ``network`` is the subject's namespace, as in ``EngineSeat.network_namespace``.
    """
    return in_network(network, lambda: _first_failure(contract, address, timeout_s))


def probe(check: Check, address: Address, network: str | None = None, timeout_s: float = 10.0) -> Reply | str:
    """Return the reply to one check's request, or why there is none; used to compare replies."""
    return in_network(network, lambda: _reply(check, address, timeout_s))


def difference(check: Check, reply: Reply) -> str | None:
    """Return how a reply differs from what a check expects; None when it does not differ."""
    found = next(_differences(check, reply), None)
    return None if found is None else f"{check.request.method} {check.request.path}: expected {found}"


def _differences(check: Check, reply: Reply) -> Iterator[str]:
    """Yield what is expected and what came instead, as the engine judges replies: status, headers, body."""
    if not any(low <= reply.status <= high for low, high in _statuses(check)):
        wanted = _status_words(check)
        yield f"{wanted}, got {reply.status} with the body {_excerpt(reply.body)}"
    for name, value in check.headers:
        got = reply.header(name.lower())
        if not _is_value(got, value):
            shown = name if value is None else f"{name}: {value}"
            yield f"the header `{shown}`, got {f'`{got}`' if got else 'none'}"
    if check.body is not None and reply.body != check.body:
        yield f"the body {_around(check.body, reply.body)}, got {_around(reply.body, check.body)}"
    for part in check.body_contains:
        if part not in reply.body:
            yield f"a body with {_excerpt(part)}, got {_excerpt(reply.body)} ({len(reply.body)} bytes)"
    digest = sha256(reply.body).hexdigest()
    if check.body_sha256 not in (None, digest):
        yield f"a body with the SHA-256 {check.body_sha256}, got {digest}"


def _statuses(check: Check) -> tuple[tuple[int, int], ...]:
    own = () if check.status is None else ((check.status, check.status),)
    return (*own, *check.statuses) or ((200, 399),)


def _status_words(check: Check) -> str:
    ranges = [f"{low}" if low == high else f"{low} to {high}" for low, high in _statuses(check)]
    return f"the status {ranges[0]}" if check.status is not None else f"a status of {' or '.join(ranges)}"


def _is_value(got: str, wanted: str | None) -> bool:
    if wanted is None:
        return bool(got)
    return got == wanted or (got.startswith(wanted) and got[len(wanted) :].lstrip().startswith(";"))


def _first_failure(contract: Contract, address: Address, timeout_s: float) -> str | None:
    for check in contract.checks:
        reply = _reply(check, address, timeout_s)
        failure = reply if isinstance(reply, str) else difference(check, reply)
        if failure is not None:
            return failure
    return None


def _reply(check: Check, address: Address, timeout_s: float) -> Reply | str:
    name = f"{check.request.method} {check.request.path}"
    try:
        return exchange(address, check.request, time.monotonic() + timeout_s)
    except TimeoutError:
        return f"{name}: no complete reply within {timeout_s:g} s"
    except (OSError, BrokenReplyError, NobodyThereError) as error:
        return f"{name}: no complete reply: {error or type(error).__name__}"


def _around(body: bytes, other: bytes) -> str:
    """Return an excerpt of ``body`` that shows where it first differs from ``other``."""
    same = next(
        (at for at, (one, two) in enumerate(zip(body, other, strict=False)) if one != two),
        min(len(body), len(other)),
    )
    start = max(0, same - _EXCERPT_BYTES // 2) if same >= _EXCERPT_BYTES else 0
    return f"{_excerpt(body, start)} ({len(body)} bytes{f', from byte {start}' if start else ''})"


def _excerpt(body: bytes, start: int = 0) -> str:
    part = body[start : start + _EXCERPT_BYTES]
    text = "".join(
        character if character.isprintable() else "." for character in part.decode(errors="replace")
    )
    return f"`{text}{'...' if len(body) > start + _EXCERPT_BYTES else ''}`"


# --- the TCP ports on which a subject's processes listen, wherever they should ----------------------------


# *Source*: proc_pid_net(5); include/net/tcp_states.h.
_TABLES = ("net/tcp", "net/tcp6")
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class ListeningPort:
    """A port on which a process listens, and the address of the machine for which it does."""

    port: int
    host: str


def listeners_of(pids: Sequence[int]) -> tuple[ListeningPort, ...]:
    """Return where these processes of one network listen, by ports, ascending."""
    own = {str(inode) for _, inode in open_sockets(pids)}
    found = {one for pid in pids[:1] for one, inode in _listeners(pid) if inode in own}
    return tuple(sorted(found, key=lambda one: (one.port, one.host)))


def listening_ports(pids: Sequence[int]) -> tuple[int, ...]:
    """Return the ports on which these processes of one network listen, ascending."""
    return tuple(sorted({one.port for one in listeners_of(pids)}))


def _listeners(pid: int) -> Iterator[tuple[ListeningPort, str]]:
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in Path("/proc", str(pid), table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    host, _, port = fields[1].rpartition(":")
                    yield ListeningPort(int(port, 16), host_of(host)), fields[9]


def host_of(text: str) -> str:
    """Return an address of /proc/net/tcp, whose words of 32 bits are in the machine's byte order.

    >>> host_of("00000000"), host_of("0" * 32)
    ('0.0.0.0', '::')
    """
    words = (int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    packed = b"".join(words)
    if len(packed) == 4:
        return str(IPv4Address(packed))
    found = IPv6Address(packed)
    return f"::ffff:{found.ipv4_mapped}" if found.ipv4_mapped else str(found)

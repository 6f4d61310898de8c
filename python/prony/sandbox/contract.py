"""Whether a subject gives the replies of its app's contract: checked before its speed is measured.

Must not know how the subject was started.

>>> difference(Check(body=b"Hello"), Reply(200, b"Hell"))
'GET /: expected the body `Hello` (5 bytes), got `Hell` (4 bytes)'
"""

import http.client
import time

from prony.model import Address, Check, Contract
from prony.sandbox.exchange import NobodyThereError, Reply, exchange
from prony.sandbox.linux import in_network

__all__ = ["difference", "probe", "verify"]

# Enough to see the difference, without a whole page in a message.
_EXCERPT_BYTES = 60


def verify(
    contract: Contract, address: Address, network: str | None = None, timeout_s: float = 10.0
) -> str | None:
    """Return null when every check passes, else why the first failing one fails.

    ``network`` is the subject's namespace, as in ``EngineSeat.network_namespace``.
    """
    return in_network(network, lambda: _first_failure(contract, address, timeout_s))


def probe(check: Check, address: Address, network: str | None = None, timeout_s: float = 10.0) -> Reply | str:
    """Return the reply to one check's request, or why there is none; used to compare replies."""
    return in_network(network, lambda: _reply(check, address, timeout_s))


def difference(check: Check, reply: Reply) -> str | None:
    """Return how a reply differs from what a check expects; null when it does not differ."""
    name = f"{check.request.method} {check.request.path}"
    wanted = "a status of 200 to 399" if check.status is None else f"the status {check.status}"
    if not (200 <= reply.status < 400 if check.status is None else reply.status == check.status):
        return f"{name}: expected {wanted}, got {reply.status} with the body {_excerpt(reply.body)}"
    if check.body is not None and reply.body != check.body:
        expected, actual = _around(check.body, reply.body), _around(reply.body, check.body)
        return f"{name}: expected the body {expected}, got {actual}"
    return None


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
    except (OSError, http.client.HTTPException, NobodyThereError) as error:
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

"""A workload in the engine's own terms: docs/reference/engine-wire.md.

Uses only the list of wires of the compiled engine.

>>> spec = to_spec(Workload(ClosedLoop(2), CountStop(10)), Address("127.0.0.1", 80), EngineChoice(threads=4))
>>> spec["threads"], spec["workload"]["stop"]
(2, {'kind': 'requests', 'requests': 10})
"""

from collections.abc import Sequence
from dataclasses import replace

from prony.core.errors import EngineError
from prony.core.units import nanoseconds
from prony.model.address import Address, AddressKind, HttpVersion, Wire
from prony.model.exchange import Request
from prony.model.json_codec import Json, encode
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, OpenLoop, Workload


def to_spec(
    workload: Workload,
    address: Address,
    choice: EngineChoice,
    cpus: Sequence[int] | None = None,
    ceiling_per_s: float | None = None,
) -> Json:
    """Return the specification of a run. ``cpus``: workers are pinned to these; None: not pinned.
    ``ceiling_per_s``: what such a generator can reach on this machine, if known.

    *Errors*: EngineError for an address that the engine cannot connect to, or that has no streams.
    """
    return {
        "target": encode_target(address, workload.streams),
        # How many requests a connection has at once is part of the wire there.
        "workload": encode(replace(workload, streams=1)),
        "threads": min(choice.threads, workload.loop.connections or choice.threads),
        "cpus": list(cpus) if cpus is not None else None,
        "pacing": str(choice.pacing),
        "ceiling_per_s": ceiling_per_s,
    }


def encode_target(address: Address, streams: int = 1) -> Json:
    """Return an address in the form of a specification. ``streams``: requests at once on each connection.

    *Errors*: EngineError when the engine cannot connect to it, or when several requests are to be under way
    on a connection that has one at a time.
    """
    # Imported where it is used: archives can be read without it.
    from prony._engine import WIRES

    is_unix = address.kind is AddressKind.UNIX
    place = address.host if is_unix else f"{address.host}:{address.port}"
    if address.tls and address.wire not in (Wire.HTTP, Wire.HTTP2):
        raise EngineError(
            f"the engine cannot speak {address.wire} with TLS to `{place}`; expected HTTP, or no TLS"
        )
    if address.wire not in WIRES:
        raise EngineError(
            f"the engine cannot speak {address.wire} to `{place}`; expected one of {', '.join(WIRES)}"
        )
    if streams > 1 and address.wire is not Wire.HTTP2:
        raise EngineError(
            f"{streams} streams on each connection to `{place}`, which speaks {address.wire}; expected HTTP/2"
        )
    return {
        "host": address.host,
        "port": address.port,
        "socket": "unix" if is_unix else "tcp",
        "wire": _encode_wire(address, streams),
        **({"tls": encode(address.tls)} if address.tls else {}),
        **({"others": list(address.others)} if address.others else {}),
        **({"proxy": encode(address.proxy)} if address.proxy else {}),
    }


def _encode_wire(address: Address, streams: int) -> Json:
    kind = {"kind": str(address.wire)}
    match address.wire:
        case Wire.HTTP2:
            return {**kind, "streams": streams}
        case Wire.HTTP:
            # What goes without saying is not said.
            old = {} if address.version is HttpVersion.HTTP_1_1 else {"version": str(address.version)}
            return {**kind, **old}
        case _:
            return kind


def encode_request(request: Request) -> Json:
    """Return a request in the form of a specification."""
    found: Json = encode(request)
    return found


def hard_limit_ns(workload: Workload) -> int:
    """Return the longest time that a run can take: the sum of all waits, each at its longest."""
    match workload.stop, workload.loop:
        case DurationStop(duration_ns), _:
            load_ns = duration_ns
        case CountStop(requests), OpenLoop(rate_per_s):
            load_ns = nanoseconds(requests / rate_per_s)
        case CountStop(requests), ClosedLoop(connections):
            # Each connection sends its share one request after the other, each as late as possible.
            load_ns = -(-requests // connections) * workload.longest_ns
    # A closed loop opens its connections before the warm-up, for one time-out at the longest.
    opening_ns = workload.longest_ns if isinstance(workload.loop, ClosedLoop) else 0
    return opening_ns + workload.warmup_ns + load_ns + workload.grace_ns + workload.longest_ns

"""Which cells of a study can be measured on this machine, before anything is started: whether their generator
is here, and their subject takes their load.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import (
    HTTP2,
    TLS,
    TLS_CIPHER,
    TLS_OFF,
    TLS_RESUMPTION,
    asked_ciphers,
    asked_value,
    is_true,
    needs_tls,
)
from prony.engine.registry import cannot_make, not_here, not_installed
from prony.model.address import KEEPING, Address, Tls, Wire
from prony.model.plan import Cell
from prony.model.sandbox import SandboxKind
from prony.model.workload import EngineChoice

ONE_AT_A_TIME = "several streams on a connection need HTTP/2, and it has one request at a time"
"""Why a subject of another wire does not get a load with streams: with as many connections it would be
another load.
"""
ALWAYS_KEPT = "a connection for each request needs HTTP/1, and those of HTTP/2 are kept"
NO_REDIRECTS = "redirects are followed over HTTP/1 alone"
NO_LIMIT = "only connections of HTTP/1 and FastCGI end at a limit"
ONLY_WITH_TLS = "it does not speak that wire without TLS"

# Which server it is does not matter here, only what it speaks.
_ANY = Address("127.0.0.1", 0)
_AUTHORITY = "authority.pem"


def left_out(cells: Iterable[Cell], catalog: Catalog) -> dict[int, str]:
    """Return, by cell id, why its generator is not on this machine, or cannot send its load, or why its
    subject does not take it.

    *Errors*: as `prony.engine.registry.not_here`, which may build an environment; UsageError for a server
    that is not in the catalogue.
    """
    return _left_out(cells, catalog, not_here)


def to_leave_out(cells: Iterable[Cell], catalog: Catalog) -> dict[int, str]:
    """Return what `left_out` would, as far as it is known without building anything."""
    return _left_out(cells, catalog, not_installed)


def _left_out(
    cells: Iterable[Cell], catalog: Catalog, lacking: Callable[[EngineChoice], str | None]
) -> dict[int, str]:
    missing: dict[str, str | None] = {}
    found: dict[int, str] = {}
    for cell in cells:
        name = cell.engine.name
        if name not in missing:
            missing[name] = lacking(cell.engine)
        address = _address(cell, catalog)
        reason = (
            missing[name]
            or _unspoken(cell, address, catalog)
            or _not_taken(cell, address.wire)
            or cannot_make(cell.engine, cell.workload, address)
            or _unlimited(cell)
        )
        if reason:
            found[cell.id] = reason
    return found


def _unlimited(cell: Cell) -> str | None:
    """Return why generators cannot be limited each; None: they can, or need not be."""
    if "@" not in cell.engine.name or cell.sandbox.kind is SandboxKind.CGROUP:
        return None
    return f"a limit for each of its generators needs control groups; the sandbox is `{cell.sandbox.kind}`"


def _unspoken(cell: Cell, address: Address, catalog: Catalog) -> str | None:
    """Return why nobody can be answered at such an address; None: they can."""
    alone = cell.subject.frontend is None and address.tls is None
    return ONLY_WITH_TLS if alone and needs_tls(catalog.server(cell.subject.server), address.wire) else None


def _not_taken(cell: Cell, wire: Wire) -> str | None:
    """Return why nobody can send the cell's load over its subject's wire; None: it can be sent."""
    load = cell.workload
    if load.streams > 1 and wire is not Wire.HTTP2:
        return ONE_AT_A_TIME
    if load.follow and wire is not Wire.HTTP:
        return NO_REDIRECTS
    if (load.connection_requests or load.connection_age_ns) and wire not in KEEPING:
        return NO_LIMIT
    return ALWAYS_KEPT if wire is Wire.HTTP2 and not load.request.keep_alive else None


def _address(cell: Cell, catalog: Catalog) -> Address:
    """Return an address with the wire and the TLS that the subject's clients speak."""
    subject, front = cell.subject, cell.subject.frontend
    if front is None:
        entry = catalog.server(subject.server)
        spoken = replace(_ANY, wire=Wire(str(asked_value(entry, subject, "wire") or entry.wires[0])))
    else:
        asked = asked_value(catalog.frontends[front.entry], front, HTTP2) or False
        spoken = replace(_ANY, wire=Wire.HTTP2 if is_true(asked) else Wire.HTTP)
    return replace(spoken, tls=_asked_tls(cell, catalog))


def _asked_tls(cell: Cell, catalog: Catalog) -> Tls | None:
    subject, front = cell.subject, cell.subject.frontend
    entry = catalog.server(subject.server) if front is None else catalog.frontends[front.entry]
    if (asked_value(entry, front or subject, TLS) or TLS_OFF) == TLS_OFF:
        return None
    resumption = asked_value(entry, front or subject, TLS_RESUMPTION) or False
    ciphers = asked_ciphers(asked_value(entry, front or subject, TLS_CIPHER))
    return Tls(ca_file=_AUTHORITY, resumption=is_true(resumption), ciphers=ciphers)


def left_out_words(cells: Iterable[Cell], reasons: Mapping[int, str]) -> tuple[str, ...]:
    """Return one sentence for each generator or subject and reason, in the order of the cells."""
    said = [
        f"{_who(cell, reasons[cell.id])} is left out: {reasons[cell.id]}"
        for cell in cells
        if cell.id in reasons
    ]
    return tuple(dict.fromkeys(said))


def _who(cell: Cell, reason: str) -> str:
    of_subject = (ONE_AT_A_TIME, ALWAYS_KEPT, NO_REDIRECTS, NO_LIMIT, ONLY_WITH_TLS)
    return cell.subject.name if reason in of_subject else cell.engine.name

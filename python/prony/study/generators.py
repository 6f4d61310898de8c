"""Which cells of a study have a generator on this machine, before anything is started.

Must not know how a generator works.

>>> left_out(())
{}
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from prony.catalog.schema.settings import TLS, TLS_OFF, TLS_RESUMPTION, is_true
from prony.engine import cannot_make, not_here, not_installed
from prony.model import Address, Cell, EngineChoice, SandboxKind, Tls

__all__ = ["foreseen", "left_out", "left_out_words"]

# The server does not matter here, and its wire is known only when it is started.
_ANY = Address("127.0.0.1", 0)
_AUTHORITY = "authority.pem"


def left_out(cells: Iterable[Cell]) -> dict[int, str]:
    """Return, by cell id, why its generator is not on this machine, or cannot send its load.

    *Errors*: as `prony.engine.not_here`, which may build an environment.
    """
    return _left_out(cells, not_here)


def foreseen(cells: Iterable[Cell]) -> dict[int, str]:
    """Return what `left_out` would, as far as it is known without building anything."""
    return _left_out(cells, not_installed)


def _left_out(cells: Iterable[Cell], lacking: Callable[[EngineChoice], str | None]) -> dict[int, str]:
    missing: dict[str, str | None] = {}
    found: dict[int, str] = {}
    for cell in cells:
        name = cell.engine.name
        if name not in missing:
            missing[name] = lacking(cell.engine)
        reason = missing[name] or cannot_make(cell.engine, cell.workload, _address(cell)) or _unlimited(cell)
        if reason:
            found[cell.id] = reason
    return found


def _unlimited(cell: Cell) -> str | None:
    """Return why generators cannot be limited each; null: they can, or need not be."""
    if "@" not in cell.engine.name or cell.sandbox.kind is SandboxKind.CGROUP:
        return None
    return f"a limit for each of its generators needs control groups; the sandbox is `{cell.sandbox.kind}`"


def _address(cell: Cell) -> Address:
    """Return an address with the TLS that is asked for in words; a preset's is known only at the start."""
    settings = (cell.subject.frontend or cell.subject).settings
    if settings.get(TLS, TLS_OFF) == TLS_OFF:
        return _ANY
    resumption = is_true(settings.get(TLS_RESUMPTION, False))
    return replace(_ANY, tls=Tls(ca_file=_AUTHORITY, resumption=resumption))


def left_out_words(cells: Iterable[Cell], reasons: Mapping[int, str]) -> tuple[str, ...]:
    """Return one sentence for each generator and reason, in the order of the cells."""
    said = [f"{cell.engine.name} is left out: {reasons[cell.id]}" for cell in cells if cell.id in reasons]
    return tuple(dict.fromkeys(said))

"""The rows of a check: servers with each interface and wire, alone and behind frontends, and with TLS. Pure.

Must not know how a row is checked.

>>> names_to_check(Catalog({}, {}, {}, {}), [])
()
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from prony.catalog.schema.entry import FrontendEntry, ServerEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import HTTP2, TLS, needs_tls, speaks_tls
from prony.errors import UsageError
from prony.model.address import TlsKey, Wire
from prony.model.subject import App, Interface, Subject

_WITH_TLS = MappingProxyType({TLS: str(TlsKey.ECDSA)})
_OVER_HTTP2 = MappingProxyType({HTTP2: "true"})


def subjects_to_check(catalog: Catalog, names: Sequence[str], app: App) -> Iterator[Subject]:
    """Yield the rows of a check: each of ``names`` (see `names_to_check`) with each interface and wire, and
    once more with TLS if it speaks that, HTTP/2 with TLS too.

    *Errors*: UsageError for an app that a server cannot serve.
    """
    for name in names:
        yield from _subjects(catalog, name, app)


def names_to_check(catalog: Catalog, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of single servers that ``names`` stand for; without names, all that come with Prony.

    An entry's name includes its variants; a frontend's name stands for the frontend with each server that it
    is checked with: ``uwsgi-socket@nginx``. A server that needs a frontend is checked behind it.

    *Errors*: UsageError for an unknown name.
    """
    built_in = [name for name in catalog.servers if name not in catalog.own]
    found = [
        single for name in names or [*built_in, *catalog.frontends] for single in _singles(catalog, name)
    ]
    return tuple(dict.fromkeys(found))


def _singles(catalog: Catalog, name: str) -> Iterator[str]:
    if "@" in name:
        catalog.processes(name)
        yield name
    elif name in catalog.frontends:
        frontend = catalog.frontends[name]
        yield from (f"{example}@{name}" for example in frontend.examples)
        for variant in frontend.variants:
            yield from (f"{example}@{name}-{variant}" for example in _one_a_wire(catalog, frontend))
    elif (front := _frontend_of(catalog, name)) is not None:
        yield from (f"{example}@{name}" for example in _one_a_wire(catalog, front))
    else:
        entry, variant = catalog.find(name)
        around = f"@{entry.behind}" if entry.behind else ""
        yield f"{name}{around}"
        if not variant:
            yield from (f"{entry.name}-{other}{around}" for other in entry.variants)


def _frontend_of(catalog: Catalog, name: str) -> FrontendEntry | None:
    """Return the frontend of which ``name`` is a variant, unless it is a server's name too."""
    entry = catalog.entry(name) if "@" not in name else None
    return entry if isinstance(entry, FrontendEntry) else None


def _one_a_wire(catalog: Catalog, frontend: FrontendEntry) -> Iterable[str]:
    """Return the first of the frontend's examples for each wire: enough for its variants."""
    first: dict[Wire, str] = {}
    for name in frontend.examples:
        entry, variant = catalog.find(name)
        preset = entry.variants[variant].settings if variant else {}
        first.setdefault(Wire(str(preset.get("wire", entry.wires[0]))), name)
    return first.values()


def _subjects(catalog: Catalog, name: str, app: App) -> Iterator[Subject]:
    server, at, front = name.partition("@")
    frontend = catalog.frontend(front) if at else None
    entry, variant = catalog.find(server)
    offered = [*app.targets, *([Interface.NONE] if app.name in entry.serves else [])]
    spoken = [interface for interface in entry.interfaces if interface in offered]
    if not spoken:
        raise UsageError(f"`{name}` speaks {', '.join(entry.interfaces)}, which `{app.name}` does not offer")
    for interface in spoken:
        subject = Subject(name, entry.name, app, interface, variant, frontend=frontend)
        yield subject
        for wire in () if variant or frontend else _other_wires(entry):
            encrypted = _WITH_TLS if needs_tls(entry, wire) else {}
            yield replace(subject, settings={"wire": wire, **encrypted})
    if not variant and frontend is None and speaks_tls(entry):
        yield replace(subject, settings=_WITH_TLS)
        for wire in {Wire.HTTP2} & set(entry.wires[1:]):
            if not needs_tls(entry, wire):
                yield replace(subject, settings={"wire": wire, **_WITH_TLS})
    if frontend:
        for settings in _at_the_front(name, catalog.frontends[frontend.entry]):
            yield replace(subject, frontend=replace(frontend, settings=settings))


def _at_the_front(name: str, entry: FrontendEntry) -> Iterator[Mapping[str, str]]:
    """Yield what else a frontend is checked with before the first of its examples: TLS and HTTP/2."""
    if name != f"{entry.examples[0]}@{entry.name}":
        return
    if speaks_tls(entry):
        yield _WITH_TLS
    if entry.http2:
        yield _OVER_HTTP2
    if speaks_tls(entry) and entry.http2:
        yield {**_OVER_HTTP2, **_WITH_TLS}


def _other_wires(entry: ServerEntry) -> list[Wire]:
    """Return the wires, except the first, that no variant uses."""
    shown = {variant.settings.get("wire") for variant in entry.variants.values()}
    return [wire for wire in entry.wires[1:] if wire not in shown]

"""The catalogue: every server, frontend, service and app that Prony knows by name, read from TOML files.

Files are read when `load_catalog` is called, never at import.

Settings that were asked for, against the subjects that would take them, before anything is built.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from prony.catalog import DATA, readable
from prony.catalog.schema.apps import BUILT_IN_APPS, load_apps
from prony.catalog.schema.entry import FrontendEntry, ProcessEntry, ServerEntry, ServiceEntry
from prony.catalog.schema.rules import check_entry
from prony.catalog.schema.settings import resolved_settings
from prony.catalog.schema.toml_source import SourceError, problems_error, read_toml, validate
from prony.core.errors import HostError, UsageError
from prony.model.plan import Plan
from prony.model.subject import YOURS, App, Frontend, Interface, Subject, yours_of
from prony.plan.factors import OF_APP, OF_SANDBOX, Choice, Value, variables_of, without_levels

BUILT_IN_SERVERS = DATA / "servers"
BUILT_IN_FRONTENDS = DATA / "frontends"
BUILT_IN_SERVICES = DATA / "services"
BUILT_IN_GENERATORS = DATA / "generators"

_LISTED = "`prony servers` lists them all; `prony servers --new NAME` begins an entry of your own"

# Below the working folder: Prony reads it without being asked, and so runs its entries only when named.
OWN_FOLDER = Path("prony.d")

Item = TypeVar("Item")
Entry = TypeVar("Entry", bound=ProcessEntry)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Servers, apps, frontends and services by name, in alphabetical order.

    ``own``: the names that do not come with Prony. ``unasked``: those of them that the user did not name but
    that were found in the working folder's ``prony.d``: the author of a study must not be able to run them.
    """

    servers: Mapping[str, ServerEntry]
    apps: Mapping[str, App]
    frontends: Mapping[str, FrontendEntry] = field(default_factory=dict)
    services: Mapping[str, ServiceEntry] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()

    def server(self, name: str) -> ServerEntry:
        """Return the server of this name, not of a variant; see `find`.

        *Errors*: UsageError naming the nearest names.
        """
        if name not in self.servers:
            raise _unknown("server", name, self._server_names(), _LISTED)
        return self.servers[name]

    def app(self, name: str) -> App:
        """Return the app of this name.

        *Errors*: UsageError naming the nearest names.
        """
        if name not in self.apps:
            raise _unknown("app", name, self.apps, f"apps: {', '.join(self.apps)}")
        return self.apps[name]

    def find(self, name: str) -> tuple[ServerEntry, str]:
        """Return entry and variant of a server's name: ``gunicorn-gthread`` is `gunicorn` and ``gthread``.

        The variant is empty for an entry's own name.

        *Errors*: UsageError naming the nearest names.
        """
        found = _entry_and_variant(self.servers, name)
        if found is None:
            raise _unknown("server", name, self._server_names(), _LISTED)
        return found

    def frontend(self, name: str) -> Frontend:
        """Return the frontend of this name: ``nginx-keepalive``.

        *Errors*: UsageError naming the nearest names.
        """
        found = _entry_and_variant(self.frontends, name)
        if found is None:
            names = _with_variants(self.frontends.values())
            raise _unknown("frontend", name, names, f"frontends: {', '.join(self.frontends)}")
        return Frontend(found[0].name, found[1])

    def service(self, name: str) -> ServiceEntry:
        """Return the service of this name.

        *Errors*: UsageError naming the nearest names.
        """
        if name not in self.services:
            raise _unknown("service", name, self.services, f"services: {', '.join(self.services)}")
        return self.services[name]

    def entries(self) -> Iterator[ProcessEntry]:
        """Yield all servers, frontends and services."""
        yield from self.servers.values()
        yield from self.frontends.values()
        yield from self.services.values()

    def entry(self, name: str) -> ProcessEntry:
        """Return the entry of a server, a frontend or a service, by its own name or that of a variant.

        Of a server behind a frontend it is the frontend's.

        *Errors*: UsageError naming the nearest names.
        """
        for entries in (self.servers, self.frontends, self.services):
            found = _entry_and_variant(entries, name)
            if found is not None:
                return found[0]
        return self.processes(name)[-1]

    def processes(self, name: str) -> tuple[ProcessEntry, ...]:
        """Return the entries of a server's name, perhaps with a frontend: ``uwsgi@nginx``.

        *Errors*: UsageError as `find` and `frontend`.
        """
        server, at, frontend = name.partition("@")
        if not at:
            return (self.find(server)[0],)
        return self.find(server)[0], self.frontends[self.frontend(frontend).entry]

    def split(self, name: str) -> tuple[str, str]:
        """Return the names of entry and variant: ``gunicorn-gthread`` is ``("gunicorn", "gthread")``.

        *Errors*: UsageError as `find`.
        """
        entry, variant = self.find(name)
        return entry.name, variant

    def serves(self, name: str) -> Sequence[str]:
        """Return the built-in apps whose replies a server of this name gives itself, without an interface.

        *Errors*: UsageError as `find`.
        """
        return self.find(name)[0].serves

    def interfaces(self, name: str) -> Sequence[Interface]:
        """Return the interfaces that the server, or the entry of the variant, of this name speaks.

        *Errors*: UsageError as `find`.
        """
        return self.find(name)[0].interfaces

    def behind(self, name: str) -> str | None:
        """Return the frontend that the server, or the entry of the variant, of this name cannot do without.

        *Errors*: UsageError as `find`.
        """
        return self.find(name)[0].behind

    def of_app(self, server: str, app: str) -> str:
        """Return the server's name for this app: `yours` is `yours-shop` for a study's own `shop`."""
        alone, at, front = server.partition("@")
        own = yours_of(app)
        return f"{own}{at}{front}" if alone == YOURS and own in self.servers else server

    def _server_names(self) -> list[str]:
        return _with_variants(self.servers.values())


@readable()
def load_catalog(extra: Sequence[Path] = (), found: Path = OWN_FOLDER) -> Catalog:
    """Return the built-in catalogue, with the entries in ``extra`` and the servers in the folder ``found``.

    Each of ``extra`` is a server's TOML file, or a folder with such files (in it or in its folder
    ``servers``) and apps (``apps/<name>/app.toml``).

    *Errors*: UsageError with all problems of all files, or for a name that is already taken; HostError for a
    folder that cannot be read.
    """
    problems: list[str] = []
    servers = _load(sorted(BUILT_IN_SERVERS.glob("*.toml")), load_server, problems)
    frontends = _load(sorted(BUILT_IN_FRONTENDS.glob("*.toml")), load_frontend, problems)
    services = _load(sorted(BUILT_IN_SERVICES.glob("*.toml")), load_service, problems)
    apps = _load_apps(sorted(BUILT_IN_APPS.glob("*/app.toml")), problems)
    given = [file for path in extra for file in _server_files(path)]
    own_servers = _load(given, load_server, problems)
    own_servers += (unasked := _load(_others(found, given), _load_unasked, problems))
    own_apps = _load_apps([file for path in extra for file in sorted(path.glob("apps/*/app.toml"))], problems)
    servers, own_servers = _with_editions(servers), _with_editions(own_servers)
    known_servers = _named(servers, own_servers, lambda entry: entry.name, problems)
    known_apps = _named(apps, own_apps, lambda app: app.name, problems)
    problems.extend(_clashes(known_servers))
    if problems:
        raise SourceError(problems)
    own = {entry.name for _, entry in own_servers} | {app.name for _, app in own_apps}
    return Catalog(
        servers=known_servers,
        apps=known_apps,
        frontends={entry.name: entry for _, entry in frontends},
        services={entry.name: entry for _, entry in services},
        own=frozenset(own),
        unasked=frozenset(entry.name for _, entry in unasked),
    )


def with_app(catalog: Catalog, app: App) -> Catalog:
    """Return the catalogue with a user's app; it may replace a built-in one of the same name."""
    return replace(catalog, apps={**catalog.apps, app.name: app})


def with_server(catalog: Catalog, entry: ServerEntry) -> Catalog:
    """Return the catalogue with one more server, from the command line.

    *Errors*: UsageError when its name is taken.
    """
    taken = {
        *_with_variants(catalog.entries()),
        *(entry.name for entry in catalog.entries()),
    }
    if entry.name in taken:
        raise UsageError(
            f"the catalogue already has the name `{entry.name}`; expected another one",
            hint=f"give it a name of its own: --command 'my-{entry.name}=...'",
        )
    return replace(catalog, servers={**catalog.servers, entry.name: entry})


def load_server(file: Path) -> ServerEntry:
    """Return the server that ``file`` describes.

    *Errors*: UsageError with all problems of the file.
    """
    return _load_entry(file, ServerEntry)


def _load_unasked(file: Path) -> ServerEntry:
    return load_server(file).asked_for(False)


def load_frontend(file: Path) -> FrontendEntry:
    """Return the frontend that ``file`` describes.

    *Errors*: UsageError with all problems of the file.
    """
    return _load_entry(file, FrontendEntry)


def load_generator(name: str) -> ProcessEntry:
    """Return what a built-in load generator needs to be installed, as an entry."""
    return validate(read_toml(BUILT_IN_GENERATORS / f"{name}.toml"), ProcessEntry)


def load_service(file: Path) -> ServiceEntry:
    """Return the service that ``file`` describes.

    *Errors*: UsageError with all problems of the file.
    """
    return _load_entry(file, ServiceEntry)


def _load_entry(file: Path, kind: type[Entry]) -> Entry:
    source = read_toml(file)
    entry = validate(source, kind)
    problems = check_entry(entry, file.stem)
    if problems:
        raise problems_error(source, problems)
    return entry.found_at(file)


def _load(
    files: Iterable[Path], load: Callable[[Path], Item], problems: list[str]
) -> list[tuple[Path, Item]]:
    items: list[tuple[Path, Item]] = []
    for file in files:
        try:
            items.append((file, load(file)))
        except SourceError as error:
            problems.extend(error.lines)
    return items


def _load_apps(files: Iterable[Path], problems: list[str]) -> list[tuple[Path, App]]:
    return [(file, app) for file, apps in _load(files, load_apps, problems) for app in apps]


def _entry_and_variant(entries: Mapping[str, Entry], name: str) -> tuple[Entry, str] | None:
    if name in entries:
        return entries[name], ""
    for entry in entries.values():
        variant = name.removeprefix(f"{entry.name}-")
        if variant != name and variant in entry.variants:
            return entry, variant
    return None


def _with_variants(entries: Iterable[ProcessEntry]) -> list[str]:
    return [
        name for entry in entries for name in (entry.name, *(f"{entry.name}-{v}" for v in entry.variants))
    ]


def _with_editions(servers: list[tuple[Path, ServerEntry]]) -> list[tuple[Path, ServerEntry]]:
    return [(file, one) for file, entry in servers for one in (entry, *entry.as_editions())]


def _named(
    built_in: list[tuple[Path, Item]],
    own: list[tuple[Path, Item]],
    name: Callable[[Item], str],
    problems: list[str],
) -> dict[str, Item]:
    items = {name(item): item for _, item in built_in}
    for file, item in own:
        if name(item) in items:
            problems.append(f"{file}:1 name: found `{name(item)}`; expected a name that is not taken yet")
        items[name(item)] = item
    return dict(sorted(items.items()))


def _clashes(servers: Mapping[str, ServerEntry]) -> list[str]:
    return [
        f"`{entry.name}-{variant}` is a server and a variant of `{entry.name}`; expected one of the two"
        for entry in servers.values()
        for variant in entry.variants
        if f"{entry.name}-{variant}" in servers
    ]


def _server_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted([*path.glob("*.toml"), *path.glob("servers/*.toml")])
    if path.is_file():
        return [path]
    raise UsageError(f"`{path}` is neither a file nor a folder; expected catalogue entries")


def _others(folder: Path, given: Iterable[Path]) -> list[Path]:
    """Return the entries in ``folder`` that are not ``given`` already."""
    known = {file.resolve() for file in given}
    return [file for file in sorted(folder.glob("*.toml")) if file.resolve() not in known]


def _unknown(kind: str, name: str, known: Iterable[str], where: str) -> UsageError:
    names = sorted(known)
    near = get_close_matches(name, names, n=3)
    shown = f"did you mean {' or '.join(f'`{found}`' for found in near)}?" if near else ""
    return UsageError(f"there is no {kind} `{name}`", hint=f"{shown} {where}".strip())


# --- A first entry for a user -----------------------------------------------------------------------------


_TEXT = Path(__file__).parent / "skeleton.toml"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64


# Of each other interface the plainest entry that comes with Prony, to be changed.
_LIKE = {
    Interface.ASGI: "uvicorn",
    Interface.PSGI: "http-server-psgi",
    Interface.PHP: "uwsgi-php",
    Interface.RACK: "puma",
    Interface.NONE: "node-http",
}
_HEAD = """\
# A server for Prony: a copy of {like}'s entry, which works as it is.
# Change what differs, then try it:  prony servers --check {name}
# All keys: docs/reference/catalogue-format.md

name = "{name}"
"""


def skeleton(name: str, interface: Interface = Interface.WSGI) -> str:
    """Return the text of an entry called ``name``, which calls its app by ``interface``."""
    if interface is Interface.WSGI:
        return _TEXT.read_text(encoding="utf-8").replace("NAME", name)
    like = _LIKE[interface]
    _, _, rest = (BUILT_IN_SERVERS / f"{like}.toml").read_text(encoding="utf-8").partition("\n")
    return _HEAD.format(name=name, like=like) + rest


def write_skeleton(
    name: str, catalog: Catalog, folder: Path = OWN_FOLDER, interface: Interface = Interface.WSGI
) -> Path:
    """Write the entry ``name`` into ``folder`` and return its file.

    *Errors*: UsageError for an invalid name, or one that a server or a file already has; HostError when it
    cannot be written.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"`--new {name}`: expected a name of small letters, digits and single hyphens, "
            f"at most {_LONGEST_NAME} characters"
        )
    if _is_taken(name, catalog):
        raise UsageError(f"`--new {name}`: a server of that name exists; expected a new name")
    file = folder / f"{name}.toml"
    try:
        folder.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(skeleton(name, interface))
    except FileExistsError:
        raise UsageError(f"`{file}` already exists; expected a new name") from None
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror}") from error
    return file


def _is_taken(name: str, catalog: Catalog) -> bool:
    try:
        catalog.find(name)
    except UsageError:
        return False
    return True


# --- settings that were asked for -------------------------------------------------------------------------


def check_settings(
    asked: Mapping[str, Mapping[str, Choice]], plan: Plan, known: Catalog, cpus: Mapping[str, int]
) -> Plan:
    """Return the plan when each of the settings, by server or frontend, is taken by a subject and fits;
    without subjects that are the same as another one here. ``cpus``: of the server, by subject.

    *Errors*: UsageError for one that nothing takes, or a value that does not fit.
    """
    for name in asked:
        if name not in (OF_SANDBOX, OF_APP):
            check_taken(name, asked[name], plan.subjects(), known)
    doubles = _doubles(plan, known, cpus)
    return replace(plan, cells=tuple(cell for cell in plan.cells if cell.subject.name not in doubles))


def _doubles(plan: Plan, known: Catalog, cpus: Mapping[str, int]) -> set[str]:
    """Return the subjects with levels whose settings are those of one before them: `{cpus}` may be 2."""
    seen: set[str] = set()
    doubles: set[str] = set()
    for subject in plan.subjects():
        settings = _resolved(subject, known, cpus[subject.name])
        variables = sorted(variables_of(subject.levels).items())
        same = repr((without_levels(subject), settings, variables, plan.sandbox_of(subject.name)))
        if same in seen and subject.levels:
            doubles.add(subject.name)
        seen.add(same)
    return doubles


def _resolved(subject: Subject, known: Catalog, cpus: int) -> tuple[Mapping[str, Value], ...]:
    """Return the settings of server and frontend.

    *Errors*: UsageError as `resolved_settings`.
    """
    own = resolved_settings(known.server(subject.server), subject, cpus, known.servers)
    if subject.frontend is None:
        return (own,)
    return own, resolved_settings(known.frontends[subject.frontend.entry], subject.frontend, cpus)


def check_taken(
    name: str, settings: Mapping[str, Choice], subjects: Sequence[Subject], known: Catalog
) -> None:
    """Return when settings that were typed for ``name``, a server or a frontend, are of one of the subjects.

    *Errors*: UsageError, naming what was typed and which subjects there are.
    """
    if any(name in (one.frontend.entry, one.frontend.name) for one in subjects if one.frontend):
        return
    if isinstance(known.entry(name), FrontendEntry):
        raise UsageError(f"`--set {name}...`: no subject stands behind `{name}`, as in gunicorn@{name}")
    entry, variant = known.find(name)
    if not any(one.server == entry.name and variant in ("", one.variant) for one in subjects):
        names = ", ".join(dict.fromkeys(without_levels(one).rpartition("+")[0] for one in subjects))
        typed = ", ".join(f"{name}.{key}={_typed(choice)}" for key, choice in settings.items())
        raise UsageError(f"`--set {typed}`: no subject runs `{name}`; the servers are {names}")


def _typed(choice: Choice) -> str:
    return ",".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)

"""What a subject consists of: the environments that it needs, and the processes to start."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.catalog.install.environment import Declared, Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import materialise_app
from prony.catalog.install.resolve import shared_requirements
from prony.catalog.launch import (
    AskedTls,
    Seat,
    asked_tls,
    clients_wire,
    make_frontend,
    make_launch,
    make_service,
    service_variables,
    spoken_wire,
)
from prony.catalog.launch.commands import BEHIND_PORT, PORT, command_for_user, frontend_command_for_user
from prony.catalog.schema.apps import is_built_in
from prony.catalog.schema.entry import ServerEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import backends_of
from prony.core.users import RunAs
from prony.model.address import Address, Tls, Wire
from prony.model.launch import Launch
from prony.model.subject import Subject
from prony.sandbox.certificates import Authority

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class SubjectNeeds:
    """The environments of one subject: the server's, the frontend's, its services'."""

    server: EnvironmentRequest
    frontend: EnvironmentRequest | None
    services: Mapping[str, EnvironmentRequest]

    def all(self) -> tuple[EnvironmentRequest, ...]:
        """All of them, the server's first."""
        return (self.server, *([self.frontend] if self.frontend else []), *self.services.values())


@dataclass(frozen=True, slots=True)
class Site:
    """Where a subject's processes will run.

    ``free_port`` returns a port on which nothing listens, ``folder_for`` the folder of the process with a
    given name; ``app_folder`` holds the app, ``cpus`` is the number of CPUs that they may use. ``authority``
    certifies those that speak TLS. ``listen``: where clients reach the subject; what stands behind a frontend
    is on the loopback. ``own_port``: where the server listens whatever it is given; null: on a free one.
    """

    free_port: Callable[[], int]
    folder_for: Callable[[str], Path]
    app_folder: Path
    cpus: int
    authority: Authority
    listen: str = HOST
    own_port: int | None = None


def needs_of(
    catalog: Catalog,
    subject: Subject,
    user: RunAs,
    *,
    declared: Declared | None = None,
    python: Path | None = None,
) -> SubjectNeeds:
    """Return the environments that ``subject`` needs.

    ``declared`` and ``python`` belong to the user's app (see `EnvironmentRequest`).

    *Errors*: UsageError for an app that ``user`` cannot read, or a name that is not in the catalogue.
    """
    app = subject.app
    built_in = is_built_in(app)
    entry = catalog.server(subject.server)
    common = shared_requirements(entry)
    # Built-in apps share their server's environment, unless its Python may lack what they need; a user's
    # app has an environment of its own.
    shared = built_in and set(app.requirements) <= set(common)
    server = EnvironmentRequest(
        key=subject.server if shared else f"{subject.server} for {app.name}",
        server=entry,
        # The environment serves all that share it: with an entry of the user's own, whose lock did not
        # come with Prony, it must be asked for what they need.
        app_requirements=common if shared else app.requirements,
        declared=None if built_in else declared or Declared(),
        python=None if built_in else python,
    )
    front = subject.frontend
    frontend = front and EnvironmentRequest(f"frontend {front.entry}", catalog.frontends[front.entry])
    services = {
        name: EnvironmentRequest(
            key=f"{name} for {app.name}",
            server=catalog.service(name),
            app_folder=materialise_app(app, user),
            app_digest=app.digest,
        )
        for name in app.services
    }
    return SubjectNeeds(server, frontend or None, services)


def why_unavailable(
    needs: SubjectNeeds, found: Mapping[str, Environment | Unavailable]
) -> Unavailable | None:
    """Return why the subject of ``needs`` is unavailable, or None."""
    return next((one for need in needs.all() if isinstance(one := found[need.key], Unavailable)), None)


def assemble(
    catalog: Catalog,
    subject: Subject,
    needs: SubjectNeeds,
    found: Mapping[str, Environment | Unavailable],
    site: Site,
) -> Launch:
    """Return the processes of ``subject``, each on a free port, without placeholders.

    *Errors*: UsageError for settings, interfaces or wires that do not fit.
    """
    services: list[Launch] = []
    variables: dict[str, str] = {}
    for name, request in needs.services.items():
        entry, environment = catalog.service(name), _ready(found, request)
        seat = _seat(site, name)
        services.append(make_service(entry, environment, seat))
        variables |= service_variables(entry, environment, seat)
    server = catalog.server(subject.server)
    launch, *others = (
        _server(server, subject, _ready(found, needs.server), site, variables, name)
        for name in _server_names(catalog, subject, site.cpus)
    )
    addresses = [one.address for one in (launch, *others)]
    return replace(
        launch,
        services=tuple(services),
        backends=tuple(others),
        frontend=_in_front(catalog, subject, needs, found, site, addresses),
    )


def entrance_tls(catalog: Catalog, subject: Subject) -> AskedTls | None:
    """Return the TLS that is spoken to the subject's clients, by the frontend if there is one.

    *Errors*: UsageError as `resolved_settings`.
    """
    front = subject.frontend
    if front is None:
        return asked_tls(catalog.server(subject.server), subject, 1)
    return asked_tls(catalog.frontends[front.entry], front, 1)


def entrance_wire(catalog: Catalog, subject: Subject) -> Wire:
    """Return the wire that is spoken to the subject's clients, by the frontend if there is one.

    *Errors*: UsageError as `resolved_settings`.
    """
    front = subject.frontend
    if front is None:
        return spoken_wire(catalog.server(subject.server), subject, 1)
    return clients_wire(catalog.frontends[front.entry], front, 1)


def _server_names(catalog: Catalog, subject: Subject, cpus: int) -> Sequence[str]:
    """Return the names of the server's processes: more than one where it has several back ends."""
    front = subject.frontend
    many = 1 if front is None else backends_of(catalog.frontends[front.entry], front, cpus)
    return ("server", *(f"server-{number}" for number in range(2, many + 1)))


def _server(  # noqa: PLR0913, PLR0917 - all that a server depends on
    entry: ServerEntry,
    subject: Subject,
    environment: Environment,
    site: Site,
    variables: Mapping[str, str],
    name: str,
) -> Launch:
    host = site.listen if subject.frontend is None else HOST
    address = Address(host, site.own_port or site.free_port(), wire=spoken_wire(entry, subject, site.cpus))
    seat = _seat(site, name, address, variables, subject.app.root)
    seat = _certified(seat, asked_tls(entry, subject, site.cpus), site)
    launch = make_launch(entry, subject, environment, seat)
    return replace(launch, name=name, is_own_port=site.own_port is not None)


def _certified(seat: Seat, asked: AskedTls | None, site: Site) -> Seat:
    """Return a seat with a certificate and its key, and the TLS that clients ask for, if TLS is asked for."""
    if asked is None:
        return seat
    certified = site.authority.certify(asked.key, seat.address.host)
    wanted = Tls(ca_file=str(site.authority.file), resumption=asked.resumption, ciphers=asked.ciphers)
    return replace(seat, address=replace(seat.address, tls=wanted), certified=certified)


def command_line(  # noqa: PLR0913, PLR0917 - what `assemble` needs, to be shown
    catalog: Catalog,
    subject: Subject,
    cpus: int,
    needs: SubjectNeeds | None = None,
    found: Mapping[str, Environment | Unavailable] | None = None,
    own_port: int | None = None,
) -> str:
    """Return what a person types to start ``subject``: the server's command, then the frontend's.

    ``own_port``: where it listens, whatever it is given.
    Without ``needs`` and what was ``found`` for them, the command names the system's programs without paths.

    *Errors*: UsageError as `assemble`.
    """
    server = catalog.server(subject.server)
    places = _places(subject, found, needs.server) if needs else None
    first = (own_port or PORT) if subject.frontend is None else BEHIND_PORT
    commands = [
        command_for_user(server, subject, subject.app.folder, cpus, port=first + k, programs=places)
        for k in range(len(_server_names(catalog, subject, cpus)))
    ]
    if subject.frontend is None:
        return commands[0]
    entry = catalog.frontends[subject.frontend.entry]
    places = _places(subject, found, needs.frontend) if needs else None
    front = frontend_command_for_user(entry, subject, spoken_wire(server, subject, cpus), cpus, places)
    return "\n".join([*(f"({command}) &" for command in commands), front])


def _places(
    subject: Subject,
    found: Mapping[str, Environment | Unavailable] | None,
    request: EnvironmentRequest | None,
) -> Mapping[str, str] | None:
    """Return the paths in a command. That of a user's own app starts exactly what was measured."""
    environment = found.get(request.key) if found and request else None
    if not isinstance(environment, Environment):
        return None
    return environment.shown_places if is_built_in(subject.app) else environment.places


def _in_front(  # noqa: PLR0913, PLR0917 - as assemble, and what stands behind
    catalog: Catalog,
    subject: Subject,
    needs: SubjectNeeds,
    found: Mapping[str, Environment | Unavailable],
    site: Site,
    servers: Sequence[Address],
) -> Launch | None:
    if subject.frontend is None or needs.frontend is None:
        return None
    entry = catalog.frontends[subject.frontend.entry]
    environment = _ready(found, needs.frontend)
    wire = clients_wire(entry, subject.frontend, site.cpus)
    address = Address(site.listen, site.free_port(), wire=wire)
    plain = _seat(site, "frontend", address, root=subject.app.root)
    seat = _certified(plain, asked_tls(entry, subject.frontend, site.cpus), site)
    return make_frontend(entry, subject, subject.frontend, environment, seat, servers)


def _seat(
    site: Site,
    name: str,
    address: Address | None = None,
    variables: Mapping[str, str] | None = None,
    root: str = "",
) -> Seat:
    return Seat(
        address or Address(HOST, site.free_port()),
        str(site.app_folder),
        str(site.folder_for(name)),
        site.cpus,
        variables or {},
        root,
    )


def _ready(found: Mapping[str, Environment | Unavailable], request: EnvironmentRequest) -> Environment:
    environment = found[request.key]
    assert isinstance(environment, Environment), "an unavailable subject cannot be assembled"
    return environment

"""How an entry is started: the exact process, and the command that a person types.

From a catalogue entry to the exact process to start.

Placeholders of an entry's command, variables and templates are filled in here, and what the catalogue
declares of a subject is said, which diagnosis compares with what was observed. Pure: it reads and starts
nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from prony.catalog.schema.apps import is_built_in
from prony.catalog.schema.entry import (
    Conditional,
    FrontendEntry,
    HostEntry,
    ProcessEntry,
    ServerEntry,
    ServiceEntry,
)
from prony.catalog.schema.expression import calculate, check_text_value, fill, render
from prony.catalog.schema.settings import (
    HTTP2,
    TLS,
    TLS_CIPHER,
    TLS_OFF,
    TLS_RESUMPTION,
    all_settings,
    asked_ciphers,
    holds,
    keep_alive_fact,
    resolve,
    resolved_settings,
)
from prony.core.errors import UsageError
from prony.core.units import parse_duration
from prony.model.address import Address, TlsCipher, TlsKey, Wire
from prony.model.facts import DeclaredFacts
from prony.model.launch import Launch, Readiness, RoleRule, StopRule
from prony.model.subject import FACTORY_TARGET, App, Frontend, Interface, Subject
from prony.sandbox.certificates import Certified

Values = Mapping[str, int | str | None]

CERTIFICATE_FILE, KEY_FILE = "certificate.pem", "key.pem"
"""In the folder of a process that speaks TLS."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a process runs; ``certified``: the certificate with which it is to speak TLS, null without TLS.

    ``app_dir`` holds the app, ``run_dir`` is its own folder and working directory, ``cpus`` the number of
    CPUs that it may use. ``variables``: environment variables by which the app finds its services.
    ``root``: where in its folder the app's imports begin.
    """

    address: Address
    app_dir: str
    run_dir: str
    cpus: int
    variables: Mapping[str, str] = field(default_factory=dict)
    root: str = ""
    certified: Certified | None = None

    @property
    def values(self) -> Values:
        """The values of the placeholders of a place."""
        return {
            "host": self.address.host,
            "port": self.address.port,
            "app_dir": f"{self.app_dir}/{self.root}" if self.root else self.app_dir,
            "run_dir": self.run_dir,
            "cpus": self.cpus,
            "tls_certificate": f"{self.run_dir}/{CERTIFICATE_FILE}",
            "tls_key": f"{self.run_dir}/{KEY_FILE}",
        }


def rendered(entry: ProcessEntry, values: Values, environment: Iterable[str]) -> dict[str, str]:
    """Return the files of an entry's templates, filled in; ``environment``: the names of variables.

    *Errors*: UsageError for a template that cannot be filled in.
    """
    # A setting without value and default is none, which a template can test.
    unset = dict.fromkeys(all_settings(entry))
    known = {**unset, **values, "variables": sorted(environment)}
    try:
        return {name: render(written, known) for name, written in entry.templates.items()}
    except ValueError as error:
        raise UsageError(f"a template of `{entry.name}` cannot be filled in: {error}") from None


def as_template_text(value: int | str | None) -> str:
    """Return a value as a template writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def target(entry: ServerEntry, subject: Subject) -> dict[str, str]:
    """Return what the placeholders of the app's target stand for.

    *Errors*: UsageError for an interface that the app or server lacks, or a target that is no name.
    """
    offered = [*subject.app.targets, *([Interface.NONE] if subject.app.name in entry.serves else [])]
    if subject.interface not in entry.interfaces or subject.interface not in offered:
        raise UsageError(
            f"`{subject.name}` over {subject.interface}: the server speaks {', '.join(entry.interfaces)}, "
            f"the app offers {', '.join(offered)}"
        )
    target = subject.app.targets.get(subject.interface, "")
    expected = check_text_value(target)
    if expected:
        raise UsageError(f"the app's target is {target!r}; expected {expected}")
    return named(target, subject.interface)


def factory_files(app: App) -> dict[str, str]:
    """Return the module that makes the app with its factory, by its file's name; none without one.

    >>> factory_files(App("shop", "", "", {}, factory="shop.web:create_app()"))
    {'prony_app.py': 'from shop.web import create_app\\n\\napp = create_app()\\n'}
    """
    module, _, call = app.factory.partition(":")
    name = call.partition("(")[0]
    file = f"{FACTORY_TARGET.partition(':')[0]}.py"
    return {file: f"from {module} import {name}\n\napp = {call}\n"} if name else {}


def named(target: str, interface: Interface) -> dict[str, str]:
    """Return what the placeholders of a target stand for."""
    module, _, attribute = target.partition(":")
    return {"app": target, "module": module, "attribute": attribute, "interface": str(interface)}


def arguments(
    command: Sequence[str | Conditional], settings: Mapping[str, int | str], values: Values
) -> tuple[str, ...]:
    """Return a command with its conditions decided and its placeholders filled."""
    chosen: list[str] = []
    for argument in command:
        match argument:
            case str():
                chosen.append(argument)
            case Conditional():
                chosen.extend(argument.then if holds(argument, settings) else argument.otherwise)
    texts = {name: as_template_text(value) for name, value in values.items()}
    return tuple(fill(written, texts) for written in chosen)


def filled(environment: Mapping[str, str], values: Values) -> dict[str, str]:
    """Return variables with their placeholders filled."""
    texts = {name: as_template_text(value) for name, value in values.items()}
    return {name: fill(written, texts) for name, written in environment.items()}


def declared_facts(entry: HostEntry, chosen: Subject | Frontend, cpus: int) -> DeclaredFacts:
    """Return what the entry declares about backlog, keep-alive and concurrency under the chosen settings.

    *Errors*: UsageError as `resolved_settings`.
    """
    settings = resolved_settings(entry, chosen, cpus)
    numbers = {"cpus": cpus, **{key: value for key, value in settings.items() if isinstance(value, int)}}
    keep_alive = keep_alive_fact(entry, settings)
    concurrency = entry.facts.concurrency
    return DeclaredFacts(
        backlog=_number(entry.facts.backlog.value, numbers),
        keep_alive=keep_alive.on,
        keep_alive_idle_s=_number(keep_alive.idle_s, numbers),
        processes=_number(concurrency.processes, numbers) or 1,
        slots=_number(concurrency.slots, numbers),
    )


def _number(value: int | str | None, numbers: Mapping[str, int]) -> int | None:
    return calculate(value, numbers) if isinstance(value, str) else value


class Installed(Protocol):
    """What a launch needs of an environment."""

    @property
    def places(self) -> Mapping[str, str]:
        """The values of ``python``, ``bin``, ``build`` and the programs' names."""


def spoken_wire(entry: ServerEntry, subject: Subject, cpus: int = 1) -> Wire:
    """Return the wire of the subject's server: its setting, else the entry's only wire.

    *Errors*: UsageError as `resolved_settings`.
    """
    return Wire(str(resolved_settings(entry, subject, cpus).get("wire", entry.wires[0])))


def clients_wire(entry: FrontendEntry, frontend: Frontend, cpus: int = 1) -> Wire:
    """Return what a frontend speaks to its clients.

    *Errors*: UsageError as `resolved_settings`.
    """
    return Wire.HTTP2 if resolved_settings(entry, frontend, cpus).get(HTTP2) else Wire.HTTP


@dataclass(frozen=True, slots=True)
class AskedTls:
    """TLS to clients: the key of the certificate, whether they may take up earlier sessions, and the cipher
    suites that they offer; none: all.
    """

    key: TlsKey
    resumption: bool
    ciphers: tuple[TlsCipher, ...] = ()


def asked_tls(entry: ProcessEntry, chosen: Subject | Frontend, cpus: int = 1) -> AskedTls | None:
    """Return the TLS that a server's or a frontend's settings ask for; None without TLS.

    *Errors*: UsageError as `resolved_settings`.
    """
    settings = resolved_settings(entry, chosen, cpus)
    key = settings.get(TLS, TLS_OFF)
    if key == TLS_OFF:
        return None
    return AskedTls(TlsKey(str(key)), bool(settings[TLS_RESUMPTION]), asked_ciphers(settings[TLS_CIPHER]))


def make_launch(entry: ServerEntry, subject: Subject, environment: Installed, seat: Seat) -> Launch:
    """Return the process of the subject's server.

    *Errors*: UsageError for a setting that does not exist or does not fit, or an interface that the app or
    server lacks.
    """
    settings = resolved_settings(entry, subject, seat.cpus)
    values = {**settings, **environment.places, **seat.values, **target(entry, subject)}
    made = factory_files(subject.app)
    own = {**_common(entry), **({"PYTHONPATH": "{app_dir}:{run_dir}"} if made else {}), **entry.environment}
    launch = _launch(
        entry, settings, values, seat, {**filled(own, values), **seat.variables, **subject.app.environment}
    )
    launch = replace(launch, files={**launch.files, **made})
    if is_built_in(subject.app) or entry.folder_is == "build":
        return launch
    # A user's app may have paths relative to its folder, where people start it.
    return replace(launch, folder=seat.app_dir)


def make_frontend(  # noqa: PLR0913, PLR0917 - the six things that a frontend's configuration depends on
    entry: FrontendEntry,
    subject: Subject,
    frontend: Frontend,
    environment: Installed,
    seat: Seat,
    upstreams: Sequence[Address],
) -> Launch:
    """Return the process that stands in front of the subject's server, of which one or several listen at
    ``upstreams``.

    *Errors*: UsageError for a setting that does not exist or does not fit, or a wire that the frontend does
    not pass requests on by.
    """
    upstream = upstreams[0]
    if upstream.tls:
        raise UsageError(
            f"`{subject.name}`: `{entry.name}` passes requests on without TLS, and the server speaks TLS",
            hint=f"TLS between clients and the frontend: --set {entry.name}.{TLS}={TlsKey.ECDSA}",
        )
    if upstream.wire not in entry.forwards:
        raise UsageError(
            f"`{subject.name}`: `{entry.name}` passes on {', '.join(entry.forwards)}, "
            f"the server speaks {upstream.wire}"
        )
    settings = resolved_settings(entry, frontend, seat.cpus)
    address = subject.app.targets.get(subject.interface, "")
    values: Values = {
        **settings,
        **environment.places,
        **seat.values,
        "upstream_host": upstream.host,
        "upstream_port": upstream.port,
        "upstreams": " ".join(f"{one.host}:{one.port}" for one in upstreams),
        "wire": str(upstream.wire),
        **named(address, subject.interface),
    }
    return _launch(entry, settings, values, seat, filled(entry.environment, values), "frontend")


def make_service(entry: ServiceEntry, environment: Installed, seat: Seat) -> Launch:
    """Return the process of a service; it is ready when it accepts a connection."""
    settings = resolve(entry, {}, seat.cpus)
    values: Values = {**settings, **environment.places, **seat.values}
    return _launch(entry, settings, values, seat, filled(entry.environment, values), entry.name, http=False)


def service_variables(entry: ServiceEntry, environment: Installed, seat: Seat) -> dict[str, str]:
    """Return the environment variables by which an app finds the service."""
    values: Values = {**resolve(entry, {}, seat.cpus), **environment.places, **seat.values}
    return filled(entry.variables, values)


def _launch(  # noqa: PLR0913, PLR0917 - what all processes have in common
    entry: ProcessEntry,
    settings: Mapping[str, int | str],
    values: Values,
    seat: Seat,
    environment: Mapping[str, str],
    name: str = "server",
    *,
    http: bool = True,
) -> Launch:
    return Launch(
        command=arguments(entry.command, settings, values),
        address=seat.address,
        environment=environment,
        files={**entry.files, **rendered(entry, values, environment), **_certificate(seat)},
        secrets={KEY_FILE: seat.certified.key} if seat.certified else {},
        readiness=Readiness(parse_duration(entry.readiness.timeout), http and entry.readiness.http),
        stop=StopRule(entry.stop.signal, parse_duration(entry.stop.timeout)),
        roles=tuple(RoleRule(role.role, role.where, role.pattern) for role in entry.roles),
        name=name,
        folder=_folder(entry, values, seat),
    )


def _certificate(seat: Seat) -> dict[str, str]:
    return {CERTIFICATE_FILE: seat.certified.certificate} if seat.certified else {}


def _folder(entry: ProcessEntry, values: Values, seat: Seat) -> str | None:
    match entry.folder_is:
        case "app_dir":
            return seat.app_dir
        case "build":
            return str(values["build"])
        case "run_dir":
            return None


def _common(entry: ServerEntry) -> dict[str, str]:
    # The app's folder may be read-only, and the user of the servers may have no home.
    if entry.install.kind != "python":
        return {}
    return {"PYTHONPATH": "{app_dir}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "{run_dir}"}

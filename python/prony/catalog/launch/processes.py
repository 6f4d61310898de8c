"""From a catalogue entry to the exact process to start, and to the command that a person types.

Pure: it reads and starts nothing. Must not know how environments are built.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from prony.catalog.schema.entry import (
    Conditional,
    FrontendEntry,
    HostEntry,
    ProcessEntry,
    PythonInstall,
    ServerEntry,
    ServiceEntry,
)
from prony.catalog.schema.expression import evaluate
from prony.catalog.schema.settings import holds, keep_alive_fact, resolve, resolved_settings
from prony.catalog.schema.template import check_text_value, fill, render
from prony.errors import UsageError
from prony.model import Address, Frontend, Interface, Launch, Readiness, RoleRule, StopRule, Subject, Wire
from prony.model.facts import DeclaredFacts
from prony.units import parse_duration

__all__ = [
    "BEHIND_PORT",
    "PORT",
    "Installed",
    "Seat",
    "command_for_user",
    "declared_facts",
    "file_for_user",
    "frontend_command_for_user",
    "make_frontend",
    "make_launch",
    "make_service",
    "service_variables",
    "spoken_wire",
]

PORT, BEHIND_PORT = 8000, 8001
"""The port of a person's own command, and that of the server behind a frontend."""

_Values = Mapping[str, int | str | None]


class Installed(Protocol):
    """What a launch needs of an environment."""

    @property
    def places(self) -> Mapping[str, str]:
        """The values of ``python``, ``bin``, ``build`` and the programs' names."""
        ...


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a process runs.

    ``app_dir`` holds the app, ``run_dir`` is its own folder and working directory, ``cpus`` the number of
    CPUs that it may use. ``variables``: environment variables by which the app finds its services.
    """

    address: Address
    app_dir: str
    run_dir: str
    cpus: int
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> _Values:
        """The values of the placeholders of a place."""
        return {
            "host": self.address.host,
            "port": self.address.port,
            "app_dir": self.app_dir,
            "run_dir": self.run_dir,
            "cpus": self.cpus,
        }


def spoken_wire(entry: ServerEntry, subject: Subject, cpus: int = 1) -> Wire:
    """Return the wire of the subject's server: its setting, else the entry's only wire.

    *Errors*: UsageError as `resolved_settings`.
    """
    return Wire(str(resolved_settings(entry, subject, cpus).get("wire", entry.wires[0])))


def make_launch(entry: ServerEntry, subject: Subject, environment: Installed, seat: Seat) -> Launch:
    """Return the process of the subject's server.

    *Errors*: UsageError for a setting that does not exist or does not fit, or an interface that the app or
    server lacks.
    """
    settings = resolved_settings(entry, subject, seat.cpus)
    values = {**settings, **environment.places, **seat.values, **_target(entry, subject)}
    own = {**_common(entry), **entry.environment}
    return _launch(
        entry, settings, values, seat, {**_filled(own, values), **seat.variables, **subject.app.environment}
    )


def make_frontend(  # noqa: PLR0913, PLR0917 - the six things that a frontend's configuration depends on
    entry: FrontendEntry,
    subject: Subject,
    frontend: Frontend,
    environment: Installed,
    seat: Seat,
    upstream: Address,
) -> Launch:
    """Return the process that stands in front of the subject's server, which listens at ``upstream``.

    *Errors*: UsageError for a setting that does not exist or does not fit, or a wire that the frontend does
    not pass requests on by.
    """
    if upstream.wire not in entry.forwards:
        raise UsageError(
            f"`{subject.name}`: `{entry.name}` passes on {', '.join(entry.forwards)}, "
            f"the server speaks {upstream.wire}"
        )
    settings = resolved_settings(entry, frontend, seat.cpus)
    target = subject.app.targets.get(subject.interface, "")
    values: _Values = {
        **settings,
        **environment.places,
        **seat.values,
        "upstream_host": upstream.host,
        "upstream_port": upstream.port,
        "wire": str(upstream.wire),
        **_named(target, subject.interface),
    }
    return _launch(entry, settings, values, seat, _filled(entry.environment, values), "frontend")


def make_service(entry: ServiceEntry, environment: Installed, seat: Seat) -> Launch:
    """Return the process of a service; it is ready when it accepts a connection."""
    settings = resolve(entry, {}, seat.cpus)
    values: _Values = {**settings, **environment.places, **seat.values}
    return _launch(entry, settings, values, seat, _filled(entry.environment, values), entry.name, http=False)


def service_variables(entry: ServiceEntry, environment: Installed, seat: Seat) -> dict[str, str]:
    """Return the environment variables by which an app finds the service."""
    values: _Values = {**resolve(entry, {}, seat.cpus), **environment.places, **seat.values}
    return _filled(entry.variables, values)


def command_for_user(  # noqa: PLR0913, PLR0917
    entry: ServerEntry,
    subject: Subject,
    app_dir: str,
    cpus: int,
    host: str = "127.0.0.1",
    port: int = PORT,
    programs: Mapping[str, str] | None = None,
) -> str:
    """Return the command that a person types to start this server with this app, as in its manual.

    If the catalogue starts the server with a script, the command writes that script first. Values of the
    app's own variables are not shown, because they may be secrets: the command takes them from the shell.
    ``programs``: the paths of the system's programs and of the build; null: use names.

    *Errors*: UsageError as `make_launch`.
    """
    settings = resolved_settings(entry, subject, cpus)
    seat = Seat(Address(host, port), app_dir, ".", cpus)
    version = entry.install.python if isinstance(entry.install, PythonInstall) else None
    places = {
        "python": f"python{version or ''}",
        "bin": "",
        "prony": "prony",
        **_shown_programs(entry, programs),
    }
    values = {**settings, **places, **seat.values, **_target(entry, subject)}
    arguments = _arguments(entry.command, settings, values)
    program = arguments[0].removeprefix("/") if "{bin}" in str(entry.command[0]) else arguments[0]
    arguments = (program, *(argument.removeprefix("./") for argument in arguments[1:]))
    shown = _shown_environment(entry, subject, values)
    return f"cd {shlex.quote(app_dir)} && {_written_files(entry, subject)}{shown}{shlex.join(arguments)}"


def frontend_command_for_user(
    entry: FrontendEntry,
    subject: Subject,
    wire: Wire,
    cpus: int,
    programs: Mapping[str, str] | None = None,
) -> str:
    """Return the command that a person types to start the subject's frontend for a server that speaks
    ``wire``.

    The server is expected on port 8001.

    *Errors*: UsageError as `make_frontend`.
    """
    frontend = subject.frontend or Frontend(entry.name)
    settings = resolved_settings(entry, frontend, cpus)
    seat = Seat(Address("127.0.0.1", PORT), ".", ".", cpus)
    named = _named("", subject.interface)
    values: _Values = {**settings, **_shown_programs(entry, programs), **seat.values, **named}
    arguments = (argument.removeprefix("./") for argument in _arguments(entry.command, settings, values))
    chosen = replace(frontend, settings={**frontend.settings, "wire": wire})
    return f"{_written_files(entry, chosen, subject)}{shlex.join(arguments)}"


def file_for_user(
    entry: ProcessEntry, name: str, chosen: Mapping[str, int | str], values: Mapping[str, str], cpus: int
) -> str:
    """Return a file of the entry as a person needs it: a script unchanged, a template filled in.

    ``chosen`` are settings that differ from the defaults; ``values`` are further values for templates.

    *Errors*: UsageError for an unknown file or an invalid setting.
    """
    if name in entry.files:
        return entry.files[name]
    if name not in entry.templates:
        known = " or ".join([*entry.files, *entry.templates]) or "no name: it has no files"
        raise UsageError(f"`--file {name}`: `{entry.name}` has no such file; expected {known}")
    settings = resolved_settings(entry, Frontend(entry.name, settings=chosen), cpus)
    seat = Seat(Address("127.0.0.1", PORT), ".", ".", cpus)
    return _rendered(entry, {**settings, **seat.values, **values}, entry.environment)[name]


def _shown_programs(entry: ProcessEntry, found: Mapping[str, str] | None) -> dict[str, str]:
    return {"build": "build", **{name: name for name in entry.install.programs}, **(found or {})}


def _written_files(entry: ProcessEntry, chosen: Subject | Frontend, around: Subject | None = None) -> str:
    """Return the part of a command that writes the entry's files with `file_for_user`."""
    preset = entry.variants[chosen.variant].settings if chosen.variant else {}
    settings = "".join(
        f" --set {shlex.quote(f'{entry.name}.{key}={_text(value)}')}"
        for key, value in {**preset, **chosen.settings}.items()
    )
    subject = around or chosen
    target = subject.app.targets.get(subject.interface, "") if isinstance(subject, Subject) else ""
    # The file contains a port too; behind a frontend the server has another one.
    behind = isinstance(chosen, Subject) and chosen.frontend is not None
    more = settings + (f" --set {entry.name}.port={BEHIND_PORT}" if behind else "")
    more += f" --app {shlex.quote(target)}" if target else ""
    names = [(name, "") for name in entry.files] + [(name, more) for name in entry.templates]
    return "".join(
        f"prony servers {entry.name} --file {name}{options} > {name} && " for name, options in names
    )


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


def _launch(  # noqa: PLR0913, PLR0917 - what all processes have in common
    entry: ProcessEntry,
    settings: Mapping[str, int | str],
    values: _Values,
    seat: Seat,
    environment: Mapping[str, str],
    name: str = "server",
    *,
    http: bool = True,
) -> Launch:
    return Launch(
        command=_arguments(entry.command, settings, values),
        address=seat.address,
        environment=environment,
        files={**entry.files, **_rendered(entry, values, environment)},
        readiness=Readiness(parse_duration(entry.readiness.timeout), http and entry.readiness.http),
        stop=StopRule(entry.stop.signal, parse_duration(entry.stop.timeout)),
        roles=tuple(RoleRule(role.role, role.where, role.pattern) for role in entry.roles),
        name=name,
        folder=seat.app_dir if entry.folder_is == "app_dir" else None,
    )


def _rendered(entry: ProcessEntry, values: _Values, environment: Iterable[str]) -> dict[str, str]:
    # A setting without value and default is none, which a template can test.
    unset = dict.fromkeys(entry.settings)
    known = {**unset, **values, "variables": sorted(environment)}
    try:
        return {name: render(text, known) for name, text in entry.templates.items()}
    except ValueError as error:
        raise UsageError(f"a template of `{entry.name}` cannot be filled in: {error}") from None


def _number(value: int | str | None, numbers: Mapping[str, int]) -> int | None:
    return evaluate(value, numbers) if isinstance(value, str) else value


def _text(value: int | str | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _target(entry: ServerEntry, subject: Subject) -> dict[str, str]:
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
    return _named(target, subject.interface)


def _named(target: str, interface: Interface) -> dict[str, str]:
    module, _, attribute = target.partition(":")
    return {"app": target, "module": module, "attribute": attribute, "interface": str(interface)}


def _arguments(
    command: Sequence[str | Conditional], settings: Mapping[str, int | str], values: _Values
) -> tuple[str, ...]:
    chosen: list[str] = []
    for argument in command:
        match argument:
            case str():
                chosen.append(argument)
            case Conditional():
                chosen.extend(argument.then if holds(argument, settings) else argument.otherwise)
    texts = {name: _text(value) for name, value in values.items()}
    return tuple(fill(text, texts) for text in chosen)


def _filled(environment: Mapping[str, str], values: _Values) -> dict[str, str]:
    texts = {name: _text(value) for name, value in values.items()}
    return {name: fill(text, texts) for name, text in environment.items()}


def _common(entry: ServerEntry) -> dict[str, str]:
    # The app's folder may be read-only, and the user of the servers may have no home.
    if entry.install.kind != "python":
        return {}
    return {"PYTHONPATH": "{app_dir}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "{run_dir}"}


def _shown_environment(entry: ServerEntry, subject: Subject, values: _Values) -> str:
    named = _filled(entry.environment, values)
    # Python searches a script's own folder first: the app's folder must be named.
    needed = entry.install.kind == "python" and (entry.files or "{bin}" in str(entry.command[0]))
    path = {"PYTHONPATH": "."} if needed else {}
    assignments = "".join(f"{name}={shlex.quote(text)} " for name, text in {**path, **named}.items())
    return assignments + "".join(f'{name}="${name}" ' for name in subject.app.environment)

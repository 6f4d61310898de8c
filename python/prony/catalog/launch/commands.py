"""What a person types to start a server as Prony does, and the files that it needs for that.

Pure: it reads and starts nothing.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from prony.catalog.launch.processes import (
    Seat,
    Values,
    arguments,
    as_template_text,
    factory_files,
    filled,
    named,
    rendered,
    target,
)
from prony.catalog.schema.apps import OF_FILES, interface_of_file
from prony.catalog.schema.entry import FrontendEntry, ProcessEntry, PythonInstall, ServerEntry
from prony.catalog.schema.expression import check_text_value
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import BACKENDS, resolved_settings
from prony.core.errors import UsageError
from prony.model.address import Address, Wire
from prony.model.subject import Frontend, Interface, Subject, is_yours
from prony.plan.factors import variables_of

PORT, BEHIND_PORT = 8000, 8001
"""The port of a person's own command, and that of the server behind a frontend."""
OWN_CERTIFICATE, OWN_KEY = "YOUR-CERTIFICATE.pem", "YOUR-KEY.pem"
"""The files of a person's own that stand in a command with TLS."""
_OWN_CERTIFICATE = {"tls_certificate": OWN_CERTIFICATE, "tls_key": OWN_KEY}


def command_for_user(  # noqa: PLR0913, PLR0917
    entry: ServerEntry,
    subject: Subject,
    app_dir: str,
    cpus: int,
    port: int = PORT,
    programs: Mapping[str, str] | None = None,
) -> str:
    """Return the command that a person types to start this server with this app, as in its manual.

    If the catalogue starts the server with a script, the command writes that script first. Values of the
    app's own variables are not shown, because they may be secrets: the command takes them from the shell.
    ``programs``: the paths of the system's programs, of the build, and, for a user's own app, of the
    environment; None: use names. With TLS it names a certificate and a key of the person's own.

    *Errors*: UsageError as `make_launch`.
    """
    settings = resolved_settings(entry, subject, cpus)
    seat = Seat(Address("127.0.0.1", port), app_dir, ".", cpus, root=subject.app.root)
    version = entry.install.python if isinstance(entry.install, PythonInstall) else None
    places = {
        "python": f"python{version or ''}",
        "bin": "",
        "prony": "prony",
        **_shown_programs(entry, programs),
    }
    values = {**settings, **places, **seat.values, **_OWN_CERTIFICATE, **target(entry, subject)}
    program, *rest = arguments(entry.command, settings, values)
    named = "{bin}" in str(entry.command[0]) and not places["bin"]
    program = program.removeprefix("/") if named else program
    words = (program, *(word.removeprefix("./") for word in rest))
    shown = _shown_environment(entry, subject, values)
    folder = places["build"] if entry.folder_is == "build" else app_dir
    # An entry that was made of a user's own command has no name that `prony servers` knows.
    is_own = is_yours(entry.name)
    files = "" if is_own else _written_files(entry, subject, port=port)
    own = rendered(entry, values, entry.environment) if is_own else {}
    made = "".join(
        f"printf {shlex.quote(_for_printf(text))} > {name} && "
        for name, text in {**factory_files(subject.app), **own}.items()
    )
    return f"cd {shlex.quote(folder)} && {files}{made}{shown}{shlex.join(words)}"


def _for_printf(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "%%").replace("\n", "\\n")


def frontend_command_for_user(
    entry: FrontendEntry,
    subject: Subject,
    wire: Wire,
    cpus: int,
    programs: Mapping[str, str] | None = None,
) -> str:
    """Return the command that a person types to start the subject's frontend for a server that speaks
    ``wire``.

    The server is expected on port 8001, further ones on the next.

    *Errors*: UsageError as `make_frontend`.
    """
    frontend = subject.frontend or Frontend(entry.name)
    settings = resolved_settings(entry, frontend, cpus)
    seat = Seat(Address("127.0.0.1", PORT), ".", ".", cpus)
    spoken = named("", subject.interface)
    places = {**_shown_programs(entry, programs), **seat.values, **_OWN_CERTIFICATE}
    values: Values = {**settings, **places, **spoken}
    words = (word.removeprefix("./") for word in arguments(entry.command, settings, values))
    chosen = replace(frontend, settings={**frontend.settings, "wire": wire})
    return f"{_written_files(entry, chosen, subject)}{shlex.join(words)}"


def _shown_programs(entry: ProcessEntry, found: Mapping[str, str] | None) -> dict[str, str]:
    return {"build": "build", **{name: name for name in entry.install.programs}, **(found or {})}


def _written_files(
    entry: ProcessEntry, chosen: Subject | Frontend, around: Subject | None = None, port: int = BEHIND_PORT
) -> str:
    """Return the part of a command that writes the entry's files with `file_for_user`."""
    preset = entry.variants[chosen.variant].settings if chosen.variant else {}
    settings = "".join(
        f" --set {shlex.quote(f'{entry.name}.{key}={as_template_text(value)}')}"
        for key, value in {**preset, **chosen.settings}.items()
    )
    subject = around or chosen
    address = _typed_target(subject) if isinstance(subject, Subject) else ""
    # The file contains a port too; behind a frontend the server has another one.
    behind = isinstance(chosen, Subject) and chosen.frontend is not None
    more = settings + (f" --set {entry.name}.port={port}" if behind else "")
    more += f" --app {shlex.quote(address)}" if address else ""
    names = [(name, "") for name in entry.files] + [(name, more) for name in entry.templates]
    return "".join(
        f"prony servers {entry.name} --file {name}{options} > {name} && " for name, options in names
    )


def _typed_target(subject: Subject) -> str:
    """Return what a person types for the app: of a file, its path."""
    address = subject.app.targets.get(subject.interface, "")
    is_below = subject.interface in OF_FILES and subject.app.root
    return f"{subject.app.root}/{address}" if is_below else address


def _shown_environment(entry: ServerEntry, subject: Subject, values: Values) -> str:
    variables = filled(entry.environment, values)
    # Python searches a script's own folder first: the app's folder must be named.
    needed = entry.install.kind == "python" and (entry.files or "{bin}" in str(entry.command[0]))
    searched = ":".join(filter(None, (subject.app.root, "." if subject.app.factory else "")))
    path = {"PYTHONPATH": searched or "."} if needed else {}
    assignments = "".join(f"{name}={shlex.quote(value)} " for name, value in {**path, **variables}.items())
    # What differs between subjects on purpose is part of the command; other values may be secrets.
    own = {name: shlex.quote(str(value)) for name, value in variables_of(subject.levels).items()}
    passed = {name: own.get(name, f'"${name}"') for name in subject.app.environment}
    return assignments + "".join(f"{name}={value} " for name, value in passed.items())


# --- files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file of a server's that a person wants to have, as Prony starts the server with it.

    ``settings``: by server, as typed; ``app``: a built-in app's name, or the user's own target, of a file its
    path.
    """

    server: str
    name: str
    settings: Mapping[str, Mapping[str, int | str]]
    app: str


def file_for_user(known: Catalog, asked: AskedFile, cpus: int) -> str:
    """Return a file of an entry as a person needs it: a script as it stands, a template filled in.

    *Errors*: UsageError for a file that there is not, a setting that does not fit, or an app that is none.
    """
    entry = known.entry(asked.server)
    other = next((name for name in asked.settings if name not in (entry.name, asked.server)), None)
    if other is not None:
        raise UsageError(f"`--set {other}...`: the file is one of `{entry.name}`")
    variant = asked.server.removeprefix(entry.name).removeprefix("-")
    preset = entry.variants[variant].settings if variant in entry.variants else {}
    chosen = {**preset, **asked.settings.get(entry.name, {}), **asked.settings.get(asked.server, {})}
    root, app = _place_of(asked.app)
    values = {
        **_target_values(known, app),
        **_upstream_values(chosen, is_frontend=isinstance(entry, FrontendEntry)),
        # The rest are programs, which are found by their names.
        **{"python": "python", "bin": "bin", "build": "build"},
        **{name: name for name in entry.install.programs},
    }
    return _file(
        entry, asked.name, chosen, values, Seat(Address("127.0.0.1", PORT), ".", ".", cpus, root=root)
    )


def _place_of(app: str) -> tuple[str, str]:
    """Return the folder of an app that is a file, and the file.

    >>> _place_of("public/index.php"), _place_of("shop:app")
    (('public', 'index.php'), ('', 'shop:app'))
    """
    root, _, file = app.rpartition("/")
    is_plain = interface_of_file(app) and not root.startswith("/") and ".." not in root.split("/")
    return (root, file) if root and is_plain and not check_text_value(root) else ("", app)


def _file(
    entry: ProcessEntry, name: str, chosen: Mapping[str, int | str], values: Mapping[str, str], seat: Seat
) -> str:
    if name in entry.files:
        return entry.files[name]
    if name not in entry.templates:
        known = " or ".join([*entry.files, *entry.templates]) or "no name: it has no files"
        raise UsageError(f"`--file {name}`: `{entry.name}` has no such file; expected {known}")
    settings = resolved_settings(entry, Frontend(entry.name, settings=chosen), seat.cpus)
    filled_in: Values = {**settings, **seat.values, **_OWN_CERTIFICATE, **values}
    return rendered(entry, filled_in, entry.environment)[name]


def _target_values(known: Catalog, app: str) -> dict[str, str]:
    """Return what a template may ask of the app: a built-in one's name, or the user's own target."""
    built_in = known.apps.get(app)
    address = next(iter(built_in.targets.values()), "") if built_in else app
    expected = check_text_value(address)
    of_file = interface_of_file(address)
    if expected or not (":" in address or of_file):
        raise UsageError(
            f"`--app {app}`: expected a built-in app, `module:attribute`, or a .psgi, .php or .ru file"
        )
    return named(address, of_file or Interface.WSGI)


def _upstream_values(chosen: dict[str, int | str], *, is_frontend: bool) -> dict[str, str]:
    """Return, and take out of ``chosen``, what is no setting: a port, and what the server behind speaks."""
    port = chosen.pop("port", PORT)
    behind = range(BEHIND_PORT, BEHIND_PORT + int(chosen.get(BACKENDS, 1)))
    if not isinstance(port, int) or not 0 < port < 65536:
        raise UsageError(f"`--set ...port={port}`: expected a port, 1 to 65535")
    values = {
        "port": str(port),
        "upstream_host": "127.0.0.1",
        "upstream_port": str(BEHIND_PORT),
        "upstreams": " ".join(f"127.0.0.1:{number}" for number in behind),
    }
    if not is_frontend:
        return values
    wire = str(chosen.pop("wire", Wire.HTTP))
    if wire not in tuple(Wire):
        raise UsageError(f"`--set ...wire={wire}`: expected one of {', '.join(Wire)}")
    return {**values, "wire": wire}

"""What a person types to start a server as Prony does, and the files that it needs for that.

Pure: it reads and starts nothing.

A command that starts a server, as a unit of systemd and as the line that starts it in a container. Pure.

Both start what the command starts: with its folder, its variables and its words.

>>> parsed("cd /srv/shop && A=1 KEY=\\"$KEY\\" /opt/gunicorn shop:app").words
('/opt/gunicorn', 'shop:app')
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.catalog.launch import (
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
from prony.core.safe_text import escaped
from prony.core.units import seconds
from prony.model.address import Address, Wire
from prony.model.launch import StopRule
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


# --- a command as a unit of systemd, and in a container ---------------------------------------------------


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PROGRAM = re.compile(r"(?:/usr)?/bin/|/venv/bin/")
_SHARED = ("/usr/", "/bin/", "/lib/", "/etc/")
# What systemd reads before a program's name, root's rights among them.
_PREFIXES = tuple("@-:+!|")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is started, and where. ``command``: as a report prints it. ``image``: a container's, and
    ``install``: the commands that put the server into it, in a shell's words; both empty: not known.
    """

    name: str
    command: str
    user: str = "nobody"
    stop: StopRule = field(default_factory=StopRule)
    image: str = ""
    install: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command of one program. ``asked``: the variables that it takes from the shell that starts it;
    ``files``: what Prony writes for it, and the words that do.
    """

    folder: str
    variables: Mapping[str, str]
    asked: tuple[str, ...]
    words: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parsed(command: str, place: str = "/etc/prony") -> Parsed | None:
    """Return a command's parts; None: it is not one program's, and only a shell can read it. ``place``: the
    folder of the files that Prony writes for it.
    """
    words = _words(command)
    if len(words) < 4 or words[0] != "cd" or words[2] != "&&":
        return None
    files, own = _files(words[3:])
    start = next((k for k, word in enumerate(own) if not _VARIABLE.match(word)), None)
    if start is None or "&&" in own or own[start].startswith(_PREFIXES):
        return None
    pairs = [word.partition("=")[::2] for word in own[:start]]
    asked = tuple(name for name, value in pairs if value == f"${name}")
    variables = {name: value for name, value in pairs if name not in asked}
    placed = tuple(f"{place}/{word}" if word in files else word for word in own[start:])
    return Parsed(
        words[1], variables, asked, placed, {f"{place}/{name}": line for name, line in files.items()}
    )


def _files(words: list[str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the files that Prony writes first, with the words that do, and the words of the program."""
    found: dict[str, tuple[str, ...]] = {}
    while words[:2] == ["prony", "servers"] and "&&" in words:
        *line, arrow, name = words[: words.index("&&")]
        if arrow != ">" or line.count(">") or not _FILE.fullmatch(name):
            break
        found[name] = tuple(line)
        words = words[words.index("&&") + 1 :]
    return found, words


def _words(command: str) -> list[str]:
    """Return a line's words; none of several lines, nor of one with a quote that does not end."""
    if "\n" in command:
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def unit_text(one: Deployment) -> str:
    """Return the unit, with the line of a container as a comment at its end.

    *Source*: systemd.service(5), systemd.exec(5), systemd.resource-control(5).
    """
    warned = [f"# Look before you install it: {one_line}." for one_line in cautions(one)]
    return "\n".join([*warned, *_unit_lines(one), "", *_container_comment(one)])


def cautions(one: Deployment) -> list[str]:
    """Return what of it may do harm to a whole machine, each as half a sentence."""
    found = parsed(one.command)
    said = ["it runs as root"] if one.user in ("root", "0") else []
    if found is None:
        return [*said, "a shell reads its command"]
    return [*said, f"its folder is {escaped(found.folder)}"] if _is_broad(found.folder) else said


def _is_broad(folder: str) -> bool:
    """Return whether a folder is the root, or one of its own: whole systems are below, not an app."""
    return len([part for part in folder.split("/") if part not in ("", ".")]) < 2 or ".." in folder.split("/")


def container_line(one: Deployment) -> str | None:
    """Return what starts it in a container on the host's network; None where that is not known."""
    found = parsed(one.command, _place(one))
    if found is None or not one.image or _is_broad(found.folder):
        return None
    words = [_PROGRAM.split(found.words[0])[-1], *found.words[1:]]
    variables = [f"{name}={value}" for name, value in found.variables.items()]
    line = shlex.join(["exec", "env", *variables, *words] if variables else ["exec", *words])
    inside = f"{one.install} && {line}" if one.install else line
    options = [
        *("--network", "host", "--workdir", found.folder),
        *(word for folder in _mounted(found) for word in ("--volume", folder)),
        *(word for name in found.asked for word in ("--env", name)),
    ]
    return f"docker run --rm {shlex.join(options)} {one.image} sh -c {shlex.quote(inside)}"


def _mounted(found: Parsed) -> Iterator[str]:
    """Yield the folders that the command needs and an image does not have."""
    yield f"{found.folder}:{found.folder}"
    yield from (f"{name}:{name}:ro" for name in found.files)
    first = found.words[0]
    if first.startswith("/") and not first.startswith(_SHARED) and "/venv/bin/" not in first:
        folder = first.rpartition("/")[0]
        if not folder.startswith(found.folder) and not _is_broad(folder):
            yield f"{folder}:{folder}:ro"


# --- systemd ----------------------------------------------------------------------------------------------


def _place(one: Deployment) -> str:
    """Return the folder of the files that only root may write, and its user reads."""
    return f"/etc/{_name(one)}"


def _name(one: Deployment) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", one.name).strip("-")


def _unit_lines(one: Deployment) -> Iterator[str]:
    found = parsed(one.command, _place(one))
    yield from (
        "[Unit]",
        f"Description={_specified(' '.join(one.name.split()))}, started as Prony starts it",
        "After=network.target",
        "",
    )
    yield from ("[Service]", f"User={one.user}")
    if found is None:
        yield f"ExecStart=/bin/sh -c {_quoted(one.command.replace(chr(10), ' '))}"
    else:
        yield f"WorkingDirectory={_specified(found.folder)}"
        yield from _variables(one, found)
        yield from _certificate(found)
        for name, line in found.files.items():
            folder = shlex.quote(_place(one))
            yield escaped(f"# Once, as root: mkdir -p {folder} && {shlex.join(line)} > {shlex.quote(name)}")
        yield f"ExecStart={' '.join(map(_quoted, found.words))}"
    yield f"KillSignal={one.stop.signal}"
    yield f"TimeoutStopSec={seconds(one.stop.timeout_ns):g}"
    yield "Restart=on-failure"
    yield from (f"{name}={value}" for name, value in one.limits.items())
    yield from ("", "[Install]", "WantedBy=multi-user.target")


def _variables(one: Deployment, found: Parsed) -> Iterator[str]:
    if found.variables:
        shown = (_assigned(f"{name}={value}") for name, value in found.variables.items())
        yield f"Environment={' '.join(shown)}"
    if found.asked:
        yield f"# A file that sets {', '.join(found.asked)}; only root may read it."
        yield f"EnvironmentFile=/etc/{_name(one)}.env"


def _certificate(found: Parsed) -> Iterator[str]:
    if OWN_KEY in found.words:
        names = f"{OWN_CERTIFICATE} and {OWN_KEY}"
        yield f"# {names} stand for files of your own, which its user must be able to read."


def _quoted(word: str) -> str:
    """Return a word of a command; `$` and `%` stand for themselves.

    >>> _quoted('a b'), _quoted('50%')
    ('"a b"', '50%%')
    """
    return _in_quotes(_specified(word).replace("$", "$$"))


def _assigned(text: str) -> str:
    return _in_quotes(_specified(text))


def _in_quotes(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _specified(text: str) -> str:
    return text.replace("%", "%%")


def _container_comment(one: Deployment) -> Sequence[str]:
    line = container_line(one)
    # A line break, as in the name of a package of a strange archive, would begin a line of the unit.
    if line is None or not line.isprintable():
        return ["# Prony knows no container for it: it starts more than one program, or is built elsewhere."]
    return ["# The same in a container, on the host's network:", f"# {line}"]

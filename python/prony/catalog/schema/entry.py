"""The content of a server's or an app's TOML file: the types of the catalogue's public keys.

Shape and types only; rules for several fields are in `rules`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StringConstraints,
    Tag,
)

from prony.core.units import parse_duration
from prony.model.address import Wire
from prony.model.subject import Interface

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
# A callable, `module:attribute`, or for PSGI, PHP and Rack a file, `hello.psgi`.
Target = Annotated[
    str,
    StringConstraints(
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*"
        r"|[A-Za-z0-9_][A-Za-z0-9_-]*\.(psgi|php|ru))$"
    ),
]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1000)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=200)]
# Names that no command line mistakes for an option; to apt a hyphen at the end means "remove".
Package = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+@_-]*[A-Za-z0-9+]$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# uv installs for 3.8 and later; older ones, from the last Python 2 on, have a pip of their own.
PythonVersion = Annotated[str, StringConstraints(pattern=r"^(2\.7|3\.([4-9]|[1-9][0-9]))$")]
Signal = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"]


def _duration(text: str) -> str:
    parse_duration(text)
    return text


Duration = Annotated[str, AfterValidator(_duration)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class IntSetting(_Part):
    """A whole number in a range.

    ``default`` is a number or an expression of ``{cpus}``; absent: the server decides.
    """

    type: Literal["int"]
    default: Annotated[int, Field(strict=True)] | str | None = None
    min: Annotated[int, Field(strict=True)]
    max: Annotated[int, Field(strict=True)]
    doc: Line
    source: Line


class ChoiceSetting(_Part):
    """One of a few words. ``default`` absent: the server decides."""

    type: Literal["choice"]
    default: str | None = None
    choices: Annotated[tuple[Line, ...], Field(min_length=1)]
    doc: Line
    source: Line


class BoolSetting(_Part):
    """On or off."""

    type: Literal["bool"]
    default: Annotated[bool, Field(strict=True)]
    doc: Line
    source: Line


class TextSetting(_Part):
    """A short text. ``default`` absent: the server decides."""

    type: Literal["text"]
    default: Line | None = None
    doc: Line
    source: Line


Setting = Annotated[IntSetting | ChoiceSetting | BoolSetting | TextSetting, Field(discriminator="type")]
SettingValue = Annotated[bool, Field(strict=True)] | Annotated[int, Field(strict=True)] | Line


class SettingCondition(_Part):
    """True when the setting ``if`` has the value ``is``, or is ``above`` a number.

    With neither it is true when the setting is on, or set at all. ``and``: another condition that must be
    true.
    """

    setting: Key = Field(alias="if")
    value: SettingValue | None = Field(default=None, alias="is")
    above: Annotated[int, Field(strict=True)] | None = None
    also: "SettingCondition | None" = Field(default=None, alias="and")


class Conditional(SettingCondition):
    """Arguments that depend on a setting."""

    then: tuple[Line, ...]
    otherwise: tuple[Line, ...] = Field(default=(), alias="else")


def _argument_kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "conditional"


Argument = Annotated[
    Annotated[Line, Tag("text")] | Annotated[Conditional, Tag("conditional")], Discriminator(_argument_kind)
]


def _step_kind(value: Any) -> str:
    return "list" if isinstance(value, list | tuple) else "table"


Command = Annotated[tuple[Line, ...], Field(min_length=1)]


class BuildStep(_Part):
    """One command of a build. ``stdin``: the file that it reads its standard input from."""

    run: Command
    stdin: Line | None = None


class Build(_Part):
    """A product that is compiled or generated once, from the files in the entry's folder.

    ``run``: commands, in order, without a shell. ``product``: the file that must exist afterwards, below
    ``{build}``.
    """

    run: Annotated[
        tuple[
            Annotated[
                Annotated[Command, Tag("list")] | Annotated[BuildStep, Tag("table")],
                Discriminator(_step_kind),
            ],
            ...,
        ],
        Field(min_length=1),
    ]
    product: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

    @property
    def steps(self) -> tuple[BuildStep, ...]:
        """The commands, all in the long form."""
        return tuple(step if isinstance(step, BuildStep) else BuildStep(run=step) for step in self.run)


class _Install(_Part):
    programs: dict[Key, Annotated[tuple[Line, ...], Field(min_length=1)]] = Field(default_factory=dict)
    version: Command | None = None
    build: Build | None = None


class PythonInstall(_Install):
    """Pinned requirements in a virtual environment of the server's own.

    ``overrides`` replace the requirements of its packages. ``imports`` are the modules that must be
    importable if a user's own environment is used. ``version``: the command that prints the server's version.
    ``python``: the minor version of CPython that it needs, such as ``3.8``; absent: the usual one. Before 3.8
    the requirements are all packages that are installed, and nothing is resolved. ``hashes``: of the sources
    of those of them that uv cannot lock. ``prony``: whether it needs Prony's own compiled part.
    ``variables``: what its packages' builds read from their environment, such as flags of a compiler.
    """

    kind: Literal["python"]
    python: PythonVersion | None = None
    prony: Annotated[bool, Field(strict=True)] = False
    requirements: tuple[Line, ...]
    overrides: tuple[Line, ...] = ()
    hashes: dict[Line, Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]] = Field(
        default_factory=dict
    )
    imports: tuple[Line, ...] = ()
    variables: dict[Variable, Line] = Field(default_factory=dict)


class SystemInstall(_Install):
    """No installation: it uses the system's programs. ``version``: the command that shows that they work.

    Without it they only need to exist. ``interpreter``: the command that prints the interpreter's version.
    """

    kind: Literal["system"]
    interpreter: Command | None = None


Install = Annotated[PythonInstall | SystemInstall, Field(discriminator="kind")]


class SystemNeeds(_Part):
    """The system packages that must be installed, by their names in each package system."""

    debian: tuple[Package, ...] = ()
    fedora: tuple[Package, ...] = ()
    brew: tuple[Package, ...] = ()


class Variant(_Part):
    """A named preset of settings."""

    title: Line
    settings: dict[Key, SettingValue]


class ServerEdition(_Part):
    """The server as it was at another time: an entry of its own, with an own lock.

    ``settings``: defaults that differ; ``command`` and ``files``: where the entry's do not fit.
    """

    title: Line
    remark: Line
    install: PythonInstall
    settings: dict[Key, SettingValue] = Field(default_factory=dict)
    command: tuple[Argument, ...] = ()
    files: dict[FileName, str] = Field(default_factory=dict)


class BacklogFact(_Part):
    """The listen queue. ``value`` is a number or an expression of settings; absent: the kernel's limit."""

    value: Annotated[int, Field(strict=True)] | str | None = None
    source: Line


class KeepAliveFact(_Part):
    """Whether connections are kept open, and how long they may be idle; ``when``: under which condition.

    ``idle_s`` is a number of seconds or an expression of settings; absent: not known.
    """

    when: SettingCondition | None = None
    on: Annotated[bool, Field(strict=True)]
    idle_s: Annotated[int, Field(strict=True)] | str | None = None
    source: Line


class ConcurrencyFact(_Part):
    """How many processes serve, and how many requests may be in the app at once.

    ``slots`` absent: no fixed number.
    """

    processes: Annotated[int, Field(strict=True)] | str = 1
    slots: Annotated[int, Field(strict=True)] | str | None = None
    text: Line
    source: Line


class Caveat(_Part):
    """What a reader of figures should know."""

    text: Line
    source: Line


class Facts(_Part):
    """What diagnosis needs to know about the server. ``keep_alive``: the first whose condition is true."""

    backlog: BacklogFact
    keep_alive: Annotated[tuple[KeepAliveFact, ...], Field(min_length=1)]
    concurrency: ConcurrencyFact
    caveats: tuple[Caveat, ...] = ()


class Role(_Part):
    """Gives processes their role, as `prony.model.launch.RoleRule`."""

    role: Name
    where: Literal["main", "child", "command"]
    pattern: str = ""


class ReadinessEntry(_Part):
    """When the server is ready, as `prony.model.launch.Readiness`."""

    timeout: Duration = "15s"
    http: Annotated[bool, Field(strict=True)] = True


class StopEntry(_Part):
    """How to stop the server, as `prony.model.launch.StopRule`."""

    signal: Signal = "SIGTERM"
    timeout: Duration = "5s"


class ProcessEntry(_Part):
    """What all entries with a process have in common.

    ``remark``: every report shows it. ``folder_is``: the process's working directory: its own, the app's, or
    what its build made.
    """

    name: Name
    title: Line
    remark: Line | None = None
    language: Literal["python", "perl", "c", "go", "java", "javascript", "ruby", "rust", "other"]
    upstream: Url | None = None
    licence: Line | None = None
    needs: SystemNeeds = SystemNeeds()
    install: Install
    folder_is: Literal["run_dir", "app_dir", "build"] = "run_dir"
    command: Annotated[tuple[Argument, ...], Field(min_length=1)]
    environment: dict[Variable, Line] = Field(default_factory=dict)
    settings: dict[Key, Setting] = Field(default_factory=dict)
    variants: dict[Name, Variant] = Field(default_factory=dict)
    roles: Annotated[tuple[Role, ...], Field(min_length=1)]
    readiness: ReadinessEntry = ReadinessEntry()
    stop: StopEntry = StopEntry()
    files: dict[FileName, str] = Field(default_factory=dict)
    templates: dict[FileName, str] = Field(default_factory=dict)

    _folder: Path = PrivateAttr(default=Path("/nonexistent"))
    _is_asked_for: bool = PrivateAttr(default=True)
    _is_of_app: bool = PrivateAttr(default=False)

    @property
    def is_of_app(self) -> bool:
        """Whether it describes a program in a user's folder, which is no folder of the catalogue."""
        return self._is_of_app

    @property
    def is_asked_for(self) -> bool:
        """Whether the user named it; an entry that was only found in the folder may not run anything."""
        return self._is_asked_for

    def asked_for(self, asked: bool = True) -> Self:
        """Record whether the user named it, and return itself."""
        self._is_asked_for = asked
        return self

    @property
    def folder(self) -> Path:
        """The folder next to the entry's file with the inputs of its build; it need not exist."""
        return self._folder

    def of_app(self, folder: Path) -> Self:
        """Record the user's folder from which it is built, and return itself."""
        self._folder, self._is_of_app = folder, True
        return self

    def found_at(self, file: Path) -> Self:
        """Record the file from which it was read, and return itself."""
        self._folder = file.with_suffix("").absolute()
        return self


class TlsEntry(_Part):
    """It speaks TLS to its clients; ``source``: where its options for that are documented.

    The command or a template has a place for the files ``{tls_certificate}`` and ``{tls_key}``, under the
    condition that the setting ``tls`` is not ``off``. ``only``: wires that it does not speak without.
    """

    source: Line
    only: tuple[Wire, ...] = ()


class Http2Entry(_Part):
    """A frontend that can speak HTTP/2 to its clients, and then no HTTP/1.

    ``source``: where its options for that are documented. The command or a template asks for the setting
    ``http2``.
    """

    source: Line


class HostEntry(ProcessEntry):
    """A process that answers requests: diagnosis needs facts about its listen queue and connections.

    ``tls`` absent: it does not speak TLS, or not as Prony starts it.
    """

    facts: Facts
    tls: TlsEntry | None = None


class ServerEntry(HostEntry):
    """One server of the catalogue: one TOML file, named after it.

    ``serves``: the built-in apps whose replies a server without an interface gives itself. ``behind``: the
    frontend behind which it is checked, of a server that cannot be used without one. ``editions``: the same
    server as it was at other times.
    """

    interfaces: Annotated[tuple[Interface, ...], Field(min_length=1)]
    wires: Annotated[tuple[Wire, ...], Field(min_length=1)] = (Wire.HTTP,)
    serves: tuple[Name, ...] = ()
    behind: Name | None = None
    editions: dict[Name, ServerEdition] = Field(default_factory=dict)

    def as_editions(self) -> Iterator[Self]:
        """Yield the entries of its editions: ``gunicorn-as-of-2016``."""
        for name, one in self.editions.items():
            preset = {
                key: self.settings[key].model_copy(update={"default": value})
                for key, value in one.settings.items()
                if key in self.settings
            }
            changed = {
                "name": f"{self.name}-{name}",
                "title": one.title,
                "remark": one.remark,
                "install": one.install,
                "settings": {**self.settings, **preset},
                "command": one.command or tuple(_of_another_time(self.command)),
                "tls": None,
                "wires": tuple(wire for wire in self.wires if wire is not Wire.HTTP2),
                "files": {**self.files, **one.files},
                "variants": {},
                "editions": {},
            }
            yield self.model_copy(update=changed)


def _of_another_time(command: tuple[Argument, ...]) -> Iterator[Argument]:
    """Yield a command without TLS, whose clients of today ask for what is younger, and without HTTP/2."""
    for part in command:
        match part:
            case Conditional(setting="tls"):
                continue
            case Conditional(setting="wire", value=Wire.HTTP2):
                yield from part.otherwise
            case _:
                yield part


class FrontendEntry(HostEntry):
    """What stands in front of a server: ``forwards`` are the wires over which it passes requests on.

    ``examples``: the servers that it is checked with. ``http2`` absent: it speaks HTTP/1 to clients.
    """

    forwards: Annotated[tuple[Wire, ...], Field(min_length=1)]
    examples: Annotated[tuple[Name, ...], Field(min_length=1)]
    http2: Http2Entry | None = None


class ServiceEntry(ProcessEntry):
    """A service of an app, such as a database; the app finds it by the environment variables
    ``variables``.
    """

    variables: dict[Variable, Line]


class RepeatedBody(_Part):
    """A body that is too long for the file."""

    repeat: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    times: Annotated[int, Field(gt=0, le=1_000_000, strict=True)]


def _body_kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "repeated"


BodyEntry = Annotated[
    Annotated[str, Tag("text")] | Annotated[RepeatedBody, Tag("repeated")], Discriminator(_body_kind)
]


class CheckEntry(_Part):
    """One request and the reply that the app must give."""

    method: Annotated[str, StringConstraints(pattern=r"^[A-Z]+$")] = "GET"
    path: Annotated[str, StringConstraints(pattern=r"^/[!-~]*$")] = "/"
    headers: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]+$")], Line] = Field(
        default_factory=dict
    )
    request_body: BodyEntry | None = None
    status: Annotated[int, Field(ge=100, le=599, strict=True)] | None = None
    body: BodyEntry | None = None


Checks = tuple[CheckEntry, ...]


class AppVariant(_Part):
    """The same code with another contract, and so with another measured request."""

    title: Line
    checks: Annotated[Checks, Field(min_length=1)]


class AppEntry(_Part):
    """One app of the catalogue: a folder with this file, `app.toml`, and the app's modules.

    ``services``: the entries of `services/` that it needs. ``python``: the minor version of CPython that it
    was written for, which only servers have that need the same; absent: the usual one.
    """

    title: Line
    python: PythonVersion | None = None
    requirements: tuple[Line, ...] = ()
    targets: Annotated[dict[Interface, Target], Field(min_length=1)]
    services: tuple[Name, ...] = ()
    environment: dict[Variable, Line] = Field(default_factory=dict)
    checks: Checks = ()
    variants: dict[Name, AppVariant] = Field(default_factory=dict)

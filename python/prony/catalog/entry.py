"""What a server's or an app's TOML file may say: the types of the catalogue's public keys.

Shape and types only; what depends on several fields is in `check`. Must not know files, environments or
users.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from prony.model import Interface, Wire
from prony.units import parse_duration

__all__ = [
    "AppEntry",
    "BoolSetting",
    "ChoiceSetting",
    "Condition",
    "Conditional",
    "Facts",
    "IntSetting",
    "KeepAliveFact",
    "Needs",
    "ServerEntry",
    "Setting",
    "TextSetting",
    "Variant",
]

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
Target = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$"),
]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1000)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=200)]
# Names that no command line takes for an option; apt takes a hyphen at the end for "remove".
Package = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+@_-]*[A-Za-z0-9+]$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
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


class Condition(_Part):
    """Holds when the setting ``if`` has the value ``is``, or is ``above`` a number.

    With neither it holds when the setting is on, or set at all.
    """

    setting: Key = Field(alias="if")
    value: SettingValue | None = Field(default=None, alias="is")
    above: Annotated[int, Field(strict=True)] | None = None


class Conditional(Condition):
    """Arguments that depend on a setting."""

    then: tuple[Line, ...]
    otherwise: tuple[Line, ...] = Field(default=(), alias="else")


def _argument_kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "conditional"


Argument = Annotated[
    Annotated[Line, Tag("text")] | Annotated[Conditional, Tag("conditional")], Discriminator(_argument_kind)
]


class Install(_Part):
    """How the server is installed. ``python``: pinned requirements in a virtual environment of its own.

    ``overrides`` take the place of what its packages ask for. ``imports`` are the modules that must be
    importable where a user's own environment is taken.
    """

    kind: Literal["python"]
    requirements: tuple[Line, ...]
    overrides: tuple[Line, ...] = ()
    imports: Annotated[tuple[Line, ...], Field(min_length=1)]


class Needs(_Part):
    """The system's packages that must be installed, by the names that each package system has for them."""

    debian: tuple[Package, ...] = ()
    fedora: tuple[Package, ...] = ()
    brew: tuple[Package, ...] = ()


class Variant(_Part):
    """A named preset of settings."""

    title: Line
    settings: dict[Key, SettingValue]


class BacklogFact(_Part):
    """The listen queue. ``value`` is a number or an expression of settings; absent: the kernel's limit."""

    value: Annotated[int, Field(strict=True)] | str | None = None
    source: Line


class KeepAliveFact(_Part):
    """Whether connections are kept open, and how long they may idle; ``when``: under which condition.

    ``idle_s`` is a number of seconds or an expression of settings; absent: not known.
    """

    when: Condition | None = None
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
    """What diagnosis needs to know of the server. ``keep_alive``: the first whose condition holds."""

    backlog: BacklogFact
    keep_alive: Annotated[tuple[KeepAliveFact, ...], Field(min_length=1)]
    concurrency: ConcurrencyFact
    caveats: tuple[Caveat, ...] = ()


class Role(_Part):
    """Gives processes their role, as `prony.model.RoleRule`."""

    role: Name
    where: Literal["main", "child", "command"]
    pattern: str = ""


class ReadinessEntry(_Part):
    """When the server is ready, as `prony.model.Readiness`."""

    timeout: Duration = "15s"
    http: Annotated[bool, Field(strict=True)] = True


class StopEntry(_Part):
    """How the server is ended, as `prony.model.StopRule`."""

    signal: Signal = "SIGTERM"
    timeout: Duration = "5s"


class ServerEntry(_Part):
    """One server of the catalogue: one TOML file, named after it."""

    name: Name
    title: Line
    language: Literal["python", "perl", "c", "go", "java", "javascript", "rust"]
    interfaces: Annotated[tuple[Interface, ...], Field(min_length=1)]
    wires: Annotated[tuple[Wire, ...], Field(min_length=1)] = (Wire.HTTP,)
    upstream: Url
    licence: Line
    needs: Needs = Needs()
    install: Install
    command: Annotated[tuple[Argument, ...], Field(min_length=1)]
    environment: dict[Variable, Line] = Field(default_factory=dict)
    settings: dict[Key, Setting] = Field(default_factory=dict)
    variants: dict[Name, Variant] = Field(default_factory=dict)
    facts: Facts
    roles: Annotated[tuple[Role, ...], Field(min_length=1)]
    readiness: ReadinessEntry = ReadinessEntry()
    stop: StopEntry = StopEntry()
    files: dict[FileName, str] = Field(default_factory=dict)


class CheckEntry(_Part):
    """One exchange that the app must answer so. Headers and bodies of requests are plain text."""

    method: Annotated[str, StringConstraints(pattern=r"^[A-Z]+$")] = "GET"
    path: Annotated[str, StringConstraints(pattern=r"^/[!-~]*$")] = "/"
    status: Annotated[int, Field(ge=100, le=599, strict=True)] | None = None
    body: str | None = None


class AppEntry(_Part):
    """One app of the catalogue: a folder with this file, `app.toml`, and the app's modules."""

    title: Line
    requirements: tuple[Line, ...] = ()
    targets: Annotated[dict[Interface, Target], Field(min_length=1)]
    environment: dict[Variable, Line] = Field(default_factory=dict)
    checks: tuple[CheckEntry, ...] = ()

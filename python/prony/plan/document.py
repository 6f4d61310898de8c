"""What a study's file may say: the types of its public keys.

Shape and types only; rules that involve several parts are in `catalog.studies.check`.

>>> WorkloadDocument(loop="closed", connections=10).engines
()
"""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from itertools import product
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    PositiveInt,
    Tag,
    model_validator,
)

from prony.core.errors import UsageError
from prony.core.units import DAY_NS, MIB, MILLISECOND_NS, SECOND_NS, parse_bytes, parse_duration, parse_rate
from prony.model.exchange import is_header_name, is_header_value, is_method, is_path, status_ranges
from prony.model.plan import ClaimKind
from prony.model.sandbox import SandboxKind
from prony.model.subject import Interface, is_of
from prony.model.workload import (
    FLEET,
    LOCAL,
    MAX_CONNECTIONS,
    MAX_GROUPS,
    MAX_HOPS,
    MAX_RATE_PER_S,
    MAX_STREAMS,
    Arrivals,
    Mix,
    MixPath,
    RequestOrder,
    fault_of_mix,
    is_own_generator,
)
from prony.plan.factors import SYSCTL, Choice, Choices, Value, combinations, factors_of, name_with

Generator = Literal[
    "prony",
    "wrk",
    "ab",
    "h2load",
    "hey",
    "fortio",
    "k6",
    "oha",
    "vegeta",
    "weighttp",
    "python-processes",
    "python-threads",
    "python-asyncio",
    "python-asyncio-processes",
    "printed-processes",
    "printed-threads",
    "printed-asyncio",
    "printed-asyncio-processes",
]
"""The generators that a study may name; one that is not on this machine makes its cells unavailable."""

Own = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*/[^\x00-\x1f\x7f]*$", max_length=1000)]
"""The command of a program of the user's own, which has a path."""


Fleet = Annotated[str, Field(pattern=FLEET)]
"""Several of Prony's own generators on this machine, which share a load: `local:4`."""


def _generator_kind(value: object) -> str:
    if not isinstance(value, str):
        return "known"
    return "own" if is_own_generator(value) else "fleet" if value.startswith(LOCAL) else "known"


MAX_THREADS = 1024
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
MAX_CPUS = 65_536
MAX_MEMORY_BYTES = 1 << 50


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str | int | float) else value


def _as_choice(value: object) -> object:
    """Return a setting's value, or its values: each once, and in this order."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) < 2 or len({repr(one) for one in value}) < len(value):
        raise ValueError("a list needs values; expected at least two, each once")
    return tuple(value)


def _as_cpus(value: object) -> object:
    return _limits(value, float, lambda cpus: 0 < cpus <= MAX_CPUS, "a number of CPUs, such as 0.5 or 2")


def _as_memory(value: object) -> object:
    expected = "a number and a unit, such as `512M`, `1KiB`, `100kB`"
    return _limits(value, _memory_bytes, lambda size: 0 < size <= MAX_MEMORY_BYTES, expected)


def _as_pids(value: object) -> object:
    return _limits(value, int, lambda pids: pids > 0, "a whole number above 0")


def _memory_bytes(value: str) -> int:
    return int(value) if value.isdigit() else parse_bytes(value)


def _limits(
    value: object, parse: Callable[[str], float], may_be: Callable[[float], bool], expected: str
) -> object:
    """Return a limit as a number; of several, each as it is written, for the names of subjects."""
    chosen = _as_choice(value)
    each = chosen if isinstance(chosen, tuple) else (chosen,)
    found = [_limit(one, parse, may_be, expected) for one in each]
    if len(set(found)) < len(found):
        raise ValueError("two of the limits are the same; expected each once")
    return tuple(str(one) for one in each) if isinstance(chosen, tuple) else found[0]


def _limit(
    value: object, parse: Callable[[str], float], may_be: Callable[[float], bool], expected: str
) -> float:
    try:
        number = parse(str(value))
    except ValueError:
        number = -1
    if isinstance(value, bool) or not may_be(number):
        raise ValueError(f"it is no limit; expected {expected}")
    return number


def _as_duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _as_rates(value: object) -> object:
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(parse_rate(item) if isinstance(item, str) else item for item in values)


Duration = Annotated[int, BeforeValidator(_as_duration), Field(gt=0, le=DAY_NS)]
"""A duration in a document: text with a unit (``"30s"``), at most a day; inside, nanoseconds."""
Wait = Annotated[int, BeforeValidator(_as_duration), Field(ge=0, le=DAY_NS)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Connections = Annotated[int, Field(gt=0, le=MAX_CONNECTIONS)]
Counts = Annotated[tuple[Connections, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Streams = Annotated[
    tuple[Annotated[int, Field(gt=0, le=MAX_STREAMS)], ...], BeforeValidator(_as_tuple), Field(min_length=1)
]
Rate = Annotated[float, Field(gt=0, le=MAX_RATE_PER_S, allow_inf_nan=False)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(_as_rates), Field(min_length=1)]
Bound = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=4096)]
FileName = Line
Generators = Annotated[
    tuple[
        Annotated[
            Annotated[Generator, Tag("known")] | Annotated[Own, Tag("own")] | Annotated[Fleet, Tag("fleet")],
            Discriminator(_generator_kind),
        ],
        ...,
    ],
    BeforeValidator(_as_tuple),
]
Chosen = Annotated[Value | tuple[Value, ...], BeforeValidator(_as_choice)]
"""A setting's value, or a list of values: a factor."""
Load = Mapping[
    Literal["connections", "rate", "streams", "requests", "threads"], Annotated[float, Field(gt=0)]
]
"""Selects cells by their load, with the keys of `prony.model.plan.Cell.load`."""


def _checked_path(value: str) -> str:
    if not is_path(value):
        raise ValueError("expected a path that starts with `/`, without blanks")
    return value


def _checked_method(value: str) -> str:
    if not is_method(value):
        raise ValueError("expected a method such as `GET` or `POST`")
    return value.upper()


def _checked_name(value: str) -> str:
    if not is_header_name(value):
        raise ValueError("expected a header's name of letters, digits and `-`")
    return value


def _checked_value(value: str) -> str:
    if not is_header_value(value):
        raise ValueError("expected one line")
    return value


def _checked_address(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError(f"`{value}`; expected an IP address of this machine") from None


def _as_statuses(value: object) -> object:
    """Return ranges of statuses, of a list of them as text or of one status as a number."""
    ranges = status_ranges(str(value)) if isinstance(value, str | int) else None
    if ranges is None:
        raise ValueError("it is no list of statuses; expected statuses such as `200`, or `200,3xx`")
    return ranges


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UsersDocument(_Document):
    """``[[groups]]``: one group of users. ``share``: of the load, as its part of the sum of all shares.

    ``delay``: what the way to the server and back adds to each time; ``source``: an address of this machine;
    ``headers``: of its requests, each in place of those of that name.
    """

    name: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,60}$")]
    share: Annotated[float, Field(gt=0, le=1e8, strict=True)] = 1.0
    delay: Wait = 0
    source: Annotated[str, AfterValidator(_checked_address)] | None = None
    headers: Mapping[
        Annotated[str, AfterValidator(_checked_name)], Annotated[str, AfterValidator(_checked_value)]
    ] = Field(default_factory=dict)


def _checked_groups(groups: Sequence[UsersDocument]) -> Sequence[UsersDocument]:
    names = [one.name for one in groups]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"expected a name of its own for each; two are called `{twice[0]}`")
    return groups


Groups = Annotated[
    tuple[UsersDocument, ...], Field(min_length=2, max_length=MAX_GROUPS), AfterValidator(_checked_groups)
]


class GroupsDocument(_Document):
    """What a file of ``--groups`` says."""

    groups: Groups


class SandboxDocument(_Document):
    """``[sandbox]``: the limits of each server: CPUs, memory as ``512MB``, processes and threads.

    ``sysctl``: settings of the kernel in the subject's network. ``kernel``: settings of the kernel by the
    name of a table in ``[kernels]``, or ``as-found``. A list of values is a factor. ``kind``: the sandbox,
    unless one is typed; null: the strongest that works without an engine.
    """

    kind: SandboxKind | None = None
    cpus: Annotated[float | tuple[str, ...] | None, PlainValidator(_as_cpus)] = None
    memory: Annotated[int | tuple[str, ...] | None, PlainValidator(_as_memory)] = None
    pids: Annotated[int | tuple[str, ...] | None, PlainValidator(_as_pids)] = None
    sysctl: Mapping[str, Chosen] = Field(default_factory=dict)
    kernel: Chosen | None = None

    @property
    def choices(self) -> dict[str, Choice]:
        """What is set, by name."""
        limits = {"cpus": self.cpus, "memory": self.memory, "pids": self.pids, "kernel": self.kernel}
        known = {name: _as_value(limit) for name, limit in limits.items() if limit is not None}
        return {**known, **{f"{SYSCTL}.{name}": choice for name, choice in self.sysctl.items()}}


def _as_value(limit: float | Choice) -> Choice:
    return f"{limit:g}" if isinstance(limit, float) else limit


class SubjectDocument(_Document):
    """``[[subjects]]``: every server in the list with every app in the list.

    A server's name may end in a frontend: ``starman@nginx``. ``settings`` are of the servers, ``frontend`` of
    their frontends, ``sandbox`` what differs from the study's, ``env`` variables of the app; a list of values
    is a factor, and makes a subject of each value. ``added``: the experiment that is repeated did not have
    them, so no claim compares with them unless it names them. ``as_of``: the subject that this one is, with
    the software of the experiment's time; it is measured where a profile has ``of_the_time``. ``profiles``:
    those that measure them; empty: all.
    """

    server: Names
    app: Names
    interface: Interface | None = None
    settings: Mapping[str, Chosen] = Field(default_factory=dict)
    frontend: Mapping[str, Chosen] = Field(default_factory=dict)
    sandbox: SandboxDocument = SandboxDocument()
    env: Mapping[Annotated[str, Field(pattern=VARIABLE)], Chosen] = Field(default_factory=dict)
    added: bool = False
    as_of: str = ""
    profiles: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every server with every app, by their names."""
        return tuple(product(self.server, self.app))

    def is_in(self, name: str, profile: "ProfileDocument") -> bool:
        """Return whether a profile measures these subjects."""
        return (not self.profiles or name in self.profiles) and (profile.of_the_time or not self.as_of)


class _Lengths(_Document):
    """Times that a profile sets for all loads, or for one of them."""

    duration: Duration | None = None
    warmup: Wait | None = None
    timeout: Duration | None = None
    connect_timeout: Duration | None = None
    grace: Duration | None = None


class PathDocument(_Document):
    """A path of a mix; its share is its weight, divided by the sum of all weights."""

    path: Annotated[str, AfterValidator(_checked_path)]
    weight: Annotated[float, Field(allow_inf_nan=False)] = 1.0


def _as_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _as_order(value: object) -> object:
    return value.replace("-", "_") if isinstance(value, str) else value


class WorkloadDocument(_Lengths):
    """``[[workloads]]``: one load, or several that differ in connections, rate, streams or generator.

    ``name``: profiles refer to it. ``subjects``: globs of the subjects' names that get this load.
    ``engines``: the generators, by name or as a command of the user's own; empty: Prony's own, as set on the
    command line; ``threads``: of each.
    ``streams``: requests at once on each connection, one or several numbers; more than one only over HTTP/2.
    ``headers`` are sent in addition to those of the app's contract. ``paths``: several in place of ``path``,
    a mix: as ``{path = "/", weight = 9}``, or a path alone, whose weight is 1.
    ``requests_from``, ``data``, ``order``: files of requests, or of values for templates in paths,
    headers and bodies, as the options of these names; a relative name is from the study's folder.
    ``method``, ``body``, ``form``: of the request, in place of those of the app's contract, as the options of
    these names; what its replies must be is then ``expect_status`` alone.
    ``connection_requests``, ``connection_age``: a connection ends after so many requests, or with the first
    reply after this time. ``follow``: so many redirects in a row. ``groups``: the users who send it.
    """

    name: Name | None = None
    subjects: Names = ("*",)
    loop: Literal["open", "closed"]
    rate: Rates | None = None
    connections: Counts | None = None
    streams: Streams = (1,)
    arrivals: Arrivals = Arrivals.CONSTANT
    requests: PositiveInt | None = None
    keep_alive: bool = True
    connection_requests: PositiveInt | None = None
    connection_age: Duration | None = None
    path: Annotated[str, Field(pattern=r"^/[!-~]*$")] | None = None
    paths: tuple[Annotated[PathDocument, BeforeValidator(_as_path)], ...] = ()
    headers: Mapping[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")], Annotated[str, Field(pattern=r"^[ -~]*$")]
    ] = Field(default_factory=dict)
    requests_from: FileName | None = None
    data: FileName | None = None
    method: Annotated[str, AfterValidator(_checked_method)] | None = None
    body: Annotated[str, Field(max_length=MIB)] | None = None
    form: tuple[Annotated[str, Field(pattern=r"^[^=\x00]+=[^\x00]*$")], ...] = ()
    follow: Annotated[int, Field(ge=0, le=MAX_HOPS)] = 0
    groups: Groups | None = None
    expect_status: Annotated[tuple[tuple[int, int], ...], BeforeValidator(_as_statuses)] | None = None
    order: Annotated[RequestOrder, BeforeValidator(_as_order)] | None = None
    engines: Generators = ()
    threads: Annotated[int, Field(gt=0, le=MAX_THREADS)] | None = None

    def is_for(self, subject: str) -> bool:
        """Return whether the subject of this name gets this load."""
        return any(is_of(subject, pattern) for pattern in self.subjects)

    @model_validator(mode="after")
    def _loop_has_its_fields(self) -> "WorkloadDocument":
        if self.loop == "open" and self.rate is None:
            raise ValueError("an open loop needs `rate`, in requests per second")
        if self.loop == "closed" and self.connections is None:
            raise ValueError("a closed loop needs `connections`")
        if self.loop == "closed" and self.rate is not None:
            raise ValueError("a closed loop has no `rate`: the server sets it")
        return self

    @model_validator(mode="after")
    def _kept_connections_are_kept(self) -> "WorkloadDocument":
        limits = ("connection_requests", "connection_age")
        of_kept = [name for name in limits if getattr(self, name) is not None]
        of_kept += ["streams"] if self.streams != (1,) else []
        if of_kept and not self.keep_alive:
            raise ValueError(
                f"`{of_kept[0]}` needs connections that are kept: leave out `keep_alive = false`"
            )
        return self

    @model_validator(mode="after")
    def _paths_are_a_mix(self) -> "WorkloadDocument":
        if not self.paths:
            return self
        if self.path is not None:
            raise ValueError("`path` and `paths` exclude each other")
        if fault := fault_of_mix(Mix(self.mix)):
            raise ValueError(f"`paths`: expected {fault[0]}, found `{fault[1]}`")
        return self

    @model_validator(mode="after")
    def _requests_are_of_one_file(self) -> "WorkloadDocument":
        if self.file is None:
            if self.order is not None:
                raise ValueError("`order` only works with `requests_from` or `data`")
            return self
        of_one = {"data": self.data, "paths": self.paths, "path": self.path}
        if self.requests_from is not None and (other := next((n for n, one in of_one.items() if one), None)):
            raise ValueError(
                f"`requests_from` and `{other}` exclude each other: its lines say what is asked for"
            )
        if self.data is not None and self.order is RequestOrder.WEIGHTED:
            raise ValueError('`order = "weighted"` only works with `requests_from`: rows of data are equal')
        return self

    @model_validator(mode="after")
    def _one_generator_sends_it(self) -> "WorkloadDocument":
        if self.form and self.body is not None:
            raise ValueError("`form` and `body` exclude each other: a request has one body")
        what = "sends no requests from a file" if self.file else "knows no groups of users"
        if (self.file or self.groups) and (others := [one for one in self.engines if one != "prony"]):
            raise ValueError(f"`{others[0]}` {what}; only Prony's own engine does")
        return self

    @property
    def file(self) -> str | None:
        """The file that its requests are from, if any."""
        return self.requests_from or self.data

    @property
    def needs_files(self) -> bool:
        """Whether a part of it is read from the study's folder, or made of what is."""
        return bool(self.file or self.form) or self.body is not None

    @property
    def mix(self) -> tuple[MixPath, ...]:
        """The paths that requests ask for, where the load has any of its own."""
        alone = () if self.path is None else (MixPath(self.path),)
        return tuple(MixPath(one.path, one.weight) for one in self.paths) or alone


class WorkloadChange(_Lengths):
    """``[profiles.NAME.workloads.LOAD]``: what a profile changes in one load.

    ``skip``: the profile leaves this load out.
    """

    connections: Counts | None = None
    rate: Rates | None = None
    streams: Streams | None = None
    requests: PositiveInt | None = None
    engines: Generators | None = None
    skip: bool = False


class CrossCheckDocument(_Document):
    """``[profiles.NAME.cross_check]``: generators that measure the profile's cells once more, beside Prony's
    own; ``connections`` and ``rate``: under these loads only.
    """

    engines: Annotated[Generators, Field(min_length=1)]
    connections: Counts | None = None
    rate: Rates | None = None

    @model_validator(mode="after")
    def _checks_something(self) -> "CrossCheckDocument":
        if "prony" in self.engines or len(set(self.engines)) < len(self.engines):
            raise ValueError("generators other than `prony`, each once")
        return self

    @property
    def under(self) -> Mapping[str, tuple[float, ...]]:
        """The loads, by the keys of `prony.model.plan.Cell.load`; empty for all."""
        named = {"connections": self.connections, "rate": self.rate}
        return {name: values for name, values in named.items() if values is not None}


class ProfileDocument(_Lengths):
    """``[profiles.NAME]``: how long and how often; ``workloads`` changes single loads by name.

    ``as_published``: how often the original measured, in words, where that differs from ``blocks``.
    ``pilot``: how long a warm-up to look for before the first block at most; ``0s``: do not look.
    ``of_the_time``: measure the subjects ``as_of`` too. ``cross_check``: unless others are typed.
    ``share_cpus``: the server may use all CPUs, the generator's too.
    """

    blocks: PositiveInt
    as_published: str = ""
    duration: Duration
    warmup: Wait = 0
    timeout: Duration = 10 * SECOND_NS
    pilot: Wait | None = None
    of_the_time: bool = False
    share_cpus: bool = False
    cross_check: CrossCheckDocument | None = None
    connections: Counts | None = None
    rate: Rates | None = None
    workloads: Mapping[str, WorkloadChange] = Field(default_factory=dict)


class DesignDocument(_Document):
    """``[design]``: how the figures will be judged, fixed before the run, as `prony.model.plan.Design`."""

    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    primary: Load = Field(default_factory=dict)
    trimmed_mean: bool = False
    machine_memory: bool = False


class CalibrationDocument(_Document):
    """``[calibration]``: the load of the reference server, which shows a drift of the machine."""

    rate: Rate = 1000.0
    duration: Duration = 2 * SECOND_NS
    warmup: Wait = 500 * MILLISECOND_NS
    timeout: Duration = 2 * SECOND_NS


class NeedsDocument(_Document):
    """``needs``: what a test of the claim needs, as `prony.model.plan.Needs`."""

    server_cpus: PositiveInt = 1
    generator_cpus: PositiveInt = 1
    connections: Annotated[int, Field(ge=0)] = 0
    blocks: PositiveInt = 5
    duration: Wait = 0
    timeout: Wait = 0
    requests: Annotated[int, Field(ge=0)] = 0


class ClaimDocument(_Document):
    """``[[claims]]``: a statement of the experiment that is repeated, as `prony.model.plan.Claim`.

    Without ``among`` it is about all subjects that are not `added`.
    """

    name: Name
    text: Annotated[str, Field(min_length=1)]
    kind: ClaimKind
    metric: str
    subject: str = "*"
    against: str = "*"
    engine: str = "*"
    role: str = ""
    load: Load = Field(default_factory=dict)
    against_engine: str = ""
    against_load: Load = Field(default_factory=dict)
    low: Bound | None = None
    high: Bound | None = None
    failure: str | None = None
    needs: NeedsDocument = NeedsDocument()
    tolerance: Annotated[float, Field(ge=0, lt=1)] | None = None
    among: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    place: str = ""


class SourceDocument(_Document):
    """``[[sources]]``: where the experiment was published; what is not known stays empty."""

    title: Annotated[str, Field(min_length=1)]
    author: str = ""
    date: str = ""
    address: str = ""
    about: str = ""


def _frontend(server: str) -> str:
    # A variant's name begins with its entry's, which has no hyphen.
    return server.partition("@")[2].partition("-")[0]


class AppDocument(_Document):
    """``[apps.NAME]``: an app of the user's own, by the keys that are options of ``prony run``.

    ``dir``: its folder, from that of the study's file, as are ``requirements`` and ``python``. ``command``: a
    program that listens on ``{port}``, which the server ``yours`` is, in place of the command of today or of
    ``current``; without ``app`` there is no other server. ``env``: variables for it, whose values the archive
    keeps with the text of the file.
    """

    app: Line | None = None
    dir: FileName = "."
    interface: Interface | None = None
    current: Line | None = None
    command: Line | None = None
    requirements: FileName | None = None
    python: FileName | None = None
    env: Mapping[Annotated[str, Field(pattern=VARIABLE)], Annotated[str, Field(max_length=MIB)]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _names_one_app(self) -> "AppDocument":
        if self.app is None and self.command is None:
            raise ValueError("expected `app`, such as `shop:app`, or `command`, such as `./shop {port}`")
        of_app = ("interface", "current", "requirements", "python")
        if self.app is None and (wrong := next((one for one in of_app if getattr(self, one)), None)):
            raise ValueError(f"expected `app` beside `{wrong}`: a `command` has no use for it")
        for one, other in (("command", "current"), ("python", "requirements")):
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"expected `{one}` or `{other}`, not both")
        return self


class StudyDocument(_Document):
    """What a study's file says.

    ``source``: the experiment in a sentence; ``sources``: its publications. ``originals``: the file beside it
    with the published figures. ``notes``: how it differs from the experiment that it repeats.
    """

    format: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    question: str = ""
    source: str = ""
    sources: tuple[SourceDocument, ...] = ()
    notes: tuple[str, ...] = ()
    originals: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$")] | None = None
    sandbox: SandboxDocument = SandboxDocument()
    kernels: Mapping[Name, Mapping[str, Value]] = Field(default_factory=dict)
    apps: Mapping[Name, AppDocument] = Field(default_factory=dict)
    design: DesignDocument = DesignDocument()
    calibration: CalibrationDocument | None = None
    subjects: tuple[SubjectDocument, ...] = Field(min_length=1)
    workloads: tuple[WorkloadDocument, ...] = Field(min_length=1)
    claims: tuple[ClaimDocument, ...] = ()
    profiles: Mapping[str, ProfileDocument] = Field(min_length=1)

    @property
    def of_original(self) -> tuple[str, ...]:
        """The names of the subjects that the original had; empty where all are."""
        own = [part for part in self.subjects if not part.added and not part.as_of]
        if len(own) == len(self.subjects):
            return ()
        return tuple(name for part in own for name in self.names(part))

    def choices(self, part: SubjectDocument, server: str) -> Choices:
        """Return what is asked of the settings of one server of ``part``."""
        return Choices(
            server=part.settings,
            frontend=part.frontend if "@" in server else {},
            sandbox={**self.sandbox.choices, **part.sandbox.choices},
            kernels=self.kernels,
            variables=part.env,
        )

    def names(self, part: SubjectDocument) -> tuple[str, ...]:
        """Return the names of the subjects of ``part``: ``starman[workers=5]@nginx+hello``."""
        return tuple(
            name_with(f"{server}+{app}", {key: chosen[key] for key in factors_of(by_key)})
            for server, app in part.pairs
            for by_key in [self.choices(part, server).by_key(_frontend(server))]
            for chosen in combinations(by_key)
        )

    def profile(self, name: str | None) -> tuple[str, ProfileDocument]:
        """Return the profile of this name; without a name ``quick``, else the first."""
        chosen = name or ("quick" if "quick" in self.profiles else next(iter(self.profiles)))
        if chosen not in self.profiles:
            raise UsageError(
                f"study `{self.name}` has no profile `{chosen}`; it has {', '.join(self.profiles)}"
            )
        return chosen, self.profiles[chosen]

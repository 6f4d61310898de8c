"""The load of a trial, and the generator that makes it.

>>> Workload(ClosedLoop(100), CountStop(5000)).describe()
'closed loop, 100 connections, 5000 requests'
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import ClassVar

from prony.core.units import SECOND_NS, seconds
from prony.model.exchange import Check, Request, is_header_value, is_path
from prony.model.json_codec import OPTIONAL, at

LOCAL = "local:"
"""What the name of several built-in generators on this machine begins with."""
FLEET = rf"^{LOCAL}([1-9]|[1-5][0-9]|6[0-4])(@([1-9]|[1-9][0-9])%)?$"
"""The name of a generator that consists of several built-in ones on this machine: of so many, 1 to 64; with
at most so much of a CPU for each, 1 to 99 %.
"""
ELSEWHERE = "fleet"
"""The name of one that consists of several on machines of the user's."""


class Arrivals(StrEnum):
    """When the requests of an open loop are due."""

    CONSTANT = "constant"
    POISSON = "poisson"


class Pacing(StrEnum):
    """How the generator waits for a due time. A study has one, so that its loads can be compared."""

    PRECISE = "precise"
    """It sleeps until shortly before, then spins: what it sends is not late."""
    ECONOMICAL = "economical"
    """It only sleeps: it leaves its CPU to others, and is as late as a sleep ends late."""

    @classmethod
    def usual(cls, *, shares_cpus: bool) -> "Pacing":
        """Return the pacing where none is asked for: what spins on the server's CPUs slows the server."""
        return cls.ECONOMICAL if shares_cpus else cls.PRECISE


MAX_CONNECTIONS = 500_000
"""Twice as many have been opened on one machine of 24 GiB, both ends there."""
MAX_RATE_PER_S = float(SECOND_NS)
"""One request a nanosecond, the unit of time."""
MAX_STREAMS = 10_000
"""The engine's most; servers take a hundred or so."""


MAX_GROUPS = 32
"""The engine's most groups of users: each has a thread."""


MAX_HOPS = 100
"""The engine's most; browsers stop at 20 redirects in a row."""


@dataclass(frozen=True, slots=True)
class ConnectionStage:
    """A part of the window in which the number of connections stays, or changes evenly to another."""

    duration_ns: int
    from_connections: int
    to_connections: int


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Each of ``connections`` sends its next request when the last reply has arrived: the server sets the
    pace.

    With ``stages``, which make up the window, there are as many as these say; ``connections`` is the most.
    """

    KIND: ClassVar[str] = "closed"
    connections: int
    stages: tuple[ConnectionStage, ...] = field(default=(), metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class RateStage:
    """A part of the window in which the rate stays, or changes evenly from one to another."""

    duration_ns: int
    from_per_s: float
    to_per_s: float


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests are due at ``rate_per_s`` whatever the server does.

    They go over at most ``connections``, opened on demand; null: as many as can be outstanding. With
    ``stages``, which make up the window, the rate follows them, and ``rate_per_s`` is the highest of theirs.
    """

    KIND: ClassVar[str] = "open"
    rate_per_s: float
    arrivals: Arrivals = Arrivals.CONSTANT
    seed: int = 1
    connections: int | None = None
    stages: tuple[RateStage, ...] = field(default=(), metadata=OPTIONAL)


Loop = ClosedLoop | OpenLoop


@dataclass(frozen=True, slots=True)
class DurationStop:
    """The window ends after this time."""

    KIND: ClassVar[str] = "duration"
    duration_ns: int


@dataclass(frozen=True, slots=True)
class CountStop:
    """The window ends after exactly this many requests."""

    KIND: ClassVar[str] = "requests"
    requests: int


Stop = DurationStop | CountStop


MAX_PATHS = 100
"""The engine's most: each path has latencies of its own."""
OTHERS = "others"
"""What requests of a file count as whose paths are beyond the most."""
_WEIGHTS = (1e-4, 1e8)
_PATHS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class MixPath:
    """A path of a mix. Its share of the requests is its weight, divided by the sum of all weights."""

    path: str
    weight: float = 1.0

    @property
    def typed(self) -> str:
        """The path with its weight, as it may be typed.

        >>> MixPath("/", 9).typed, MixPath("/?page=2", 0.5).typed
        ('/=9', '/?page=2 =0.5')
        """
        return f"{self.path}{' ' if '?' in self.path else ''}={self.weight:.6g}"


class RequestOrder(StrEnum):
    """The order in which the requests of a file are sent."""

    IN_ORDER = "in_order"
    SHUFFLED = "shuffled"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class RequestFile:
    """Where the requests of a load are: compiled from what ``name`` says, so many, with this digest."""

    name: str
    sha256: str
    requests: int
    order: RequestOrder

    def describe(self) -> str:
        """Return the file in a few words.

        >>> RequestFile("urls.csv", "", 1000, RequestOrder.IN_ORDER).describe()
        '1000 requests from urls.csv, in order'
        """
        how = {
            RequestOrder.IN_ORDER: "in order",
            RequestOrder.SHUFFLED: "shuffled",
            RequestOrder.WEIGHTED: "by their weights",
        }
        return f"{self.requests} requests from {self.name}, {how[self.order]}"


@dataclass(frozen=True, slots=True)
class Mix:
    """The paths that the requests of a load ask for, in an order that ``seed`` sets: the same for every
    subject, whatever it answers. With a ``file``, they are what its requests are counted as.
    """

    paths: tuple[MixPath, ...]
    seed: int = 1
    file: RequestFile | None = field(default=None, metadata=OPTIONAL)

    def share(self, path: MixPath) -> float:
        """Return the share of the requests that ask for a path.

        >>> Mix((MixPath("/", 9), MixPath("/cart"))).share(MixPath("/cart"))
        0.1
        """
        return path.weight / sum(one.weight for one in self.paths)

    def describe(self) -> str:
        """Return the paths with their weights; of many the first.

        >>> Mix(tuple(MixPath(f"/{n}") for n in range(6))).describe()
        '/0=1 /1=1 /2=1 /3=1 and 2 more'
        """
        if self.file is not None:
            return self.file.describe()
        shown = " ".join(one.typed for one in self.paths[:_PATHS_SHOWN])
        more = len(self.paths) - _PATHS_SHOWN
        return f"{shown} and {more} more" if more > 0 else shown


def fault_of_mix(mix: Mix) -> tuple[str, object] | None:
    """Return what was expected of a mix, and what it has instead; None: it is sound.

    >>> fault_of_mix(Mix((MixPath("/"), MixPath("/cart", 0))))
    ('a weight from 0.0001 to 100000000', 0)
    """
    paths = [one.path for one in mix.paths]
    if mix.file is not None:
        return _fault_of_file(mix.file, mix.paths)
    if not 2 <= len(paths) <= MAX_PATHS:
        return f"2 to {MAX_PATHS} paths", len(paths)
    for number, one in enumerate(mix.paths):
        if not is_path(one.path):
            return "a path that starts with `/`, without blanks", one.path
        if one.path in paths[:number]:
            return "each path once", one.path
        if not is_weight(one.weight):
            return "a weight from 0.0001 to 100000000", one.weight
    return None


@dataclass(frozen=True, slots=True)
class UserGroup:
    """Users who are alike, such as those of one region. Their share of the load is ``weight``, divided by the
    sum of all weights.

    ``headers``: of their requests, each in place of those of that name. ``source``: the address of this
    machine that their connections come from; null: the kernel chooses. ``delay_ns``: what the way to the
    server and back adds to the time of each request.
    """

    name: str
    weight: float
    headers: tuple[tuple[str, str], ...] = field(default=(), metadata=OPTIONAL)
    source: str | None = field(default=None, metadata=OPTIONAL)
    delay_ns: int = field(default=0, metadata=OPTIONAL)


def fault_of_groups(groups: Sequence[UserGroup]) -> tuple[str, object] | None:
    """Return what was expected of the groups of a load, and what they have instead; None: they are sound.

    >>> fault_of_groups((UserGroup("far", 1),))
    ('2 to 32 groups', 1)
    """
    names = [one.name for one in groups]
    if groups and not 2 <= len(groups) <= MAX_GROUPS:
        return f"2 to {MAX_GROUPS} groups", len(groups)
    for one in groups:
        headers = [text for header in one.headers for text in header]
        if not one.name or not all(map(is_header_value, (one.name, one.source or "", *headers))):
            return "a name, and headers of one line each", one.name
        if names.count(one.name) > 1:
            return "each name once", one.name
        if not 0 < one.weight < float("inf") or one.delay_ns < 0:
            return "a weight above 0, and no delay below", one.weight
    return None


def is_weight(value: float) -> bool:
    """Return whether a path, or a request of a file, may have this weight."""
    return _WEIGHTS[0] <= value <= _WEIGHTS[1]


def _fault_of_file(file: RequestFile, paths: Sequence[MixPath]) -> tuple[str, object] | None:
    """As `fault_of_mix`, of what the requests of a file are counted as."""
    if not 1 <= len(paths) <= MAX_PATHS or len({one.path for one in paths}) < len(paths):
        return f"1 to {MAX_PATHS} names, each once", len(paths)
    for one in paths:
        if not one.path or not is_header_value(one.path):
            return "a name on one line", one.path
        if not 0 < one.weight < float("inf"):
            return "a weight above 0", one.weight
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        return "64 hexadecimal digits", file.sha256
    return None if file.requests >= 1 and file.name else ("a name, and at least one request", file.requests)


_FOLLOWED = ((200, 299),)
_EXPECTED = tuple(one.name for one in fields(Check) if one.name != "request")


def _more(name: str) -> Mapping[str, object]:
    """Return metadata of a check that is left out of the JSON where nothing is checked."""
    return {**at("expect", name), **OPTIONAL}


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of a trial: what is sent, when, for how long, and which replies are valid.

    *Units*: all ``_ns`` are nanoseconds. ``timeout_ns`` counts from the intended time (open) or from
    sending (closed). With ``connect_timeout_ns``, the longest wait for a connection, it always counts from
    sending; null: it is for both. ``expect_statuses``: ranges, both ends included; none and no
    ``expect_status``: 200 to 399. A null value of a header: any. ``mix``: the paths in place of the
    request's, which is then the first of them; null: one path. ``streams``: how many requests a connection
    has at once, more than one only over HTTP/2. A connection ends after ``connection_requests``, and with the
    first reply after ``connection_age_ns``; null: it does not. ``follow``: how many redirects in a row a
    request follows. ``groups``: who sends the requests; none: all users are alike.
    """

    loop: Loop
    stop: Stop
    request: Request = Request()
    warmup_ns: int = 0
    timeout_ns: int = 10 * SECOND_NS
    grace_ns: int = 10 * SECOND_NS
    expect_status: int | None = field(default=None, metadata=at("expect", "status"))
    expect_body: bytes | None = field(default=None, metadata=at("expect", "body"))
    expect_statuses: tuple[tuple[int, int], ...] = field(default=(), metadata=_more("statuses"))
    expect_headers: tuple[tuple[str, str | None], ...] = field(default=(), metadata=_more("headers"))
    expect_body_contains: tuple[bytes, ...] = field(default=(), metadata=_more("body_contains"))
    expect_body_sha256: str | None = field(default=None, metadata=_more("body_sha256"))
    mix: Mix | None = field(default=None, metadata=OPTIONAL)
    streams: int = field(default=1, metadata=OPTIONAL)
    connect_timeout_ns: int | None = field(default=None, metadata=OPTIONAL)
    connection_requests: int | None = field(default=None, metadata=OPTIONAL)
    connection_age_ns: int | None = field(default=None, metadata=OPTIONAL)
    follow: int = field(default=0, metadata=OPTIONAL)
    groups: tuple[UserGroup, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def longest_ns(self) -> int:
        """The longest that a request can take.

        >>> Workload(ClosedLoop(1), CountStop(1), timeout_ns=30, connect_timeout_ns=10).longest_ns
        40
        """
        return self.timeout_ns + (self.connect_timeout_ns or 0)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests that are sent, one of each path; of a file the first."""
        if self.mix is None or self.mix.file is not None:
            return (self.request,)
        return tuple(replace(self.request, path=one.path) for one in self.mix.paths)

    def asking_for(self, paths: Sequence[MixPath], seed: int = 1) -> "Workload":
        """Return the load with these paths: with one as its request's, with more as a mix."""
        request = replace(self.request, path=paths[0].path)
        return replace(self, request=request, mix=Mix(tuple(paths), seed) if len(paths) > 1 else None)

    def expecting(self, check: Check) -> "Workload":
        """Return the load with what replies to it must be, as ``check`` says of its own request's."""
        wanted = {name: getattr(check, name) for name in _EXPECTED}
        return replace(self, **{f"expect_{name}": value for name, value in wanted.items()})

    def following(self, hops: int) -> "Workload":
        """Return the load with so many redirects in a row followed: one that is not followed to its end is no
        success, unless it is said what is.

        >>> Workload(ClosedLoop(1), CountStop(1)).following(3).expect_statuses
        ((200, 299),)
        """
        says = not hops or self.expect_status is not None or self.expect_statuses
        statuses = self.expect_statuses if says else _FOLLOWED
        return replace(self, follow=hops, expect_statuses=statuses)

    def describe_request(self) -> str:
        """Return what is asked for, such as ``GET /``, or of a mix ``GET /=9 /cart=1``."""
        if self.mix and self.mix.file:
            return self.mix.describe()
        return f"{self.request.method} {self.mix.describe() if self.mix else self.request.path}"

    def describe(self) -> str:
        """Return the load in a few words, such as ``closed loop, 100 connections, 30 s``."""
        match self.loop:
            case ClosedLoop(connections, stages) if stages:
                load = f"closed loop, {len(stages)} stages of up to {connections} connections"
            case ClosedLoop(connections):
                load = f"closed loop, {connections} connection{'s' if connections != 1 else ''}"
            case OpenLoop(rate_per_s, arrivals, stages=stages) if stages:
                load = f"open loop, {len(stages)} stages of up to {rate_per_s:g}/s {arrivals}"
            case OpenLoop(rate_per_s, arrivals):
                load = f"open loop, {rate_per_s:g}/s {arrivals}"
        load = ", ".join((load, *self._details()))
        match self.stop:
            case DurationStop(duration_ns):
                return f"{load}, {seconds(duration_ns):g} s"
            case CountStop(requests):
                return f"{load}, {requests} requests"

    def _details(self) -> Iterator[str]:
        if self.streams > 1:
            yield f"{self.streams} streams each"
        if self.mix is not None:
            file = self.mix.file
            yield file.describe() if file else f"mix of {len(self.mix.paths)} paths"
        if self.groups:
            yield f"{len(self.groups)} groups of users"
        if not self.request.keep_alive:
            yield "a connection for each request"
        if self.connection_requests is not None:
            yield f"connections of {self.connection_requests} requests"
        if self.connection_age_ns is not None:
            yield f"connections of {seconds(self.connection_age_ns):g} s"
        if self.follow:
            yield f"up to {self.follow} redirects followed"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which generator, with how many threads. ``prony`` is the built-in one, ``local:4`` four of it,
    ``local:4@5%`` four that have 5 % of a CPU each, and ``fleet`` as many as the machines have that the user
    names when the study runs.

    ``command``: of a program of the user's own, with placeholders; empty: the generator is one that Prony
    knows by its name.
    """

    name: str = "prony"
    threads: int = 1
    pacing: Pacing = Pacing.PRECISE
    command: str = field(default="", metadata=OPTIONAL)

    @property
    def is_built_in(self) -> bool:
        """Whether Prony's own engine sends the load, alone or as a fleet.

        >>> EngineChoice().is_built_in, EngineChoice("local:4").is_built_in, EngineChoice("wrk").is_built_in
        (True, True, False)
        """
        return self.name in ("prony", ELSEWHERE) or is_fleet(self.name)

    def named(self, text: str) -> "EngineChoice":
        """Return the choice with the generator of a name, or with the program of a command.

        >>> EngineChoice().named("./bin/my_load.py {url}").name
        'my-load'
        """
        if not is_own_generator(text):
            return replace(self, name=text, command="")
        program = next(word for word in text.split() if "/" in word)
        stem = program.rpartition("/")[2].partition(".")[0]
        name = "-".join(re.findall(r"[a-z0-9]+", stem.lower())) or "own"
        return replace(self, name=name, command=text)


def is_fleet(text: str) -> bool:
    """Return whether the name of a generator is that of several built-in ones on this machine.

    >>> is_fleet("local:4"), is_fleet("wrk")
    (True, False)
    """
    return re.fullmatch(FLEET, text) is not None


def is_own_generator(text: str) -> bool:
    """Return whether a text is a program of the user's, not the name of a generator: it has a path.

    >>> is_own_generator("./my_load.py"), is_own_generator("wrk")
    (True, False)
    """
    return "/" in text

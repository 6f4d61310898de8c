"""The types of an external load generator: what it can do, how to start it, and what its output says.

Pure.

>>> Reported("answered", 2, 1, 2.0, 3, {"50": 2}).percentiles["50"]
2
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prony.core.units import MILLISECOND_NS, SECOND_NS
from prony.model.address import Address, AddressKind, Wire
from prony.model.json_codec import Json
from prony.model.recording import Completed
from prony.model.workload import Arrivals, CountStop, DurationStop, OpenLoop, Workload


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a tool can do; other loads are refused before anything starts.

    ``whole_seconds``: its durations are rounded up to seconds. ``bodies``: it sends request bodies and other
    methods than GET and HEAD. ``even_counts``: a number of requests must be a multiple of its connections.
    ``reports_status``: it reports how many replies had which status. ``tls``: it verifies a server's
    certificate by an authority that it gets, and shakes hands in full each time. ``repeats``: it sends a
    header as often as it gets it, not its last value alone.
    """

    open: bool = False
    duration: bool = True
    count: bool = True
    without_keep_alive: bool = True
    bodies: bool = True
    whole_seconds: bool = False
    even_counts: bool = False
    reports_status: bool = True
    tls: bool = False
    repeats: bool = True


# Of an open loop that names none: these tools start a thread or reserve memory for each.
_MOST_CONNECTIONS = 1024


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a tool: the load, where it goes, and with how many threads. ``program``: its path."""

    program: str
    workload: Workload
    address: Address
    threads: int = 1

    @property
    def url(self) -> str:
        """The request."""
        return self.address.url + self.workload.request.path

    def authority(self, option: str) -> list[str]:
        """Return ``option`` and the file of the authority to believe; nothing without TLS."""
        asked = self.address.tls
        return [option, asked.ca_file] if asked and asked.ca_file else []

    @property
    def connections(self) -> int:
        """The largest number of connections."""
        return self.workload.loop.connections or _MOST_CONNECTIONS

    def length(self, *by_time: str) -> tuple[str, ...]:
        """Return ``-n`` and the number of requests, else the options that set the duration."""
        return ("-n", str(self.requests)) if self.requests else by_time

    def headers(self, option: str) -> list[str]:
        """Return the request's headers, each after ``option``."""
        headers = self.workload.request.headers
        return [part for name, value in headers for part in (option, f"{name}: {value}")]

    def body(self, option: str) -> list[str]:
        """Return ``option`` and the name of the file with the body; nothing without a body."""
        return [option, *self.files] if self.files else []

    @property
    def files(self) -> dict[str, bytes]:
        """The file with the body of the request, if there is one."""
        body = self.workload.request.body
        return {"body": body} if body else {}

    @property
    def duration_ns(self) -> int | None:
        """The duration; None: until the number of requests is reached."""
        return self.workload.stop.duration_ns if isinstance(self.workload.stop, DurationStop) else None

    @property
    def requests(self) -> int | None:
        """The number of requests; None: as many as fit into the duration."""
        return self.workload.stop.requests if isinstance(self.workload.stop, CountStop) else None

    @property
    def seconds(self) -> int:
        """Its duration in whole seconds, rounded up."""
        return -(-(self.duration_ns or 0) // SECOND_NS)

    @property
    def milliseconds(self) -> int:
        """Its duration in whole milliseconds, rounded up."""
        return -(-(self.duration_ns or 0) // MILLISECOND_NS)

    @property
    def timeout_s(self) -> int:
        """The time-out in whole seconds, rounded up."""
        return -(-self.workload.timeout_ns // SECOND_NS)

    @property
    def timeout_ms(self) -> int:
        """The time-out in whole milliseconds, rounded up."""
        return -(-self.workload.timeout_ns // MILLISECOND_NS)


@dataclass(frozen=True, slots=True)
class Order:
    """What to start: commands, one after the other, in a folder with ``files``; only the first sends load.

    Afterwards the text of the files in ``reads`` is collected.
    """

    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of all commands, and the files that were read.

    ``length_ns``: of the run, from its start to the end of its time; ``counted``: what the reference server
    counted meanwhile, null where the load went to another one.
    """

    stdout: str
    stderr: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    length_ns: int = 0
    counted: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """A tool's own summary of its latencies. *Units*: nanoseconds; percentiles by name ("99.9").

    ``population``: which requests it covers: ``ok``, ``answered`` (whatever the status) or ``all`` (including
    failures without a reply). Null: not reported.
    """

    population: str
    count: int
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    percentiles: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """A tool's report, in the terms of a Recording. Null: not reported.

    ``failed``: requests by class of the account, without empty classes. ``duration_ns``: the time over which
    its own rates are computed. ``caveats``: caveats of this run. A tool that opens a window of its own and
    keeps every latency reports when the window opened, what ended in it, and a distribution with a count of
    each microsecond instead of a histogram.
    """

    duration_ns: int
    ok: int
    bad_status: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    latency: Reported | None = None
    received_bytes: int | None = None
    body_bytes: int | None = None
    caveats: tuple[str, ...] = ()
    open_ns: int | None = None
    completed: Completed | None = None
    latencies: Json | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``get``: the command that installs it; ``caveats``: what it always counts or times wrongly.

    ``ask_version``: arguments that make it print its version. ``speaks``: it prints events itself, and has a
    window and a warm-up of its own. ``ends``: it knows when its time is over.
    """

    name: str
    title: str
    get: str
    ask_version: tuple[str, ...]
    abilities: Abilities
    order: Callable[[Job], Order]
    parse: Callable[[Output, Job], Measured]
    caveats: tuple[str, ...]
    speaks: bool = False
    compares_bodies: bool = False
    ends: bool = True


def refusal(tool: Tool, workload: Workload, address: Address) -> str | None:
    """Return why a tool cannot send a load, as one sentence; None: it can."""
    return next((f"{tool.name} {reason}" for reason in _reasons(tool, workload, address)), None)


def _reasons(tool: Tool, workload: Workload, address: Address) -> tuple[str, ...]:
    can, request = tool.abilities, workload.request
    plain = request.method in {"GET", "HEAD"} and not request.body
    return tuple(
        reason
        for reason, holds in (
            (f"speaks HTTP only, not {address.wire}", address.wire is not Wire.HTTP),
            (
                "is only used without TLS: it has no option for an authority",
                _is_unsafe(can, address),
            ),
            ("does not take up earlier sessions of TLS", address.tls and address.tls.resumption and can.tls),
            ("cannot choose the cipher suites of TLS", address.tls and address.tls.ciphers),
            ("is only used with certificates that are verified", address.tls and not address.tls.verify),
            ("is only used without a certificate of its own", address.tls and address.tls.certificate_file),
            ("cannot connect to a Unix socket", address.kind is AddressKind.UNIX),
            ("has no open loop", isinstance(workload.loop, OpenLoop) and not can.open),
            ("has no Poisson arrivals", _is_poisson(workload)),
            ("cannot change its load in stages", bool(workload.loop.stages)),
            ("has no time-out for connecting alone", workload.connect_timeout_ns is not None),
            ("cannot send a mix of paths", workload.mix is not None),
            ("knows no groups of users", bool(workload.groups)),
            ("does not follow redirects here", bool(workload.follow)),
            (
                "does not end connections by a limit",
                workload.connection_requests or workload.connection_age_ns,
            ),
            ("cannot stop after a time", isinstance(workload.stop, DurationStop) and not can.duration),
            ("cannot stop after a number of requests", _has_count(workload) and not can.count),
            (
                "cannot send a number of requests that is not a multiple of its connections",
                _is_odd(tool, workload),
            ),
            ("always keeps connections open", not request.keep_alive and not can.without_keep_alive),
            (f"cannot send {request.method} with a body", not plain and not can.bodies),
            ("cannot send a header twice", not can.repeats and _has_twice(request.headers)),
            ("cannot check headers or parts of bodies", _checks_more(workload)),
            ("needs headers without line breaks", any("\n" in value for _, value in request.headers)),
        )
        if holds
    )


def _is_unsafe(can: Abilities, address: Address) -> bool:
    return address.tls is not None and not can.tls


def _checks_more(workload: Workload) -> bool:
    more = (workload.expect_statuses, workload.expect_headers, workload.expect_body_contains)
    return any(more) or workload.expect_body_sha256 is not None


def _has_twice(headers: Sequence[tuple[str, str]]) -> bool:
    return len({name.lower() for name, _ in headers}) < len(headers)


def _is_poisson(workload: Workload) -> bool:
    return isinstance(workload.loop, OpenLoop) and workload.loop.arrivals is Arrivals.POISSON


def _has_count(workload: Workload) -> bool:
    return isinstance(workload.stop, CountStop)


def _is_odd(tool: Tool, workload: Workload) -> bool:
    match workload.stop:
        case CountStop(requests):
            return tool.abilities.even_counts and requests % (workload.loop.connections or 1) != 0
        case DurationStop():
            return False

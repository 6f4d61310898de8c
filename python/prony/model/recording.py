"""What came of a load: a Recording, as every generator's border gives it and every archive holds it.

docs/reference/engine-wire.md says what each field means. Null: this generator does not measure it. Times are
nanoseconds; ``*_unix_ns`` are wall-clock stamps, other stamps CLOCK_MONOTONIC.

>>> decode_recording({"loop": "closed"})
Traceback (most recent call last):
prony.model.json_codec.ShapeError: recording.format: expected a whole number of at least 0, found nothing
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from prony.core.units import seconds
from prony.model.address import Behind, HttpVersion, Tls, Wire
from prony.model.facts import Fingerprint
from prony.model.json_codec import OPTIONAL, REST, ShapeError, at, decode
from prony.model.limit import GeneratorVerdict, Limit, Limited
from prony.model.shown import INTERNAL, shown
from prony.model.workload import Pacing, Workload, fault_of_groups, fault_of_mix


class LoopKind(StrEnum):
    """What decided when the next request went out: the last reply, or a schedule."""

    CLOSED = "closed"
    OPEN = "open"


class Population(StrEnum):
    """Of which requests a tool's own latencies are: valid replies, replies with any status, or all."""

    OK = "ok"
    ANSWERED = "answered"
    ALL = "all"


# --- what was asked for -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpokenWire:
    """What was spoken; ``modifier1``: the plugin of uWSGI that was asked; ``streams`` of HTTP/2: how many
    requests a connection had at once; ``version``: of HTTP/1, null for 1.1.
    """

    kind: Wire
    modifier1: int | None = field(default=None, metadata=OPTIONAL)
    streams: int | None = field(default=None, metadata=OPTIONAL)
    version: HttpVersion | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the load went. ``socket``: ``tcp``, or ``unix``, and then ``host`` is a path and ``port`` 0.
    ``others``: further addresses, to which connections went in turn. ``proxy``: the server, where the target
    is a proxy.
    """

    host: str
    port: int
    socket: str = "tcp"
    wire: SpokenWire = SpokenWire(Wire.HTTP)
    tls: Tls | None = field(default=None, metadata=OPTIONAL)
    others: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    proxy: Behind | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class GeneratorShare:
    """Which part of a load a generator has: number ``index``, from 0, ``of`` so many.

    ``start_ns``: when it was to start, by its machine's CLOCK_MONOTONIC.
    """

    index: int
    of: int
    start_ns: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Specification:
    """What the generator was asked for.

    ``cpus`` null: its threads were not pinned. ``share`` null: it had all of the load.
    """

    target: Target | None
    workload: Workload | None
    threads: int | None
    cpus: tuple[int, ...] | None
    pacing: Pacing | None
    ceiling_per_s: float | None = None
    share: GeneratorShare | None = field(default=None, metadata=OPTIONAL)


# --- what became of the requests --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CarriedIn:
    """Requests that were begun before the window opened and were open then, and how they ended.

    ``requests`` is the sum of ``answered``, ``failed`` and ``unanswered``; the last two by class, of a status
    with its code (``bad_status 503``). ``ok_status``: those answered, by status code.
    """

    requests: int
    answered: int
    failed: Mapping[str, int]
    unanswered: Mapping[str, int]
    ok_status: Mapping[str, int] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Account:
    """Where every request ended: ``scheduled``, those of the window, is the sum of the classes.

    ``bad_status``: replies with another status, by its code. ``ok_status``: those that are ``ok``, likewise;
    none: the generator does not report them. ``answered_early``: valid replies that were complete before
    their requests were sent in full. ``others``: all classes but these; null: the
    generator does not report it separately. The engine names the classes (`prony.figures.account`).
    ``carried_in``: those that the window found open; null: the generator does not report them.
    """

    scheduled: int
    ok: int
    bad_status: Mapping[str, int]
    others: Mapping[str, int | None] = field(default_factory=dict, metadata=REST)
    carried_in: CarriedIn | None = None
    ok_status: Mapping[str, int] = field(default_factory=dict, metadata=OPTIONAL)
    answered_early: int = field(default=0, metadata=OPTIONAL)

    @property
    def valid_by_status(self) -> Mapping[str, int]:
        """The valid replies by status code, those to requests that were carried in too.

        >>> carried = CarriedIn(1, 1, {}, {}, {"302": 1})
        >>> Account(2, 2, {}, carried_in=carried, ok_status={"302": 2}).valid_by_status
        {'302': 3}
        """
        carried = self.carried_in.ok_status if self.carried_in else {}
        return dict(sorted((Counter(self.ok_status) + Counter(carried)).items()))

    def count(self, name: str) -> int:
        """Return how many requests ended in a class; `bad_status` is summed over its codes.

        >>> Account(4, 1, {"500": 2, "503": 1}).count("bad_status")
        3
        """
        match name:
            case "ok":
                return self.ok
            case "bad_status":
                return sum(self.bad_status.values())
            case _:
                return self.others.get(name) or 0


@dataclass(frozen=True, slots=True)
class Completed:
    """Requests that ended within the window, also those that were carried in."""

    ok: int
    failed: int

    @property
    def all(self) -> int:
        """Valid replies and all that failed."""
        return self.ok + self.failed


@dataclass(frozen=True, slots=True)
class Window:
    """When it was: opened, closed, and drained of what was in flight. ``interrupted``: broken off."""

    open_ns: int | None
    close_ns: int | None
    drained_ns: int | None
    open_unix_ns: int | None
    interrupted: bool

    @property
    def length_ns(self) -> int | None:
        """From the opening to the close; None when it never opened or has no length."""
        return _between(self.open_ns, self.close_ns)

    @shown
    def duration_s(self) -> float | None:
        """The same in seconds."""
        return None if self.length_ns is None else seconds(self.length_ns)

    @property
    def drained_length_ns(self) -> int | None:
        """From the opening to the end of the drain, where there was one; None as ``length_ns``."""
        return _between(self.open_ns, self.drained_ns or self.close_ns)


def _between(start_ns: int | None, end_ns: int | None) -> int | None:
    if start_ns is None or end_ns is None or end_ns <= start_ns:
        return None
    return end_ns - start_ns


@dataclass(frozen=True, slots=True)
class Answered:
    """How evenly the replies were spread: ``min`` and ``max`` replies of one connection."""

    connections: int
    without_reply: int
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Connections:
    """What happened to connections; ``retried``: requests that were sent again on a new one; ``surplus``:
    connections that brought bytes which no request had asked for; ``requests_sent``: from the first
    to the last, with those of the warm-up, and again those that were sent again: as in the server's own log.
    ``added`` and ``taken_away`` by the stages of a closed loop. ``retired``: connections that were ended at
    the limit that was set for them. ``by_address``: connections to each of
    several addresses, from the first on.
    """

    opened: int | None
    reconnects: int | None
    connect_failures: int | None
    retried: int | None
    answered: Answered | None
    surplus: int | None = None
    requests_sent: int | None = None
    added: int | None = field(default=None, metadata=OPTIONAL)
    taken_away: int | None = field(default=None, metadata=OPTIONAL)
    retired: int | None = field(default=None, metadata=OPTIONAL)
    by_address: Mapping[str, int] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes handed to the kernel and taken from it; ``body_received`` without what is around the bodies."""

    sent: int | None
    received: int | None
    body_received: int | None


@dataclass(frozen=True, slots=True)
class Queue:
    """Requests that were due while no connection was idle, and how many of them at once.

    ``limit``: the most in flight in an open loop. ``bound_at_ns``: when a request first waited because of it,
    from the opening of the window: from then on the server set the pace. Null: never, or not known.
    """

    waited: int | None
    max_length: int | None
    limit: int | None = None
    bound_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorSample:
    """One failure in full: its class of the account, what the system said, and the first bytes of the reply.

    ``received``: at most 256 bytes, as they came; null: not one came.
    """

    kind: str = field(metadata=at("class"))
    detail: str
    at_ns: int
    received: bytes | None = None


# --- times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distribution:
    """Times of requests: how many, their extremes and sum, exact, and ``histogram``, the rest.

    That is an HdrHistogram V2, deflated, of 3 significant digits. Of no times all but ``count`` are null.
    A report has its summary instead.
    """

    count: int = field(metadata=INTERNAL)
    min_ns: int | None = field(metadata=INTERNAL)
    max_ns: int | None = field(metadata=INTERNAL)
    sum_ns: int | None = field(metadata=INTERNAL)
    histogram: bytes | None = field(metadata=INTERNAL)

    def __post_init__(self) -> None:
        if self.count and None in (self.min_ns, self.max_ns, self.sum_ns, self.histogram):
            name = next(name for name in _OF_TIMES if getattr(self, name) is None)
            raise ShapeError("a value, as there are times", None, name)
        for name in ("min_ns", "max_ns"):
            if (getattr(self, name) or 0) >= _SIGNED_64_BITS:
                raise ShapeError("a time of less than 292 years", getattr(self, name), name)


# What histograms and archives can hold.
_SIGNED_64_BITS = 2**63
_OF_TIMES = ("min_ns", "max_ns", "sum_ns", "histogram")


def times_of(value: Any) -> Mapping[str, Distribution]:
    """Return the distributions that are fields of a value, by name."""
    found = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: one for name, one in found.items() if isinstance(one, Distribution)}


@dataclass(frozen=True, slots=True)
class Distributions:
    """Times of valid replies (``ok``), also to requests that were ``carried_in``, ages of unanswered requests
    (``censored``), and times of the generator.

    ``response`` runs from when a request was due, ``service`` from when it was sent. ``send_lag``: how late
    the generator sent it.
    """

    ok_response: Distribution | None = None
    ok_service: Distribution | None = None
    carried_in_response: Distribution | None = None
    carried_in_service: Distribution | None = None
    censored_response: Distribution | None = None
    censored_service: Distribution | None = None
    send_lag: Distribution | None = None
    connect: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Handshakes:
    """TLS handshakes of all connections, from the first on: times of full ones and of those that took up an
    earlier session (``resumed``), and how many ``failed``.

    The others count connections by what was agreed on: ``protocols``, ``ciphers``, ``groups`` of the key
    exchange, ``keys`` of certificates, and ``alpn``, the protocol within.
    """

    full: Distribution
    resumed: Distribution
    failed: int
    protocols: Mapping[str, int]
    ciphers: Mapping[str, int]
    groups: Mapping[str, int]
    keys: Mapping[str, int]
    alpn: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Streams:
    """Requests that shared connections. The parts of the latencies of valid replies: waiting for a connection
    from when they were due (null in a closed loop), on it for a stream, and the rest, on the wire.

    ``goaways``: connections that the server announced to leave; ``refused``: requests that it said it had not
    looked at; ``resets``: streams that it ended without a whole reply. ``limit``: the fewest streams at once
    that it took on a connection, null where it took all.
    """

    schedule_wait: Distribution | None
    stream_wait: Distribution
    wire: Distribution
    goaways: int
    refused: int
    resets: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Second:
    """One second of the window or the drain, from 0: requests due in it, sent in it, and what ended in it,
    whenever it was begun.

    ``latency``: response times of its valid replies, service times in a closed loop. ``due_ok``: valid
    replies to the requests that were due in it, whenever they came; null where the generator does not say.
    """

    second: int
    scheduled: int
    ok: int
    failed: int
    body_bytes: int
    latency: Distribution | None
    sent: int | None = None
    due_ok: int | None = None


@dataclass(frozen=True, slots=True)
class RawLatencies:
    """What came of the file with a row for each request: rows written, and rows lost, since the file could
    not take them in time, or at all (``error``).
    """

    rows: int
    lost: int
    error: str | None


@dataclass(frozen=True, slots=True)
class StageFigures:
    """What became of the requests that were due (open loop) or begun (closed loop) in one stage of the load.

    ``begin_ns`` is from the opening of the window. It has rates in an open loop, else connections.
    ``failed``: those without a latency; ``ok`` and ``censored``: the times of valid replies, and the ages of
    the unanswered, as response times in an open loop and as service times in a closed one.
    """

    begin_ns: int
    duration_ns: int
    scheduled: int
    sent: int
    ok: int
    failed: int
    from_per_s: float | None = field(default=None, metadata=OPTIONAL)
    to_per_s: float | None = field(default=None, metadata=OPTIONAL)
    from_connections: int | None = field(default=None, metadata=OPTIONAL)
    to_connections: int | None = field(default=None, metadata=OPTIONAL)
    ok_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    censored_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    ok_service: Distribution | None = field(default=None, metadata=OPTIONAL)
    censored_service: Distribution | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class PathFigures:
    """What became of the requests for one path of a mix: an account and bytes as of the whole, and times.

    Response times in an open loop, service times in a closed one. All paths together are the whole.
    """

    path: str
    weight: float
    account: Account
    bytes: Traffic
    ok_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    carried_in_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    censored_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    ok_service: Distribution | None = field(default=None, metadata=OPTIONAL)
    carried_in_service: Distribution | None = field(default=None, metadata=OPTIONAL)
    censored_service: Distribution | None = field(default=None, metadata=OPTIONAL)

    @property
    def times(self) -> Mapping[str, Distribution]:
        """The distributions that there are, by name."""
        return times_of(self)


@dataclass(frozen=True, slots=True)
class StatusFigures:
    """What became of the requests of one status: those of the window, those of them with a valid reply
    (``ok``), those ``carried_in``, and the bytes of the bodies of the former.

    ``other``: times of complete replies with another status or body than expected, those carried in too. A
    closed loop has no response times; what there is none of is null. All statuses together are the whole.
    """

    requests: int
    ok: int
    carried_in: int
    carried_in_ok: int
    body_received: int
    ok_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    ok_service: Distribution | None = field(default=None, metadata=OPTIONAL)
    carried_in_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    carried_in_service: Distribution | None = field(default=None, metadata=OPTIONAL)
    other_response: Distribution | None = field(default=None, metadata=OPTIONAL)
    other_service: Distribution | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What became of the requests of one group of users: an account, bytes and times as of the whole.

    ``connections``: exactly so many in a closed loop, at most in an open one. Times have the group's delay.
    All groups together are the whole.
    """

    name: str
    connections: int
    account: Account
    bytes: Traffic
    distributions: Distributions

    @property
    def times(self) -> Mapping[str, Distribution]:
        """The distributions that there are, by name."""
        return times_of(self.distributions)


@dataclass(frozen=True, slots=True)
class ReportedLatency:
    """What a tool says of its latencies where it keeps no distribution; percentiles by name (``99.9``)."""

    population: Population
    count: int
    min_ns: int | None = field(metadata=at("min"))
    mean_ns: float | None = field(metadata=at("mean"))
    max_ns: int | None = field(metadata=at("max"))
    percentiles: Mapping[str, float | None]


# --- the generator ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GeneratorName:
    """Which generator it was. ``caveats``: what it counts or times wrongly; ``missing``: why parts of the
    Recording are not there, by their names; ``command``: what was started of an external one.
    """

    name: str
    version: str | None
    driver: str | None
    threads: int | None
    pacing: Pacing | None
    command: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    caveats: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    missing: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class WorkerThread:
    """CPU of one worker within the window; ``turns``: how often it got its CPU, after ``run_queue_ns``, of
    which ``long_wait_ns`` in ``long_waits``, of 0.2 ms and more each.

    ``spin_margin_ns``: how long before a due time it began to spin, as measured at the start (null: it only
    slept); ``throttled_ns``: how long a quota stopped it.
    """

    cpu: int | None
    user_ns: int
    system_ns: int
    spin_ns: int
    run_queue_ns: int | None
    turns: int = 0
    long_waits: int = 0
    long_wait_ns: int = 0
    spin_margin_ns: int | None = None
    throttled_ns: int | None = None


@dataclass(frozen=True, slots=True)
class GeneratorProcesses:
    """What the generator's processes used over the window, sampled: 100 % is one core.

    ``memory_ratio`` is of the machine's memory.
    """

    samples: int | None
    cpu_percent: float | None
    rss_mean_bytes: float | None
    rss_peak_bytes: int | None
    pss_end_bytes: int | None
    memory_ratio: float | None
    processes_max: int | None
    threads_max: int | None


@dataclass(frozen=True, slots=True)
class GeneratorCost:
    """What the load cost the generator within the window, and its verdict on itself.

    ``limited``: null where it does not judge itself. ``sent_in_window``: requests that were sent in the
    window, whenever they were due. ``start_late_ns``: how long after the agreed start of several generators
    its last worker began.
    """

    limited: Limited | None
    cpu_work_ns: int | None
    cpu_spin_ns: int | None
    run_queue_ns: int | None
    cpu_ns_per_request: float | None
    spin_share: float | None
    threads: tuple[WorkerThread, ...] = ()
    evidence: tuple[Limit, ...] = ()
    sent_in_window: int | None = None
    processes: GeneratorProcesses | None = field(default=None, metadata=OPTIONAL)
    start_late_ns: int | None = field(default=None, metadata=OPTIONAL)

    @property
    def verdict(self) -> GeneratorVerdict:
        """Whether it set the figures, and the evidence."""
        return GeneratorVerdict(self.limited or Limited.NO, self.evidence)


@dataclass(frozen=True, slots=True)
class GeneratorMachine:
    """One generator of several: its part of the account, its start and its verdict on itself.

    ``start_skew_ns``: how long after the common start it began; negative: before it.
    ``clock_bound_ns``: how far the start may be wrong, because clocks are compared over a network.
    ``clock_drift_ppm``: how much faster its clock runs than the leader's, at least and at most.
    ``lost``: why it is not in the account; most other fields are then missing.
    ``lost_at_ns``: when the leader noticed that, by the leader's clock.
    ``fingerprint``: the facts of its machine that decide whether two figures are comparable.
    ``ok_p50_ns``, ``ok_p99_ns``: of its valid replies; response times in an open loop, else service times.
    ``as_root``: whether it ran as root; whoever holds the fleet's certificates is then root there.
    """

    name: str
    requests: int | None = None
    ok: int | None = None
    start_skew_ns: float | None = None
    clock_bound_ns: int | None = None
    clock_drift_ppm: tuple[float, ...] = ()
    limited: Limited | None = None
    evidence: tuple[Limit, ...] = ()
    lost: str | None = None
    lost_at_ns: int | None = None
    fingerprint: Fingerprint | None = None
    ok_p50_ns: int | None = field(default=None, metadata=OPTIONAL)
    ok_p99_ns: int | None = field(default=None, metadata=OPTIONAL)
    as_root: bool = field(default=False, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """L = lambda W from two sides; ``residual``: integral / sum - 1.

    ``window_integral_ns``: the part of the integral before the window closed; null: not known apart.
    """

    in_flight_integral_ns: int | None
    sojourn_sum_ns: int | None
    residual: float | None
    window_integral_ns: int | None = field(default=None, metadata=OPTIONAL)

    @property
    def within_window_ns(self) -> int | None:
        """The time-integral of requests in flight in the window alone, as far as that is known."""
        known = self.window_integral_ns
        return self.in_flight_integral_ns if known is None else known


# --- all of it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a generator measured in one run; ``machines``: those of a load from several, together.

    ``redirected_to``: where the first reply led that was a redirect. ``followed``: redirects that were
    followed, by status.
    """

    format: int = field(metadata=INTERNAL)
    engine: GeneratorName
    spec: Specification | None = field(metadata=INTERNAL)
    loop: LoopKind
    window: Window
    account: Account
    completed: Completed
    connections: Connections
    bytes: Traffic
    queue: Queue
    distributions: Distributions
    series: tuple[Second, ...]
    generator: GeneratorCost
    little: LittlesLaw
    error_samples: tuple[ErrorSample, ...] = field(metadata=INTERNAL)
    redirected_to: str | None = field(default=None, metadata=OPTIONAL)
    followed: Mapping[str, int] = field(default_factory=dict, metadata=OPTIONAL)
    reported_latency: ReportedLatency | None = field(
        default=None, metadata={**at("reported_latency_ns"), **OPTIONAL}
    )
    tls: Handshakes | None = field(default=None, metadata=OPTIONAL)
    streams: Streams | None = field(default=None, metadata=OPTIONAL)
    stages: tuple[StageFigures, ...] = field(default=(), metadata={**OPTIONAL, **INTERNAL})
    raw_latencies: RawLatencies | None = field(default=None, metadata=OPTIONAL)
    paths: tuple[PathFigures, ...] = field(default=(), metadata={**OPTIONAL, **INTERNAL})
    statuses: Mapping[str, StatusFigures] = field(default_factory=dict, metadata={**OPTIONAL, **INTERNAL})
    groups: tuple[GroupFigures, ...] = field(default=(), metadata={**OPTIONAL, **INTERNAL})
    machines: tuple[GeneratorMachine, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def is_open(self) -> bool:
        """Whether requests were due by a schedule."""
        return self.loop is LoopKind.OPEN


def decode_recording(value: object) -> Recording:
    """Return the Recording that JSON holds.

    *Errors*: ShapeError, which names the place.
    """
    found = decode(Recording, value, "recording")
    _check_mix(found)
    _check_statuses(found)
    _check_groups(found)
    return found


def _check_mix(found: Recording) -> None:
    """Refuse paths that are not those of the load, or that do not make up the whole."""
    mix = found.spec.workload.mix if found.spec and found.spec.workload else None
    if mix is not None and (fault := fault_of_mix(mix)):
        raise ShapeError(*fault, "recording", "spec", "workload", "mix")
    if not found.paths:
        return
    asked = [(one.path, one.weight) for one in mix.paths] if mix else []
    if [(one.path, one.weight) for one in found.paths] != asked:
        raise ShapeError("the paths of the load's mix", len(found.paths), "recording", "paths")
    _check_sum("paths", found, found.paths)


def _check_groups(found: Recording) -> None:
    """Refuse groups that are not those of the load, or that do not make up the whole."""
    if not found.groups:
        return
    groups = found.spec.workload.groups if found.spec and found.spec.workload else ()
    if fault := fault_of_groups(groups):
        raise ShapeError(*fault, "recording", "spec", "workload", "groups")
    asked = [one.name for one in groups]
    if [one.name for one in found.groups] != asked:
        raise ShapeError("the groups of the load", len(found.groups), "recording", "groups")
    _check_sum("groups", found, found.groups)


def _check_sum(kind: str, found: Recording, each: Sequence[PathFigures] | Sequence[GroupFigures]) -> None:
    """Refuse parts of a load that are not the whole, in anything that they have parts of."""
    parts = [_counts(one.account, one.bytes, one.times) for one in each]
    kept = {name for part in parts for name in part}
    whole = _counts(found.account, found.bytes, times_of(found.distributions))
    names = {one.name for one in fields(Distributions)}
    for name in sorted(kept | (whole.keys() - names)):
        summed = sum(part[name] for part in parts)
        if summed != whole[name]:
            expected = f"{whole[name]} of `{name}` in all {kind}, as in the whole"
            raise ShapeError(expected, summed, "recording", kind)


def _check_statuses(found: Recording) -> None:
    """Refuse statuses that do not make up the whole; none are no fault."""
    if not found.statuses:
        return
    account, times, parts = found.account, found.distributions, found.statuses.values()
    carried = account.carried_in or CarriedIn(0, 0, {}, {})
    whole = {
        "requests": account.scheduled,
        "ok": account.ok,
        "carried_in": carried.requests,
        "carried_in_ok": carried.answered,
        "body_received": found.bytes.body_received or 0,
    }
    summed = {name: sum(getattr(one, name) for one in parts) for name in whole}
    for name in _OF_STATUSES:
        whole[name] = _count(getattr(times, name))
        summed[name] = sum(_count(getattr(one, name)) for one in parts)
    for name, expected in whole.items():
        if summed[name] != expected:
            words = f"{expected} of `{name}` in all statuses, as in the whole"
            raise ShapeError(words, summed[name], "recording", "statuses")


_OF_STATUSES = ("ok_response", "ok_service", "carried_in_response", "carried_in_service")


def _count(times: Distribution | None) -> int:
    return 0 if times is None else times.count


def _counts(account: Account, traffic: Traffic, times: Mapping[str, Distribution]) -> Counter[str]:
    """Return all that the paths of a mix have parts of, by name."""
    carried = account.carried_in or CarriedIn(0, 0, {}, {})
    moved = {"sent": traffic.sent, "received": traffic.received, "body": traffic.body_received}
    found = Counter(
        {
            **{name: count or 0 for name, count in account.others.items()},
            "scheduled": account.scheduled,
            "ok": account.ok,
            "carried_in": carried.requests,
            "carried_in answered": carried.answered,
            **{f"bytes {name}": count or 0 for name, count in moved.items()},
            **{name: one.count for name, one in times.items()},
        }
    )
    for apart, counts in (
        ("bad_status", account.bad_status),
        ("ok_status", account.ok_status),
        ("carried_in failed", carried.failed),
        ("carried_in unanswered", carried.unanswered),
    ):
        found.update({f"{apart} {name}": count for name, count in counts.items()})
    return found

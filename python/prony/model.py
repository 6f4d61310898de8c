"""The central types: what is measured, how, and what came of it.

Frozen values without I/O. A measuring side fills them and writes one Archive; a reading side reads them
from it. Times are integer nanoseconds; monotonic stamps are CLOCK_MONOTONIC. Must not know catalogue,
archive or engine.

>>> Workload(loop=OpenLoop(rate_per_s=550.0), stop=DurationStop(10_000_000_000)).describe()
'open loop, 550/s constant, 10 s'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Literal

__all__ = [
    "MAX_CONNECTIONS",
    "MAX_RATE_PER_S",
    "Address",
    "AddressKind",
    "App",
    "Arrivals",
    "Cell",
    "Check",
    "Claim",
    "ClaimKind",
    "ClosedLoop",
    "Contract",
    "CountStop",
    "Design",
    "DurationStop",
    "EngineChoice",
    "Failed",
    "Frontend",
    "Interface",
    "Invalid",
    "Json",
    "Launch",
    "LogTail",
    "Loop",
    "Needs",
    "Ok",
    "OpenLoop",
    "Original",
    "Outcome",
    "Pacing",
    "Phase",
    "Placement",
    "Plan",
    "Precision",
    "ProcessRow",
    "Readiness",
    "Request",
    "RoleRule",
    "Sample",
    "SandboxChoice",
    "Stage",
    "Stop",
    "StopRule",
    "Subject",
    "ThreadUsage",
    "Trial",
    "TrialRole",
    "Wire",
    "Workload",
]

Json = dict[str, Any]


class Interface(StrEnum):
    """How a server calls the application."""

    WSGI = "wsgi"
    ASGI = "asgi"
    PSGI = "psgi"
    NONE = "none"


class Wire(StrEnum):
    """What is spoken on the socket."""

    HTTP = "http"
    FASTCGI = "fastcgi"
    UWSGI = "uwsgi"
    SCGI = "scgi"


class AddressKind(StrEnum):
    """The socket family."""

    TCP4 = "tcp4"
    TCP6 = "tcp6"
    UNIX = "unix"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a subject listens. ``host`` is a literal; for ``unix`` the socket's path, and ``port`` is 0."""

    host: str
    port: int
    kind: AddressKind = AddressKind.TCP4
    tls: bool = False
    wire: Wire = Wire.HTTP

    @property
    def url(self) -> str:
        """The address as a URL, for people and for external tools."""
        host = f"[{self.host}]" if self.kind is AddressKind.TCP6 else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


# --- what is served ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``headers`` are sent as they stand; ``keep_alive`` false: a connection for each."""

    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """One exchange that an app must answer so. ``body`` null: any; ``status`` null: 200 to 399."""

    request: Request = Request()
    status: int | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The replies that an app must give. The first check is also what is measured.

    None: the replies of all subjects are compared before the load.
    """

    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class App:
    """What is served: a folder, and the callable in it.

    ``targets`` maps each interface that the app offers to its ``module:attribute``. ``requirements`` are
    requirement strings, resolved together with the server's. ``digest`` identifies the folder's content
    (SHA-256). ``services``: the catalogue's services that it needs beside it.
    """

    name: str
    title: str
    folder: str
    targets: Mapping[Interface, str]
    requirements: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    contract: Contract = Contract()
    environment: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Frontend:
    """What stands in front of a server: an entry of the catalogue's frontends, as a subject names a server.

    ``settings`` holds only what differs from the entry's defaults.
    """

    entry: str
    variant: str = ""
    settings: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Entry and variant: ``nginx-keepalive``."""
        return f"{self.entry}-{self.variant}" if self.variant else self.entry


@dataclass(frozen=True, slots=True)
class Subject:
    """A server with settings around an app, perhaps behind a frontend: one thing to be measured.

    ``name`` is unique in a plan (``gunicorn-gthread@nginx+flask-hello``). ``server`` names the catalogue
    entry, ``variant`` one of its presets or is empty. ``settings`` holds only what differs from the entry's
    defaults.
    """

    name: str
    server: str
    app: App
    interface: Interface
    variant: str = ""
    settings: Mapping[str, int | str] = field(default_factory=dict)
    frontend: Frontend | None = None


# --- the load ---------------------------------------------------------------------------------------------


class Arrivals(StrEnum):
    """When the requests of an open loop are due."""

    CONSTANT = "constant"
    POISSON = "poisson"


class Pacing(StrEnum):
    """How the generator waits for a due time: see the engine's documentation."""

    AUTO = "auto"
    PRECISE = "precise"
    ECONOMICAL = "economical"


MAX_CONNECTIONS = 65_535
"""From one address to another port of one server: a port number has 16 bits."""
MAX_RATE_PER_S = 1e9
"""One request a nanosecond, the unit of time."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Each of ``connections`` sends again when it has its answer: the load depends on the server."""

    connections: int


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests are due at ``rate_per_s`` whatever the server does.

    They go over at most ``connections``, opened on demand.
    """

    rate_per_s: float
    arrivals: Arrivals = Arrivals.CONSTANT
    seed: int = 1
    connections: int = 1024


Loop = ClosedLoop | OpenLoop


@dataclass(frozen=True, slots=True)
class DurationStop:
    """The window lasts so long."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class CountStop:
    """The window holds exactly so many requests."""

    requests: int


Stop = DurationStop | CountStop


@dataclass(frozen=True, slots=True)
class Stage:
    """One stretch of load under one loop. A workload has one now; ramps and steps will have several."""

    loop: Loop
    stop: Stop


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of a trial: who sends what, when, for how long.

    *Units*: all ``_ns`` are nanoseconds. ``timeout_ns`` counts from the intended time (open) or from
    sending (closed).
    """

    loop: Loop
    stop: Stop
    request: Request = Request()
    warmup_ns: int = 0
    timeout_ns: int = 10_000_000_000
    grace_ns: int = 10_000_000_000
    expect_status: int | None = None
    expect_body: bytes | None = None

    def describe(self) -> str:
        """Return the load in a few words, such as ``closed loop, 100 connections, 30 s``."""
        match self.loop:
            case ClosedLoop(connections):
                load = f"closed loop, {connections} connection{'s' if connections != 1 else ''}"
            case OpenLoop(rate_per_s, arrivals):
                load = f"open loop, {rate_per_s:g}/s {arrivals}"
        match self.stop:
            case DurationStop(duration_ns):
                return f"{load}, {duration_ns / 1e9:g} s"
            case CountStop(requests):
                return f"{load}, {requests} requests"


# --- where it runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which generator, with how many threads. ``prony`` is the built-in one."""

    name: str = "prony"
    threads: int = 1
    pacing: Pacing = Pacing.AUTO


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """How subjects are kept apart.

    ``network``: ``isolated`` puts server and generator together into a network namespace of their own where
    privileges allow, ``host`` uses the host's loopback. ``share_cpus`` lets generator and server run on one
    CPU. ``run_as``: the user that subjects run as when Prony is root; null: the caller of sudo, else
    ``nobody``. The limits are the server's alone, with all its processes: ``cpu_quota`` in CPUs, such as 0.5,
    also bounds how many CPUs it gets; ``memory_bytes`` without swap; ``pids`` counts threads. What the kind
    cannot enforce is told.
    """

    kind: Literal["process", "cgroup", "container"] = "process"
    network: Literal["isolated", "host"] = "isolated"
    share_cpus: bool = False
    run_as: str | None = None
    cpu_quota: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of server and generator; disjoint unless ``shared``."""

    server_cpus: tuple[int, ...]
    generator_cpus: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a subject is ready: it accepts a connection and, with ``http``, answers the first request."""

    timeout_ns: int = 15_000_000_000
    http: bool = True


@dataclass(frozen=True, slots=True)
class StopRule:
    """How a subject is ended: the signal to its main process, and the time before all of it is killed."""

    signal: str = "SIGTERM"
    timeout_ns: int = 5_000_000_000


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Gives a process its role: the first rule that fits wins.

    ``where`` is ``main`` (the process that was started), ``child`` (any other) or ``command`` (the command
    line contains ``pattern``).
    """

    role: str
    where: Literal["main", "child", "command"] = "main"
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start: the exact command, nothing left to fill in; and what must run beside it.

    ``files`` are written into the process's own folder, which is its working directory, before the start.
    ``services`` are started before it, the ``frontend`` after it: the load then goes to the frontend.
    ``name`` tells them apart: ``server``, ``frontend``, or the service's. ``folder``: another working
    directory than its own folder.
    """

    command: tuple[str, ...]
    address: Address
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    readiness: Readiness = Readiness()
    stop: StopRule = StopRule()
    roles: tuple[RoleRule, ...] = (RoleRule("server"),)
    name: str = "server"
    folder: str | None = None
    services: tuple["Launch", ...] = ()
    frontend: "Launch | None" = None

    @property
    def processes(self) -> tuple["Launch", ...]:
        """All that is to be started, itself among them, in the order of the start."""
        return (*self.services, self, *((self.frontend,) if self.frontend else ()))

    @property
    def entrance(self) -> Address:
        """Where the load goes."""
        return self.frontend.address if self.frontend else self.address


# --- the plan ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: what, under which load, with which generator, in which sandbox.

    ``id`` is unique in its plan.
    """

    id: int
    subject: Subject
    workload: Workload
    engine: EngineChoice = EngineChoice()
    sandbox: SandboxChoice = SandboxChoice()

    @property
    def load(self) -> Mapping[str, float]:
        """What tells the loads of a study apart: ``connections`` or ``rate``, ``requests``, ``threads``."""
        load: dict[str, float] = {"threads": self.engine.threads}
        match self.workload.loop:
            case ClosedLoop(connections):
                load["connections"] = connections
            case OpenLoop(rate_per_s):
                load["rate"] = rate_per_s
        if isinstance(self.workload.stop, CountStop):
            load["requests"] = self.workload.stop.requests
        return load

    def describe_load(self) -> str:
        """Return the load in a few words, with its generator where that is not Prony's own."""
        threads = f" with {self.engine.threads} threads" if self.engine.threads > 1 else ""
        by = "" if self.engine.name == EngineChoice().name else f", by {self.engine.name}{threads}"
        return f"{self.workload.describe()}{by}"

    def is_under(self, load: Mapping[str, float]) -> bool:
        """Return whether the cell has all that ``load`` says; an empty one fits every cell."""
        own = self.load
        return all(own.get(name) == value for name, value in load.items())


class ClaimKind(StrEnum):
    """What a claim says: a closed list, each with its estimand and its test (analysis.claims)."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    RATIO = "ratio"
    VALUE = "value"
    GROWS = "grows"
    FAILS = "fails"
    SINGLE_CORE = "single-core"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a claim needs to be tested at all: CPUs of the server, a load, repeats."""

    server_cpus: int = 1
    connections: int = 0
    blocks: int = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a published experiment, as something that a repeat can hold against it.

    ``text`` is the sentence. ``subject`` and ``against`` are globs of subjects' names, ``engine`` and
    ``against_engine`` of generators'; ``metric`` is one of METRICS, of the processes of ``role`` where one is
    named. ``load`` (as `Cell.load`) chooses the cells, empty: every load. What they are compared with has the
    same generator and the same load, unless ``against_engine`` or ``against_load`` says otherwise. ``low``
    and ``high`` bound a ratio or a value, null: open. ``failure``: the class of requests that fail.
    """

    name: str
    text: str
    kind: ClaimKind
    metric: str
    subject: str = "*"
    against: str = "*"
    engine: str = "*"
    role: str = ""
    load: Mapping[str, float] = field(default_factory=dict)
    against_engine: str = ""
    against_load: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    failure: str | None = None
    needs: Needs = Needs()


@dataclass(frozen=True, slots=True)
class Original:
    """One published figure: context beside a new one, never a claim. ``value`` is in the metric's unit."""

    subject: str
    metric: str
    value: float
    load: Mapping[str, float] = field(default_factory=dict)
    engine: str = "*"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Precision:
    """Blocks are added, look by look, until it is known well enough.

    ``target``: half of the relative interval's width, such as 0.02. ``looks``: after so many blocks.
    ``budget_ns``: no look begins that would end after so long; null: no limit.
    """

    target: float
    looks: tuple[int, ...] = (10, 15, 20)
    budget_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """What is settled before the run about how its figures are read.

    ``margin``: a difference of less is of no interest. ``primary``: the load at which subjects are compared
    for a verdict (``connections``, ``rate``, ``requests``; empty: every load); other loads are a screening.
    ``trimmed_mean``: show, beside the mean, the mean without the highest and the lowest trial. ``find_rate``:
    instead of measuring cells, search for each subject's highest rate that meets this objective.
    """

    margin: float = 0.02
    primary: Mapping[str, float] = field(default_factory=dict)
    trimmed_mean: bool = False
    precision: Precision | None = None
    find_rate: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Cells x blocks in random order from a stored seed. ``text`` is what the user wrote, verbatim.

    ``calibration``: the reference server at a fixed rate, measured first, last and once inside each block,
    so that a drift of the machine shows; its id is of no other cell. ``source``: the experiment that is
    repeated, in words; ``notes``: in what this repeat differs from it, which every report says.
    """

    name: str
    title: str
    text: str
    profile: str
    cells: tuple[Cell, ...]
    blocks: int
    seed: int
    question: str = ""
    source: str = ""
    calibration: Cell | None = None
    design: Design = Design()
    claims: tuple[Claim, ...] = ()
    originals: tuple[Original, ...] = ()
    notes: tuple[str, ...] = ()

    def subjects(self) -> tuple[Subject, ...]:
        """Return the plan's subjects, each once, in the order in which they first appear."""
        return tuple({cell.subject.name: cell.subject for cell in self.cells}.values())

    @property
    def engine_threads(self) -> int:
        """Return how many threads of the built-in generator there are at most; what others have is theirs."""
        return max((cell.engine.threads for cell in self.cells if cell.engine.name == "prony"), default=1)

    def only(self, pattern: str) -> tuple[Cell, ...]:
        """Return the cells whose subject's name fits the glob ``pattern``.

        Where the plan has several generators, those whose generator's name fits it too.
        """
        several = len({cell.engine.name for cell in self.cells}) > 1
        return tuple(
            cell
            for cell in self.cells
            if fnmatchcase(cell.subject.name, pattern) or (several and fnmatchcase(cell.engine.name, pattern))
        )


# --- what came of it --------------------------------------------------------------------------------------


class TrialRole(StrEnum):
    """Why a trial was run."""

    SUBJECT = "subject"
    CALIBRATION = "calibration"
    CROSS_CHECK = "cross-check"
    FIND_RATE = "find-rate"
    PILOT = "pilot"


class Phase(StrEnum):
    """The part of a trial that a sample belongs to."""

    IDLE = "idle"
    WARMUP = "warmup"
    WINDOW = "window"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Ok:
    """The trial ran its window, whatever the server answered."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The subject's fault: ``stage`` is ``install``, ``start``, ``contract``, ``load`` or ``stop``."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The generator's or the environment's fault: nothing is known of the subject."""

    reason: str


Outcome = Ok | Failed | Invalid


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process of the subject at one moment. CPU times and switches are cumulative since its start.

    ``pss_bytes``, ``uss_bytes`` and ``descriptors`` are null except at the mark at the end of the load: they
    are dear to read. ``rss_peak_bytes`` is the kernel's own high-water mark.
    """

    pid: int
    start_time_ticks: int
    role: str
    command: str
    user_ns: int
    system_ns: int
    rss_bytes: int
    vsz_bytes: int
    threads: int
    pss_bytes: int | None = None
    uss_bytes: int | None = None
    rss_peak_bytes: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    descriptors: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What one thread of the subject used in the window; ``cpu_ns`` of its own, ``name`` as the kernel has
    it.
    """

    pid: int
    tid: int
    name: str
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The subject's processes and the machine at one moment. Machine CPU times are cumulative, all CPUs.

    ``gauges``: what else was read then, by name: the length and the limit of accept queues, connections,
    pressure, frequency (docs/archive-format.md lists them).
    """

    monotonic_ns: int
    phase: Phase
    processes: tuple[ProcessRow, ...]
    machine_busy_ns: int
    machine_idle_ns: int
    machine_steal_ns: int
    gauges: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines that a subject wrote. ``truncated``: there were more."""

    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one cell, as it is archived.

    ``recording`` is the engine's Recording as it came (see docs/reference/engine-wire.md), null when there
    was no load. ``nuisances`` holds what was randomised that nobody means to test. ``command`` is the exact
    command line. ``*_unix_ns`` are wall-clock stamps. ``counters`` are kernel counters of the trial's
    namespace, as deltas over the window; a counter that could not be read is absent and named in
    ``missing``, with its reason. ``facts``: what was learnt of its sandbox and surroundings, free.
    """

    cell_id: int
    block: int
    position: int
    attempt: int
    role: TrialRole
    outcome: Outcome
    started_unix_ns: int
    ended_unix_ns: int
    command: tuple[str, ...] = ()
    placement: Placement | None = None
    nuisances: Mapping[str, str] = field(default_factory=dict)
    recording: Json | None = None
    samples: tuple[Sample, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    log: LogTail = LogTail("")
    events: tuple[Json, ...] = ()
    threads: tuple[ThreadUsage, ...] = ()
    facts: Json = field(default_factory=dict)

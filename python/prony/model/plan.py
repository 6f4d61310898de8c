"""What to measure: cells, their repeats, and how their figures will be judged.

>>> Precision(0.02).looks
(10, 15, 20)

What a published experiment said, in a form that a repeat of it can test.

>>> Needs(server_cpus=2).blocks
5
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from prony.model.facts import CloseLook
from prony.model.json_codec import OPTIONAL
from prony.model.sandbox import SandboxChoice
from prony.model.shown import INTERNAL, shown_as
from prony.model.subject import Subject, is_named, is_of
from prony.model.workload import ClosedLoop, CountStop, EngineChoice, OpenLoop, Workload

ERROR_RATIO = "error_ratio"
"""The metric that has one value for each trial, and is tested by counting trials."""


class ClaimKind(StrEnum):
    """What a claim says: a closed list, each with its estimand and its test (analysis.claims)."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    RATIO = "ratio"
    VALUE = "value"
    GROWS = "grows"
    FAILS = "fails"
    SINGLE_CORE = "single-core"
    STEADIER = "steadier"


TOLERANT = (ClaimKind.HIGHEST, ClaimKind.LOWEST, ClaimKind.SINGLE_CORE)
"""The kinds that have a tolerance; the tolerance of the others is in their bounds."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a test of the claim needs: CPUs of the server and of the generator, a load, repeats, and a least
    window and time-out. A window that ends after a number of requests needs ``requests`` in place of
    ``duration_ns``.
    """

    server_cpus: int = 1
    generator_cpus: int = 1
    connections: int = 0
    blocks: int = 5
    duration_ns: int = 0
    timeout_ns: int = 0
    requests: int = field(default=0, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a published experiment, in a form that a repeat can test. ``text`` is the sentence.
    ``subject`` and ``against`` are globs of subjects' names, ``engine`` and ``against_engine`` of generators'
    names; ``metric`` is one of METRICS, limited to the processes of ``role`` if that is set. ``load`` (as
    `Cell.load`) selects the cells; empty: every load. They are compared with cells of the same generator and
    the same load, unless ``against_engine`` or ``against_load`` is set. ``low`` and ``high`` bound a ratio, a
    value or growth; null: no bound. Of ``fails``, ``low`` is the share of a trial's requests beyond which it
    fails.
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
    """The class of requests that fail."""
    needs: Needs = Needs()
    tolerance: float = 0.0
    """The least relative difference that an order must exceed, or by how much a single core may be exceeded.
    """
    among: tuple[str, ...] = ()
    """Globs of the subjects that it is about, on both sides; empty: all of the study."""
    place: str = ""
    """Where it stands in its source."""

    @property
    def counts_trials(self) -> bool:
        """Whether the figure is a share of trials: of failures, and of shares of failed requests.

        Requests of one trial fail together, so that only trials are independent.
        """
        return self.kind is ClaimKind.FAILS or (self.kind is ClaimKind.VALUE and self.metric == ERROR_RATIO)

    def is_about(self, subject: str) -> bool:
        """Return whether the claim is about the subject of this name, on either side."""
        return not self.among or any(is_named(subject, glob) for glob in self.among)


@dataclass(frozen=True, slots=True)
class Original:
    """One published figure: shown beside the new one, never tested.

    ``value`` is in the metric's unit, of the processes of ``role`` if that is set.
    """

    subject: str
    metric: str
    value: float
    load: Mapping[str, float] = field(default_factory=dict)
    engine: str = "*"
    note: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: a subject under a load, from a generator, in a sandbox.

    ``id`` is unique in its plan.
    """

    id: int
    subject: Subject
    workload: Workload
    engine: EngineChoice = EngineChoice()
    sandbox: SandboxChoice = SandboxChoice()

    @property
    def load(self) -> Mapping[str, float]:
        """What distinguishes the loads of a study: ``connections`` or ``rate``, ``streams`` of a connection,
        ``requests``, ``threads``.
        """
        load: dict[str, float] = {"threads": self.engine.threads, "streams": self.workload.streams}
        match self.workload.loop:
            case ClosedLoop(connections):
                load["connections"] = connections
            case OpenLoop(rate_per_s):
                load["rate"] = rate_per_s
        if isinstance(self.workload.stop, CountStop):
            load["requests"] = self.workload.stop.requests
        return load

    def describe_load(self) -> str:
        """Return the load in a few words, with its generator unless that is Prony's own."""
        threads = f" with {self.engine.threads} threads" if self.engine.threads > 1 else ""
        by = "" if self.engine.name == EngineChoice().name else f", by {self.engine.name}{threads}"
        return f"{self.workload.describe()}{by}"

    def describe(self) -> str:
        """Return the load, and what it asks for where that is not in these words already."""
        load, request = self.describe_load(), self.workload.describe_request()
        return load if request in load else f"{load}, {request}"

    def is_under(self, load: Mapping[str, float]) -> bool:
        """Return whether the cell matches every key of ``load``; an empty one matches every cell."""
        own = self.load
        return all(own.get(name) == value for name, value in load.items())


@dataclass(frozen=True, slots=True)
class Precision:
    """Blocks are added until a look at the figures finds them precise enough."""

    target: float
    """Half the width of the relative interval, such as 0.02."""
    looks: tuple[int, ...] = (10, 15, 20)
    """The numbers of blocks after which to look."""
    budget_ns: int | None = None
    """Stop before this much time has passed; null: no limit."""


@dataclass(frozen=True, slots=True)
class Design:
    """How the figures will be judged, fixed before the run."""

    margin: float = 0.02
    """The smallest difference of interest."""
    primary: Mapping[str, float] = field(default_factory=dict)
    """The load at which subjects are compared for a verdict (`connections`, `rate`, `streams`, `requests`;
    empty: every load); other loads are a screening.
    """
    trimmed_mean: bool = False
    """Show, beside the mean, the mean without the highest and the lowest trial."""
    precision: Precision | None = None
    find_rate: str = ""
    """Instead of measuring cells, search for each subject's highest rate that meets this objective."""
    sessions: int = 1
    """In how many parts of equally many blocks the study is measured, at least `pause_ns` apart."""
    pause_ns: int = 0
    pilot_ns: int | None = field(default=None, metadata=OPTIONAL)
    """Before the first block, look for how long each server warms up, at most so long; null: do not."""
    editions: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    """Of a subject with the software of the original's time, the one of today in whose place it is."""
    allow_errors: float | None = field(default=None, metadata=OPTIONAL)
    """The largest share of failed requests with which speed is compared; null: the usual one."""
    confirm: tuple[CloseLook, ...] = field(default=(), metadata=OPTIONAL)
    """After the last block, look at each subject closely, in a trial whose figures enter nothing."""
    rounds: int = field(default=0, metadata=OPTIONAL)
    """After a block's trials, so many rounds of short windows on servers that stay, one after the other; 0:
    none, the servers are measured in turns.
    """
    whole_blocks: int | None = field(default=None, metadata=OPTIONAL)
    """In so many blocks, the first, trials have windows of their own; later ones have rounds alone. Null: in
    all.
    """
    length_ns: int | None = field(default=None, metadata=OPTIONAL)
    """Measure until so much time has passed, five blocks at least, whatever their planned number; null: the
    planned number.
    """
    machine_memory: bool = field(default=False, metadata=OPTIONAL)
    """How much of the machine's memory is in use."""


_Number = TypeVar("_Number", int, float)


def _most(limits: Iterable[_Number | None]) -> _Number | None:
    """Return the largest limit; None is none, and larger than any."""
    known: list[_Number] = []
    for one in limits:
        if one is None:
            return None
        known.append(one)
    return max(known)


@dataclass(frozen=True, slots=True)
class Plan:
    """Cells x blocks in random order from a stored seed. ``text`` is what the user wrote, verbatim."""

    name: str
    title: str
    text: str = field(metadata=INTERNAL)
    profile: str
    cells: tuple[Cell, ...] = field(metadata=INTERNAL)
    blocks: int
    seed: int
    question: str = ""
    source: str = ""
    """The experiment that is repeated, in words."""
    calibration: Cell | None = field(default=None, metadata=INTERNAL)
    """The reference server at a fixed rate, measured first, last and once inside each block, so that a drift
    of the machine becomes visible; no other cell has its id.
    """
    design: Design = Design()
    claims: tuple[Claim, ...] = field(default=(), metadata=INTERNAL)
    originals: tuple[Original, ...] = field(default=(), metadata=INTERNAL)
    notes: tuple[str, ...] = ()
    """How this repeat differs from it; every report shows them."""

    @shown_as("cells")
    def size(self) -> int:
        """How many cells it has."""
        return len(self.cells)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the plan's subjects, each once, in the order in which they first appear."""
        return tuple({cell.subject.name: cell.subject for cell in self.cells}.values())

    @property
    def sandbox(self) -> SandboxChoice:
        """The sandbox of all cells; where their limits differ, the most that any has, and none if one has
        none.
        """
        found = [cell.sandbox for cell in self.cells]
        return replace(
            found[0],
            cpu_quota=_most(one.cpu_quota for one in found),
            memory_bytes=_most(one.memory_bytes for one in found),
            pids=_most(one.pids for one in found),
            sysctl=tuple(dict(sorted(pair for one in found for pair in one.sysctl)).items()),
        )

    def sandbox_of(self, subject: str) -> SandboxChoice:
        """Return the sandbox of the subject of this name, else that of all."""
        return next((cell.sandbox for cell in self.cells if cell.subject.name == subject), self.sandbox)

    @property
    def whole_blocks(self) -> int:
        """In how many of the planned blocks trials have windows of their own; others have rounds alone."""
        return sum(map(self.is_whole, range(self.blocks)))

    def is_whole(self, block: int) -> bool:
        """Return whether the trials of a block have windows of their own."""
        whole = self.design.whole_blocks
        return not self.design.rounds or whole is None or block < whole

    @property
    def session_blocks(self) -> int:
        """How many blocks one session has."""
        return max(1, self.blocks // max(1, self.design.sessions))

    @property
    def engine_threads(self) -> int:
        """Return the largest number of threads of the built-in generator in any cell."""
        return max((cell.engine.threads for cell in self.cells if cell.engine.name == "prony"), default=1)

    @property
    def placed_threads(self) -> int:
        """Return for how many threads a generator gets CPUs: the built-in one's; those of any where it shares
        the server's. Elsewhere a script in four processes would take these from the server.
        """
        is_shared = self.sandbox.share_cpus
        return max(cell.engine.threads for cell in self.cells) if is_shared else self.engine_threads

    def only(self, pattern: str) -> tuple[Cell, ...]:
        """Return the cells whose subject's name fits the glob ``pattern``.

        If the plan has several generators, a cell whose generator's name fits is returned too.
        """
        several = len({cell.engine.name for cell in self.cells}) > 1
        return tuple(
            cell
            for cell in self.cells
            if is_of(cell.subject.name, pattern) or (several and fnmatchcase(cell.engine.name, pattern))
        )

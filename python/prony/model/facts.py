"""What was learnt beside figures, of machines, runs, subjects and trials: what is read of it has a type here.

An archive keeps these objects free: keys that nobody here reads are kept in ``free`` as they are. Null: not
known.

>>> fingerprint = Fingerprint({"kernel": {"release": "6.1"}})
>>> fingerprint.fact("kernel", "release"), fingerprint.fact("cpu", "model")
('6.1', Unknown(reason='not in the fingerprint'))
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.core.errors import FailureStage
from prony.model.json_codec import INLINE, OPTIONAL, REST
from prony.model.limit import Limit
from prony.model.observation import ListenerUsage, ThreadSchedule

# --- of a machine -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not available, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a machine is: sections of facts, each a value or the reason why there is none.

    docs/reference/json.md lists them. ``forced``: what was found unfit, or had changed, and was
    measured all the same, in words.
    """

    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)
    forced: tuple[str, ...] = ()

    def fact(self, *path: str) -> object:
        """Return the fact at ``path``, or an Unknown."""
        found: object = self.free
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                return Unknown("not in the fingerprint")
            found = found[name]
        if isinstance(found, Mapping) and set(found) == {"missing"}:
            return Unknown(str(found["missing"]))
        return found


# --- of a search for rates --------------------------------------------------------------------------------


class SearchPart(StrEnum):
    """Whether a rate was tried to find one, or to confirm what was found."""

    SEARCH = "search"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition of an objective that a trial did not meet, as it was typed, and what was measured.

    ``value``: of ``metric``, in the metric's unit; null where it is missing, and then ``reason`` says why.
    """

    condition: str
    metric: str
    value: float | None
    reason: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class RateStep:
    """One rate, in requests per second, and whether it met the objective; null: it is not known.

    Why not: ``unmet``, the first condition that the figures do not meet; or the trial has none, and
    ``reason`` is its outcome's, with the ``stage`` at which the subject failed (null: the trial is not
    valid). Where it is not known whether figures that do not meet a condition are the subject's, there are
    ``unmet`` and the ``reason`` for that. ``limit``: what of the generator may have been the cause; of what
    is not known, null where something else leaves it open too. ``above``: ln(figure / limit) of the condition
    that is missed most, or kept least, below 0 where it is kept; null where that is not known.
    """

    rate_per_s: float
    met: bool | None
    reason: str = field(default="", metadata=OPTIONAL)
    stage: FailureStage | None = field(default=None, metadata=OPTIONAL)
    unmet: Unmet | None = field(default=None, metadata=OPTIONAL)
    limit: Limit | None = field(default=None, metadata=OPTIONAL)
    above: float | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class TrialStep:
    """The step of a search that a trial was."""

    part: SearchPart
    step: RateStep = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class RateBoundary:
    """The rate at which half of the trials meet an objective, and its 95 % interval."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float


@dataclass(frozen=True, slots=True)
class RateTest:
    """A rate in fresh trials: ``met`` of ``of`` met the objective; of ``unknown`` more it is not known."""

    rate_per_s: float
    met: int
    of: int
    unknown: int = field(default=0, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class FoundRate:
    """What was found for one subject: ``rate_per_s`` null when no rate met the objective.

    ``met`` of ``of`` fresh trials at that rate, fixed before them, met it; of ``unknown`` more it is not
    known. ``tests``: these, and the other rates that fresh trials tested, in order. ``boundary``: what all
    trials together say; null where none met it, or all did.
    """

    subject: str
    rate_per_s: float | None
    met: int
    of: int
    steps: tuple[RateStep, ...]
    unknown: int = field(default=0, metadata=OPTIONAL)
    tests: tuple[RateTest, ...] = field(default=(), metadata=OPTIONAL)
    boundary: RateBoundary | None = field(default=None, metadata=OPTIONAL)


# --- of the generator -------------------------------------------------------------------------------------


class Fitness(StrEnum):
    """Whether a generator is fit to measure with on a machine."""

    FIT = "fit"
    LIMITS = "fit with limits"
    NOT_FIT = "not fit"


@dataclass(frozen=True, slots=True)
class GeneratorFitness:
    """The load engine's calibration on a machine: whether it is fit, and what of it is not.

    ``ceilings``: by the number of connections, the replies per second that one thread reached.
    """

    level: Fitness
    reasons: tuple[str, ...]
    ceilings: Mapping[str, float]
    made_unix_s: int

    def ceiling(self, connections: int, threads: int) -> float | None:
        """Return the ceiling with at least so many connections; None beyond those, and with several threads.

        >>> GeneratorFitness(Fitness.FIT, (), {"10": 5e4, "100": 6e4}, 0).ceiling(20, 1)
        60000.0
        """
        known = sorted((int(count), rate) for count, rate in self.ceilings.items())
        return next((rate for count, rate in known if count >= connections), None) if threads == 1 else None


@dataclass(frozen=True, slots=True)
class Floor:
    """An A/A effect that 95 of 100 do not exceed: of a metric, a class of load and a number of blocks."""

    metric: str
    load: str
    blocks: int
    effect: float


# --- of a run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why there are no more blocks, in ``words``. ``rule``: a Decision, ``budget`` or ``length``."""

    rule: str
    blocks: int
    words: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run decided. ``stopped``: where it looked at its figures. ``found_rates``: where it searched.

    ``left_out``: by a cell's id, why its generator is not here or cannot make its load. ``generator``: the
    load engine's calibration on the machine. ``forced``: the user accepts figures that may not be valid.
    ``command``: what to type for the same study in a new archive, without secrets; empty: not known.
    """

    stopped: Stopped | None = field(default=None, metadata=OPTIONAL)
    found_rates: tuple[FoundRate, ...] = field(default=(), metadata=OPTIONAL)
    left_out: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    generator: GeneratorFitness | None = field(default=None, metadata=OPTIONAL)
    forced: bool = field(default=False, metadata=OPTIONAL)
    command: str = field(default="", metadata=OPTIONAL)
    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)


# --- of a subject -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """What the catalogue declares of a server or a frontend under the chosen settings.

    ``backlog``: the listen queue that it asks for. ``keep_alive``: whether it keeps connections open, for
    ``keep_alive_idle_s``. ``slots``: how many requests it works on at once, in all its ``processes``.
    """

    backlog: int | None = field(default=None, metadata=OPTIONAL)
    keep_alive: bool | None = field(default=None, metadata=OPTIONAL)
    keep_alive_idle_s: int | None = field(default=None, metadata=OPTIONAL)
    processes: int | None = field(default=None, metadata=OPTIONAL)
    slots: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class FrontendFacts:
    """What stands in front of a server; ``settings`` are all of them, defaults included."""

    name: str
    version: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubjectFacts:
    """What else is known of a subject. ``declared``: of what the load meets, the frontend where there is one;
    ``behind_it`` is then the server. ``services``: their versions. ``remarks``: what the catalogue says, by
    entry. ``entry``: all that the catalogue and the app say of it, by which a study that goes on is compared.
    """

    declared: DeclaredFacts = field(default=DeclaredFacts(), metadata=INLINE)
    frontend: FrontendFacts | None = field(default=None, metadata=OPTIONAL)
    behind_it: DeclaredFacts | None = field(default=None, metadata=OPTIONAL)
    services: Mapping[str, str | None] = field(default_factory=dict, metadata=OPTIONAL)
    remarks: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    entry: Mapping[str, object] | None = field(default=None, metadata=OPTIONAL)
    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)

    @property
    def of_server(self) -> DeclaredFacts:
        """What is declared of the server itself, behind a frontend or not."""
        return self.behind_it or self.declared


# --- of a trial -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PilotStep:
    """What a load of ``seconds`` on a fresh server shows of the warm-up of the cell ``cell_id``.

    ``after_s``: after so many seconds its pace no longer changed; null where it ``changes`` at the end still,
    or where that is unknown, with the ``reason``.
    """

    cell_id: int
    seconds: int
    changes: bool = False
    after_s: int | None = None
    reason: str = field(default="", metadata=OPTIONAL)


class CloseLook(StrEnum):
    """What a subject is looked at for in a trial of its own, because it disturbs. Public: `--confirm` and
    archives have these names.
    """

    SWITCHES = "switches"
    """When each of its threads got and left a CPU, by the kernel's own records."""
    GIL = "gil"
    """Whether CPython's lock is held, by a sampling profiler where there is one."""


@dataclass(frozen=True, slots=True)
class CloseView:
    """What a close look saw of the subject of the plan's cell ``cell_id``; ``threads``: the busiest first."""

    cell_id: int
    threads: tuple[ThreadSchedule, ...] = field(default=(), metadata=OPTIONAL)


class CodeKind(StrEnum):
    """Whose code it is. Public: the report's JSON and archives hold these names."""

    APP = "app"
    LIBRARY = "library"
    """The framework, and other packages beside the server."""
    SERVER = "server"
    RUNTIME = "runtime"
    """The runtime's work for all code: its garbage collection."""


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A function that uses the CPU, with what it calls. ``share``: of all samples."""

    kind: CodeKind
    function: str
    """Of a module that is not the app's with the module's name: `ssl.create_default_context`."""
    place: str
    """The line of the app that calls it, or is in it: `app.py:12`; of Node.js where a function of the
    app begins that calls it; empty where the app does not call it.
    """
    share: float


@dataclass(frozen=True, slots=True)
class HotCode:
    """Where a server's CPU went while its stacks were sampled, in a load after the window.

    ``shares``: by whose code it is, of ``samples``; ``hottest``: without the server's own. ``slowed``: by
    which share its rate fell meanwhile; null: an open loop. ``missing``: why there is none of this.
    """

    samples: int = 0
    shares: Mapping[CodeKind, float] = field(default_factory=dict, metadata=OPTIONAL)
    hottest: tuple[HotSpot, ...] = field(default=(), metadata=OPTIONAL)
    slowed: float | None = field(default=None, metadata=OPTIONAL)
    missing: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class AskedProgram:
    """A program of this machine that a subject asks: a part of it, which Prony did not start."""

    role: str
    """`database`, `cache` or `service`."""
    name: str
    """Of its process; empty: who listens there may not be seen, and none of its CPU is in any figure."""
    place: str
    """Where it listens."""
    connections: int
    """The most that were open to it at a look."""
    idle_cores: float | None = field(default=None, metadata=OPTIONAL)
    """The CPU that it uses without load, which no figure of a request has; null: not measured."""


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A program that used CPU time in a window: none of the subject's, of those that it asks, of Prony's."""

    name: str
    """Of its processes."""
    share: float
    """Of the time of the trial's CPUs (0 to 1), wherever on the machine it ran."""


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What was learnt of a trial's sandbox and surroundings.

    ``strays``: how many of its processes might run on other CPUs than the server's when the window closed.
    ``listeners``: each listening socket in its fullest state of the window. ``find_rate``: in a search, what
    it says of its rate. ``pilot``: of a pilot, what it says of its cell's warm-up. ``close``: of a close
    look, what it saw. ``asked``: programs of this machine that the subject asks. ``others``: the busiest of
    the other programs, the busiest first. ``code``: where its CPU went; null where it was not at the limit of
    its CPU, or nobody looked.
    """

    strays: int | None = field(default=None, metadata=OPTIONAL)
    listeners: tuple[ListenerUsage, ...] = field(default=(), metadata=OPTIONAL)
    find_rate: TrialStep | None = field(default=None, metadata=OPTIONAL)
    pilot: PilotStep | None = field(default=None, metadata=OPTIONAL)
    close: CloseView | None = field(default=None, metadata=OPTIONAL)
    asked: tuple[AskedProgram, ...] = field(default=(), metadata=OPTIONAL)
    others: tuple[OtherProgram, ...] = field(default=(), metadata=OPTIONAL)
    code: HotCode | None = field(default=None, metadata=OPTIONAL)
    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """What the generator reported while it ran; ``monotonic_ns``: when, where it says so."""

    event: str
    monotonic_ns: int | None = field(default=None, metadata=OPTIONAL)
    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)

"""The result of one measurement of one cell; what spoils one that is not the subject's doing.

>>> Failed(FailureStage.START, "the port is taken").stage
<FailureStage.START: 'start'>
>>> Fault(FaultKind.OTHER_LOAD, share=0.26).kind.is_of_environment
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from prony.core.errors import FailureStage
from prony.model.facts import Fingerprint, RunFacts, SubjectFacts, TrialEvent, TrialFacts
from prony.model.observation import LogTail, Sample, Slice, ThreadUsage
from prony.model.recording import Recording
from prony.model.sandbox import Placement, SandboxFacts


class FaultKind(StrEnum):
    """Where a fault lies. Public: archives hold these names."""

    SLEPT = "slept"
    STOLEN_TIME = "stolen-time"
    OTHER_LOAD = "other-load"
    SANDBOX = "sandbox"
    GENERATOR = "generator"
    NO_RECORDING = "no-recording"
    INTERRUPTED = "interrupted"
    LITTLES_LAW = "littles-law"
    PRONY = "prony"

    @property
    def is_of_environment(self) -> bool:
        """Whether the machine around the trial did it: another attempt may be spared."""
        return self in (FaultKind.SLEPT, FaultKind.STOLEN_TIME, FaultKind.OTHER_LOAD, FaultKind.SANDBOX)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its figures; null: its kind has none.

    ``slept_ns``: how long the machine slept within the window. ``share``: of stolen time and other load, of
    all time of the trial's CPUs (0 to 1); of Little's law, the residual over what was expected (-1 to 1 and
    more). ``text``: what was said by the part that failed; of kinds without such, what came with the fault.
    """

    kind: FaultKind
    slept_ns: int | None = None
    share: float | None = None
    text: str | None = None


class TrialRole(StrEnum):
    """Why a trial was run."""

    SUBJECT = "subject"
    CALIBRATION = "calibration"
    CROSS_CHECK = "cross-check"
    FIND_RATE = "find-rate"
    PILOT = "pilot"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Ok:
    """The trial ran its window, whatever the server answered."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The subject's fault: what it was about, and why it failed."""

    stage: FailureStage
    reason: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The generator's or the environment's fault: the trial says nothing about the subject."""

    reason: str


Outcome = Ok | Failed | Invalid
Parts = tuple[Literal["ok", "failed", "invalid"], FailureStage | None, str | None]


def outcome_parts(outcome: Outcome) -> Parts:
    """Return the name of an outcome, the stage at which it failed, and its reason; None where it has none."""
    match outcome:
        case Ok():
            return "ok", None, None
        case Failed(stage, reason):
            return "failed", stage, reason
        case Invalid(reason):
            return "invalid", None, reason


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one cell, as it is archived.

    ``recording`` is null when there was no load. ``nuisances`` holds what was randomised without being
    tested. ``command`` is the exact command line. ``*_unix_ns`` are wall-clock stamps. ``counters`` are
    kernel counters of the trial's namespace, as deltas over the window; a counter that could not be read
    is absent and named in ``missing``, with its reason. ``fault``: what the machine, the generator or
    Prony did that makes the trial invalid or, if it counts anyway, disturbed it. ``facts``: observations
    about its sandbox and environment. ``slices``: of the same cell in the rounds of its block, on a server
    that was started for them; in a block that has rounds alone they are all that there is.
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
    recording: Recording | None = None
    samples: tuple[Sample, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    log: LogTail = LogTail("")
    events: tuple[TrialEvent, ...] = ()
    threads: tuple[ThreadUsage, ...] = ()
    facts: TrialFacts = TrialFacts()
    fault: Fault | None = None
    slices: tuple[Slice, ...] = ()

    @property
    def is_of_rounds(self) -> bool:
        """Whether its block has rounds alone: it has no window of its own."""
        return self.recording is None and bool(self.slices) and isinstance(self.outcome, Ok)


# --- what an archive holds beside the central types -------------------------------------------------------


class RunStatus(StrEnum):
    """How a run ended. A run starts as ``INTERRUPTED``, so that a killed one stays so."""

    INTERRUPTED = "interrupted"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation that measured into the archive; a resumed study has several."""

    id: int
    prony_version: str
    started_unix_ns: int
    ended_unix_ns: int | None
    status: RunStatus
    fingerprint: Fingerprint
    """The machine."""
    facts: RunFacts = RunFacts()
    """What it decided."""


@dataclass(frozen=True, slots=True)
class SubjectRecord:
    """A subject as it was resolved on this machine, or why it is unavailable. ``command_line`` is what a
    person types to start it, quoted for a shell, with paths that make sense outside a sandbox; ``settings``
    are all settings, defaults included; ``sandbox`` says what was enforced. ``unavailable`` is null, or the
    reason why it has no trials.
    """

    name: str
    server_version: str | None = None
    interpreter: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    lock_digest: str | None = None
    settings: Mapping[str, int | str] = field(default_factory=dict)
    command_line: str | None = None
    sandbox: SandboxFacts = SandboxFacts()
    facts: SubjectFacts = SubjectFacts()
    unavailable: str | None = None
    entry_digest: str | None = None
    """SHA-256 of what the catalogue and the app declare, so that a resumed study measures the same subject.
    """


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial with its place in the archive."""

    id: int
    run_id: int
    trial: Trial

"""Whether a trial counts: only this module decides it.

Faults of the subject are data, whatever else happened. After a fault of the generator or of Prony nothing can
count. A disturbance by the machine invalidates the trial, unless the user accepts it as this machine's usual
state. Pure. Must not know how a trial is run or repeated.

>>> in_words(Fault(FaultKind.OTHER_LOAD, share=0.26))
'other programs used 26% of the CPUs of server and generator'
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from prony.analysis.environment_faults import environment_fault
from prony.errors import FailureStage
from prony.model import Failed, Fault, FaultKind, Invalid, Ok, Outcome, Recording, Trial
from prony.units import MILLISECOND_NS, seconds

__all__ = ["FAULT_WORDS", "Circumstances", "in_words", "judge"]

# Little's law: the engine's integral of requests in flight against its own stamps. They measure the same
# thing, so a larger difference means that one of them is wrong; no smaller one makes a trial invalid.
MAX_LITTLE_RESIDUAL = 0.10
# ... but both are integers of a clock: with next to nothing in flight the ratio says nothing.
MIN_LITTLE_INTEGRAL_NS = 50 * MILLISECOND_NS

FAULT_WORDS: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.SLEPT: "the machine slept for {} within the window",
        FaultKind.STOLEN_TIME: "the hypervisor gave {} of the CPUs' time to others",
        FaultKind.OTHER_LOAD: "other programs used {} of the CPUs of server and generator",
        FaultKind.SANDBOX: "{}",
        FaultKind.GENERATOR: "the generator: {}",
        FaultKind.NO_RECORDING: "the generator returned no recording",
        FaultKind.INTERRUPTED: "interrupted",
        FaultKind.LITTLES_LAW: "Little's law is off by {}: the generator's own figures disagree",
        FaultKind.PRONY: "a fault in Prony: {}",
    }
)
"""A fault of each kind, with a place for its figure or its text: what an archive keeps of one trial, and what
reports say of several.
"""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts of a trial beside its figures.

    ``broke``: the fault of sandbox, generator or Prony that ended it; null: none. ``left``: how many of its
    processes could not be killed. ``counts_disturbed``: a trial that the machine disturbed counts, and
    is flagged.
    """

    broke: Fault | None = None
    left: int = 0
    counts_disturbed: bool = False


def judge(trial: Trial, known: Circumstances) -> Trial:
    """Return a trial, whose outcome so far describes only the subject, with final outcome and fault."""
    if isinstance(trial.outcome, Failed):
        return replace(trial, outcome=_with_left(trial.outcome, known.left))
    broke = known.broke or _generator_fault(trial.recording)
    around = broke if broke and broke.kind.is_of_environment else environment_fault(trial)
    fault = around or broke
    outcome = _with_left(Invalid(in_words(broke)) if broke else Ok(), known.left)
    if isinstance(outcome, Failed):
        return replace(trial, outcome=outcome)
    if around and isinstance(outcome, Ok) and not known.counts_disturbed:
        outcome = Invalid(in_words(around))
    return replace(trial, outcome=outcome, fault=fault)


def in_words(fault: Fault) -> str:
    """Return a fault in words, with its figures."""
    return FAULT_WORDS[fault.kind].format(_figure(fault))


def _figure(fault: Fault) -> str:
    match fault.kind:
        case FaultKind.SLEPT:
            return f"{seconds(fault.slept_ns or 0):.1f} s"
        case FaultKind.LITTLES_LAW:
            return f"{fault.share or 0.0:+.0%}"
        case FaultKind.STOLEN_TIME | FaultKind.OTHER_LOAD:
            return f"{fault.share or 0.0:.0%}"
        case _:
            return fault.text or ""


def _generator_fault(recording: Recording | None) -> Fault | None:
    """Return the fault that makes a recording useless, from the recording itself."""
    if recording is None:
        return Fault(FaultKind.NO_RECORDING)
    if recording.window.interrupted:
        return Fault(FaultKind.INTERRUPTED)
    little = recording.little
    residual = little.residual
    large = (little.in_flight_integral_ns or 0) > MIN_LITTLE_INTEGRAL_NS
    if residual is not None and large and abs(residual) > MAX_LITTLE_RESIDUAL:
        return Fault(FaultKind.LITTLES_LAW, share=residual)
    return None


def _with_left(outcome: Outcome, left: int) -> Outcome:
    """Return ``outcome`` with the processes that could not be killed: they disturb later trials."""
    if not left:
        return outcome
    processes = "process that" if left == 1 else "processes that"
    told = f"it left {left} {processes} could not be killed and may still run"
    match outcome:
        case Ok():
            return Failed(FailureStage.STOP, told)
        case Failed(stage, reason):
            return Failed(stage, f"{reason}; {told}")
        case Invalid(reason):
            return Invalid(f"{reason}; {told}")

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
from typing import overload

from prony.analysis.environment_faults import environment_fault
from prony.errors import FailureStage
from prony.model.fault import Fault, FaultKind
from prony.model.recording import Recording
from prony.model.trial import Failed, Invalid, Ok, Trial
from prony.units import MILLISECOND_NS, seconds

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

_WITH_TEXT = (FaultKind.SANDBOX, FaultKind.GENERATOR, FaultKind.PRONY)


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
    left = _left(known.left)
    if isinstance(trial.outcome, Failed):
        return replace(trial, outcome=replace(trial.outcome, reason=_joined(trial.outcome.reason, left)))
    broke = known.broke or _generator_fault(trial.recording)
    if left and not broke:
        return replace(trial, outcome=Failed(FailureStage.STOP, left))
    fault = _together(broke, environment_fault(trial), left)
    if fault is None or (not broke and known.counts_disturbed):
        return replace(trial, outcome=Ok(), fault=fault)
    return replace(trial, outcome=Invalid(in_words(fault)), fault=fault)


def in_words(fault: Fault) -> str:
    """Return a fault in words, with its figures and what came with it."""
    said = FAULT_WORDS[fault.kind].format(_figure(fault))
    return said if fault.kind in _WITH_TEXT else _joined(said, fault.text)


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
    residual = off_little(recording)
    return None if residual is None else Fault(FaultKind.LITTLES_LAW, share=residual)


def off_little(recording: Recording) -> float | None:
    """Return by which share a recording breaks Little's law; null where it holds, or next to nothing was in
    flight.

    *Definition*: the integral of requests in flight over that of the requests' own times, less one.
    *Source*: Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9 (1961).
    """
    little = recording.little
    residual = little.residual
    large = (little.in_flight_integral_ns or 0) > MIN_LITTLE_INTEGRAL_NS
    return residual if residual is not None and large and abs(residual) > MAX_LITTLE_RESIDUAL else None


def _together(broke: Fault | None, around: Fault | None, left: str | None) -> Fault | None:
    """Return one fault for all: the machine's comes first, since another attempt may be spared it."""
    if broke is None or around is None or broke.kind.is_of_environment:
        fault, also = broke or around, left
    else:
        fault, also = around, _joined(in_words(broke), left)
    return replace(fault, text=_joined(fault.text, also)) if fault and also else fault


def _left(count: int) -> str | None:
    """Return what the processes that could not be killed are; null: there is none."""
    if not count:
        return None
    processes = "process that" if count == 1 else "processes that"
    return f"it left {count} {processes} could not be killed and may still run"


@overload
def _joined(first: str, also: str | None) -> str: ...
@overload
def _joined(first: str | None, also: str | None) -> str | None: ...
def _joined(first: str | None, also: str | None) -> str | None:
    return "; ".join(filter(None, (first, also))) or None

"""Why trials do not count, grouped by cause.

Must not know words: a fault with a figure is a kind and the range of its figure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prony.analysis.summary import TrialFigures
from prony.errors import FailureStage
from prony.model.fault import Fault, FaultKind
from prony.model.shown import INTERNAL, shown_as
from prony.model.trial import Failed, Invalid, Outcome


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial ended."""

    outcome: Literal["ok", "failed", "invalid"]
    stage: FailureStage | None
    reason: str | None


def ended(outcome: Outcome) -> Ended:
    """Return how a trial ended."""
    match outcome:
        case Failed(stage, reason):
            return Ended("failed", stage, reason)
        case Invalid(reason):
            return Ended("invalid", None, reason)
        case _:
            return Ended("ok", None, None)


@dataclass(frozen=True, slots=True)
class Cause:
    """The outcome of trials with the same cause: ``outcome`` of the first."""

    outcome: Outcome = field(metadata=INTERNAL)
    fault: FaultKind | None = None
    """The kind of fault where it has a figure, which lies from `low` to `high`: a share (0 to 1) or, of a
    machine that slept, nanoseconds; all three null else.
    """
    low: float | None = None
    high: float | None = None
    also: str | None = None
    """What came with each fault."""

    @shown_as("")
    def ended(self) -> Ended:
        """Return how the first of the trials ended."""
        return ended(self.outcome)

    @property
    def differs(self) -> bool:
        """Whether the trials have different figures, so that the outcome's own words describe only one."""
        return self.low != self.high


def by_cause(trials: Iterable[TrialFigures]) -> tuple[tuple[Cause, tuple[TrialFigures, ...]], ...]:
    """Return the trials by cause, in the order of the first of each."""
    together: dict[object, list[TrialFigures]] = {}
    for trial in trials:
        fault = _fault(trial)
        key = trial.outcome if fault is None else (fault.kind, fault.text)
        together.setdefault(key, []).append(trial)
    return tuple((_cause(found), tuple(found)) for found in together.values())


def _fault(trial: TrialFigures) -> Fault | None:
    """Return the fault that makes a trial not valid; null if it has no figure."""
    fault = trial.fault
    if fault is None or figure_of(fault) is None:
        return None
    return fault if isinstance(trial.outcome, Invalid) else None


def figure_of(fault: Fault) -> float | None:
    """Return the figure of a fault; null where its kind has none."""
    return fault.share if fault.slept_ns is None else fault.slept_ns


def _cause(trials: Sequence[TrialFigures]) -> Cause:
    outcome, fault = trials[0].outcome, _fault(trials[0])
    if fault is None:
        return Cause(outcome)
    found = [figure for trial in trials if trial.fault and (figure := figure_of(trial.fault)) is not None]
    return Cause(outcome, fault.kind, min(found), max(found), fault.text)

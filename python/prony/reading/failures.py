"""Failures, and whether they are more frequent than elsewhere: trials of a subject, requests by kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

from prony.core.errors import FailureStage
from prony.figures.account import RequestClass, Tally
from prony.figures.by_session import is_failed, more_often, share_of
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.statistics.failure_rates import Failures, adjusted
from prony.figures.summary import CellSummary, TrialFigures
from prony.figures.validity import in_words
from prony.model import shown as of_json
from prony.model.json_codec import INLINE
from prony.model.shown import INTERNAL, shown_as
from prony.model.trial import Fault, FaultKind, Invalid, Outcome, TrialRole, outcome_parts


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial ended."""

    outcome: Literal["ok", "failed", "invalid"]
    stage: FailureStage | None
    reason: str | None


def ended(outcome: Outcome) -> Ended:
    """Return it."""
    return Ended(*outcome_parts(outcome))


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
    """Return the fault that makes a trial not valid; None if it has no figure."""
    fault = trial.fault
    if fault is None or figure_of(fault) is None:
        return None
    return fault if isinstance(trial.outcome, Invalid) else None


def figure_of(fault: Fault) -> float | None:
    """Return the figure of a fault; None where its kind has none."""
    return fault.share if fault.slept_ns is None else fault.slept_ns


def _cause(trials: Sequence[TrialFigures]) -> Cause:
    outcome, fault = trials[0].outcome, _fault(trials[0])
    if fault is None:
        return Cause(outcome)
    found = [figure for trial in trials if trial.fault and (figure := figure_of(trial.fault)) is not None]
    return Cause(outcome, fault.kind, min(found), max(found), fault.text)


_LEVEL = 0.05
_MOST_KINDS = 3


# --- trials -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FailureTest:
    """Whether the trials of ``name`` fail more often than those of ``against``, which fail least."""

    name: str
    against: str
    count: Failures
    least: Failures
    p_value: float
    """Over all pairs of one load (`failure_rates.adjusted`); of two subjects it is that of their comparison.
    """
    level: float
    """Its limit."""
    method: str
    """The test: over the blocks that both have."""
    by_session: bool = False
    """Not trials but the sessions in which some trial failed."""

    @of_json.shown
    def shown(self) -> bool:
        """Whether the difference is shown."""
        return self.p_value <= self.level


def failure_tests(cells: Sequence[CellSummary]) -> tuple[FailureTest, ...]:
    """Return a test for each subject whose trials fail more often than those of the one that fails least;
    none of fewer than five sessions, where trials are of several.

    *Source*: as `failure_rates.adjusted`. The one that fails least is chosen from the data, so all pairs are
    one family.
    """
    tried = [cell for cell in cells if cell.total]
    by_session = any(cell.by_session is not None for cell in cells)
    ranked = sorted(tried, key=lambda cell: share_of(cell, is_failed))
    pairs = {
        (one.name, other.name): more_often(one, other, is_failed) for one, other in combinations(ranked, 2)
    }
    p_values = adjusted(pairs)
    method = "exact test over all subjects"
    return tuple(
        FailureTest(
            name=name,
            against=ranked[0].name,
            count=found.second,
            least=found.first,
            p_value=p_values[ranked[0].name, name],
            level=_LEVEL,
            method=found.method if len(ranked) == 2 else method,
            by_session=by_session,
        )
        for name in (cell.name for cell in tried if cell is not ranked[0])
        for found in [pairs[ranked[0].name, name]]
        if found.second.share > found.first.share and (found.first.total >= LEAST_BLOCKS or not by_session)
    )


@dataclass(frozen=True, slots=True)
class FailedAlike:
    """Trials of one cell that do not count for the same reason, and in which blocks they were (from 0)."""

    cause: Cause = field(metadata=INLINE)
    blocks: tuple[int, ...]
    trials: tuple[TrialFigures, ...] = field(metadata=of_json.INTERNAL)


def failed_alike(cell: CellSummary) -> tuple[FailedAlike, ...]:
    """Return the trials of a cell that do not count, grouped by reason."""
    return tuple(
        FailedAlike(cause, tuple(sorted(trial.block for trial in trials)), trials)
        for cause, trials in by_cause(cell.others)
    )


@dataclass(frozen=True, slots=True)
class CauseCount:
    """A cause, and how many trials had it."""

    cause: Cause = field(metadata=INLINE)
    trials: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """How many trials the machine disturbed, so that they were repeated, by cause, most first."""

    trials: int
    causes: tuple[CauseCount, ...]


def repeated(trials: Sequence[TrialFigures]) -> Repeated | None:
    """Return which of all ``trials`` were repeated at the end of their block; None where none was."""
    last = {(trial.cell_id, trial.block, trial.role): trial for trial in trials}
    thrown = [
        trial
        for trial in trials
        if trial.role is TrialRole.SUBJECT
        and isinstance(trial.outcome, Invalid)
        and last[trial.cell_id, trial.block, trial.role] is not trial
    ]
    return Repeated(len(thrown), _most_first(thrown)) if thrown else None


@dataclass(frozen=True, slots=True)
class Attempts:
    """How many trials a search ran, repeats included, and how many of them were disturbed or not valid, by
    cause, most first.
    """

    trials: int
    disturbed: int
    causes: tuple[CauseCount, ...]


def search_attempts(trials: Sequence[TrialFigures]) -> Attempts | None:
    """Return what the trials of a search suffered; None without a search."""
    own = [trial for trial in trials if trial.role is TrialRole.FIND_RATE]
    disturbed = [one for one in map(_as_invalid, own) if isinstance(one.outcome, Invalid)]
    return Attempts(len(own), len(disturbed), _most_first(disturbed)) if own else None


def _most_first(trials: Sequence[TrialFigures]) -> tuple[CauseCount, ...]:
    counts = (CauseCount(cause, len(found)) for cause, found in by_cause(trials))
    return tuple(sorted(counts, key=lambda one: -one.trials))


def _as_invalid(trial: TrialFigures) -> TrialFigures:
    """Return a trial that counts by the user's word, though it was disturbed, as what it would be without."""
    fault = trial.fault
    if fault is None or not fault.kind.is_of_environment:
        return trial
    return replace(trial, outcome=Invalid(in_words(fault)))


# --- requests ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FailedRequests:
    """Requests of a cell that failed so: ``share`` of all."""

    endings: tuple[RequestClass, ...] = field(metadata=of_json.INTERNAL)
    """How; several are the rarest together."""
    requests: int
    share: float
    carried_in: int | None = None
    """How many of them the windows found open; null: the generator does not report that."""

    @of_json.shown
    def classes(self) -> tuple[str, ...]:
        """The classes of the account."""
        return tuple(one.key for one in self.endings)


def failed_by_class(cell: CellSummary) -> tuple[FailedRequests, ...]:
    """Return the requests of a cell that failed, by class, most first; what is beyond the most frequent ones
    together.
    """
    tally = cell.account
    kinds = sorted(cell.account.failed.items(), key=lambda kind: (-kind[1], kind[0].key))
    few = kinds if len(kinds) <= _MOST_KINDS + 1 else kinds[:_MOST_KINDS]
    parts: Iterable[Sequence[tuple[RequestClass, int]]] = [*([kind] for kind in few), kinds[len(few) :]]
    return tuple(_together(part, tally) for part in parts if part)


def _together(kinds: Sequence[tuple[RequestClass, int]], tally: Tally) -> FailedRequests:
    endings = tuple(ending for ending, _ in kinds)
    count = sum(count for _, count in kinds)
    carried = None
    if tally.carried_in is not None:
        carried = sum(tally.carried_failed.get(ending, 0) for ending in endings)
    return FailedRequests(endings, count, count / tally.requests, carried)

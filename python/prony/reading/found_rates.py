"""The highest rate of each subject that meets an objective, as the last search of a study found it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prony.analysis.failure_rates import clopper_pearson
from prony.analysis.found_rates import found_rate
from prony.model import Run
from prony.model.facts import FoundRate, RateStep, SearchPart, TrialStep

__all__ = ["Confirmed", "SearchEnd", "confirmed_rates"]


class SearchEnd(StrEnum):
    """What ended a search."""

    NOTHING_TRIED = "nothing tried"
    UNDECIDED = "undecided"
    NONE_MET = "none met"
    NO_HIGHER_TRIED = "no higher tried"
    NEXT_UNMET = "next unmet"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The result of a search for one subject: ``rate_per_s`` null where no rate met the objective.

    ``met`` of ``of`` fresh trials at that rate met it, and of ``unknown`` more it is not known; ``low`` and
    ``high``: the exact 95 % interval of that share, null without one. ``end``: what ended the search,
    ``ended_by``: the step that did, null without one; ``steps``: the rates that were tried. ``at_least``: the
    lowest higher rate that was tried could not be decided, or none was tried, so the rate is a bound.
    """

    subject: str
    rate_per_s: float | None
    met: int
    of: int
    unknown: int
    low: float | None
    high: float | None
    end: SearchEnd
    ended_by: RateStep | None
    steps: tuple[RateStep, ...]
    at_least: bool


def confirmed_rates(
    runs: Sequence[Run], tried: Sequence[tuple[str, TrialStep]] = ()
) -> tuple[Confirmed, ...]:
    """Return what the last run that searched found, for each subject; empty without a search.

    ``tried``: the steps of trials with their subjects, in order; they are all that a search that was
    interrupted has left.
    """
    found = next((run.facts.found_rates for run in reversed(runs) if run.facts.found_rates), ())
    return tuple(map(_confirmed, found or _unfinished(tried)))


def _unfinished(tried: Sequence[tuple[str, TrialStep]]) -> Iterator[FoundRate]:
    for name in dict.fromkeys(name for name, _ in tried):
        own = {
            part: [one.step for subject, one in tried if subject == name and one.part is part]
            for part in SearchPart
        }
        yield found_rate(name, own[SearchPart.SEARCH], own[SearchPart.CONFIRMATION])


def _confirmed(found: FoundRate) -> Confirmed:
    is_share = found.rate_per_s is not None and 0 < found.of >= found.met
    low, high = clopper_pearson(found.met, found.of) if is_share else (None, None)
    end, by = _end(found.steps, found.rate_per_s)
    counts = (found.met, found.of, found.unknown)
    at_least = found.rate_per_s is not None and end is not SearchEnd.NEXT_UNMET
    return Confirmed(found.subject, found.rate_per_s, *counts, low, high, end, by, found.steps, at_least)


def _end(steps: Sequence[RateStep], rate: float | None) -> tuple[SearchEnd, RateStep | None]:
    above = [step for step in steps if not step.met and (rate is None or step.rate_per_s > rate)]
    if not above:
        return (SearchEnd.NOTHING_TRIED if rate is None else SearchEnd.NO_HIGHER_TRIED), None
    lowest = min(above, key=lambda step: step.rate_per_s)
    if lowest.met is None:
        return SearchEnd.UNDECIDED, lowest
    return (SearchEnd.NONE_MET if rate is None else SearchEnd.NEXT_UNMET), lowest

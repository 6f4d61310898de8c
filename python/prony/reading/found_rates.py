"""The highest rate of each subject that meets an objective, as the last search of a study found it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import hypot, log
from statistics import NormalDist

from prony.analysis.failure_rates import clopper_pearson
from prony.analysis.find_rate import is_confirmed
from prony.analysis.found_rates import found_rate
from prony.analysis.standings import letters
from prony.model.facts import FoundRate, RateBoundary, RateStep, RateTest, SearchPart, TrialStep
from prony.model.records import Run

_Z = NormalDist().inv_cdf(0.975)


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
    ``boundary``: the rate at which half of all trials meet it; null where the rate is a bound. ``tests``: the
    rates that fresh trials tested, in order. ``letters``: two that share one are not separated; empty where
    there is nothing to compare.
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
    boundary: RateBoundary | None = None
    tests: tuple[RateTest, ...] = ()
    letters: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether not most of the fresh trials met the objective, so that the rate is none that meets it."""
        return self.of > 0 and not is_confirmed(RateTest(self.rate_per_s or 0.0, self.met, self.of))

    @property
    def highest_per_s(self) -> float:
        """The rate by which subjects are ordered; 0 where none met the objective."""
        return (self.boundary.rate_per_s if self.boundary else self.rate_per_s) or 0.0


def confirmed_rates(
    runs: Sequence[Run], tried: Sequence[tuple[str, TrialStep]] = ()
) -> tuple[Confirmed, ...]:
    """Return what the last run that searched found, for each subject: the best first, those last that fresh
    trials refute; empty without a search.

    ``tried``: the steps of trials with their subjects, in order; they are all that a search that was
    interrupted has left.
    """
    found = next((run.facts.found_rates for run in reversed(runs) if run.facts.found_rates), ())
    best = sorted(map(_confirmed, found or _unfinished(tried)), key=_order)
    marks = _letters([(one.subject, one.boundary) for one in best if one.boundary])
    return tuple(replace(one, letters=marks.get(one.subject, "")) for one in best)


def _order(one: Confirmed) -> tuple[bool, float]:
    return one.is_refuted or one.rate_per_s is None, -one.highest_per_s


def _letters(known: Sequence[tuple[str, RateBoundary]]) -> dict[str, str]:
    """Return letters for subjects with an interval; none for one alone.

    *Definition*: two are separated where the difference of their ln rates is more than z times the root of
    the sum of their squared errors; z is the normal quantile of 5 % in all pairs together (Bonferroni).
    *Assumptions*: what is known of a boundary is about normal on the scale of ln rate.
    """
    pairs = list(combinations(known, 2))
    z = NormalDist().inv_cdf(1 - 0.025 / max(1, len(pairs)))
    different = [
        (one, other)
        for (one, first), (other, second) in pairs
        if abs(log(first.rate_per_s / second.rate_per_s)) > z * hypot(_error(first), _error(second))
    ]
    return letters([name for name, _ in known], different) if pairs else {}


def _error(found: RateBoundary) -> float:
    """Return the standard error of ln rate that the interval stands for."""
    return log(found.high_per_s / found.low_per_s) / (2 * _Z)


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
    known = (found.rate_per_s, *counts, low, high, end, by, found.steps, at_least)
    return Confirmed(found.subject, *known, None if at_least else found.boundary, found.tests)


def _end(steps: Sequence[RateStep], rate: float | None) -> tuple[SearchEnd, RateStep | None]:
    above = [step for step in steps if not step.met and (rate is None or step.rate_per_s > rate)]
    if not above:
        return (SearchEnd.NOTHING_TRIED if rate is None else SearchEnd.NO_HIGHER_TRIED), None
    lowest = min(above, key=lambda step: step.rate_per_s)
    if lowest.met is None:
        return SearchEnd.UNDECIDED, lowest
    return (SearchEnd.NONE_MET if rate is None else SearchEnd.NEXT_UNMET), lowest

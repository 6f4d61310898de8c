"""The highest rate at which a subject meets an objective: the rates that were tried, and their results.

Pure: the trials hold a search's state, so an interrupted search continues where it stopped. Must
not know how a trial is run, nor words: reports make them.

>>> steps = (RateStep(100.0, True), RateStep(200.0, False), RateStep(150.0, True))
>>> found_rate("waitress", steps, ()).rate_per_s
150.0
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log

from prony.analysis.find_rate import best_confirmed, boundary_of, rate_tests
from prony.analysis.load_condition import ConditionResult, LoadCondition, judge_condition
from prony.analysis.objective import Condition, Objective
from prony.analysis.trial_metrics import trial_metrics
from prony.metrics import PERCENTILES
from prony.model.facts import FoundRate, RateStep, RateTest, Unmet
from prony.model.limit import Limit
from prony.model.trial import Failed, Invalid, Ok, Trial

_FEWEST_ABOVE = 10
"""A percentile is a figure only when this many requests lie above it."""

_NO_LOAD = "there was no load"
_SPARE = 1.1
# A search that halves its rate ten times would wait for hours otherwise.
_LONGEST_S = 300.0


def judge_rate(trial: Trial, objective: Objective, rate_per_s: float) -> RateStep:
    """Return whether a trial at this rate met the objective.

    *Definition*: a subject that fails does not meet it. A trial that is not valid leaves it unknown, and so
    does a condition that cannot be decided (too few requests for a percentile; a figure that the generator's
    limit may have set, see `judge_condition`), unless another condition is not met. What is unknown has the
    generator's limit only where that alone leaves it open: then a lower rate can show more.
    """
    limit = trial.recording.generator.verdict.strongest if trial.recording else None
    match trial.outcome:
        case Failed(stage, reason):
            return RateStep(rate_per_s, False, reason=reason, stage=stage, limit=limit)
        case Invalid(reason):
            return RateStep(rate_per_s, None, reason=reason)
        case Ok():
            return _judged(trial, objective, rate_per_s, limit)


def _judged(trial: Trial, objective: Objective, rate_per_s: float, limit: Limit | None) -> RateStep:
    if trial.recording is None:
        return RateStep(rate_per_s, None, reason=_NO_LOAD)
    metrics = trial_metrics(trial)
    found = [
        judge_condition(_bound(one), trial.recording, metrics, is_limited=limit is not None)
        for one in objective.conditions
    ]
    missed = next((one for one in found if one.holds is False), None)
    if missed is not None:
        above = _above(found, met=False)
        return RateStep(rate_per_s, False, unmet=_unmet(missed), limit=limit, above=above)
    doubtful = [one for one in found if one.holds is None]
    if doubtful:
        return _undecided(doubtful, rate_per_s, limit)
    return RateStep(rate_per_s, True, limit=limit, above=_above(found, met=True))


def _above(found: Sequence[ConditionResult], *, met: bool) -> float | None:
    """Return how far above its limit the worst figure is, as `RateStep.above`; null where one is infinite, or
    where none that has an upper limit decides.
    """
    upper = [one for one in found if one.condition.operator.startswith("<")]
    if any(one.value is None for one in upper):
        return None
    known = [log(one.value / one.condition.limit) for one in upper if one.value and one.condition.limit > 0]
    worst = max(known, default=None)
    return worst if worst is not None and (worst < 0) is met else None


def _undecided(doubtful: Sequence[ConditionResult], rate_per_s: float, limit: Limit | None) -> RateStep:
    """Return the step that some conditions leave open, first by one that no better generator would decide."""
    one = next((one for one in doubtful if not one.by_generator), doubtful[0])
    is_missed = one.value is not None and not one.condition.shown(one.value, one.value)
    unmet = _unmet(replace(one, reason=None)) if is_missed else None
    own = limit if one.by_generator else None
    return RateStep(rate_per_s, None, reason=one.reason or "", unmet=unmet, limit=own)


def _bound(condition: Condition) -> LoadCondition:
    return LoadCondition(condition.text, condition.metrics, condition.operator, condition.limit)


def _unmet(found: ConditionResult) -> Unmet:
    return Unmet(found.condition.text, found.metric, found.value, found.reason or "")


def found_rate(subject: str, steps: Sequence[RateStep], fresh: Sequence[RateStep]) -> FoundRate:
    """Return the result of the search's steps and the fresh trials after it for one subject.

    The rate is the highest that most of its fresh trials met, else the last that was tested; without fresh
    trials the highest that met it in the search.
    """
    tests = rate_tests(fresh)
    tried = max((step.rate_per_s for step in steps if step.met), default=None)
    test = best_confirmed(tests) or (None if tried is None else RateTest(tried, 0, 0))
    if test is None:
        return FoundRate(subject, None, 0, 0, tuple(steps))
    counts = (test.met, test.of, tuple(steps), test.unknown)
    return FoundRate(subject, test.rate_per_s, *counts, tests, boundary_of((*steps, *fresh)))


def window_for(objective: Objective, rate_per_s: float, usual_s: float) -> float:
    """Return how long a window must be for the objective's percentiles to be figures at a rate, in seconds;
    ``usual_s`` if that is enough.

    *Definition*: as ``least_rate``, with a tenth more, because arrivals at random may be fewer; at most the
    longest that a step may take (5 min), where the step stays unknown.
    """
    needed = least_rate(objective, 1.0) / rate_per_s
    return (
        usual_s
        if needed <= usual_s
        else min(max(usual_s, _LONGEST_S), float(ceil(round(needed * _SPARE, 6))))
    )


def least_rate(objective: Objective, window_s: float) -> float:
    """Return the least rate at which the objective's percentiles are figures, in requests per second.

    *Definition*: of n requests in the window, n (1 - p) >= 10.
    """
    shares = [_share_above(name) for condition in objective.conditions for name in condition.metrics]
    # Rounded: 1 - 0.999 is a little less than a thousandth.
    fewest = (ceil(round(_FEWEST_ABOVE / share, 6)) for share in shares if share)
    return max((count / window_s for count in fewest), default=0.0)


def _share_above(metric: str) -> float | None:
    found = next((value for suffix, value in PERCENTILES.items() if metric.endswith(f"_{suffix}")), None)
    return 1 - float(found) / 100 if found else None

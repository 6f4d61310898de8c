"""The search for the highest rate at which a server meets an objective: which rate to try next, and what all
that were tried say about it.

Its state is the steps alone: the same steps give the same next rate, so a search that was interrupted goes on
where it stopped.

>>> next_rate((), first_rate=100, most_rate=10_000)
100.0
>>> steps = (RateStep(100.0, True), RateStep(200.0, True), RateStep(400.0, False))
>>> 200 < next_rate(steps, first_rate=100, most_rate=10_000) < 400
True

>>> steps = (RateStep(100.0, True), RateStep(200.0, False), RateStep(150.0, True))
>>> found_rate("waitress", steps, ()).rate_per_s
150.0
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from prony.core.metrics import PERCENTILES
from prony.figures.objective import ConditionResult, Objective, judge_condition
from prony.figures.trial_metrics import trial_metrics
from prony.model.facts import FoundRate, RateBoundary, RateStep, RateTest, Unmet
from prony.model.limit import Limit
from prony.model.trial import Failed, Invalid, Ok, Trial

# From the first rate down to a thousandth of it: a server that passes at none of these cannot serve at all.
_MOST_HALVINGS = 10
# Windows between a rate that met it and one that did not, at most; fewer once the interval is this narrow.
_MOST_WITHIN = 11
_NARROW = 0.08
# Two rates this close are the same: another five trials would not separate them.
_STEP = 0.03
MOST_TESTS = 2
"""Rates of one subject that fresh trials test, at most."""
# Most of the fresh trials should meet it, and no rate far below the boundary is wanted.
_EXPECTED = 0.6
# The last rate tested should not be refuted too.
_EXPECTED_AFTER = 0.75

# The model, see `boundary_of`. One window in ten may be hit by a stall; a server is lucky less often.
_SPOILT, _LUCKY = 0.1, 0.01
_SPREADS = np.array([0.005, 0.012, 0.03, 0.06, 0.12])
_SLOPES = np.array([0.8, 1.5, 3.0, 6.0, 15.0])
_STEEP = 1 / 3
# Figures within a factor of two of the limit: a line through farther ones would not be straight.
_NEAR = log(2)
_LEVELS = np.linspace(0.05, 0.95, 10) * _NEAR
_NOISE = np.array([0.01, 0.03, 0.07, 0.2])
_GRID = 0.005
_BESIDE = log(2)
_NO_WEIGHT = 1e-7
_SD_OF_LOGISTIC = np.pi / np.sqrt(3)

_Floats = NDArray[np.float64]


def next_rate(steps: Sequence[RateStep], first_rate: float, most_rate: float) -> float | None:
    """Return the rate to try after ``steps``; None where the search is over.

    *Units*: requests per second.
    *Definition*: ``first_rate``, then its doubles up to ``most_rate`` until one is not met, or its halves (at
    most ten) until one is met. From then on the median of where the boundary may lie (`boundary_of`), which
    tests again whatever a single window has decided, until the half of its 95 % interval is at most 8 % or
    eleven windows were spent so. A step that only the generator leaves open counts as not met. No rate comes
    twice.
    *Errors*: ValueError, unless 0 < ``first_rate`` <= ``most_rate``.
    *Source*: Horstein, "Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory 9 (1963);
    Watson and Pelli, "QUEST", Perception & Psychophysics 33 (1983).
    """
    if not 0 < first_rate <= most_rate:
        raise ValueError(f"cannot search from {first_rate:g}/s to {most_rate:g}/s")
    known = _known(steps)
    met, unmet = _rates(known, met=True), _rates(known, met=False)
    if not known:
        return float(first_rate)
    if not unmet:
        return min(2 * max(met), float(most_rate)) if max(met) < most_rate else None
    if not met:
        return min(unmet) / 2 if len(unmet) <= _MOST_HALVINGS else None
    return _between(known, most_rate)


def _between(known: Sequence[RateStep], most_rate: float) -> float | None:
    both = next(k for k in range(len(known)) if len({one.met is True for one in known[: k + 1]}) == 2)
    belief = _believed(tuple(known))
    low, middle, high = belief.quantiles(0.025, 0.5, 0.975)
    if len(known) - (both + 1) >= _MOST_WITHIN or (high - low) / 2 <= _NARROW:
        return None
    return _untried(min(exp(middle), most_rate), known)


def _untried(rate: float, known: Sequence[RateStep]) -> float:
    """Return a rate of four digits next to this one, at which nothing has been tried."""
    tried, found = {one.rate_per_s for one in known}, _rounded(rate)
    while found in tried:
        found = _rounded(found * 0.998)
    return found


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


def _known(steps: Sequence[RateStep]) -> tuple[RateStep, ...]:
    """Return the steps that say something: what the generator alone leaves open is not met for the search."""
    return tuple(one for one in steps if one.met is not None or one.limit is not None)


def _rates(steps: Sequence[RateStep], *, met: bool) -> list[float]:
    return [one.rate_per_s for one in steps if (one.met is True) is met]


# --- fresh trials -----------------------------------------------------------------------------------------


def next_test(steps: Sequence[RateStep], fresh: Sequence[RateStep]) -> float | None:
    """Return the rate to test in fresh trials, after those in ``fresh``; None where nothing is left to test.

    *Definition*: first the highest rate that 60 % of the trials may be expected to meet, by all windows so
    far (`boundary_of`); without one that did not meet it, the highest that did. Where all fresh trials meet
    it, the same again, if that is at least 3 % higher; where not most of them do, one that 75 % may be
    expected to meet, at least 3 % lower. After two rates it ends.
    """
    tests, known = rate_tests(fresh), _known((*steps, *fresh))
    met = _rates(known, met=True)
    if not met or len(tests) >= MOST_TESTS:
        return None
    best = _expected(known, _EXPECTED) if _rates(known, met=False) else max(met)
    if not tests:
        return best
    last = tests[-1]
    if last.met == last.of:
        return best if last.of and best >= last.rate_per_s * (1 + _STEP) else None
    if is_confirmed(last):
        return None
    return min(_expected(known, _EXPECTED_AFTER), _rounded(last.rate_per_s / (1 + _STEP)))


def _expected(known: Sequence[RateStep], share: float) -> float:
    return _rounded(exp(_believed(tuple(known)).highest(share)))


def rate_tests(fresh: Sequence[RateStep]) -> tuple[RateTest, ...]:
    """Return how many fresh trials met each rate, in the order in which rates were tested.

    A fresh trial of which nothing is known counts apart: it is none that did not meet the objective.
    """
    return tuple(_test(rate, fresh) for rate in dict.fromkeys(one.rate_per_s for one in fresh))


def _test(rate: float, fresh: Sequence[RateStep]) -> RateTest:
    found = [one.met for one in fresh if one.rate_per_s == rate]
    known = [one for one in found if one is not None]
    return RateTest(rate, sum(known), len(known), len(found) - len(known))


def is_confirmed(test: RateTest) -> bool:
    """Return whether most of the fresh trials met the objective.

    >>> is_confirmed(RateTest(100.0, met=1, of=2))
    False
    """
    return 2 * test.met > test.of


def best_confirmed(tests: Sequence[RateTest]) -> RateTest | None:
    """Return the highest rate that most of its fresh trials met, else the one tested last; None without."""
    good = [one for one in tests if is_confirmed(one)]
    return max(good, key=lambda one: one.rate_per_s) if good else next(reversed(tests), None)


# --- what the windows say ---------------------------------------------------------------------------------


def boundary_of(steps: Sequence[RateStep]) -> RateBoundary | None:
    """Return the rate at which half of the trials meet the objective, with its 95 % interval; None without a
    trial that met it and one that did not.

    *Definition*: with x = ln rate, a trial meets the objective where x is less than its own boundary. That is
    logistic about the common one, theta, with the standard deviation s; but a tenth of the windows miss it at
    any rate (a stall), and a hundredth meet it at any. Where the curve is smooth, ln(figure / limit) rises by
    b for each unit of x, so a figure within a factor of two of the limit also says how far away that trial's
    boundary was; on a step it says nothing more. The rate is the median of exp(theta) given all trials, the
    interval holds the middle 95 % of it, over s (0.5 to 12 %), b (0.8 to 15), and both kinds of curve.
    Before, a step is one case of three, and theta is anywhere within a factor of two around the rates tried.
    *Assumptions*: what passes at one rate passes at all below it, but for chance; windows are independent of
    each other. The median and the interval are Bayesian: `bench/verdicts found` shows how often it covers.
    *Source*: Watson and Pelli, "QUEST", Perception & Psychophysics 33 (1983); Wichmann and Hill, "The
    psychometric function I", Perception & Psychophysics 63 (2001), for windows that miss at any rate.
    """
    known = _known(steps)
    if not _rates(known, met=True) or not _rates(known, met=False):
        return None
    low, middle, high = _believed(known).quantiles(0.025, 0.5, 0.975)
    return RateBoundary(*(_rounded(exp(one)) for one in (middle, low, high)))


@dataclass(frozen=True, slots=True)
class _Belief:
    """How likely each boundary is, with each spread: ``weights`` of shape (boundaries, spreads), sum 1."""

    boundaries: _Floats
    weights: _Floats

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the boundaries below which these shares lie."""
        sums = np.cumsum(self.weights.sum(axis=1))
        return tuple(float(one) for one in np.interp(shares, sums, self.boundaries + _GRID / 2))

    def highest(self, share: float) -> float:
        """Return the highest ln rate that at least this share of trials may be expected to meet."""
        least, most = self.quantiles(0.001, 0.999)
        rates = np.arange(most, least - 0.2, -_GRID)
        known = self.weights.max(axis=1) > _NO_WEIGHT
        meets = _meets(rates[:, None, None], self.boundaries[known, None])
        expected = (meets * self.weights[known]).sum(axis=(1, 2))
        return float(rates[np.argmax(expected >= share)]) if (expected >= share).any() else least


@lru_cache(maxsize=8)
def _believed(known: tuple[RateStep, ...]) -> _Belief:
    x = np.array([log(one.rate_per_s) for one in known])
    met = np.array([one.met is True for one in known])
    above = np.array([np.inf if one.above is None else one.above for one in known])
    near = np.abs(above) < _NEAR
    boundaries = np.arange(x.min() - _BESIDE, x.max() + _BESIDE, _GRID)
    meets = _meets(x[:, None, None], boundaries[:, None])
    each = np.where(met[:, None, None], meets, 1 - meets)
    far = each[~near].prod(axis=0)
    # The others cost time and have no weight.
    likely = far.max(axis=1) > _NO_WEIGHT * far.max()
    boundaries, each, far = boundaries[likely], each[:, likely], far[likely]
    steep = each[near].prod(axis=0) * _flat(above[near & met]) * _flat(above[near & ~met])
    smooth = _on_lines(x[near], above[near], boundaries)
    found = far * (_STEEP * steep + (1 - _STEEP) * smooth)
    return _Belief(boundaries, found / found.sum())


def _meets(x: _Floats, boundaries: _Floats) -> _Floats:
    """Return the chance that a trial meets the objective; the last axis is that of the spreads."""
    z = (x - boundaries) * _SD_OF_LOGISTIC / _SPREADS
    chance: _Floats = _LUCKY + (1 - _SPOILT - _LUCKY) * 0.5 * (1 - np.tanh(z / 2))
    return chance


def _logistic(distance: _Floats, spread: _Floats) -> _Floats:
    scale = spread / _SD_OF_LOGISTIC
    tail = np.exp(-np.abs(distance) / scale)
    density: _Floats = tail / (1 + tail) ** 2 / scale
    return density


def _on_lines(x: _Floats, above: _Floats, boundaries: _Floats) -> _Floats:
    """Return the likelihood of figures on a smooth curve, over all slopes; of shape (boundaries, spreads)."""
    own = x[:, None, None, None] - above[:, None, None, None] / _SLOPES[:, None]
    density = _logistic(own - boundaries[:, None, None], _SPREADS) / _SLOPES[:, None]
    # What stalled lies anywhere above the limit.
    other = np.where(above > 0, _SPOILT, _LUCKY)[:, None, None, None] / (2 * _NEAR)
    product: _Floats = ((1 - _SPOILT) * density + other).prod(axis=0).mean(axis=1)
    return product


def _flat(above: _Floats) -> float:
    """Return the likelihood of figures on one side of a step, where they lie about one level, any of them."""
    each = _logistic(np.abs(above)[:, None, None] - _LEVELS[:, None], _NOISE)
    return float(each.prod(axis=0).mean())


# --- the highest rate at which a subject meets an objective -----------------------------------------------


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
        judge_condition(one, trial.recording, metrics, is_limited=limit is not None)
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
    """Return how far above its limit the worst figure is, as `RateStep.above`; None where one is infinite, or
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
    is_missed = one.value is not None and not one.condition.holds(one.value)
    unmet = _unmet(replace(one, reason=None)) if is_missed else None
    own = limit if one.by_generator else None
    return RateStep(rate_per_s, None, reason=one.reason or "", unmet=unmet, limit=own)


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

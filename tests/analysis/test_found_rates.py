"""What a search for a rate says of each trial, and of the subject at its end."""

import pytest

from cells import cell_of
from golden import build
from prony.analysis.found_rates import found_rate, judge_rate, least_rate
from prony.analysis.objective import parse_objective
from prony.model import Failed, Invalid, OpenLoop
from prony.model.facts import FoundRate, RateStep

CELL = cell_of("a+hello", OpenLoop(1000))
MEASURED = build.trial(CELL, 0, 0, [1_000_000] * 2000)


def judged(trial, objective="p99 < 2ms"):
    return judge_rate(trial, parse_objective(objective), 1000.0)


# --- a trial ----------------------------------------------------------------------------------------------


def test_a_trial_that_meets_all_conditions_meets_the_objective():
    assert judged(MEASURED) == RateStep(1000.0, True)


def test_a_trial_that_does_not_says_which_condition_and_what_was_measured():
    found = judged(MEASURED, "errors < 1%, p99 < 0.5ms, p50 < 0.1ms")
    assert (found.rate_per_s, found.met) == (1000.0, False)
    assert found.reason == "not `p99 < 0.5ms`: it was 1.00 ms"


def test_a_figure_that_is_missing_does_not_meet_it():
    found = judged(MEASURED, "p99.99 < 2ms")
    assert (found.rate_per_s, found.met) == (1000.0, False)
    assert found.reason == "not `p99.99 < 2ms`: fewer than 10 requests lie above it"


def test_a_subject_that_fails_does_not_meet_it():
    failed = build.trial(CELL, 0, 0, [], outcome=Failed("load", "it died"))
    assert judged(failed) == RateStep(1000.0, False, "it failed at load: it died")


def test_of_a_trial_that_is_not_valid_nothing_can_be_told():
    spoilt = build.trial(CELL, 0, 0, [], outcome=Invalid("the machine slept"))
    assert judged(spoilt) == RateStep(1000.0, None, "the machine slept")


@pytest.mark.parametrize(("objective", "met"), [("p99 < 2ms", True), ("p99 < 0.5ms", False)])
def test_a_limit_of_the_generator_is_told_whatever_came_of_it(objective, met):
    found = judged(build.trial(CELL, 0, 0, [1_000_000] * 2000, limited="cpu"), objective)
    assert (found.met, found.limited) == (met, "cpu")


# --- a search ---------------------------------------------------------------------------------------------


def test_the_rate_is_the_highest_that_met_it_and_fresh_trials_are_counted():
    steps = (RateStep(100.0, True), RateStep(200.0, True), RateStep(400.0, False, "p99 was 80 ms"))
    fresh = [RateStep(200.0, True), RateStep(200.0, False, "x"), RateStep(200.0, None, "y")]
    told = "200/s met it; 400/s did not: p99 was 80 ms"
    assert found_rate("a", steps, fresh) == FoundRate("a", 200.0, 1, 3, told, steps)


@pytest.mark.parametrize(
    ("steps", "rate", "stopped"),
    [
        ((), None, ""),
        ((RateStep(100.0, True),), 100.0, "100/s met it, and no higher rate was tried"),
        (
            (RateStep(100.0, False, "x"), RateStep(50.0, False, "y")),
            None,
            "no rate met it, down to 50/s: y",
        ),
        (
            (RateStep(100.0, True), RateStep(200.0, None, "it slept")),
            100.0,
            "at 200/s the search could not decide: it slept",
        ),
        (
            (RateStep(100.0, True), RateStep(400.0, False, "x"), RateStep(200.0, False, "y")),
            100.0,
            "100/s met it; 200/s did not: y",
        ),
        (
            (RateStep(100.0, False, "x"), RateStep(150.0, True)),
            150.0,
            "150/s met it, and no higher rate was tried",
        ),
        (
            (RateStep(100.0, True), RateStep(200.0, False, "x", "cpu")),
            100.0,
            "100/s met it; 200/s did not: x (the generator may have been the limit: cpu)",
        ),
    ],
)
def test_what_ended_a_search_is_told(steps, rate, stopped):
    found = found_rate("a", steps, ())
    assert (found.rate_per_s, found.stopped) == (rate, stopped)


# --- where it begins --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "window_s", "rate"),
    [
        ("p50 < 1s", 10, 2.0),
        ("p99 < 1s", 10, 100.0),
        ("p99.9 < 1s", 10, 1000.0),
        ("p50 < 1s, p99 < 1s", 5, 200.0),
        ("errors < 1%", 10, 0.0),
    ],
)
def test_at_the_least_rate_ten_requests_lie_above_each_percentile(objective, window_s, rate):
    assert least_rate(parse_objective(objective), window_s) == rate

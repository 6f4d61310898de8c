"""What a search for a rate says of each trial, and of the subject at its end."""

from dataclasses import replace
from math import log

import pytest

from cells import cell_of
from golden import build
from prony.core.errors import FailureStage
from prony.figures.find_rate import found_rate, judge_rate, least_rate, window_for
from prony.figures.objective import parse_objective
from prony.model.facts import FoundRate, RateStep, RateTest
from prony.model.limit import Limit, LimitKind
from prony.model.trial import Failed, Invalid
from prony.model.workload import OpenLoop
from recordings import with_parts

CELL = cell_of("a+hello", OpenLoop(1000))
CPU = Limit(LimitKind.BUSY, share=0.93)
MEASURED = build.trial(CELL, 0, 0, [1_000_000] * 2000)


def judged(trial, objective="p99 < 2ms"):
    return judge_rate(trial, parse_objective(objective), 1000.0)


# --- a trial ----------------------------------------------------------------------------------------------


def test_a_trial_that_meets_all_conditions_meets_the_objective():
    found = judged(MEASURED)
    assert found == RateStep(1000.0, True, above=pytest.approx(log(0.5), abs=0.01))


def test_a_trial_that_does_not_says_which_condition_and_what_was_measured():
    found = judged(MEASURED, "errors < 1%, p99 < 0.5ms, p50 < 0.1ms")
    assert (found.rate_per_s, found.met) == (1000.0, False)
    assert (found.unmet.condition, found.unmet.metric) == ("p99 < 0.5ms", "response_all_p99")
    assert found.unmet.value == pytest.approx(1e6, rel=0.001)


def test_a_figure_that_is_missing_leaves_it_unknown():
    assert judged(MEASURED, "p99.99 < 2ms") == RateStep(1000.0, None, "fewer than 10 requests lie above it")


def test_a_condition_that_is_not_met_decides_whatever_is_missing_for_others():
    found = judged(MEASURED, "p99.99 < 2ms, p99 < 0.5ms")
    assert (found.met, found.unmet.condition) == (False, "p99 < 0.5ms")


def test_a_subject_that_fails_does_not_meet_it():
    failed = build.trial(CELL, 0, 0, [], outcome=Failed(FailureStage.LOAD, "it died"))
    assert judged(failed) == RateStep(1000.0, False, "it died", FailureStage.LOAD)


def test_of_a_trial_that_is_not_valid_nothing_can_be_told():
    spoilt = build.trial(CELL, 0, 0, [], outcome=Invalid("the machine slept"))
    assert judged(spoilt) == RateStep(1000.0, None, "the machine slept")


@pytest.mark.parametrize(
    ("objective", "met"),
    [
        ("p99 < 2ms", True),
        ("p99 < 0.5ms", None),
        ("rps > 900", True),
        ("rps > 1100", None),
        ("errors < 1%", True),
        ("cpu < 80%", True),
        ("errors < 1%, p99 < 0.5ms", None),
    ],
)
def test_what_misses_the_objective_under_a_limit_of_the_generator_decides_nothing(objective, met):
    found = judged(build.trial(CELL, 0, 0, [1_000_000] * 2000, limited=CPU), objective)
    assert (found.met, found.limit) == (met, CPU)


@pytest.mark.parametrize(
    ("objective", "met"),
    [("errors < 1%", None), ("success > 99%", None), ("cpu < 80%", None), ("cpu < 20%", False)],
)
def test_cpu_and_errors_do_not_meet_it_where_the_generator_sent_less_than_was_due(objective, met):
    trial = build.trial(CELL, 0, 0, [1_000_000] * 2000, limited=CPU)
    late = with_parts(trial.recording, generator={"sent_in_window": 1200})
    found = judged(replace(trial, recording=late), objective)
    assert (found.met, found.limit, found.unmet is None) == (met, CPU, met is None)


@pytest.mark.parametrize("objective", ["p99.99 < 2ms", "p99 < 0.5ms, p99.99 < 2ms"])
def test_the_limit_is_no_cause_where_too_few_requests_leave_it_open_too(objective):
    found = judged(build.trial(CELL, 0, 0, [1_000_000] * 2000, limited=CPU), objective)
    assert found == RateStep(1000.0, None, "fewer than 10 requests lie above it")


def test_the_limit_is_no_cause_where_the_trial_is_not_valid():
    trial = build.trial(CELL, 0, 0, [1_000_000] * 2000, limited=CPU)
    found = judged(replace(trial, outcome=Invalid("the machine slept")))
    assert found == RateStep(1000.0, None, "the machine slept")


def test_errors_under_a_limit_of_the_generator_do_not_meet_it():
    failing = build.trial(CELL, 0, 0, [1_000_000] * 1900, errors={"reset": 100}, limited=CPU)
    found = judged(failing, "p50 < 0.5ms, errors < 1%")
    assert (found.met, found.unmet.condition) == (False, "errors < 1%")


def test_what_cannot_be_decided_says_what_was_measured_and_why():
    found = judged(build.trial(CELL, 0, 0, [1_000_000] * 2000, limited=CPU), "p99 < 0.5ms")
    assert found.unmet.condition == "p99 < 0.5ms"
    assert found.unmet.value == pytest.approx(1e6, rel=0.001)
    assert found.reason == "the generator may have been the limit"


@pytest.mark.parametrize(("objective", "met"), [("success > 99%", None), ("success > 90%", True)])
def test_requests_that_the_generator_could_not_send_may_have_succeeded(objective, met):
    own = build.trial(CELL, 0, 0, [1_000_000] * 1900, errors={"client_no_descriptor": 100})
    assert judged(own, objective).met is met


@pytest.mark.parametrize(
    ("objective", "above"),
    [
        ("p99 < 2ms, p50 < 4ms", log(0.5)),
        ("p99 < 2ms, p50 < 0.5ms", log(2)),
        ("p99 < 2ms, rps > 1000000", None),
        ("rps > 900", None),
        ("errors < 1%", None),
    ],
)
def test_a_step_keeps_how_far_its_worst_figure_is_from_the_limit(objective, above):
    found = judged(MEASURED, objective).above
    assert found == (None if above is None else pytest.approx(above, abs=0.01))


# --- a search ---------------------------------------------------------------------------------------------


def test_the_rate_is_the_highest_that_met_it_and_fresh_trials_are_counted():
    steps = (RateStep(100.0, True), RateStep(200.0, True), RateStep(400.0, False))
    fresh = [RateStep(200.0, True), RateStep(200.0, False, "x"), RateStep(200.0, None, "y")]
    found = found_rate("a", steps, fresh)
    assert (found.rate_per_s, found.met, found.of, found.unknown) == (200.0, 1, 2, 1)
    assert found.tests == (RateTest(200.0, 1, 2, 1),)
    assert found.boundary.low_per_s < found.boundary.rate_per_s < found.boundary.high_per_s


def test_fresh_trials_of_which_nothing_is_known_do_not_count_against_the_rate():
    fresh = [*[RateStep(200.0, True)] * 3, *[RateStep(200.0, None, "it slept")] * 2]
    found = found_rate("a", (RateStep(200.0, True),), fresh)
    assert (found.met, found.of, found.unknown) == (3, 3, 2)


def test_where_no_rate_meets_it_there_is_none():
    steps = (RateStep(100.0, False), RateStep(50.0, None))
    assert found_rate("a", steps, ()) == FoundRate("a", None, 0, 0, steps)


# --- how long a window is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "window_s"), [(1000.0, 10.0), (100.0, 10.0), (50.0, 22.0), (10.0, 110.0), (0.1, 300.0)]
)
def test_a_window_with_too_few_requests_for_the_percentile_is_longer(rate, window_s):
    assert window_for(parse_objective("p99 < 1s"), rate, 10.0) == window_s


def test_an_objective_without_percentiles_needs_no_longer_window():
    assert window_for(parse_objective("errors < 1%"), 0.1, 10.0) == 10.0


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

"""The search for a rate comes near the truth, with few trials, whatever noise and stalls there are."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import searches
from prony.figures.find_rate import (
    best_confirmed,
    boundary_of,
    is_confirmed,
    next_rate,
    next_test,
    rate_tests,
)
from prony.model.facts import RateStep, RateTest
from prony.model.limit import Limit, LimitKind

COUNT, SEED = 400, 13
# Each is a kind of curve of its own.
SERVERS = [("M/D/1", 0.0), ("M/D/1", 0.1), ("step", 0.1), ("cliff", 0.1), ("step, sharp", 0.0)]


def drive(passes, first=100, most=10_000):
    """Return what was tried."""
    steps = ()
    while (rate := next_rate(steps, first, most)) is not None:
        steps += (RateStep(rate, passes(rate)),)
    return steps


def rates(steps):
    return [one.rate_per_s for one in steps]


def fresh(rate, met, of=5):
    return [RateStep(rate, k < met) for k in range(of)]


# --- how good it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("curve", "stalls"), SERVERS)
def test_it_comes_within_five_per_cent_and_its_interval_covers_the_truth(curve, stalls):
    found = searches.quality(curve, stalls, COUNT, SEED)
    assert found.close >= 0.90
    assert found.covered >= 0.93
    assert found.confirmed > 0.85
    assert found.windows <= 19


@pytest.mark.parametrize(("curve", "stalls"), SERVERS)
@pytest.mark.parametrize("k", [2, 8])
def test_of_equal_servers_few_studies_give_two_that_have_no_letter_in_common(curve, stalls, k):
    found = searches.searches(curve, stalls, COUNT, SEED)
    # So many searches are COUNT / k studies.
    error = sqrt(0.05 * 0.95 * k / COUNT)
    assert searches.told_apart(found, k, COUNT) <= 0.05 + error


def test_a_stall_at_the_first_rate_does_not_cap_the_search():
    tried = []

    def passes(rate):
        tried.append(rate)
        return rate <= 430 and len(tried) > 1

    found = boundary_of(drive(passes, first=250))
    assert found.low_per_s <= 430 <= found.high_per_s
    assert found.rate_per_s == pytest.approx(430, rel=0.05)


# --- which rate comes next --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.floats(200, 5_000), st.floats(100, 1000))
def test_without_noise_the_boundary_lies_in_the_interval_whatever_it_is(boundary, first):
    steps = drive(lambda rate: rate <= boundary, first)
    found = boundary_of(steps)
    assert found.rate_per_s == pytest.approx(boundary, rel=0.08)
    assert found.low_per_s / 1.01 <= boundary <= found.high_per_s * 1.01
    assert len(set(rates(steps))) == len(steps) <= 8 + 11


def test_it_doubles_until_one_is_not_met():
    assert rates(drive(lambda rate: rate <= 590))[:4] == [100, 200, 400, 800]


def test_it_goes_down_when_the_first_rate_is_too_high():
    tried = rates(drive(lambda rate: rate <= 30))
    assert tried[:3] == [100, 50, 25]
    assert all(25 < rate < 50 for rate in tried[3:])


def test_a_server_that_passes_nowhere_has_no_rate():
    steps = drive(lambda _: False)
    assert min(rates(steps)) == 100 / 1024
    assert (boundary_of(steps), next_test(steps, ())) == (None, None)


def test_the_highest_rate_allowed_is_an_answer():
    steps = drive(lambda _: True, most=1000)
    assert rates(steps) == [100, 200, 400, 800, 1000]
    assert (boundary_of(steps), next_test(steps, ())) == (None, 1000)
    assert rates(drive(lambda _: True, most=100)) == [100]


@pytest.mark.parametrize("limits", [(0, 100), (200, 100), (-1, 100), (float("nan"), 100)])
def test_limits_without_a_rate_between_them_are_refused(limits):
    with pytest.raises(ValueError, match="cannot search"):
        next_rate((), *limits)


def test_the_same_steps_give_the_same_next_rate():
    steps = drive(lambda rate: rate <= 590)
    for done in range(len(steps)):
        assert next_rate(steps[:done], 100, 10_000) == steps[done].rate_per_s


def test_what_only_the_generator_leaves_open_sends_the_search_down_and_other_doubt_says_nothing():
    limit = Limit(LimitKind.BUSY, share=0.95)
    assert next_rate([RateStep(100.0, None, limit=limit)], 100, 1e4) == 50
    assert next_rate([RateStep(100.0, None, "it slept")], 100, 1e4) == 100


# --- fresh trials -----------------------------------------------------------------------------------------


STEPS = drive(lambda rate: rate <= 590)


def test_the_rate_tested_first_is_one_that_most_trials_should_meet():
    first = next_test(STEPS, ())
    assert 0.9 * 590 < first < boundary_of(STEPS).rate_per_s


def test_it_goes_up_again_where_all_fresh_trials_meet_a_rate_that_was_too_low():
    stalled = (RateStep(100.0, True), *(RateStep(rate, False) for rate in (200.0, 140.0, 120.0)))
    first = next_test(stalled, ())
    assert next_test(stalled, fresh(first, 5)) >= first * 1.03


def test_it_goes_down_where_not_most_of_them_do_and_ends_after_two_rates():
    first = next_test(STEPS, ())
    second = next_test(STEPS, fresh(first, 2))
    assert second <= first / 1.029
    assert next_test(STEPS, [*fresh(first, 2), *fresh(second, 2)]) is None


@pytest.mark.parametrize("met", [3, 4])
def test_it_ends_where_most_of_them_do(met):
    assert next_test(STEPS, fresh(next_test(STEPS, ()), met)) is None


def test_fresh_trials_of_which_nothing_is_known_end_it():
    first = next_test(STEPS, ())
    assert next_test(STEPS, [RateStep(first, None, "it slept")] * 5) is None


def test_the_answer_is_the_highest_rate_that_most_fresh_trials_met():
    tests = rate_tests([*fresh(100.0, 5), *fresh(110.0, 2)])
    assert best_confirmed(tests) == RateTest(100.0, 5, 5)
    assert best_confirmed(rate_tests([*fresh(100.0, 2), *fresh(90.0, 1)])) == RateTest(90.0, 1, 5)
    assert best_confirmed(()) is None


@pytest.mark.parametrize(("met", "of", "shown"), [(1, 2, False), (2, 3, True), (1, 1, True), (0, 0, False)])
def test_most_is_more_than_half(met, of, shown):
    assert is_confirmed(RateTest(100.0, met, of)) is shown

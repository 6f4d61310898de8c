"""The search for a rate ends near the boundary, with few trials, whatever the boundary is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.analysis.find_rate import search


def drive(passes, *args):
    """Return the answer, and what was tried."""
    asking, tried = search(*args), []
    try:
        rate = next(asking)
        while True:
            tried.append(rate)
            rate = asking.send(passes(rate))
    except StopIteration as end:
        return end.value, tried


@given(st.floats(0.2, 50_000), st.floats(1, 1000))
def test_the_answer_passed_and_lies_within_the_precision_of_the_boundary(boundary, first):
    found, tried = drive(lambda rate: rate <= boundary, first, 10_000)
    if boundary < first / 1024:
        assert found is None
    else:
        assert found <= boundary
        assert found == 10_000 or boundary <= found * 1.02
    assert max(tried) <= 10_000


@given(st.floats(1, 9_999))
def test_doubling_and_bisection_take_few_trials(boundary):
    _, tried = drive(lambda rate: rate <= boundary, 100, 10_000)
    assert len(tried) <= 8 + 6
    assert len(set(tried)) == len(tried)


def test_it_doubles_then_halves_the_distance():
    found, tried = drive(lambda rate: rate <= 590, 100, 10_000, 0.1)
    assert tried == [100, 200, 400, 800, 600, 500, 550]
    assert found == 550


def test_it_goes_down_when_the_first_rate_is_too_high():
    found, tried = drive(lambda rate: rate <= 30, 100, 10_000, 0.5)
    assert tried == [100, 50, 25, 37.5]
    assert found == 25


def test_a_server_that_passes_nowhere_has_no_rate():
    found, tried = drive(lambda _: False, 100, 10_000)
    assert found is None
    assert min(tried) == 100 / 1024


def test_the_highest_rate_allowed_is_an_answer():
    assert drive(lambda _: True, 100, 1000) == (1000, [100, 200, 400, 800, 1000])
    assert drive(lambda _: True, 100, 100) == (100, [100])


@pytest.mark.parametrize("args", [(0, 100), (200, 100), (-1, 100), (1, 100, 0), (float("nan"), 100)])
def test_limits_without_a_rate_between_them_are_refused(args):
    with pytest.raises(ValueError, match="cannot search"):
        drive(lambda _: True, *args)

"""What ended the search for a rate."""

import pytest

from prony.model.facts import Fingerprint, FoundRate, RateBoundary, RateStep, RunFacts, SearchPart, TrialStep
from prony.model.trial import Run, RunStatus
from prony.reading.saturation import SearchEnd, confirmed_rates

MET = RateStep(100.0, True)


def ended(rate, *steps):
    facts = RunFacts(found_rates=(FoundRate("a", rate, 0, 0, steps),))
    (found,) = confirmed_rates([Run(1, "1", 0, 1, RunStatus.FINISHED, Fingerprint(), facts)])
    return found.end, found.ended_by


def unmet(rate_per_s):
    return RateStep(rate_per_s, False, "x")


@pytest.mark.parametrize(
    ("rate", "steps", "end", "by"),
    [
        (None, (), SearchEnd.NOTHING_TRIED, None),
        (100.0, (MET,), SearchEnd.NO_HIGHER_TRIED, None),
        (150.0, (unmet(100.0), RateStep(150.0, True)), SearchEnd.NO_HIGHER_TRIED, None),
        (None, (unmet(100.0), unmet(50.0)), SearchEnd.NONE_MET, 1),
        (100.0, (MET, unmet(400.0), unmet(200.0)), SearchEnd.NEXT_UNMET, 2),
        (100.0, (MET, unmet(100.0)), SearchEnd.NO_HIGHER_TRIED, None),
        (100.0, (MET, unmet(400.0), RateStep(200.0, None, "it slept")), SearchEnd.UNDECIDED, 2),
        (None, (RateStep(100.0, None, "it slept"),), SearchEnd.UNDECIDED, 0),
        (100.0, (MET, RateStep(400.0, None, "x"), unmet(200.0)), SearchEnd.NEXT_UNMET, 2),
        (None, (RateStep(100.0, None, "x"), unmet(50.0)), SearchEnd.NONE_MET, 1),
    ],
)
def test_what_ended_a_search_is_a_step_or_the_want_of_one(rate, steps, end, by):
    assert ended(rate, *steps) == (end, None if by is None else steps[by])


def test_the_interval_is_of_the_fresh_trials_that_could_be_decided():
    facts = RunFacts(found_rates=(FoundRate("a", 100.0, 3, 3, (MET,), unknown=2),))
    (found,) = confirmed_rates([Run(1, "1", 0, 1, RunStatus.FINISHED, Fingerprint(), facts)])
    assert (found.low, found.high) == (pytest.approx(0.2924, abs=1e-4), 1.0)
    assert found.unknown == 2


@pytest.mark.parametrize(
    ("rate", "steps", "at_least"),
    [
        (100.0, (MET,), True),
        (100.0, (MET, RateStep(200.0, None, "x")), True),
        (100.0, (MET, RateStep(200.0, None, "x"), unmet(150.0)), False),
        (100.0, (MET, unmet(200.0)), False),
        (None, (RateStep(200.0, None, "x"),), False),
    ],
)
def test_a_rate_above_which_nothing_was_decided_is_a_bound(rate, steps, at_least):
    facts = RunFacts(found_rates=(FoundRate("a", rate, 0, 0, steps),))
    (found,) = confirmed_rates([Run(1, "1", 0, 1, RunStatus.FINISHED, Fingerprint(), facts)])
    assert found.at_least is at_least


def test_a_search_that_was_interrupted_keeps_its_steps():
    steps = (MET, RateStep(200.0, False))
    tried = [("a", TrialStep(SearchPart.SEARCH, step)) for step in steps]
    (found,) = confirmed_rates([Run(1, "1", 0, None, RunStatus.INTERRUPTED, Fingerprint())], tried)
    assert (found.subject, found.rate_per_s, found.end) == ("a", 100.0, SearchEnd.NEXT_UNMET)
    assert found.steps == steps
    assert (found.met, found.of) == (0, 0)


def searched(*found):
    run = Run(1, "1", 0, 1, RunStatus.FINISHED, Fingerprint(), RunFacts(found_rates=found))
    return confirmed_rates([run])


def known(name, rate, met=4, below=1.05, above=1.05):
    boundary = RateBoundary(rate, rate / below, rate * above)
    return FoundRate(name, rate * 0.98, met, 5, (MET, unmet(2 * rate)), boundary=boundary)


def test_rows_are_in_order_of_the_rate_and_share_letters_where_intervals_do_not_part_them():
    found = searched(known("a", 300.0), known("b", 500.0), known("c", 490.0))
    assert [(one.subject, one.letters) for one in found] == [("b", "a"), ("c", "a"), ("a", "b")]


def letters_of(*found):
    return [one.letters for one in searched(*found)]


def test_they_share_a_letter_where_the_interval_of_the_lower_one_is_wide_upwards():
    lower, higher = known("a", 300.0, below=1.01), known("b", 400.0, above=1.01)
    assert letters_of(lower, higher) == ["a", "b"]
    assert letters_of(known("a", 300.0, below=1.01, above=1.4), higher) == ["a", "a"]
    # What lies on the other side of its rate says nothing of it.
    assert letters_of(known("a", 300.0, below=2.0), known("b", 400.0, above=2.0)) == ["a", "b"]


def test_they_share_a_letter_where_they_differ_by_less_than_the_margin():
    near = {"below": 1.001, "above": 1.001}
    assert letters_of(known("a", 300.0, **near), known("b", 305.0, **near)) == ["a", "a"]
    assert letters_of(known("a", 300.0, **near), known("b", 307.0, **near)) == ["a", "b"]


def test_a_rate_that_not_most_fresh_trials_met_comes_last_but_before_none():
    found = searched(FoundRate("n", None, 0, 0, ()), known("a", 900.0, met=2), known("b", 500.0))
    assert [one.subject for one in found] == ["b", "a", "n"]
    assert [one.is_refuted for one in found] == [False, True, False]


def test_one_subject_alone_and_a_bound_have_no_letters():
    (alone,) = searched(known("a", 300.0))
    assert alone.letters == ""
    bound = FoundRate("b", 400.0, 5, 5, (MET,), boundary=RateBoundary(400.0, 390.0, 410.0))
    assert {one.letters for one in searched(known("a", 300.0), bound)} == {""}
    assert searched(bound)[0].boundary is None

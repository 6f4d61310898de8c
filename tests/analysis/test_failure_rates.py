"""Shares of failed trials: Fisher's and Clopper and Pearson's results agree with scipy's."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.analysis.failure_rates import Failures, clopper_pearson, compare_failures, separated

COUNTS = st.integers(1, 30).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(COUNTS, COUNTS)
def test_fishers_p_value_is_scipys(first, second):
    table = [[first[0], first[1] - first[0]], [second[0], second[1] - second[0]]]
    found = compare_failures(Failures(*first), Failures(*second))
    assert found.p_value == pytest.approx(stats.fisher_exact(table).pvalue, abs=1e-9)


def test_the_lady_tasting_tea_is_not_shown_to_taste_it_with_three_of_four():
    # Fisher (1935), The Design of Experiments, chapter 2: 34 / 70 on both sides.
    found = compare_failures(Failures(3, 4), Failures(1, 4))
    assert found.p_value == pytest.approx(34 / 70)
    assert not found.differs


def test_convicted_twins_are_fishers_own_example():
    # Fisher (1934), section 21.02: one-sided 619 / 1,330,665.
    found = compare_failures(Failures(10, 13), Failures(2, 17))
    assert found.p_value == pytest.approx(0.0005367, abs=1e-7)
    assert found.differs


@given(COUNTS, st.floats(0.01, 0.2))
def test_the_interval_of_a_share_is_scipys(counts, level):
    oracle = stats.binomtest(*counts).proportion_ci(1 - level, method="exact")
    assert clopper_pearson(*counts, level) == pytest.approx((oracle.low, oracle.high), abs=1e-9)


def test_nothing_in_59_is_the_first_that_shows_less_than_one_in_twenty():
    # The rule of three: one-sided 95 %.
    assert clopper_pearson(0, 59, 0.1)[1] < 0.05 < clopper_pearson(0, 58, 0.1)[1]


def by_pairs(counts):
    """Each pair of names, the one that fails less first, with the counts of both."""
    ranked = sorted(counts, key=lambda name: counts[name].share)
    return {pair: tuple(counts[name] for name in pair) for pair in combinations(ranked, 2)}


def test_whoever_fails_least_by_chance_is_separated_from_nobody_in_19_of_20_studies():
    random, studies = Random(3), 1000
    false = 0
    for _ in range(studies):
        counts = {str(k): Failures(sum(random.random() < 0.3 for _ in range(20)), 20) for k in range(6)}
        false += bool(separated(by_pairs(counts)))
    assert false / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_what_fails_in_all_trials_is_separated_from_what_fails_in_none():
    counts = {"a": Failures(0, 10), "b": Failures(10, 10), "c": Failures(1, 10)}
    assert separated(by_pairs(counts)) == {("a", "b"), ("c", "b")}
    # Of five each: enough for one pair, and not for Holm over six.
    five = {"a": Failures(0, 5), "b": Failures(5, 5)}
    assert separated(by_pairs(five)) == {("a", "b")}
    four = {**five, "c": Failures(0, 5), "d": Failures(0, 5)}
    assert separated(by_pairs(four)) == {("a", "b"), ("c", "b"), ("d", "b")}
    assert separated(by_pairs({**four, "e": Failures(0, 5)})) == set()

"""Shares of failed trials: Fisher's and Clopper and Pearson's results agree with scipy's."""

from itertools import combinations
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.figures.statistics.failure_rates import (
    Failures,
    adjusted,
    clopper_pearson,
    compare_failures,
    compare_in_blocks,
    separated,
)

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


# --- two in the same blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [5, 19, 20, 40])
def test_the_number_of_common_blocks_alone_decides_the_test(blocks):
    first, second = ({block: block % 3 == side for block in range(blocks)} for side in (0, 1))
    found = compare_in_blocks(first | {99: True}, second)
    assert found.first.total == blocks
    assert found.method == ("Fisher's exact test" if blocks < 20 else "exact sign test within blocks")


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=20, max_size=40))
def test_the_sign_test_is_scipys(both):
    first, second = (dict(enumerate(side)) for side in zip(*both, strict=True))
    differing = [one for one, other in both if one != other]
    expected = stats.binomtest(sum(differing), len(differing)).pvalue if differing else 1.0
    assert compare_in_blocks(first, second).p_value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("blocks", [5, 10, 20, 40])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_blocks_in_which_more_fails_on_both_sides_are_no_difference(blocks, spread):
    random, studies = Random(blocks), 1000
    false = 0
    for _ in range(studies):
        chances = [1 / (1 + exp(-spread * random.gauss(0, 1))) for _ in range(blocks)]
        both = [{k: random.random() < chances[k] for k in range(blocks)} for _ in range(2)]
        false += compare_in_blocks(*both).differs
    assert false / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_a_difference_that_blocks_hide_is_found_within_them():
    # Both fail in every second block, and one in most of the others.
    steady = {block: block % 2 == 0 for block in range(40)}
    worse = {block: block % 2 == 0 or block in (1, 5, 9, 13, 17, 21, 25, 29) for block in range(40)}
    assert compare_in_blocks(steady, worse).differs
    assert not compare_failures(Failures(20, 40), Failures(28, 40)).differs


# --- all pairs of several ---------------------------------------------------------------------------------


def by_pairs(counts):
    """The comparison of each pair of names, the one that fails less first."""
    ranked = sorted(counts, key=lambda name: counts[name].share)
    return {(a, b): compare_failures(counts[a], counts[b]) for a, b in combinations(ranked, 2)}


def test_whoever_fails_least_by_chance_is_separated_from_nobody_in_19_of_20_studies():
    assert falsely_separated([0.3] * 6, 20) <= 0.05 + 3 * (0.05 * 0.95 / 500) ** 0.5


MIXED = {
    "one always, half at 0.3, the rest never": lambda k: [1.0] + [0.3] * (k // 2) + [0.0] * (k - 1 - k // 2),
    "two at a half, the rest never": lambda k: [0.5] * 2 + [0.0] * (k - 2),
    "half at a half, half at a tenth": lambda k: [0.5] * (k // 2) + [0.1] * (k - k // 2),
}


@pytest.mark.parametrize("rates", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(("subjects", "trials"), [(4, 5), (8, 5), (8, 10), (12, 10), (4, 30)])
def test_equals_are_not_separated_whatever_the_others_do(subjects, trials, rates, spread):
    most = 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    assert falsely_separated(rates(subjects), trials, 200, spread) <= most


def falsely_separated(rates, trials, studies=500, spread=0.0):
    """The share of studies that separate two subjects with the same rate. ``spread``: of the blocks' states,
    on the scale of log odds."""
    random, found = Random(3), 0
    for _ in range(studies):
        states = [exp(spread * random.gauss(0, 1)) for _ in range(trials)]
        failed = [[random.random() < _in_state(rate, one) for one in states] for rate in rates]
        ranked = sorted(range(len(rates)), key=lambda k: sum(failed[k]))
        both = {(str(a), str(b)): _in_blocks(failed[a], failed[b]) for a, b in combinations(ranked, 2)}
        found += any(rates[int(a)] == rates[int(b)] for a, b in separated(both))
    return found / studies


def _in_blocks(first, second):
    return compare_in_blocks(dict(enumerate(first)), dict(enumerate(second)))


def _in_state(rate, odds):
    return rate * odds / (1 - rate + rate * odds)


@pytest.mark.parametrize("subjects", [2, 3, 8, 20])
def test_one_that_always_fails_is_told_from_all_that_never_do_in_five_blocks(subjects):
    # Holm over all pairs of five or more separated nobody.
    counts = {str(k): Failures(5 * (k == 0), 5) for k in range(subjects)}
    assert separated(by_pairs(counts)) == {(str(k), "0") for k in range(1, subjects)}


def test_what_fails_in_all_trials_is_separated_from_what_fails_in_none():
    counts = {"a": Failures(0, 10), "b": Failures(10, 10), "c": Failures(1, 10)}
    assert separated(by_pairs(counts)) == {("a", "b"), ("c", "b")}


@pytest.mark.parametrize("blocks", [10, 20])
def test_of_two_the_p_value_is_that_of_their_comparison_and_only_of_the_one_that_fails_less(blocks):
    often = {k: k % 2 == 0 or k < 8 for k in range(blocks)}
    found = compare_in_blocks({k: k % 2 == 0 for k in range(blocks)}, often)
    assert adjusted({("a", "b"): found}) == {("a", "b"): pytest.approx(found.p_value, abs=1e-12)}
    turned = compare_in_blocks(often, {k: k % 2 == 0 for k in range(blocks)})
    assert adjusted({("b", "a"): turned}) == {("b", "a"): 1.0}


def test_none_is_separated_within_two_that_are_not():
    counts = {"a": Failures(0, 10), "b": Failures(1, 10), "c": Failures(4, 10), "d": Failures(5, 10)}
    found = adjusted(by_pairs(counts))
    assert found["a", "d"] <= min(found["a", "c"], found["b", "d"])
    assert max(found["a", "c"], found["b", "d"]) <= found["b", "c"]


def test_who_ran_in_no_block_with_another_is_not_separated_from_it():
    pairs = by_pairs({"a": Failures(0, 5), "b": Failures(5, 5)})
    nothing = Failures(0, 0)
    none, three = (compare_failures(nothing, one) for one in (nothing, Failures(3, 5)))
    found = separated({**pairs, ("a", "c"): none, ("c", "b"): three})
    assert found == {("a", "b")}

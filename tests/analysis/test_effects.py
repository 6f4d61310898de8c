"""Effects agree with scipy's tests, paired and unpaired."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.analysis.effects import Effect, paired, student_t, unpaired

NUMBERS = st.floats(-0.5, 0.5).map(lambda x: round(x, 6))
RATIOS = st.lists(NUMBERS, min_size=2, max_size=30, unique=True)
CLOSE = {"rel": 1e-9, "abs": 1e-9}


def scipys(values):
    # Against constants, Yuen's two-sample test is the one-sample one: constants add no variance.
    zeros = np.zeros(1000)
    return stats.ttest_ind(values, zeros, equal_var=False, trim=0.2 if len(values) >= 8 else 0)


@given(RATIOS)
def test_a_paired_effect_has_scipys_p_value(values):
    found = paired(values)
    assert found.p_value == pytest.approx(scipys(values).pvalue, **CLOSE)


@given(RATIOS, st.floats(0.001, 0.2))
def test_a_paired_effect_has_scipys_interval(values, level):
    found, oracle = paired(values), scipys(values).confidence_interval(1 - level)
    assert found.interval(level) == pytest.approx((oracle.low, oracle.high), **CLOSE)


@given(RATIOS, RATIOS)
def test_an_unpaired_effect_has_welchs_p_value_and_interval(first, second):
    found, oracle = unpaired(first, second), stats.ttest_ind(second, first, equal_var=False)
    interval = oracle.confidence_interval(0.95)
    assert found.p_value == pytest.approx(oracle.pvalue, **CLOSE)
    assert found.interval(0.05) == pytest.approx((interval.low, interval.high), **CLOSE)
    assert found.freedom == pytest.approx(oracle.df, rel=1e-9)


@given(RATIOS, st.floats(0.001, 0.3))
def test_two_one_sided_tests_are_the_larger_of_scipys_two(values, bound):
    if len(values) >= 8:
        values = values[:7]
    above = stats.ttest_1samp(values, -bound, alternative="greater").pvalue
    below = stats.ttest_1samp(values, bound, alternative="less").pvalue
    assert paired(values).p_within(bound) == pytest.approx(max(above, below), **CLOSE)


@pytest.mark.parametrize(
    ("probability", "freedom", "table"),
    [(0.975, 4, 2.776), (0.975, 9, 2.262), (0.995, 5, 4.032), (0.95, 11, 1.796), (0.9995, 4, 8.610)],
)
def test_quantiles_are_those_of_the_printed_tables(probability, freedom, table):
    assert student_t(probability, freedom) == pytest.approx(table, abs=5e-4)


def test_students_own_example_of_sleep_gained_by_two_drugs():
    # Student (1908), and every textbook since: t = 4.0621 with 9 degrees of freedom, p = 0.00283.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = unpaired(first, second)
    # Welch's, as R's help of t.test prints it: df = 17.776, p = 0.07939.
    assert (found.freedom, found.p_value) == pytest.approx((17.776, 0.07939), abs=5e-4)
    gained = [b - a for a, b in zip(first, second, strict=True)]
    halves = [paired(gained[:5]), paired(gained[5:])]
    assert sum(half.centre for half in halves) / 2 == pytest.approx(1.58)


def test_trimming_leaves_one_wild_block_out():
    calm = [0.01, 0.012, 0.008, 0.011, 0.009, 0.01, 0.013, 0.007, 0.01]
    assert paired([*calm, 0.9]).centre == pytest.approx(0.01, abs=0.001)
    assert paired([*calm, 0.9]).error < 0.002


def test_effects_without_spread_are_certain():
    assert paired([0.0] * 6).p_value == 1
    assert paired([0.1] * 6).p_value == pytest.approx(0, abs=1e-12)
    assert unpaired([1.0] * 5, [1.0] * 4).freedom == 7


def test_the_spread_is_that_of_one_block():
    values = [0.01, 0.03, 0.02, 0.05]
    assert paired(values).spread == pytest.approx(np.std(values, ddof=1))
    assert paired(values).error == pytest.approx(np.std(values, ddof=1) / sqrt(4))


@pytest.mark.parametrize("values", [[], [0.1]])
def test_fewer_than_two_values_have_no_spread(values):
    with pytest.raises(ValueError, match="have no spread"):
        paired(values)
    with pytest.raises(ValueError, match="have no spread"):
        unpaired(values, [0.1, 0.2])


def test_without_any_spread_a_p_value_is_nothing_or_one():
    found = Effect(5, 0.1, 0.0, 4, "paired t")
    assert [found.p_above(bound) for bound in (0.0, 0.1, 0.2)] == [0.0, 1.0, 1.0]
    assert (found.p_value, found.p_within(0.2), found.p_within(0.05)) == (0.0, 0.0, 1.0)

"""Effects agree with scipy's tests, paired (but for their widening) and unpaired."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.figures.statistics.effects import Effect, paired, student_t, unpaired, widenings

NUMBERS = st.floats(-0.5, 0.5).map(lambda x: round(x, 6))
RATIOS = st.lists(NUMBERS, min_size=2, max_size=30, unique=True)
CLOSE = {"rel": 1e-9, "abs": 1e-9}


def widened(values):
    """Student's t of so many values, as scipy has it, with the standard error of dependent blocks."""
    error = stats.sem(values) * float(widenings(np.array(values)[:, None]))
    return stats.t(len(values) - 1, loc=np.mean(values), scale=error)


@given(RATIOS)
def test_a_paired_effect_has_scipys_p_value_with_the_widened_error(values):
    oracle = widened(values)
    assert paired(values).p_value == pytest.approx(2 * min(oracle.cdf(0), oracle.sf(0)), **CLOSE)


@given(RATIOS, st.floats(0.001, 0.2))
def test_a_paired_effect_has_scipys_interval_with_the_widened_error(values, level):
    assert paired(values).interval(level) == pytest.approx(widened(values).interval(1 - level), **CLOSE)


@given(RATIOS)
def test_a_paired_effect_is_the_ratio_of_geometric_means(values):
    found = paired(values)
    assert (found.centre, found.freedom) == (pytest.approx(np.mean(values), **CLOSE), len(values) - 1)
    assert found.error >= stats.sem(values)


@given(RATIOS, RATIOS)
def test_an_unpaired_effect_has_welchs_p_value_and_interval(first, second):
    found, oracle = unpaired(first, second), stats.ttest_ind(second, first, equal_var=False)
    interval = oracle.confidence_interval(0.95)
    assert found.p_value == pytest.approx(oracle.pvalue, **CLOSE)
    assert found.interval(0.05) == pytest.approx((interval.low, interval.high), **CLOSE)
    assert found.freedom == pytest.approx(oracle.df, rel=1e-9)


@given(RATIOS, st.floats(0.001, 0.3))
def test_two_one_sided_tests_are_the_larger_of_scipys_two(values, bound):
    oracle = widened(values)
    expected = max(oracle.cdf(-bound), oracle.sf(bound))
    assert paired(values).p_within(bound) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize(
    ("probability", "freedom", "table"),
    [(0.975, 4, 2.776), (0.975, 9, 2.262), (0.995, 5, 4.032), (0.95, 11, 1.796), (0.9995, 4, 8.610)],
)
def test_quantiles_are_those_of_the_printed_tables(probability, freedom, table):
    assert student_t(probability, freedom) == pytest.approx(table, abs=5e-4)


def test_students_own_example_of_sleep_gained_by_two_drugs():
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = unpaired(first, second)
    # Welch's, as R's help of t.test prints it: df = 17.776, p = 0.07939.
    assert (found.freedom, found.p_value) == pytest.approx((17.776, 0.07939), abs=5e-4)
    gained = paired([b - a for a, b in zip(first, second, strict=True)])
    widening = gained.error / 0.38896
    assert (gained.centre, gained.freedom) == (pytest.approx(1.58), 9)
    # Paired, t = 4.0621 and p = 0.00283, but for the widening.
    assert gained.centre / gained.error * widening == pytest.approx(4.0621, abs=5e-4)
    assert 1.08 <= widening < 1.6


def test_a_block_far_off_counts_as_any_other():
    calm = [0.01, 0.012, 0.008, 0.011, 0.009, 0.01, 0.013, 0.007, 0.01]
    found = paired([*calm, 0.9])
    assert found.centre == pytest.approx(0.099)
    assert found.error > 0.08


def test_the_order_of_blocks_counts():
    still, turning = [0.0] * 10 + [0.1] * 10, [0.0, 0.1] * 10
    assert paired(still).centre == paired(turning).centre
    assert paired(still).error > 2 * paired(turning).error


def test_effects_without_spread_are_certain():
    assert paired([0.0] * 6).p_value == 1
    assert paired([0.1] * 6).p_value == pytest.approx(0, abs=1e-12)
    assert unpaired([1.0] * 5, [1.0] * 4).freedom == 7


def test_the_spread_is_that_of_one_block():
    found = paired([0.01, 0.03, 0.02, 0.05])
    assert found.spread == pytest.approx(2 * found.error)


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

"""Parts of a claim have Student's interval, of values or of their logarithms, at the level that is asked."""

from math import exp, log
from statistics import variance

import pytest
from scipy import stats

from prony.analysis.claim_parts import Part, of_effect, of_spreads, of_values

VALUES = [10.0, 11.0, 9.5, 10.5, 12.0]


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_values_have_their_mean_and_students_interval(level):
    found, oracle = of_values(VALUES, "a"), stats.ttest_1samp(VALUES, 0.0).confidence_interval(1 - level)
    assert (found.name, found.n, found.figure, found.lost) == ("a", 5, pytest.approx(10.6), None)
    assert found.interval(level) == pytest.approx((oracle.low, oracle.high))


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_ratios_have_their_geometric_mean_and_an_interval_on_the_scale_of_logarithms(level):
    logs = [log(value) for value in VALUES]
    found, oracle = of_effect(logs, "a", "why"), stats.ttest_1samp(logs, 0.0).confidence_interval(1 - level)
    assert (found.name, found.n, found.lost) == ("a", 5, "why")
    assert found.figure == pytest.approx(stats.gmean(VALUES))
    assert found.interval(level) == pytest.approx((exp(oracle.low), exp(oracle.high)))


def test_below_two_blocks_there_is_no_interval():
    assert of_values([], "a") == Part("a", 0)
    assert of_values([3.0], "a") == Part("a", 1, 3.0)
    assert of_effect([], "a") == Part("a", 0)
    assert of_effect([0.5], "a", "why") == Part("a", 1, lost="why")


def test_spreads_have_the_ratio_of_their_standard_deviations_and_the_interval_of_the_f_distribution():
    others = [10.0, 12.0, 9.0, 10.5, 14.0]
    found = of_spreads(VALUES, others, "a")
    own, other = (variance(map(log, series)) for series in (VALUES, others))
    assert (found.n, found.figure) == (5, pytest.approx((own / other) ** 0.5))
    low, high = stats.f.ppf([0.025, 0.975], 4, 4)
    assert found.interval(0.05) == pytest.approx(((own / other / high) ** 0.5, (own / other / low) ** 0.5))


def test_series_without_a_spread_have_no_ratio_of_spreads():
    assert of_spreads([1.0, 1.0, 1.0], VALUES, "a") == Part("a", 3)
    assert of_spreads([1.0], VALUES, "a") == Part("a", 1)

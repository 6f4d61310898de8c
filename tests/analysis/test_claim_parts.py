"""Parts of a claim have Student's interval, of values or of their logarithms, at the level that is asked."""

from math import exp, log
from statistics import variance

import numpy as np
import pytest
from scipy import stats

import simulated
from prony.analysis.claim_parts import Part, of_effect, of_spreads, of_values
from prony.analysis.dependence import dependence

VALUES = [10.0, 11.0, 9.5, 10.5, 12.0]


def students(values, level):
    """Student's interval, as much wider as blocks ask for that may resemble each other."""
    half = stats.t.ppf(1 - level / 2, len(values) - 1) * stats.sem(values)
    half *= dependence([[value] for value in values]).widening
    return np.mean(values) - half, np.mean(values) + half


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_values_above_0_have_their_geometric_mean_and_an_interval_on_the_scale_of_logarithms(level):
    found, logs = of_values(VALUES, "a"), np.log(VALUES)
    assert (found.name, found.n, found.lost) == ("a", 5, None)
    assert found.figure == pytest.approx(stats.gmean(VALUES))
    assert found.interval(level) == pytest.approx(np.exp(students(logs, level)))


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_values_of_which_one_is_0_have_their_mean_and_students_interval(level):
    values = [0.0, *VALUES[1:]]
    found = of_values(values, "a")
    assert found.figure == pytest.approx(np.mean(values))
    assert found.interval(level) == pytest.approx(students(values, level))


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_ratios_have_their_geometric_mean_and_an_interval_on_the_scale_of_logarithms(level):
    logs = [log(value) for value in VALUES]
    found = of_effect(logs, "a", "why")
    assert (found.name, found.n, found.lost) == ("a", 5, "why")
    assert found.figure == pytest.approx(stats.gmean(VALUES))
    assert found.interval(level) == pytest.approx(np.exp(students(logs, level)))


def test_below_two_blocks_there_is_no_interval():
    assert of_values([], "a") == Part("a", 0)
    assert of_values([3.0], "a") == Part("a", 1, 3.0)
    assert of_effect([], "a") == Part("a", 0)
    assert of_effect([0.5], "a", "why") == Part("a", 1, lost="why")


def pseudo_values(series):
    logs = np.log(series)
    whole, count = np.log(np.var(logs, ddof=1)), len(logs)
    left = [np.log(np.var(np.delete(logs, k), ddof=1)) for k in range(count)]
    return count * whole - (count - 1) * np.array(left)


def test_spreads_have_the_ratio_of_their_standard_deviations_and_the_jackknifes_interval():
    others = [10.0, 12.0, 9.0, 10.5, 14.0]
    found = of_spreads(VALUES, others, "a")
    own, other = (variance(map(log, series)) for series in (VALUES, others))
    assert (found.n, found.figure) == (5, pytest.approx((own / other) ** 0.5))
    squares = [dependence([[log(value)] for value in series]).correlation ** 2 for series in (VALUES, others)]
    factors = [(1 + square) / (1 - square) for square in squares]
    jackknifed = [np.var(pseudo_values(series), ddof=1) / 5 for series in (VALUES, others)]
    error = np.dot(factors, jackknifed) ** 0.5
    half = stats.t.ppf(0.975, 4) * error
    assert found.interval(0.05) == pytest.approx([exp((log(own / other) + k * half) / 2) for k in (-1, 1)])


def test_blocks_that_resemble_each_other_widen_the_interval_of_a_ratio_of_spreads():
    rising, others = [10.0 + 0.1 * k for k in range(20)], [10.0 + 0.3 * (k * 7 % 20) for k in range(20)]
    mixed = [rising[k * 11 % 20] for k in range(20)]
    (low, high), (least, most) = (of_spreads(one, others, "a").interval(0.05) for one in (mixed, rising))
    assert log(most / least) > 1.5 * log(high / low)


@pytest.mark.parametrize("blocks", [5, 20])
@pytest.mark.parametrize("shape", simulated.ALIKE)
def test_of_equal_subjects_none_is_called_steadier_whatever_the_shape_of_their_noise(shape, blocks):
    studies = 200
    found = np.exp(simulated.studies(np.random.default_rng(blocks), shape, studies, blocks, 2))
    intervals = [of_spreads(*study.T.tolist(), "a").interval(0.05) for study in found]
    assert sum(high < 1 for _, high in intervals) / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_who_is_a_tenth_as_noisy_is_called_steadier():
    studies, noise = 200, np.array([0.01, 0.1])
    found = np.exp(noise * simulated.studies(np.random.default_rng(1), "normal", studies, 5, 2))
    assert sum(of_spreads(*study.T.tolist(), "a").interval(0.05)[1] < 1 for study in found) / studies > 0.6


def test_series_without_a_spread_have_no_ratio_of_spreads():
    assert of_spreads([1.0, 1.0, 1.0], VALUES, "a") == Part("a", 3)
    assert of_spreads([1.0, 1.0, 2.0], VALUES, "a") == Part("a", 3)
    assert of_spreads([1.0, 2.0], VALUES, "a") == Part("a", 2)

"""Parts of a claim have Student's interval, of values or of their logarithms, at the level that is asked."""

from itertools import combinations
from math import exp, log

import numpy as np
import pytest
from scipy import stats

import simulated
from prony.figures.claim_parts import Part, blocks_for_spreads, of_effect, of_spreads, of_values
from prony.figures.statistics.effects import dependence

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


SPREAD = np.array([0, 3, -1, 5, -2, 8, -4, 6]) / 100
OTHER = np.array([2, -7, 9, 1, -12, 4, -3, 15]) / 100


def test_spreads_have_the_ratio_of_their_distances_from_the_median():
    found = of_spreads(list(zip(np.exp(SPREAD), np.exp(OTHER), strict=True)), "a")
    # The lower of the two middle ones is 0 and 0.01.
    own, other = np.abs(SPREAD), np.abs(OTHER - 0.01)
    assert (found.n, found.figure) == (8, pytest.approx(own.sum() / other.sum()))
    choices = [list(one) for k in range(1, 9) for one in combinations(range(8), k)]
    with np.errstate(divide="ignore"):
        ratios = sorted(own[one].sum() / other[one].sum() for one in choices)
    # 0.025 * 2^7 = 3.2; farther away by what blocks that resemble each other do to spreads.
    square = dependence(np.column_stack([SPREAD, OTHER])).correlation ** 2
    away = ((1 + square) / (1 - square)) ** 0.5
    ends = [found.figure * (end / found.figure) ** away for end in (ratios[2], ratios[-3])]
    assert found.interval(0.05) == pytest.approx(ends)


SHAPES = {
    "normal": lambda rng, size: 0.03 * rng.normal(size=size),
    "t3": lambda rng, size: 0.03 * rng.standard_t(3, size=size),
    "exponential": lambda rng, size: 0.03 * rng.exponential(size=size),
    "log-normal": lambda rng, size: 0.05 * np.exp(rng.normal(size=size)),
    **{
        f"two modes, {share}": lambda rng, size, share=share: (
            0.01 * rng.normal(size=size) + log(0.8) * (rng.random(size) < share)
        )
        for share in (0.1, 0.2, 0.3, 0.5)
    },
}


@pytest.mark.parametrize("blocks", [8, 10, 20])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_ratio_of_equal_spreads_lies_beside_its_interval_in_few_studies(shape, blocks):
    rng, studies = np.random.default_rng(blocks), 200
    found = np.exp(SHAPES[shape](rng, (studies, blocks, 2)))
    ends = [of_spreads(study.tolist(), "a").interval(0.05) for study in found]
    # Binomial with p = 0.05: 10 +- 3.1.
    assert sum(not low <= 1 <= high for low, high in ends) <= 19


def test_what_a_block_does_to_both_makes_neither_look_steadier():
    rng, studies = np.random.default_rng(1), 200
    shared = 0.1 * rng.standard_t(2, size=(studies, 10, 1))
    found = np.exp(shared + 0.01 * rng.normal(size=(studies, 10, 2)))
    ends = [of_spreads(study.tolist(), "a").interval(0.05) for study in found]
    assert sum(not low <= 1 <= high for low, high in ends) <= 19


def test_who_is_a_tenth_as_noisy_is_called_steadier():
    studies, noise = 200, np.array([0.01, 0.1])
    found = np.exp(noise * simulated.studies(np.random.default_rng(1), "normal", studies, 10, 2))
    assert sum(of_spreads(study.tolist(), "a").interval(0.05)[1] < 1 for study in found) / studies > 0.85


@pytest.mark.parametrize("blocks", [1, 2, 5, 7])
def test_of_few_blocks_spreads_have_no_interval(blocks):
    # Of servers of which a third of the trials is slower, all of one in a mode are like a steadier server.
    assert of_spreads([(1.0 + k, 2.0 + k * k) for k in range(blocks)], "a").interval is None


def test_series_without_a_spread_have_no_ratio_of_spreads():
    assert of_spreads([(1.0, k + 1.0) for k in range(8)], "a") == Part("a", 8)
    assert of_spreads([(k + 1.0, 1.0) for k in range(8)], "a") == Part("a", 8)


def test_a_series_that_is_equal_in_most_blocks_has_an_open_end():
    low, high = of_spreads([(1.0 + k, 2.0 if k else 1.0) for k in range(8)], "a").interval(0.05)
    assert low > 0
    assert high > 1e100


@pytest.mark.parametrize("level", [0.05, 0.01, 0.002])
def test_so_many_blocks_as_are_asked_for_can_separate_spreads(level):
    pairs = [(exp(0.01 * x), exp(x)) for x in range(blocks_for_spreads(level))]
    assert of_spreads(pairs, "a").interval(level)[1] < 1

"""Comparisons agree with scipy's own tests, and their verdicts hold what they promise on simulated data."""

import random
from math import exp, isfinite, log, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.figures.statistics.compare import Terms, Verdict, compare, compare_family
from prony.figures.statistics.effects import widenings
from prony.figures.statistics.spending import Look

RATIOS = st.lists(st.floats(-0.5, 0.5).map(lambda x: round(x, 6)), min_size=5, max_size=30, unique=True)


@given(RATIOS)
def test_it_is_the_paired_t_test_that_is_widened(values):
    error = stats.sem(values) * float(widenings(np.array(values)[:, None]))
    oracle = stats.t(len(values) - 1, loc=np.mean(values), scale=error)
    found = compare(values)
    assert found.p_value == pytest.approx(2 * min(oracle.cdf(0), oracle.sf(0)), rel=1e-6, abs=1e-12)
    assert log1p(found.effect) == pytest.approx(np.mean(values), abs=1e-9)
    assert (log1p(found.low), log1p(found.high)) == pytest.approx(oracle.interval(0.95), rel=1e-6, abs=1e-9)


@given(RATIOS)
def test_swapping_the_subjects_mirrors_the_interval_and_the_verdict(values):
    found, mirrored = compare(values), compare([-value for value in values])
    assert log1p(found.low) == pytest.approx(-log1p(mirrored.high), abs=1e-9)
    swapped = {Verdict.HIGHER: Verdict.LOWER, Verdict.LOWER: Verdict.HIGHER}
    assert mirrored.verdict == swapped.get(found.verdict, found.verdict)


@pytest.mark.parametrize("values", [[758.0] * 5, [758.0, -758.0, 5.0, 0.0, 1.0]])
def test_figures_that_no_float_can_be_the_ratio_of_are_compared(values):
    found = compare(values)
    assert all(isfinite(100 * figure) for figure in (found.effect, found.low, found.high))


@pytest.mark.parametrize("blocks", range(5))
def test_fewer_than_five_blocks_give_no_verdict(blocks):
    assert compare([0.5 + 0.001 * k for k in range(blocks)]).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize(
    ("centre", "spread", "verdict"),
    [
        (0.10, 0.01, Verdict.HIGHER),
        (-0.10, 0.01, Verdict.LOWER),
        (0.0, 0.005, Verdict.EQUIVALENT),
        (0.018, 0.010, Verdict.TRIVIAL),
        (0.0, 0.10, Verdict.NOT_SHOWN),
    ],
)
def test_each_verdict(centre, spread, verdict):
    pattern = [-1.4, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.4]
    assert compare([centre + spread * step for step in pattern]).verdict is verdict


def test_equivalence_has_its_own_order_in_the_family():
    close = [0.0001 * (k - 4.5) for k in range(10)]
    family = {
        name: [value + shift for value in close] for name, shift in (("a", 0), ("b", 0.012), ("c", 0.5))
    }
    family["d"] = [0.019 + 0.0009 * (k - 4.5) for k in range(10)]
    found = compare_family(family)
    # Tested alone, `d` would pass: in the family, `c` has failed before it.
    assert compare(family["d"], Terms(level=0.4)).verdict is Verdict.EQUIVALENT
    assert [found[name].verdict for name in "abcd"] == [
        Verdict.EQUIVALENT,
        Verdict.EQUIVALENT,
        Verdict.HIGHER,
        Verdict.TRIVIAL,
    ]


def test_the_margin_is_the_bar_of_every_verdict():
    steps = [0.001 * (k - 4.5) for k in range(10)]
    far, near = [0.04 + step for step in steps], [0.5 * step for step in steps]
    assert compare(far).verdict is Verdict.HIGHER
    assert compare(far, Terms(margin=0.06)).verdict is Verdict.EQUIVALENT
    assert compare(far, Terms(margin=0.04)).verdict is Verdict.TRIVIAL
    assert compare(near, Terms(margin=1e-4)).verdict is Verdict.NOT_SHOWN


def test_a_screening_tests_all_at_one_level():
    rng = random.Random(5)
    family = {
        name: [rng.gauss(shift, 0.01) for _ in range(10)]
        for name, shift in zip("abcd", (0.3, 0.2, 0, 0), strict=True)
    }
    found = compare_family(family, Terms(screens=True))
    assert {one.level for one in found.values()} == {0.05 * 2 / 4}


def test_before_the_first_look_a_study_that_looks_is_read_as_any_other():
    values = [0.01 * (k % 3) for k in range(8)]
    assert compare(values, Terms(look=Look(8, (10, 15, 20)))) == compare(values)


def test_at_a_look_the_level_is_what_may_be_spent_then():
    values = [0.01 * (k % 3) for k in range(10)]
    found = compare(values, Terms(look=Look(10, (10, 15, 20))))
    assert found.level == pytest.approx(0.0030506, abs=1e-7)
    assert found.high - found.low > compare(values).high - compare(values).low


def test_identical_subjects_are_equivalent():
    assert compare([0.0] * 6).verdict is Verdict.EQUIVALENT


def test_holm_gives_the_smallest_p_value_the_strictest_level():
    rng = random.Random(3)
    family = {
        name: [rng.gauss(shift, 0.01) for _ in range(10)]
        for name, shift in (("a", 0.2), ("b", 0.05), ("c", 0))
    }
    found = compare_family(family)
    assert found["a"].level == pytest.approx(0.05 / 3)
    assert found["b"].level == pytest.approx(0.05 / 2)
    assert found["c"].level == pytest.approx(0.05)


def test_after_the_first_that_is_not_rejected_all_keep_its_level():
    noise = [0.03, -0.03, 0.02, -0.02, 0.01, -0.01]
    found = compare_family({"a": noise, "b": [*noise[1:], 0.031], "c": [0.001 * k for k in range(3)]})
    assert {found[name].level for name in "ab"} == {0.025}
    assert found["c"].verdict is Verdict.TOO_FEW


@pytest.mark.parametrize("blocks", [5, 10])
def test_intervals_cover_the_truth_in_at_least_95_of_100_simulated_studies(blocks):
    rng, truth, covered, runs = random.Random(blocks), log(1.05), 0, 1500
    for _ in range(runs):
        found = compare([truth + rng.gauss(0, 0.03) for _ in range(blocks)])
        covered += found.low <= exp(truth) - 1 <= found.high
    # More than 95: independent blocks of normal noise need no widening.
    assert 0.95 <= covered / runs <= 0.99


@pytest.mark.parametrize("blocks", [5, 10])
def test_no_difference_is_called_one_in_at_most_5_of_100_families(blocks):
    rng, false, runs = random.Random(blocks), 0, 300
    for _ in range(runs):
        family = {name: [rng.gauss(0, 0.03) for _ in range(blocks)] for name in "abc"}
        verdicts = {found.verdict for found in compare_family(family).values()}
        false += bool(verdicts & {Verdict.HIGHER, Verdict.LOWER, Verdict.TRIVIAL})
    assert false / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5

"""What a design can find is what it finds, when simulated."""

from math import log1p

import numpy as np
import pytest

import simulated
from benches import bench
from prony.figures.statistics.compare import Terms, compare, compare_all
from prony.figures.statistics.power import Sight, foreseen, sight, spread_of_floor

MARGIN = 0.02
judged = bench("verdicts").judged


def found_share(effect, noise, blocks, subjects, bad=0.0, seed=2):
    """Return how often two subjects that differ so are separated by more than the margin."""
    rng = np.random.default_rng(seed)
    found = noise * rng.normal(size=(1000, blocks, subjects))
    found *= np.where(rng.random(found.shape) < bad, 10, 1)
    found[:, :, 0] += log1p(effect)
    return judged(found).pair(log1p(MARGIN))


@pytest.mark.parametrize(("subjects", "blocks"), [(2, 5), (2, 10), (8, 5), (8, 20)])
def test_what_is_foreseen_is_found_about_nine_times_in_ten(subjects, blocks):
    low, high = foreseen(0.02, subjects, blocks, MARGIN)
    assert found_share(low, 0.02, blocks, subjects) == pytest.approx(0.9, abs=0.06)
    assert found_share(high, 0.02, blocks, subjects, bad=0.05) == pytest.approx(0.9, abs=0.06)


def test_more_blocks_less_noise_and_fewer_subjects_find_less():
    usual = foreseen(0.05, 4, 10, MARGIN)
    for better in (
        foreseen(0.05, 4, 20, MARGIN),
        foreseen(0.02, 4, 10, MARGIN),
        foreseen(0.05, 2, 10, MARGIN),
    ):
        assert all(one < other for one, other in zip(better, usual, strict=True))
    assert MARGIN < usual[0] < usual[1] < 0.5


@pytest.mark.parametrize(("subjects", "blocks"), [(2, 5), (2, 10), (4, 10), (8, 20)])
def test_what_is_in_sight_of_a_study_is_what_such_studies_find(subjects, blocks):
    rng, noise = np.random.default_rng(5), 0.03
    studies = noise * rng.normal(size=(20, blocks, subjects))
    seen = [
        sight(list(compare_all(simulated.logs_of(one), Terms()).values()), blocks, MARGIN) for one in studies
    ]
    assert {one.blocks for one in seen} == {blocks}
    middle = float(np.median([one.difference for one in seen]))
    assert 0.78 <= found_share(middle, noise, blocks, subjects) <= 0.97


@pytest.mark.parametrize(("subjects", "blocks"), [(2, 12), (8, 10)])
def test_the_blocks_that_half_of_it_takes_lie_in_the_range_in_nine_of_ten_studies(subjects, blocks):
    rng, noise = np.random.default_rng(5), 0.1
    seen = [
        sight(list(compare_all(simulated.logs_of(one), Terms()).values()), blocks, MARGIN)
        for one in noise * rng.normal(size=(20, blocks, subjects))
    ]
    ends = [
        [found_share(one.difference / 2, noise, many, subjects) for many in (needed.low, needed.high)]
        for one in seen
        if (needed := one.blocks_for_half)
    ]
    assert len(ends) == len(seen)
    # 0.03 is what 1,000 simulated studies leave open.
    assert np.mean([low <= 0.93 and high >= 0.87 for low, high in ends]) >= 0.9


def test_below_eight_blocks_the_range_would_say_nothing():
    spread = {blocks: [0.2 * (-1) ** k for k in range(blocks)] for blocks in (7, 8)}
    few, many = (sight([compare(one)], blocks, 0.0) for blocks, one in spread.items())
    assert few.blocks_for_half is None
    assert 5 < many.blocks_for_half.high / many.blocks_for_half.low < 10


def test_the_median_comparison_is_what_is_in_sight():
    near, middle, far = ([scale * (-1) ** k for k in range(10)] for scale in (0.01, 0.02, 0.3))
    family = [compare(one) for one in (far, near, middle)]
    assert sight(family, 10, MARGIN) == sight([family[2]], 10, MARGIN)
    assert sight([*family, compare([0.1])], 10, MARGIN) == sight(family, 10, MARGIN)


def test_no_number_of_blocks_finds_what_lies_within_the_bar():
    near = sight([compare([0.005 * (-1) ** k for k in range(20)])], 20, MARGIN)
    assert (near.blocks_for_half, near.is_half_within_bar, near.bar) == (None, True, MARGIN)
    assert Sight(20, 0.0405, None, MARGIN).is_half_within_bar is False
    assert Sight(20, 0.04, None, MARGIN).is_half_within_bar is True


@pytest.mark.parametrize("found", [[], [compare([])], [compare([0.1])]])
def test_without_an_interval_nothing_is_in_sight(found):
    assert sight(found, 10, MARGIN) is None


def test_a_noise_floor_gives_the_noise_of_a_block():
    rng = np.random.default_rng(4)
    means = np.abs(rng.normal(size=(20_000, 10)).mean(axis=1)) * 0.03
    floor = np.expm1(np.quantile(means, 0.95))
    assert spread_of_floor(floor, 10) == pytest.approx(0.03, rel=0.03)

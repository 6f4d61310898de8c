"""What a design can find is what it finds, when simulated."""

import numpy as np
import pytest

import simulated
from prony.analysis.compare import Terms, Verdict, compare_all
from prony.analysis.power import power_of, spread_of_floor


@pytest.mark.parametrize(("subjects", "blocks"), [(2, 10), (8, 5), (8, 20)])
def test_the_difference_is_found_about_nine_times_in_ten(subjects, blocks):
    rng, count, noise = np.random.default_rng(2), 200, 0.05
    found = noise * simulated.studies(rng, "normal", count, blocks, subjects)
    found[:, :, 0] += np.log1p(power_of(noise * 2**0.5, subjects, blocks, 0.02).difference)
    pairs = [compare_all(simulated.logs_of(one), Terms())["s1", "s0"] for one in found]
    shown = sum(one.verdict is Verdict.HIGHER for one in pairs)
    assert 0.82 <= shown / count <= 0.96


def test_half_of_it_takes_the_blocks_that_find_half_of_it():
    found = power_of(0.1, 4, 10, 0.02)
    assert power_of(0.1, 4, found.blocks_for_half, 0.02).difference <= found.difference / 2
    assert power_of(0.1, 4, found.blocks_for_half - 1, 0.02).difference > found.difference / 2


def test_no_number_of_blocks_finds_what_lies_within_the_bar():
    near = power_of(0.01, 2, 20, 0.02)
    assert (near.blocks_for_half, near.is_half_within_bar, near.bar) == (None, True, 0.02)
    far = power_of(0.025, 2, 20, 0.02)
    assert (far.blocks_for_half, far.is_half_within_bar) == (None, False)
    assert power_of(1.0, 2, 5, 0.02).blocks_for_half is not None


def test_a_noise_floor_gives_the_noise_of_a_block():
    rng = np.random.default_rng(4)
    means = np.abs(rng.normal(size=(20_000, 10)).mean(axis=1)) * 0.03
    floor = np.expm1(np.quantile(means, 0.95))
    assert spread_of_floor(floor, 10) == pytest.approx(0.03, rel=0.03)

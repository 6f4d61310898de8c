"""Whether it matters when in its block a trial ran."""

import numpy as np
import pytest

from prony.figures.drift import InBlock, order_effect
from prony.figures.statistics.compare import Verdict

LAST = np.log(1.1)


def blocks(rng, count, trials, late, noise):
    """Blocks of trials whose figures rise by ``late`` from the first to the last."""
    places = np.linspace(0, 1, trials)
    values = late * places + noise * rng.normal(size=(count, trials))
    return [[InBlock(k, value) for k, value in enumerate(row)] for row in values]


def test_an_effect_of_the_order_is_found_with_its_size():
    rng = np.random.default_rng(1)
    found = [order_effect(blocks(rng, 5, 16, LAST, 0.02), 0.02) for _ in range(60)]
    assert np.mean([one.effect for one in found]) == pytest.approx(0.1, abs=0.005)
    assert sum(one.verdict is Verdict.HIGHER for one in found) >= 57


def test_where_the_order_is_nothing_few_studies_show_some():
    rng, runs = np.random.default_rng(2), 400
    shown = sum(
        not found.low <= 0 <= found.high
        for found in (order_effect(blocks(rng, 5, 8, 0.0, 0.05), 0.02) for _ in range(runs))
    )
    assert shown / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def test_the_order_is_that_of_time_and_not_of_the_list():
    shuffled = [[InBlock(2, 0.1), InBlock(0, 0.0), InBlock(1, 0.05)]] * 5
    assert order_effect(shuffled, 0.02).effect == pytest.approx(np.expm1(0.1))


def test_a_noisy_cell_does_not_hide_what_the_others_show():
    steady = [InBlock(k, 0.05 * k, 1.0) for k in range(4)]
    wild = [[*steady, InBlock(4, noise, 1e-6)] for noise in (-3.0, 2.0, 0.0, -1.0, 3.0)]
    assert order_effect(wild, 0.02).verdict is Verdict.HIGHER


@pytest.mark.parametrize("found", [[], [[InBlock(0, 0.1), InBlock(1, 0.2)]] * 9])
def test_with_two_trials_a_block_nothing_is_said(found):
    assert order_effect(found, 0.02) is None


def test_few_blocks_have_no_verdict():
    block = [InBlock(k, 0.1 * k) for k in range(3)]
    assert order_effect([block] * 4, 0.02).verdict is Verdict.TOO_FEW

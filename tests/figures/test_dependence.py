"""Blocks that resemble the block before: what they show of it, what is usual, and what that costs."""

from math import sqrt

import numpy as np
import pytest

import simulated
from benches import bench
from prony.figures.statistics.compare import compare_all
from prony.figures.statistics.effects import dependence, widenings

judged = bench("verdicts").judged


def studies(correlation, blocks=10, subjects=8, count=200):
    rng = np.random.default_rng((blocks, subjects))
    return simulated.depends(rng, count, blocks, subjects, correlation)


def correlations(*key, **more):
    return np.array([dependence(one).correlation for one in studies(*key, **more)])


def for_shapes(blocks, subjects):
    """The part of a widening that stands for the shape of noise."""
    return 1 + 0.08 * min(1, 60 / max(1, (blocks - 1) * max(1, subjects - 1)))


@pytest.mark.parametrize(("correlation", "factor"), [(0.0, 1.0), (0.3, 1.38), (0.5, 1.75)])
def test_many_blocks_show_their_correlation(correlation, factor):
    found = dependence(studies(correlation, blocks=400, count=1)[0])
    assert found.correlation == pytest.approx(correlation, abs=0.04)
    assert found.widening == pytest.approx(factor, abs=0.08)
    assert found.blocks == 400


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_few_blocks_are_taken_as_usual(correlation):
    found = correlations(correlation, blocks=5, subjects=2)
    assert np.mean(found) == pytest.approx(0.2, abs=0.05)
    assert found.std() < 0.15


def test_the_more_blocks_the_more_they_count():
    few, some, many = (correlations(0.6, blocks=blocks, subjects=3).mean() for blocks in (5, 10, 40))
    assert 0.2 < few < some < many
    assert many == pytest.approx(0.6, abs=0.07)


@pytest.mark.parametrize("correlation", [0.2, 0.5])
def test_the_correlation_is_found_without_much_bias(correlation):
    assert correlations(correlation, blocks=20).mean() == pytest.approx(correlation, abs=0.06)


def test_what_a_block_does_to_all_subjects_alike_is_no_dependence():
    found = studies(0.3, count=4)
    drifted = found + 10 * np.arange(10)[:, None]
    assert widenings(drifted) == pytest.approx(widenings(found))
    assert widenings(drifted[:, :, :1]) == pytest.approx(widenings(10.0 * np.arange(10)[:, None]), rel=0.05)


def test_the_differences_of_two_subjects_resemble_each_other_as_the_subjects_do():
    found = studies(0.5, subjects=2)
    assert widenings(found) == pytest.approx(widenings(found[..., 1:] - found[..., :1]))


def test_units_and_levels_change_nothing():
    found = studies(0.3, count=4)
    assert widenings(7 * found + np.arange(8)) == pytest.approx(widenings(found))


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.5, 0.8])
def test_the_factor_is_the_error_of_a_mean_over_what_its_spread_says(correlation):
    blocks = 400
    wide = widenings(studies(correlation, blocks=blocks, count=20)).mean() / for_shapes(blocks, 8)
    series = studies(correlation, blocks=blocks, subjects=1, count=4000)[:, :, 0]
    truth = series.mean(axis=1).std() / sqrt((series.var(axis=1, ddof=1) / blocks).mean())
    assert wide == pytest.approx(truth, rel=0.06)


@pytest.mark.parametrize(("blocks", "subjects"), [(2, 2), (5, 1), (5, 8), (10, 3), (40, 20)])
def test_nothing_that_varies_is_taken_as_usual(blocks, subjects):
    found = dependence(np.ones((blocks, subjects)))
    steps = np.arange(1, blocks)
    more = 1 + 2 * ((1 - steps / blocks) * 0.2**steps).sum()
    assert found.correlation == 0.2
    assert found.widening == pytest.approx(
        sqrt(more / (1 - (more - 1) / (blocks - 1))) * for_shapes(blocks, subjects)
    )


def test_shapes_cost_less_the_more_there_is_to_see():
    wide = [for_shapes(5, 2), for_shapes(10, 8), for_shapes(20, 8)]
    assert wide == pytest.approx([1.08, 1.0762, 1.0361], abs=1e-4)
    assert widenings(np.ones((20, 8))) / widenings(np.ones((20, 2))) == pytest.approx(wide[2] / 1.08)


@pytest.mark.parametrize("pattern", [(1, -1), (1, 1, 1, 1, -1, -1, -1, -1)])
def test_a_correlation_lies_from_nothing_to_nearly_all(pattern):
    table = np.resize(pattern, 200)[:, None] * np.array([1.0, -1.0])
    slow = np.repeat(np.array([1.0, -1.0]), 100)[:, None] * np.array([1.0, -1.0])
    assert 0.0 <= dependence(table).correlation <= 0.9
    assert dependence(slow).correlation == 0.9


def test_of_one_study_it_is_that_of_many():
    found = studies(0.3, count=3)
    found[1, 2, 3] = np.nan
    assert [dependence(one).widening for one in found] == pytest.approx(widenings(found))


@pytest.mark.parametrize("lost", [0.1, 0.3])
def test_trials_that_are_lost_leave_what_the_others_show(lost):
    found = studies(0.5, blocks=40, count=50)
    holes = np.where(np.random.default_rng(1).random(found.shape) < lost, np.nan, found)
    # A block without the one before it shows nothing.
    both = [np.mean([dependence(one).correlation for one in some]) for some in (found, holes)]
    assert both[0] * (1 - lost) - 0.05 < both[1] < both[0]


def test_every_interval_is_widened():
    study = studies(0.6, blocks=20, count=1)[0]
    assert dependence(study).widening > 1.5
    shuffled = study[np.random.default_rng(3).permutation(20)]
    assert dependence(shuffled).widening < 1.35
    wide, narrow = (compare_all(simulated.logs_of(one)) for one in (study, shuffled))
    ratio = dependence(study).widening / dependence(shuffled).widening
    for pair, one in wide.items():
        assert one.spread == pytest.approx(ratio * narrow[pair].spread)
        assert one.p_value > narrow[pair].p_value


# --- what is left where it is heeded ----------------------------------------------------------------------


def most(share, count):
    return share + 3 * sqrt(share * (1 - share) / count)


@pytest.mark.parametrize(
    ("blocks", "correlation", "share"),
    # Stronger ones than usual are heeded as far as blocks show them.
    [(5, 0.2, 0.05), (10, 0.2, 0.05), (20, 0.2, 0.05), (10, 0.5, 0.15), (40, 0.5, 0.06)],
)
def test_of_dependent_equals_few_studies_separate_any(blocks, correlation, share):
    found = studies(correlation, blocks, count=1000)
    assert judged(found).shown() <= most(share, 1000)


def test_intervals_that_are_not_widened_would_separate_many(monkeypatch):
    """The test of the test."""
    monkeypatch.setattr("prony.figures.statistics.all_pairs.widenings", lambda rows: np.ones(len(rows)))
    monkeypatch.setattr(bench("verdicts"), "check", lambda *_: None)
    assert judged(studies(0.5, count=1000)).shown() > 0.3

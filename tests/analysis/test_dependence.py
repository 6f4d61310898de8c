"""Blocks that resemble the block before: whether that is shown, how often it would be, and what it costs."""

from math import sqrt

import numpy as np
import pytest

import simulated
from benches import bench
from prony.analysis.compare import Terms, compare, compare_all
from prony.analysis.dependence import dependence


def studies(correlation, blocks=10, series=8, count=60):
    rng = np.random.default_rng((blocks, series))
    found = simulated.depends(rng, count, blocks, series, correlation)
    return [dependence([simulated.logs_of(study)]) for study in found]


def shown(found):
    return sum(one.shown for one in found) / len(found)


def test_independent_blocks_seldom_seem_dependent():
    assert shown(studies(0.0, count=120)) <= 0.05 + 3 * sqrt(0.05 * 0.95 / 120)


def test_dependent_blocks_are_found_as_often_as_is_said():
    found = studies(0.5)
    assert shown(found) == pytest.approx(found[0].power, abs=0.12)
    assert found[0].power > 0.85


def test_few_blocks_have_little_power_and_it_is_said():
    assert studies(0.5, blocks=5, series=3, count=2)[0].power < 0.4


def test_the_correlation_is_found_without_much_bias():
    assert np.mean([one.correlation for one in studies(0.5)]) == pytest.approx(0.5, abs=0.08)
    assert np.mean([one.correlation for one in studies(0.0)]) == pytest.approx(0.0, abs=0.08)


def test_a_drift_that_the_block_shares_is_no_dependence():
    rng = np.random.default_rng(1)
    study = rng.normal(size=(12, 5)) + 10 * np.arange(12)[:, None]
    assert dependence([simulated.logs_of(study)]).p_value > 0.05


def test_intervals_are_as_wide_as_the_mean_of_dependent_blocks_varies():
    rng, blocks = np.random.default_rng(1), 20
    series = simulated.depends(rng, 4000, blocks, 1, 0.5)[:, :, 0]
    truth = series.mean(axis=1).std()
    seen = sqrt((series.var(axis=1, ddof=1) / blocks).mean())
    (found,) = [one for one in studies(0.5, blocks=20, count=1) if one.shown]
    own = found.correlation
    assert found.widening == pytest.approx(truth / seen * (1 + (own - 0.5)), rel=0.15)


def test_without_a_dependence_nothing_is_widened():
    assert {one.widening for one in studies(0.0) if not one.shown} == {1.0}


def test_several_tables_say_more_than_one():
    rng = np.random.default_rng(1)
    both = [simulated.logs_of(one) for one in simulated.depends(rng, 2, 10, 3, 0.5)]
    assert dependence(both).power > dependence(both[:1]).power + 0.1
    assert dependence(both).series == 6


@pytest.mark.parametrize("shape", [(4, 3), (10, 1)])
def test_too_few_blocks_or_series_say_nothing(shape):
    assert dependence([simulated.logs_of(np.random.default_rng(1).normal(size=shape))]) is None


def test_figures_that_never_differ_say_nothing():
    assert dependence([simulated.logs_of(np.ones((10, 3)))]) is None


def test_a_block_that_lacks_a_trial_still_counts():
    logs = simulated.logs_of(np.random.default_rng(1).normal(size=(10, 3)))
    del logs["s1"][4]
    assert dependence([logs]).blocks == 10


def test_terms_widen_every_interval():
    logs = simulated.logs_of(np.random.default_rng(1).normal(size=(10, 3)))
    narrow, wide = (compare_all(logs, Terms(widening=one))["s0", "s1"] for one in (1.0, 2.0))
    assert wide.spread == pytest.approx(2 * narrow.spread)
    assert wide.p_value > narrow.p_value
    assert compare([0.1, 0.2, 0.3, 0.4, 0.5], Terms(widening=2.0)).spread == pytest.approx(
        2 * compare([0.1, 0.2, 0.3, 0.4, 0.5]).spread
    )


# --- what is left where it is heeded ----------------------------------------------------------------------


def separated(pairs):
    """Return the share of studies of equal subjects in which some pair is separated."""
    return pairs.excludes(0.0).any(axis=1).mean()


def most(share, studies):
    return share + 3 * sqrt(share * (1 - share) / studies)


@pytest.mark.parametrize(("blocks", "before"), [(5, 0.4), (10, 0.5), (20, 0.55)])
def test_of_dependent_equals_as_few_studies_separate_any_as_is_said(blocks, before):
    pairs, depends = bench("verdicts").dependent(1000, 8, blocks, 0.5)
    assert separated(pairs) > before
    cost = dependence([simulated.logs_of(np.random.default_rng(1).normal(size=(blocks, 8)))]).cost
    assert separated(pairs.widened(depends.widening)) <= most(cost or 0.075, 1000)


def test_where_blocks_are_independent_heeding_the_test_changes_little():
    pairs, depends = bench("verdicts").dependent(1000, 8, 10, 0.0)
    assert separated(pairs.widened(depends.widening)) <= separated(pairs) <= most(0.05, 1000)


def cost(subjects, blocks):
    shape = (blocks, subjects)
    return dependence([simulated.logs_of(np.random.default_rng(1).normal(size=shape))]).cost


def test_the_cost_of_what_cannot_be_seen_falls_with_blocks_to_nothing_worth_saying():
    assert cost(8, 5) > cost(8, 10) > 0.075
    assert cost(8, 20) is None


def test_a_cost_between_two_that_were_simulated_is_the_larger():
    assert cost(6, 12) == max(cost(4, 10), cost(8, 10))
    assert cost(40, 5) == cost(16, 5)

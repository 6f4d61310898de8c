"""The order of subjects, and the figure of who leads: neither is better for a trial that is missing."""

from math import exp, log

import numpy as np
import pytest

import simulated
from cells import cell_of, measured
from prony.core.metrics import Better
from prony.figures.answer import answer, ranking
from prony.figures.statistics import compare as comparing
from prony.figures.statistics.compare import Terms, Verdict
from prony.figures.summary import estimate_over
from prony.model.workload import OpenLoop


def test_who_lost_its_trial_in_the_slowest_block_is_named_first_no_more_often_than_others(monkeypatch):
    # By its own blocks it led in 99 of 100 studies.
    monkeypatch.setattr(comparing, "pair_level", lambda level, subjects, freedom: level / 6)
    rng, count = np.random.default_rng(3), 400
    studies = 0.3 * rng.normal(size=(count, 6, 1)) + 0.03 * rng.normal(size=(count, 6, 4))
    studies[np.arange(count), studies.mean(axis=2).argmin(axis=1), 0] = np.nan
    first = sum(simulated.ranked(one, Terms()).names[0] == "s0" for one in studies)
    assert first / count == pytest.approx(0.25, abs=3 * (0.25 * 0.75 / count) ** 0.5)


def test_the_order_is_that_of_geometric_means_where_all_blocks_are_complete():
    rng = np.random.default_rng(3)
    for study in rng.normal(size=(20, 6, 5)):
        by_means = sorted(range(5), key=lambda k: -study[:, k].mean())
        assert simulated.ranked(0.01 * study, Terms()).names == tuple(f"s{k}" for k in by_means)


# --- the leader's own figure ------------------------------------------------------------------------------


def test_the_leaders_interval_holds_for_each_of_the_candidates_together():
    values = np.exp(0.1 * np.random.default_rng(3).normal(size=(8, 5)))
    cells = [
        measured(cell_of(f"s{k}+hello", OpenLoop(1)), response_ok_p99=row.tolist())
        for k, row in enumerate(values)
    ]
    found = answer(cells)
    best = values[np.log(values).mean(axis=1).argmin()].tolist()
    own = estimate_over(best, "response_ok_p99", 0.05 / 8)
    assert (found.figure.mean, found.figure.low, found.figure.high) == (own.mean, own.low, own.high)
    assert found.figure.high > estimate_over(best, "response_ok_p99").high


@pytest.mark.parametrize("subjects", [8, 16])
def test_the_leaders_interval_covers_in_95_of_100_studies(subjects):
    # At the level of one cell it covered in 82 and 73.
    rng, count = np.random.default_rng(3), 1000
    logs = 0.3 * rng.normal(size=(count, subjects, 5))
    best = logs[np.arange(count), logs.mean(axis=2).argmin(axis=1)]
    shares = []
    for level in (0.05 / subjects, 0.05):
        found = [estimate_over(row, "response_ok_p99", level) for row in np.exp(best).tolist()]
        shares.append(sum(one.low <= 1 <= one.high for one in found) / count)
    assert shares[0] >= 0.95 > shares[1] + 0.05


# --- subjects whose server failed trials ------------------------------------------------------------------


def four(factor):
    """Logarithms of a subject by this factor faster than three others that are alike."""
    steps = [0.0, 0.001, -0.001, 0.002, -0.002, 0.0005]
    return {
        name: {block: log(shift) + step * sign for block, step in enumerate(steps)}
        for name, shift, sign in (("frail", factor, 1), ("b", 1.0, -1), ("c", 1.0001, 0.5), ("d", 0.9, -0.5))
    }


def ranked(logs, frail, better=Better.HIGHER):
    places = {name: exp(np.mean(list(values.values()))) for name, values in logs.items()}
    return ranking(logs, places, better, Terms(), frail=frail)


def test_who_failed_trials_is_not_preferred_by_the_rest_and_comes_last():
    found = ranked(four(2.0), {"frail"})
    assert found.names[-1] == "frail"
    assert found.names[0] == "c"
    assert found.pairs["b", "frail"].verdict is found.pairs["frail", "b"].verdict is Verdict.SURVIVORS
    assert found.pairs["d", "b"].verdict is Verdict.HIGHER
    assert not any("frail" in pair for pair in found.separated)
    assert ranked(four(2.0), ()).names[0] == "frail"


def test_who_failed_trials_is_not_equivalent_and_may_be_worse():
    assert ranked(four(1.0), ()).pairs["frail", "b"].verdict is Verdict.EQUIVALENT
    assert ranked(four(1.0), {"frail"}).pairs["frail", "b"].verdict is Verdict.SURVIVORS
    found = ranked(four(0.5), {"frail"})
    assert found.pairs["b", "frail"].verdict is Verdict.LOWER
    assert found.pairs["frail", "b"].verdict is Verdict.HIGHER


def test_where_less_is_better_it_is_the_lower_that_is_not_preferred():
    found = ranked(four(0.5), {"frail"}, Better.LOWER)
    assert (found.names[-1], found.pairs["b", "frail"].verdict) == ("frail", Verdict.SURVIVORS)
    assert ranked(four(2.0), {"frail"}, Better.LOWER).pairs["b", "frail"].verdict is Verdict.HIGHER


def test_of_those_that_all_failed_trials_the_best_is_first():
    found = ranked(four(2.0), {"frail", "b", "c", "d"})
    assert found.names[0] == "frail"
    assert {one.verdict for one in found.pairs.values()} == {Verdict.SURVIVORS}


def test_a_server_that_failed_a_trial_does_not_lead():
    values = [1000.0, 1003.0, 997.0, 1002.0, 998.0, 1001.0]
    cells = [
        measured(cell_of("frail+hello"), failed=1, ok_per_s=[2 * one for one in values]),
        measured(cell_of("b+hello"), ok_per_s=values),
    ]
    found = answer(cells)
    assert found.leader == "b+hello"
    assert found.comparisons["frail+hello"].verdict is Verdict.SURVIVORS

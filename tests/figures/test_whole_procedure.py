"""The whole procedure on simulated studies: trials that fail, drift, families, looks, the decision to stop.

Two procedures: comparisons with a subject that was named before the study, and all pairs, whose leader is
chosen from the trials that judge it. Each kind of false verdict is held to 5 % of studies, and intervals
cover the truth as often as they say. Three standard errors of the runs separate right from wrong.
"""

from dataclasses import dataclass
from math import expm1, log1p

import numpy as np
import pytest
from scipy import stats

import simulated
from benches import bench
from looking import compare_at, decide_at
from prony.figures.statistics import compare as comparing
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, Verdict, compare, compare_family
from prony.figures.statistics.power import Decision, decide
from prony.figures.statistics.spending import Look
from prony.model.plan import Precision

LOOKS = Precision(target=0.02)
MARGIN = log1p(0.02)
DIFFERENT = (Verdict.HIGHER, Verdict.LOWER, Verdict.TRIVIAL)


@pytest.fixture(autouse=True)
def _whole_freedom(monkeypatch):
    """Take degrees of freedom as whole: the level of a pair is then computed once for many studies."""
    exact = comparing.pair_level
    monkeypatch.setattr(
        comparing, "pair_level", lambda level, k, freedom: exact(level, k, float(round(freedom)))
    )


@dataclass
class Tally:
    """What came of simulated studies: shares of studies with each kind of false verdict, and coverage, of
    each interval and of all of a study together.
    """

    different: float = 0.0
    beyond: float = 0.0
    equivalent: float = 0.0
    covered: float = 0.0
    together: float = 0.0
    shown: float = 0.0


def upper(share, runs):
    return share + 3 * (share * (1 - share) / runs) ** 0.5


def speeds(rng, effects, blocks, noise, failing):
    """Return ln of one figure for each block and subject, none where the trial failed: `effects` against a
    first subject, log-normal noise, and drift that a block shares.
    """
    drift = 0.04 * rng.normal(size=(blocks, 1))
    found = np.concatenate(([0.0], effects)) + drift + noise * rng.normal(size=(blocks, len(effects) + 1))
    found[rng.random(found.shape) < failing] = np.nan
    return found


def family(found):
    """Return the log ratios against the first subject, by block in which both trials count."""
    pairs = found[:, 1:] - found[:, :1]
    return {k: [float(v) for v in pairs[:, k] if not np.isnan(v)] for k in range(pairs.shape[1])}


# Each kind of study returns its comparisons with what is true of them.


def fixed(rng, effects, noise, failing, blocks):
    found = compare_family(family(speeds(rng, effects, blocks, noise, failing)))
    return list(zip(found.values(), effects, strict=True))


def looked(rng, effects, noise, failing, _):
    """Run a study block by block until it decides to stop."""
    every = speeds(rng, effects, LOOKS.looks[-1], noise, failing)
    for blocks in LOOKS.looks:
        ratios = family(every[:blocks])
        if decide_at(ratios, blocks, LOOKS).decision is not Decision.CONTINUE:
            return list(zip(compare_at(ratios, blocks, LOOKS).values(), effects, strict=True))
    raise AssertionError("the last look did not end it")


def ranked(found, terms):
    """Rank those that have blocks enough for a verdict, as a report does."""
    enough = (~np.isnan(found)).sum(axis=0) >= LEAST_BLOCKS
    return simulated.ranked(found, terms, [k for k, has in enumerate(enough) if has or not enough.any()])


def of_pairs(ranking, effects):
    truth = {f"s{k}": effect for k, effect in enumerate((0.0, *effects))}
    return [(found, truth[second] - truth[first]) for (first, second), found in ranking.pairs.items()]


def chosen(rng, effects, noise, failing, blocks):
    """Rank all, whoever leads."""
    return of_pairs(ranked(speeds(rng, effects, blocks, noise, failing), Terms()), effects)


def chosen_at_a_look(rng, effects, noise, failing, _):
    """Run a study until what it shows of its leader, whoever that is by then, stops it."""
    every = speeds(rng, effects, LOOKS.looks[-1], noise, failing)
    for blocks in LOOKS.looks:
        terms = Terms(look=Look(blocks, LOOKS.looks))
        found = ranked(every[:blocks], terms)
        if decide(found.with_first, blocks, LOOKS, terms).decision is not Decision.CONTINUE:
            return of_pairs(found, effects)
    raise AssertionError("the last look did not end it")


def is_beyond(verdict, effect):
    return (verdict is Verdict.HIGHER and effect <= MARGIN) or (
        verdict is Verdict.LOWER and effect >= -MARGIN
    )


def tally(study, effects, runs, noise=0.02, failing=0.0, blocks=10):
    rng, found = np.random.default_rng(len(effects) * blocks), Tally()
    for _ in range(runs):
        compared = study(rng, effects, noise, failing, blocks)
        found.different += any(one.verdict in DIFFERENT and effect == 0 for one, effect in compared)
        found.beyond += any(is_beyond(one.verdict, effect) for one, effect in compared)
        found.equivalent += any(
            one.verdict is Verdict.EQUIVALENT and abs(effect) >= MARGIN for one, effect in compared
        )
        covered = [one.low <= expm1(effect) <= one.high for one, effect in compared if one.low is not None]
        found.covered += sum(covered) / max(1, len(covered))
        found.together += all(covered)
        found.shown += all(one.verdict in (Verdict.HIGHER, Verdict.LOWER) for one, _ in compared)
    return Tally(*(getattr(found, name) / runs for name in Tally.__dataclass_fields__))


NAMED = [
    pytest.param(fixed, 5, id="five blocks"),
    pytest.param(fixed, 10, id="ten blocks"),
    pytest.param(looked, 10, id="looks"),
]
CHOSEN = [
    pytest.param(chosen, 5, id="five blocks, leader chosen"),
    pytest.param(chosen, 10, id="ten blocks, leader chosen"),
    pytest.param(chosen_at_a_look, 10, id="looks, leader chosen"),
]
STUDIES = [*NAMED, *CHOSEN]
# One of two often, both in the slow layer.
FAILING = [
    pytest.param(0.0, id="none fails", marks=pytest.mark.slow),
    pytest.param(0.1, id="one in ten fails"),
]


def runs_of(study):
    """Return how many studies to simulate: pairs of all subjects take several times as long."""
    return 600 if study in (fixed, looked) else 200


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize(("study", "blocks"), STUDIES)
def test_without_a_difference_at_most_5_of_100_families_show_one(study, blocks, failing):
    runs = runs_of(study)
    found = tally(study, (0.0, 0.0, 0.0), runs, failing=failing, blocks=blocks)
    assert found.beyond <= 0.05
    assert found.different <= upper(0.05, runs)


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize(("study", "blocks"), STUDIES)
@pytest.mark.parametrize("noise", [0.02, pytest.param(0.004, marks=pytest.mark.slow)])
def test_at_the_margin_each_kind_of_false_verdict_is_held(study, blocks, failing, noise):
    runs = runs_of(study)
    found = tally(study, (MARGIN, -MARGIN, MARGIN), runs, noise, failing, blocks)
    assert found.beyond <= upper(0.05, runs)
    assert found.equivalent <= upper(0.05, runs)


@pytest.mark.parametrize(("study", "blocks"), STUDIES)
def test_planted_differences_beside_none_do_not_make_false_ones(study, blocks):
    runs = runs_of(study) // 2
    found = tally(study, (0.0, 0.05, -0.10, MARGIN, 0.0), runs, 0.01, 0.05, blocks)
    assert found.different <= upper(0.05, runs)
    assert found.beyond <= upper(0.05, runs)
    assert found.equivalent <= upper(0.05, runs)


@pytest.mark.parametrize("noise", [pytest.param(0.05, marks=pytest.mark.slow), 0.2])
def test_of_eight_equals_that_drift_and_fail_with_noise_far_above_the_margin_few_studies_separate_any(noise):
    runs = 80
    for study in (chosen, chosen_at_a_look):
        found = tally(study, (0.0,) * 7, runs, noise, 0.1)
        assert found.beyond <= upper(0.05, runs)
        assert found.different <= upper(0.05, runs)


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize(("study", "blocks"), CHOSEN)
def test_all_intervals_of_a_study_whose_leader_is_chosen_hold_together(study, blocks, failing):
    found = tally(study, (0.0, 0.05, -0.10), 200, failing=failing, blocks=blocks)
    assert 1 - found.together <= upper(0.05, 200)


def test_a_leader_that_is_chosen_and_taken_for_fixed_would_beat_its_equals_too_often():
    """The test of the tests: such studies, each of the others against the best at the level of one pair."""
    rng, runs, false = np.random.default_rng(9), 400, 0
    for _ in range(runs):
        found = speeds(rng, (0.0,) * 7, 10, 0.2, 0.0)
        best = int(np.argmax(found.mean(axis=0)))
        against = family(np.roll(found, -best, axis=1))
        false += any(compare(one).verdict is Verdict.LOWER for one in against.values())
    assert false / runs > upper(0.05, runs)


@pytest.mark.parametrize(("effect", "blocks"), [(0.0, 5), (MARGIN, 7), (0.05, 10), (0.0, 15)])
def test_an_interval_of_a_fixed_number_of_blocks_covers_95_to_99_of_100_truths(effect, blocks):
    found = tally(fixed, (effect,), 1000, blocks=blocks)
    assert 0.95 <= found.covered <= 0.99


@pytest.mark.parametrize("blocks", [5, 7, 10, 20])
def test_an_interval_misses_its_nominal_5_of_100_truths_where_blocks_resemble_each_other_as_usual(blocks):
    rng, runs = np.random.default_rng(10 + blocks), 20_000
    judged = bench("verdicts").judged
    usual = judged(simulated.depends(rng, runs, blocks, 2, 0.2)).shown()
    # For the shapes that few blocks cannot show, a little wider.
    assert 0.03 <= usual <= 0.05
    assert 0.01 <= judged(rng.normal(size=(runs, blocks, 2))).shown() <= usual


@pytest.mark.parametrize("effect", [0.0, MARGIN, 0.05])
def test_an_interval_covers_the_truth_whenever_the_study_stopped(effect):
    # More often than 95 of 100 where it stopped early: the level was not spent.
    assert tally(looked, (effect,), 600).covered >= 0.95


def test_intervals_of_a_family_cover_at_least_as_often_as_one_alone():
    assert tally(fixed, (0.0, 0.02, 0.05, -0.1), 400, failing=0.1).covered >= 0.95


def test_power_rises_with_the_planted_difference():
    shown = [tally(fixed, (effect,), 300, 0.01).shown for effect in (0.02, 0.05, 0.10)]
    assert shown[0] <= 0.06
    assert shown[0] < shown[1] < shown[2]
    assert shown[2] >= 0.95


def test_the_effect_is_found_without_bias():
    rng = np.random.default_rng(4)
    found = [compare(family(speeds(rng, (0.05,), 10, 0.02, 0.0))[0]).effect for _ in range(1000)]
    assert np.mean(np.log1p(found)) == pytest.approx(0.05, abs=3 * np.std(found) / 1000**0.5)


@pytest.mark.parametrize("blocks", [5, 10, 20])
def test_p_values_are_no_smaller_than_uniform_ones_where_there_is_no_difference(blocks):
    rng = np.random.default_rng(blocks)
    p_values = [compare(family(speeds(rng, (0.0,), blocks, 0.02, 0.0))[0]).p_value for _ in range(1000)]
    # Larger they may be: intervals are widened.
    assert stats.kstest(p_values, "uniform", alternative="greater").pvalue > 0.01
    assert np.mean(p_values) < 0.65


def test_looking_without_spending_would_have_shown_too_much():
    """The test of the tests: the same studies, read at each look as if it were the only one."""
    found, judged = np.random.default_rng(9).normal(size=(4000, 40, 2)), bench("verdicts").judged
    at = [judged(found[:, :blocks]).excludes(0.0)[:, 0] for blocks in range(8, 41, 4)]
    assert max(one.mean() for one in at) <= 0.05
    assert np.any(at, axis=0).mean() > 0.08

"""The judge of recorded landscapes: it fails what is shown to be worse, and passes what chance explains."""

from math import exp
from random import Random

import pytest

from benches import bench
from prony.figures.objective import parse_objective
from prony.tune.race import gain_of, log_ratios_by_block
from prony.tune.space import Candidate

LANDS = bench("tune")
BEST, CHOSEN = Candidate("gunicorn", 4, 8), Candidate("gunicorn", 2, 8)
OTHERS = tuple(Candidate("gunicorn", 1, threads) for threads in range(1, 11))
TRUTH, SEEDS = range(5), range(120)
QUIET, USUAL = 0.015, 0.045
"""Of a trial: as of a quiet setting, and as of those in bench/tuned."""


def judged(under, noise, seed, slo="errors < 0.1%", **others):
    """A judge of twelve settings, of which one carries so much less than the best; ``others``: more figures
    of a setting, by name.
    """
    random = Random(seed)
    rates = {CHOSEN: 1000 * (1 - under), BEST: 1000} | {one: 40 * one.threads for one in OTHERS}
    blocks = {
        one: {
            block: {"ok_per_s": rate * exp(random.gauss(0, noise)), "error_ratio": 0.0}
            | {name: of(one) * exp(random.gauss(0, noise)) for name, of in others.items()}
            for block in range(LANDS.BLOCKS)
        }
        for one, rate in rates.items()
    }
    return LANDS.Judge(blocks, TRUTH, parse_objective(slo).conditions)


def share(is_so):
    return sum(map(is_so, SEEDS)) / len(SEEDS)


@pytest.mark.parametrize(
    ("under", "least", "most"), [(0.10, 0.8, 1.0), (0.05, 0.0, 0.05), (0.02, 0.0, 0.01), (0.0, 0.0, 0.01)]
)
def test_what_is_a_tenth_under_another_fails_and_what_is_within_five_per_cent_passes(under, least, most):
    assert least <= share(lambda seed: judged(under, QUIET, seed).is_under(CHOSEN)) <= most


def test_the_means_fail_what_chance_explains_and_bounds_do_not():
    def of_means(seed):
        judge = judged(0.02, USUAL, seed)
        return judge.true(CHOSEN, "ok_per_s") < LANDS.NEAR * judge.true(judge.best(), "ok_per_s")

    assert share(of_means) > 0.1
    assert share(lambda seed: judged(0.02, USUAL, seed).is_under(CHOSEN)) < 0.02


def test_how_far_under_another_a_setting_is_that_fails_in_half_of_the_replays_is_said():
    sees = sorted(judged(0.0, USUAL, seed).sees(CHOSEN) for seed in SEEDS)[len(SEEDS) // 2]
    assert 0.1 < sees < 0.25
    assert 0.3 < share(lambda seed: judged(sees, USUAL, seed).is_under(CHOSEN)) < 0.7


def test_a_setting_that_is_not_shown_to_meet_the_conditions_is_no_better_one():
    slow = {"service_all_p95": lambda one: 1e6 * (60 if one == BEST else 20)}
    judges = [judged(0.2, QUIET, seed, "p95 < 50ms", **slow) for seed in range(20)]
    assert not any(judge.is_under(CHOSEN) for judge in judges)
    assert all(judge.exceeds(BEST, LANDS.BROKEN) and judge.is_under(BEST) for judge in judges)


@pytest.mark.parametrize(("over", "least", "most"), [(1.15, 0.8, 1.0), (1.05, 0.0, 0.1), (1.0, 0.0, 0.02)])
def test_a_condition_is_broken_where_it_is_shown_to_be_exceeded_by_more_than_five_per_cent(over, least, most):
    late = {"service_all_p95": lambda one: 50e6 * over}
    broken = share(lambda seed: judged(0.0, QUIET, seed, "p95 < 50ms", **late).exceeds(CHOSEN, LANDS.BROKEN))
    assert least <= broken <= most


def test_errors_need_no_bound_and_a_server_that_died_once_broke_its_condition():
    judge = judged(0.0, QUIET, 1)
    judge.blocks[CHOSEN][0] = dict(LANDS.DIED)
    assert judge.exceeds(CHOSEN, LANDS.BROKEN)
    assert judge.is_under(CHOSEN)
    assert judge.excess(CHOSEN) > LANDS.BROKEN
    assert not judge.exceeds(BEST, LANDS.BROKEN)


def test_the_interval_of_a_gain_covers_the_truth_as_often_as_it_says_once_that_has_its_error_too():
    def covers(seed):
        judge = judged(0.3, USUAL, seed)
        base, own = ({block: judge.blocks[one][block] for block in range(5, 10)} for one in (CHOSEN, BEST))
        gain = gain_of(log_ratios_by_block("ok_per_s", base, own, is_higher=True))
        return judge.covers(gain, CHOSEN, BEST)

    found = [covers(seed) for seed in range(600)]
    assert sum(with_error for with_error, _ in found) / len(found) == pytest.approx(0.95, abs=0.025)
    assert sum(as_it_is for _, as_it_is in found) / len(found) < 0.9

"""A study that looks several times stops by the rule that it names, and its verdicts keep their promise."""

import random
from dataclasses import replace
from math import ceil, expm1, log1p

import numpy as np
import pytest
from scipy import stats

import simulated
from looking import compare_at, decide_at
from prony.figures.statistics.compare import Terms, Verdict, compare_all
from prony.figures.statistics.effects import dependence
from prony.figures.statistics.power import Decision, decide
from prony.figures.statistics.spending import Look
from prony.model.plan import Precision

TWO_PERCENT = Precision(target=0.02)


def ratios(centre, spread, blocks, seed=1):
    rng = random.Random(seed)
    return [rng.gauss(centre, spread) for _ in range(blocks)]


def decision(family, blocks, precision=TWO_PERCENT, terms=None):
    return decide_at(family, blocks, precision, terms).decision


def test_clear_differences_end_a_study_at_the_first_look():
    family = {"b": ratios(0.3, 0.01, 10), "c": ratios(-0.2, 0.01, 10, 2)}
    assert decision(family, 10) is Decision.REACHED


def test_a_difference_near_the_margin_ends_it_when_it_is_known_precisely():
    family = {"b": ratios(0.02, 0.006, 20)}
    assert compare_at(family, 20, TWO_PERCENT)["b"].verdict is Verdict.TRIVIAL
    assert decision(family, 20) is Decision.PRECISE


def test_precise_enough_is_an_interval_of_which_half_is_within_the_target():
    family = {"b": ratios(0.02, 0.006, 20)}
    found = compare_at(family, 20, TWO_PERCENT)["b"]
    half = expm1((log1p(found.high) - log1p(found.low)) / 2)
    assert decision(family, 20, Precision(target=1.1 * half)) is Decision.PRECISE
    assert decision(family, 20, Precision(target=0.9 * half)) is Decision.AT_MAXIMUM


def test_sessions_that_are_too_few_for_a_verdict_end_no_study_before_its_maximum():
    # A study that is resumed on another day: blocks of two sessions are no twenty observations.
    logs = {"a": {0: 0.0, 1: 0.01}, "b": {0: 0.5, 1: 0.52}}
    found = {"b": compare_all(logs, Terms(by_session=True))["a", "b"]}
    decisions = [
        decide(found, blocks, TWO_PERCENT, Terms(by_session=True)).decision for blocks in (10, 15, 20)
    ]
    assert decisions == [Decision.CONTINUE, Decision.CONTINUE, Decision.AT_MAXIMUM]


def test_one_open_comparison_keeps_it_going():
    family = {"b": ratios(0.3, 0.01, 10), "c": ratios(0.0, 0.02, 10, 2)}
    assert decision(family, 10) is Decision.CONTINUE


def test_noise_that_no_number_of_blocks_would_settle_ends_it_as_futile():
    found = decide_at({"b": ratios(0.02, 0.3, 10)}, 10, TWO_PERCENT)
    assert found.decision is Decision.FUTILE
    assert found.projected > 20


def test_at_the_maximum_it_ends_whatever_is_open():
    assert decision({"b": ratios(0.02, 0.1, 20)}, 20) is Decision.AT_MAXIMUM
    assert decision({"b": ratios(0.02, 0.1, 24)}, 24) is Decision.AT_MAXIMUM


@pytest.mark.parametrize("blocks", [5, 9, 11, 14, 16, 19])
def test_between_looks_nothing_ends_it(blocks):
    assert decision({"b": ratios(0.3, 0.001, blocks)}, blocks) is Decision.CONTINUE


def test_a_comparison_without_blocks_is_open():
    family = {"b": ratios(0.3, 0.01, 10), "c": []}
    assert decision(family, 10) is Decision.CONTINUE
    assert decide_at(family, 10, TWO_PERCENT).projected is None


def test_without_a_subject_that_has_figures_a_look_ends_it_and_no_verdict_is_said_to_be_reached():
    assert decision({}, 9) is Decision.CONTINUE
    found = decide({}, 10, TWO_PERCENT)
    assert found.decision is Decision.FUTILE
    assert found.rule == "futile: no subject has figures that could be compared"


def test_the_rule_is_told_in_words():
    found = decide_at({"b": ratios(0.3, 0.01, 10), "c": ratios(0.3, 0.01, 10)}, 10, TWO_PERCENT)
    assert found.rule == (
        "verdicts reached: looks after 10, 15, 20 blocks with O'Brien-Fleming-type spending, "
        "2 comparisons with the leaders, for intervals of ±2 % or a verdict"
    )


@pytest.mark.parametrize("verdict", [Verdict.LIMITED, Verdict.SURVIVORS])
def test_what_no_block_decides_does_not_keep_it_going(verdict):
    compared = compare_at({"b": ratios(0.3, 0.01, 10), "c": ratios(0.0, 0.3, 10, 2)}, 10, TWO_PERCENT)
    assert decide(compared, 10, TWO_PERCENT).decision is not Decision.REACHED
    left = compared | {"c": replace(compared["c"], verdict=verdict)}
    assert decide(left, 10, TWO_PERCENT).decision is Decision.REACHED
    assert decide(left, 10, TWO_PERCENT) == decide({"b": compared["b"]}, 10, TWO_PERCENT)


def test_where_no_block_decides_anything_a_look_ends_it():
    compared = compare_at({"b": ratios(0.3, 0.01, 10)}, 10, TWO_PERCENT)
    found = decide({"b": replace(compared["b"], verdict=Verdict.SURVIVORS)}, 10, TWO_PERCENT)
    assert found.decision is Decision.FUTILE


@pytest.mark.parametrize(
    ("centre", "target", "distance"),
    [
        (0.0, 0.005, log1p(0.02)),
        (0.012, 0.001, log1p(0.02) - 0.012),
        (0.03, 0.001, 0.03 - log1p(0.02)),
        (-0.03, 0.001, 0.03 - log1p(0.02)),
        (0.0198, 0.005, log1p(0.005)),
    ],
)
def test_the_projection_is_how_many_blocks_make_the_interval_reach_the_margin_or_the_target(
    centre, target, distance
):
    precision = Precision(target=target)
    values = [centre + 0.05 * step for step in (-1, -0.5, 0, 0.5, 1)]
    found = decide_at({"b": values}, 5, precision)
    spread = np.std(values, ddof=1) * dependence([[value] for value in values]).widening
    level = Look(20, precision.looks).nominal(0.05)
    quantile = stats.t.ppf(1 - level / 2, 4 * 20 / 5)
    assert found.projected == ceil((quantile * spread / distance) ** 2)


def test_of_several_open_comparisons_the_least_uncertain_is_projected():
    near, far = ([0.2 * step for step in (-1, -0.5, 0, 0.5, 1)], [0.4 * k for k in (-1, -0.5, 0, 0.5, 1)])
    both = decide_at({"b": far, "c": near}, 5, TWO_PERCENT).projected
    assert both == decide_at({"c": near}, 5, TWO_PERCENT).projected
    assert both < decide_at({"b": far}, 5, TWO_PERCENT).projected


def test_other_looks_than_the_usual_may_be_planned():
    precision = Precision(0.02, looks=(6, 12))
    assert decision({"b": ratios(0.3, 0.01, 6)}, 6, precision) is Decision.REACHED
    assert decision({"b": ratios(0.02, 0.3, 12)}, 12, precision) is Decision.AT_MAXIMUM


def at_the_first_look(noise, effect=0.1, subjects=8):
    """Return what each of some studies of equals and a better one shows at its first look."""
    rng, blocks = np.random.default_rng(5), TWO_PERCENT.looks[0]
    studies = noise * simulated.studies(rng, "normal", 60, blocks, subjects)
    studies[:, :, 3] += log1p(effect)
    terms = Terms(look=Look(blocks, TWO_PERCENT.looks))
    for study in studies:
        found = simulated.ranked(study, terms)
        yield found, decide(found.with_first, blocks, TWO_PERCENT, terms).decision


@pytest.mark.parametrize("noise", [0.01, 0.02])
def test_a_winner_of_eight_that_is_plain_stops_a_study_at_its_first_look(noise):
    ended = [decision is Decision.REACHED and not found.ties for found, decision in at_the_first_look(noise)]
    assert sum(ended) / len(ended) >= 0.9


def test_what_is_not_shown_does_not_keep_it_going():
    # The equal ones behind the winner are not decided, by far: of all pairs no verdict is reached.
    for found, _ in at_the_first_look(0.02):
        assert decide(found.pairs, TWO_PERCENT.looks[0], TWO_PERCENT).decision is not Decision.REACHED


def test_a_winner_that_noise_hides_does_not_stop_it():
    decisions = [decision for _, decision in at_the_first_look(0.1)]
    assert Decision.REACHED not in decisions

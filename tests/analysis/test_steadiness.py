"""Steadiness is judged over the trials of a cell together: planted changes are found, noise is not."""

import numpy as np
import pytest

from prony.analysis.missing import Missing
from prony.analysis.steadiness import steadiness
from prony.analysis.steady_state import Kind
from simulated import PACES, paced

MARGIN = 0.02
LEAST_FOUND, MOST_FALSE = 0.95, 0.02
PLANTED = [case for case in PACES if case not in ("flat", "by the margin")]


def found(case, seconds, trials=5, studies=400, correlation=0.0, margin=MARGIN):
    """Return the share of simulated studies in which the cell is not steady."""
    rng = np.random.default_rng((seconds, trials))
    cells = (paced(rng, case, trials, seconds, correlation) for _ in range(studies))
    return sum(not steadiness(cell, margin).is_steady for cell in cells) / studies


@pytest.mark.parametrize("seconds", [6, 20])
@pytest.mark.parametrize("case", PLANTED)
def test_what_is_planted_is_found_from_six_seconds_on(case, seconds):
    assert found(case, seconds) >= LEAST_FOUND


@pytest.mark.parametrize("seconds", [6, 20])
@pytest.mark.parametrize("case", PLANTED)
def test_a_latency_that_changes_alone_is_found_too(case, seconds):
    assert found(f"latency {case}", seconds, studies=200) >= LEAST_FOUND


@pytest.mark.parametrize("seconds", [2, 6, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_noise_is_not_taken_for_a_change_however_it_resembles_itself(correlation, seconds):
    assert found("flat", seconds, correlation=correlation) <= MOST_FALSE


def test_noise_of_a_latency_with_a_rate_of_its_own_is_not_taken_for_a_change():
    assert found("latency flat", 6) <= MOST_FALSE


@pytest.mark.parametrize("margin", [0.002, 0.05])
@pytest.mark.parametrize("seconds", [2, 6, 20])
def test_a_study_with_a_margin_of_its_own_has_no_more_false_alarms(margin, seconds):
    assert found("flat", seconds, margin=margin) <= MOST_FALSE


@pytest.mark.parametrize("case", PLANTED)
def test_a_margin_of_five_per_cent_hides_little_of_what_is_planted(case):
    # These change by 12 % and more; by a margin of 2 % they are found in 95 of 100 studies.
    assert found(case, 6, margin=0.05) >= 0.9


def test_a_change_by_the_margin_is_of_no_interest():
    assert found("by the margin", 20, trials=20, studies=200) <= MOST_FALSE


@pytest.mark.parametrize(
    ("series", "kind", "bias"),
    [
        ([500, 500, 1000, 1000, 1000, 1000], Kind.WARM_UP, 5 / 6 - 1),
        ([1000, 1000, 500, 500, 500, 500], Kind.SLOWDOWN, 4 / 3 - 1),
        ([1000, 1000, 1000, 1000, 500, 500], Kind.NONE, 5 / 3 - 1),
        ([1000] * 6, Kind.FLAT, 0.0),
    ],
)
def test_the_kind_and_how_far_the_mean_is_off_follow_from_the_step(series, kind, bias):
    shaken = [{"rate": [value + (k * second) % 3 for second, value in enumerate(series)]} for k in range(5)]
    one = steadiness(shaken, MARGIN)
    assert (one.kind, one.bias) == (kind, pytest.approx(bias, abs=0.005))


def test_a_latency_that_rises_is_a_slowdown_whose_mean_is_below_its_end():
    one = steadiness([{"latency": [1000, 990 + k, 1000, 500, 500, 500 - k]} for k in range(5)], MARGIN)
    assert (one.kind, one.measure) == (Kind.SLOWDOWN, "latency")
    assert one.bias == pytest.approx(-1 / 3, abs=0.01)


def test_what_was_planted_as_just_visible_is_found_as_often_as_was_said():
    rng, hits, studies = np.random.default_rng(3), 0, 80
    for _ in range(studies):
        visible = steadiness(paced(rng, "flat", 10, 4), MARGIN).visible
        ramp = np.linspace(1 - visible / 2, 1 + visible / 2, 4)
        trials = [{"rate": list(ramp * one["rate"])} for one in paced(rng, "flat", 10, 4)]
        hits += not steadiness(trials, MARGIN).is_steady
    assert hits / studies >= 0.85


def test_short_windows_of_the_same_noise_hide_more():
    rng = np.random.default_rng(1)
    long, short = (
        np.median([steadiness(paced(rng, "flat", 5, n), MARGIN).visible for _ in range(20)]) for n in (30, 3)
    )
    assert long < 0.75 * short


def test_one_stalled_second_of_one_trial_is_no_change():
    rng = np.random.default_rng(1)
    trials = paced(rng, "flat", 5, 10)
    trials[0]["rate"][4] = 0.0
    assert steadiness(trials, MARGIN).is_steady


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        ([], "no trial counts"),
        ([Missing("no seconds")] * 5, "no seconds"),
        ([{"rate": [1.0, 1.0]}], "1 trial with figures of single seconds; expected 3"),
        ([{"rate": [1.0, 1.0]}] * 2, "2 trials with figures of single seconds; expected 3"),
    ],
)
def test_where_it_is_not_testable_it_says_why(trials, reason):
    assert steadiness(trials, MARGIN) == Missing(reason)


def test_a_server_that_answered_nothing_changed_nothing():
    assert steadiness([{"rate": [0.0] * 6}] * 5, MARGIN).is_steady

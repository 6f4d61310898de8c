"""Steadiness is judged over the trials of a cell together: planted changes are found, noise is not."""

from dataclasses import replace

import numpy as np
import pytest

from prony.figures.missing import Missing
from prony.figures.steadiness import steadiness
from prony.figures.steady_state import Kind, paces_of
from simulated import OPEN, PACES, STALLS, open_loops, paced, stalling

MARGIN = 0.02
LEAST_FOUND, MOST_FALSE = 0.95, 0.02
FALLING_OPEN = ("a ramp", "33 % fail", "33 % hang")
STEADY_OPEN = [case for case in OPEN if case not in FALLING_OPEN]
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


@pytest.mark.parametrize("seconds", [3, 6, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_noise_is_not_taken_for_a_change_however_it_resembles_itself(correlation, seconds):
    assert found("flat", seconds, correlation=correlation) <= MOST_FALSE


def test_noise_of_a_latency_with_a_rate_of_its_own_is_not_taken_for_a_change():
    assert found("latency flat", 6) <= MOST_FALSE


@pytest.mark.parametrize("margin", [0.002, 0.05])
@pytest.mark.parametrize("seconds", [3, 6, 20])
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


@pytest.mark.parametrize(("trials", "seconds"), [(5, 3), (5, 6), (10, 10)])
@pytest.mark.parametrize("case", STALLS)
def test_stalls_at_seconds_of_chance_are_no_change(case, trials, seconds):
    rng, studies = np.random.default_rng((trials, seconds)), 200
    cells = (stalling(rng, case, trials, seconds) for _ in range(studies))
    # Binomial with p = 0.05: 10 +- 3.1.
    assert sum(not steadiness(cell, MARGIN).is_steady for cell in cells) <= 19


def test_a_stall_at_the_same_second_of_each_trial_is_a_change():
    trials = [{"rate": [1000.0 + (7 * k * at) % 5 - 300 * (at == 4) for at in range(10)]} for k in range(5)]
    assert not steadiness(trials, MARGIN).is_steady


def test_what_a_dead_second_of_one_of_ten_trials_hides_is_found_all_the_same():
    rng = np.random.default_rng(2)
    for _ in range(20):
        trials = paced(rng, "tau 5 s", 10, 10)
        trials[0]["rate"][rng.integers(10)] = 0.0
        assert not steadiness(trials, MARGIN).is_steady


def test_shares_that_fall_in_one_of_ten_trials_alone_are_no_change():
    trials = [{**one, "share": [1.0] * 6} for one in paced(np.random.default_rng(1), "tau 5 s", 10, 6)]
    trials[0]["share"] = [1.0, 0.9, 0.9, 0.9, 0.9, 0.9]
    assert steadiness(trials, MARGIN).measure != "share"


@pytest.mark.parametrize(("trials", "seconds"), [(5, 2), (3, 3), (3, 4)])
def test_so_few_seconds_that_stalls_meet_in_one_by_chance_are_not_testable(trials, seconds):
    cell = [{"rate": [1000.0] * (seconds - 1) + [500.0 + k]} for k in range(trials)]
    said = f"stalls of {trials} trials of {seconds} seconds often meet in one second by chance"
    assert steadiness(cell, MARGIN) == Missing(said)
    longer = [{"rate": [1000.0, *one["rate"]]} for one in cell[:3]] * 2
    assert not isinstance(steadiness(longer, MARGIN), Missing)


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        ([], "no trial counts"),
        ([Missing("no seconds")] * 5, "no seconds"),
        ([{"rate": [1.0, 1.0]}], "1 trial whose rate is known; expected 3"),
        ([{"rate": [1.0, 1.0]}] * 2, "2 trials whose rate is known; expected 3"),
    ],
)
def test_where_it_is_not_testable_it_says_why(trials, reason):
    assert steadiness(trials, MARGIN) == Missing(reason)


def test_a_server_that_answered_nothing_changed_nothing():
    assert steadiness([{"rate": [0.0] * 6}] * 5, MARGIN).is_steady


# --- open loops, from their Recordings --------------------------------------------------------------------


def found_open(case, seconds, studies, per_s=500, trials=5):
    """Return the share of simulated studies in which the cell of an open loop is shown to be not steady."""
    rng = np.random.default_rng((seconds, per_s))
    cells = ([paces_of(one) for one in open_loops(rng, case, trials, seconds, per_s)] for _ in range(studies))
    found = [steadiness(cell, MARGIN) for cell in cells]
    return sum(not isinstance(one, Missing) and not one.is_steady for one in found) / studies


@pytest.mark.parametrize("seconds", [6, 12])
@pytest.mark.parametrize("case", FALLING_OPEN)
def test_a_falling_share_of_valid_replies_of_an_open_loop_is_found(case, seconds):
    assert found_open(case, seconds, studies=40) >= LEAST_FOUND


@pytest.mark.parametrize("per_s", [20, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", STEADY_OPEN)
def test_arrivals_of_an_open_loop_are_not_taken_for_a_change_of_its_server(case, per_s):
    assert found_open(case, 6, studies=200, per_s=per_s) <= MOST_FALSE


def test_a_server_that_stops_answering_an_open_loop_is_not_steady():
    trials = [paces_of(silenced(one, range(3, 6))) for one in opened(5)]
    found = steadiness(trials, MARGIN)
    assert (found.kind, found.measure, found.trials) == (Kind.SLOWDOWN, "share", 5)
    # There is nothing of its end that the mean could be off by.
    assert found.bias is None


def test_one_silent_second_of_one_trial_does_not_hide_the_latency_of_the_others():
    slower = [paces_of(one) for one in opened(5)]
    slower = [
        {**one, "latency": [pace / (1 + 0.2 * k) for k, pace in enumerate(one["latency"])]} for one in slower
    ]
    silent = paces_of(silenced(opened(1)[0], [2]))
    assert "latency" not in silent
    for cell in ([*slower, silent], [silent, *slower]):
        found = steadiness(cell, MARGIN)
        assert (found.kind, found.measure, found.trials) == (Kind.SLOWDOWN, "latency", 5)
    # By the share of valid replies, one silent second of one trial is noise.
    assert steadiness([*(paces_of(one) for one in opened(5)), silent], MARGIN).is_steady


def opened(trials):
    """Return Recordings of an open loop with valid replies alone, in windows of 6 s."""
    return open_loops(np.random.default_rng(1), "valid", trials, 6)


def silenced(recording, seconds):
    """Return a Recording without a reply in these seconds, nor to what was due in them."""
    rows = [
        replace(row, ok=0, due_ok=0, latency=None) if row.second in seconds else row
        for row in recording.series
    ]
    return replace(recording, series=tuple(rows))


def test_shares_of_valid_replies_alone_cost_the_latency_no_power():
    latency = [{"latency": [1000.0 + 5 * (k - second) ** 2 % 7 for second in range(6)]} for k in range(5)]
    assert steadiness([{**one, "share": [1.0] * 6} for one in latency], MARGIN) == steadiness(latency, MARGIN)


@pytest.mark.parametrize("lost", [0.01, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("trials", [3, 4, 5])
def test_shares_of_few_requests_are_so_coarse_that_equal_ones_are_frequent(trials, lost):
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(1000):
        latency = 1000 * (1 + 0.05 * rng.normal(size=(trials, 6)))
        shares = rng.binomial(10, 1 - lost, (trials, 6)) / 10
        cell = [{"latency": list(a), "share": list(b)} for a, b in zip(latency, shares, strict=True)]
        found += not steadiness(cell, MARGIN).is_steady
    assert found <= MOST_FALSE * 1000


def test_a_load_that_ends_before_what_became_of_its_last_requests_has_no_share():
    (one,) = opened(1)
    cut = replace(one, account=replace(one.account, others={"in_flight_at_end": 40}))
    assert list(paces_of(cut)) == ["latency"]
    assert list(paces_of(one)) == ["latency", "share"]
    few = open_loops(np.random.default_rng(1), "valid", 1, 6, per_s=5)
    assert list(paces_of(few[0])) == ["latency"]


def test_replies_that_a_generator_does_not_count_by_when_their_request_was_due_are_no_share():
    (one,) = opened(1)
    unknown = replace(one, series=tuple(replace(row, due_ok=None) for row in one.series))
    assert list(paces_of(unknown)) == ["latency"]
    why = "valid replies were not counted by when their requests were due"
    assert paces_of(silenced(unknown, [2])) == Missing(f"no valid reply in 1 of 6 seconds; {why}")

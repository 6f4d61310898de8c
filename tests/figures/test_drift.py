"""The drift of a machine, against scipy and against what was planted."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, theilslopes

from golden.build import MS, SECOND, recording
from prony.figures.drift import drift
from prony.figures.summary import figures
from prony.model.trial import Failed, Ok, Trial, TrialRole
from prony.model.workload import DurationStop, OpenLoop, Workload
from prony.reading.checks import calibrations

LOAD = Workload(OpenLoop(1000.0), DurationStop(SECOND))


@given(st.lists(st.floats(0.5, 2.0), min_size=5, max_size=40))
def test_the_trend_is_that_of_theil_and_sen(values):
    found = drift(list(enumerate(values)), 0.02)
    slope, _, low, high = theilslopes(np.log(values), np.arange(len(values)), alpha=0.9)
    length = len(values) - 1
    assert found.change == pytest.approx(np.expm1(slope * length), abs=1e-9)
    assert found.low <= np.expm1(low * length) + 1e-9
    assert found.high >= np.expm1(high * length) - 1e-9


@given(st.floats(0.1, 1e9), st.floats(0.1, 1e6))
def test_units_of_time_and_value_do_not_matter(scale, unit):
    values = [1.0, 1.1, 0.9, 1.2, 1.3, 1.25]
    plain = drift(list(enumerate(values)), 0.02)
    scaled = drift([(unit * time, scale * value) for time, value in enumerate(values)], 0.02)
    assert scaled.change == pytest.approx(plain.change)
    assert scaled.drifts == plain.drifts


def noisy(rng, count, change, noise=0.02):
    return [
        (place, 100 * (1 + change * place / (count - 1)) * rng.lognormvariate(0, noise))
        for place in range(count)
    ]


def test_a_machine_that_stays_the_same_is_said_to_drift_in_few_studies():
    rng = random.Random(3)
    flagged = sum(drift(noisy(rng, 15, 0.0), 0.02).drifts for _ in range(1000))
    # At most 5 % by the interval; binomial with p = 0.05: 50 +- 7.
    assert flagged < 80


def test_a_planted_drift_beyond_the_margin_is_found():
    rng = random.Random(4)
    flagged = sum(drift(noisy(rng, 30, 0.10), 0.02).drifts for _ in range(200))
    assert flagged > 190


def test_a_figure_that_falls_drifts_as_one_that_rises():
    found = drift([(time, 100 - time) for time in range(11)], 0.02)
    assert found.drifts
    assert found.low <= found.change <= found.high < 0


def test_a_change_within_the_margin_is_none_however_sure():
    assert not drift([(time, 100 + 0.1 * time) for time in range(11)], 0.02).drifts


@pytest.mark.parametrize("count", [0, 1, 4])
def test_of_too_few_figures_only_the_median_is_told(count):
    found = drift([(time, 10.0) for time in range(count)], 0.02)
    assert (found.change, found.drifts, found.count) == (None, False, count)
    assert found.median == (10.0 if count else None)


def calibration(place, latency_ms):
    return Trial(
        *(9, place, 0, 0, TrialRole.CALIBRATION, Ok(), place * 60 * SECOND, place * 60 * SECOND + SECOND),
        recording=recording(LOAD, [int(latency_ms * MS) + k for k in range(1000)]),
    )


def test_calibrations_of_a_study_tell_its_drift_and_nothing_else_does():
    trials = [calibration(place, 1 + place / 20) for place in range(10)]
    others = [replace(one, role=TrialRole.SUBJECT, started_unix_ns=0) for one in trials]
    broken = replace(trials[0], outcome=Failed("start", "it ended"))
    found = calibrations(map(figures, [*others, *trials, broken]), 0.02)
    assert found is not None
    assert (found.trials, found.counted, found.uncounted) == (11, 10, 1)
    latency, cpu = found.drifts["response_ok_p50"], found.drifts["cpu_ns_per_request"]
    assert (latency.count, latency.drifts) == (10, True)
    assert latency.change == pytest.approx(0.45, abs=0.05)
    assert (cpu.count, cpu.change) == (0, None)


def test_the_interval_is_that_of_sen_by_ranks():
    # Of eight figures there are 28 slopes; at most 5 pairs fall with a chance of 1.6 %, at most 6 of 3.1 %.
    logs = [0.0, 0.05, 0.02, 0.11, 0.17, 0.16, 0.29, 0.31]
    slopes = sorted((logs[k] - logs[i]) / (k - i) for k in range(8) for i in range(k))
    found = drift(list(enumerate(map(math.exp, logs))), 0.02)
    assert found.low == pytest.approx(math.expm1(7 * slopes[5]))
    assert found.high == pytest.approx(math.expm1(7 * slopes[-6]))


@pytest.mark.parametrize("count", [5, 8, 15, 60])
def test_it_drifts_where_fewer_pairs_fall_than_do_by_chance(count):
    most = max(k for k in range(count * (count - 1) // 4) if p_of(order(count, k)) <= 0.05)
    found = [drift([*enumerate(map(math.exp, order(count, k)))], 0.02) for k in (most, most + 1)]
    assert [one.low > 0 for one in found] == [True, False]


def order(count, falling):
    """Return so many numbers in an order in which so many pairs fall."""
    left, found = list(range(count)), []
    while left:
        at = min(falling, len(left) - 1)
        found.append(left.pop(at))
        falling -= at
    return found


def p_of(order):
    return kendalltau(range(len(order)), order, method="exact").pvalue


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("blocks", [5, 10])
def test_calibrations_that_share_the_state_of_their_block_show_no_drift_by_it(blocks, share):
    rng, studies = np.random.default_rng(blocks), 400
    own, shared = rng.normal(size=(studies, blocks, 3)), rng.normal(size=(studies, blocks, 1))
    noise = 0.05 * ((1 - share) ** 0.5 * own + share**0.5 * shared)
    # At most 5 % by the interval; binomial: 20 +- 4.4.
    assert sum(over_blocks(one).drifts for one in noise) <= 33


def test_five_blocks_find_a_drift_that_is_far_above_their_noise():
    rng = np.random.default_rng(1)
    rising = np.linspace(0, 0.5, 5)[:, None] + 0.05 * rng.normal(size=(100, 5, 3))
    assert sum(over_blocks(one).drifts for one in rising) > 90


ONE = figures(calibration(0, 1.0))


def over_blocks(logs):
    """Return the drift of calibrations, from the logarithms of a figure: blocks x calibrations."""
    trials = [
        replace(
            ONE,
            block=block,
            started_unix_ns=(3 * block + place) * SECOND,
            metrics=ONE.metrics | {"response_ok_p50": math.exp(value)},
        )
        for block, row in enumerate(logs)
        for place, value in enumerate(row)
    ]
    return calibrations(trials, 0.02).drifts["response_ok_p50"]

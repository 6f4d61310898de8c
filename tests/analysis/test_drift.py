"""Calibrations over time: a drift is shown when there is one, and not where there is only noise."""

import math
import random

import pytest
from scipy import stats

from prony.analysis.drift import drift
from prony.analysis.missing import Missing


def test_a_planted_drift_is_shown_with_its_size():
    found = drift([(float(at), 10.0 * 1.01**at * (1 + 0.001 * (-1) ** at)) for at in range(10)])
    assert found.shown
    assert found.low < 1.01**9 - 1 < found.high
    assert found.change == pytest.approx(1.01**9 - 1, abs=0.002)


def test_noise_shows_no_drift_more_often_than_its_level():
    rng = random.Random(1)
    runs = [drift([(float(at), rng.lognormvariate(0, 0.02)) for at in range(12)]) for _ in range(400)]
    shown = sum(found.shown for found in runs)
    assert stats.binomtest(shown, 400, 0.05).pvalue > 0.001


def test_the_slope_agrees_with_scipys():
    points = [(0.0, 3.0), (1.0, 3.1), (2.5, 2.9), (4.0, 3.3), (5.0, 3.2)]
    oracle = stats.linregress([at for at, _ in points], [math.log(value) for _, value in points])
    assert drift(points).change == pytest.approx(math.expm1(oracle.slope * 5), rel=1e-9)


def test_three_calibrations_cannot_tell():
    assert drift([(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]) == Missing(
        "3 calibrations that count; a drift needs 4"
    )
    assert drift([(0.0, 1.0)] * 5) == Missing("all calibrations were at one time")

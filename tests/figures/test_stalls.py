"""A trial that stalls is named, and is neither noise nor a habit."""

import numpy as np
import pytest

from prony.figures.drift import stalled


def figures(count, *stalls, worse=0.6, spread=0.02):
    rng = np.random.default_rng(count)
    values = 100 * np.exp(spread * rng.normal(size=count))
    values[list(stalls)] *= worse
    return dict(enumerate(np.log(values).tolist()))


@pytest.mark.parametrize("count", [5, 10, 20])
def test_one_trial_that_stalls_is_named(count):
    found = stalled(figures(count, 3), is_higher_better=True)
    assert (found.blocks, found.trials, found.of) == ((3,), 1, count)
    assert found.worst == pytest.approx(-0.4, abs=0.05)


def test_a_latency_stalls_upwards():
    assert stalled(figures(10, 3), is_higher_better=False) is None
    assert stalled(figures(10, 3, worse=2.5), is_higher_better=False).worst == pytest.approx(1.5, abs=0.1)


def test_what_happens_in_a_third_of_the_trials_is_no_rare_stall():
    assert stalled(figures(9, 1, 4, 7), is_higher_better=True) is None


def test_few_trials_have_no_usual_one():
    assert stalled(figures(4, 1), is_higher_better=True) is None


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.3])
def test_noise_is_rarely_called_a_stall(spread):
    rng = np.random.default_rng(5)
    studies = (spread * rng.normal(size=(2000, 10))).tolist()
    found = sum(stalled(dict(enumerate(one)), is_higher_better=True) is not None for one in studies)
    assert found / 2000 <= 0.03


@pytest.mark.parametrize(("deviations", "stalls"), [(4.5, False), (5.5, True)])
def test_a_stall_is_five_deviations_from_the_median(deviations, stalls):
    # The median of absolute deviations of these is 0.06745: a deviation of 0.1.
    noise = [0.06745 * sign for sign in (-1, 1, -1, 1, -1, 1, -1, 1)]
    found = stalled(dict(enumerate([*noise, 0.0, 0.1 * deviations])), is_higher_better=False)
    assert (found is not None) == stalls

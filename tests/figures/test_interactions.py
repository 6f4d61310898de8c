"""Interactions of two settings: found where they are, and seldom where they are not."""

from itertools import product
from math import log
from random import Random

import pytest

from prony.figures.statistics.compare import Dependent, Terms, Verdict, dependent, interactions

GRID = {(i, j): [f"{i}{j}"] for i, j in product(range(3), range(2))}


def logs(rng, effect=lambda i, j: 0.0, blocks=6, noise=0.02, names=GRID):
    """Logarithms by subject and block: what blocks share, what settings do, and noise."""
    shared = [rng.gauss(0, 0.1) for _ in range(blocks)]
    return {
        name: {k: 5 + shared[k] + effect(*place) + rng.gauss(0, noise) for k in range(blocks)}
        for place, parts in names.items()
        for name in parts
    }


def by_themselves(i, j):
    return 0.4 * i - 0.3 * j


def test_a_ratio_that_is_half_as_large_at_another_level_is_found_as_half():
    halved = logs(Random(1), lambda i, j: by_themselves(i, j) - (log(2) if i == 2 and j else 0), noise=0.001)
    found = interactions(GRID, halved)
    assert set(found) == {(1, 1), (2, 1)}
    assert found[2, 1].effect == pytest.approx(-0.5, abs=0.002)
    assert found[2, 1].verdict is Verdict.LOWER
    assert found[1, 1].verdict is Verdict.EQUIVALENT
    assert found[2, 1].method.endswith(", twice")


def test_what_acts_by_itself_is_seldom_called_dependent():
    """Of 300 studies of settings that act by themselves, fewer than 5 % have any interval without zero."""
    rng = Random(7)
    studies = [interactions(GRID, logs(rng, by_themselves)) for _ in range(300)]
    false = sum(any(one.low > 0 or one.high < 0 for one in found.values()) for found in studies)
    # 5 % of 300, and more than that in one of a thousand such tests: 27.
    assert false <= 27


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    rng = Random(11)
    truth = 0.1
    found = [
        interactions(GRID, logs(rng, lambda i, j: truth if (i, j) == (1, 1) else 0.0))[1, 1]
        for _ in range(300)
    ]
    held = sum(log(1 + one.low) <= truth <= log(1 + one.high) for one in found)
    # 95 % of 300, less three standard deviations.
    assert held >= 273


def test_an_interaction_of_five_times_the_noise_is_found_nine_times_in_ten():
    rng = Random(13)
    found = [
        interactions(GRID, logs(rng, lambda i, j: 0.1 if i == 2 and j else 0.0))[2, 1] for _ in range(100)
    ]
    assert sum(one.verdict is Verdict.HIGHER for one in found) >= 90


def test_other_settings_are_averaged_over():
    grid = {place: [f"{name}a", f"{name}b"] for place, (name,) in GRID.items()}
    parted = logs(Random(3), lambda i, j: 0.2 * i * j, noise=0.001, names=grid)
    found = interactions(grid, parted)
    assert found[1, 1].effect == pytest.approx(0.221, abs=0.005)
    single = interactions(GRID, logs(Random(3), lambda i, j: 0.2 * i * j, noise=0.001))
    assert found[1, 1].spread < single[1, 1].spread


def test_a_combination_that_was_not_measured_leaves_out_what_needs_it():
    known = logs(Random(5))
    del known["10"]
    assert set(interactions(GRID, known)) == {(2, 1)}


def test_what_lies_within_the_margin_is_no_interaction():
    small = logs(Random(1), lambda i, j: 0.05 if i == 2 and j else 0.0, noise=0.001)
    assert interactions(GRID, small, Terms())[2, 1].verdict is Verdict.HIGHER
    assert interactions(GRID, small, Terms(margin=0.08))[2, 1].verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([Verdict.EQUIVALENT, Verdict.EQUIVALENT], Dependent.NO),
        ([Verdict.EQUIVALENT, Verdict.NOT_SHOWN], Dependent.NOT_SHOWN),
        ([Verdict.NOT_SHOWN, Verdict.HIGHER], Dependent.YES),
        ([Verdict.TOO_FEW], Dependent.TOO_FEW),
        ([], Dependent.TOO_FEW),
    ],
)
def test_all_interactions_of_two_settings_make_one_verdict(verdicts, said):
    assert dependent(verdicts) is said

"""Boundaries agree with the published tables, and spend what they say."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from prony.figures.statistics.spending import Look, boundaries, spent

PLANNED = (10, 15, 20)


@pytest.mark.parametrize(
    ("looks", "table"),
    [
        # Lan and DeMets' O'Brien-Fleming-type function, two-sided 0.05, looks at equal distances: as printed
        # by Reboussin, DeMets, Kim and Lan (2000), Controlled Clinical Trials 21, and their program ld98.
        (2, (2.9626, 1.9686)),
        (3, (3.7103, 2.5114, 1.9930)),
        (4, (4.3326, 2.9631, 2.3590, 2.0141)),
        (5, (4.8769, 3.3570, 2.6803, 2.2898, 2.0310)),
    ],
)
def test_boundaries_are_those_of_the_printed_tables(looks, table):
    fractions = tuple((look + 1) / looks for look in range(looks))
    assert boundaries(0.05, fractions) == pytest.approx(table, abs=6e-5)


@pytest.mark.parametrize("level", [0.05, 0.01, 0.05 / 28, 0.1])
def test_the_second_of_two_looks_agrees_with_scipys_quadrature(level):
    at = 0.5
    first = stats.norm.isf(spent(level, at) / 2)

    def missed(second):
        def inner(z):
            mean, deviation = z * np.sqrt(at), np.sqrt(1 - at)
            return stats.norm.pdf(z) * (
                stats.norm.cdf((second - mean) / deviation) - stats.norm.cdf((-second - mean) / deviation)
            )

        return 1 - level - integrate.quad(inner, -first, first, epsabs=1e-13, epsrel=1e-13)[0]

    oracle = optimize.brentq(missed, 1, 6, xtol=1e-12)
    assert boundaries(level, (at, 1.0)) == pytest.approx((first, oracle), abs=1e-9)


@given(st.floats(1e-6, 0.99))
def test_all_of_the_level_is_spent_at_the_end_and_never_less_later(level):
    shares = [spent(level, fraction) for fraction in (0.25, 0.5, 0.75, 1.0)]
    assert shares[-1] == pytest.approx(level)
    assert all(before < after for before, after in pairwise(shares))


@given(st.floats(0.001, 0.3), st.floats(1.01, 3))
def test_a_higher_level_is_higher_at_every_look(level, more):
    for blocks in PLANNED:
        assert Look(blocks, PLANNED).nominal(level) < Look(blocks, PLANNED).nominal(min(0.99, level * more))


def test_a_study_with_one_look_spends_all_in_it():
    assert Look(10, (10,)).nominal(0.05) == pytest.approx(0.05, abs=1e-12)


def test_a_look_between_those_planned_stands_where_it_is():
    assert Look(12, PLANNED).fractions == (0.5, 0.6)
    assert Look(15, PLANNED).fractions == (0.5, 0.75)
    assert Look(25, PLANNED).fractions == (0.5, 0.75, 1.0)


def test_the_levels_of_ten_fifteen_and_twenty_blocks():
    found = [Look(blocks, PLANNED).nominal(0.05) for blocks in PLANNED]
    assert found == pytest.approx([0.0030506, 0.0183234, 0.0440007], abs=1e-7)


def test_a_random_walk_crosses_the_boundaries_as_often_as_allowed():
    rng, runs = np.random.default_rng(7), 200_000
    times = np.array([0.5, 0.75, 1.0])
    steps = rng.normal(size=(runs, 3)) * np.sqrt(np.diff(times, prepend=0))
    scores = steps.cumsum(axis=1) / np.sqrt(times)
    crossed = (np.abs(scores) >= boundaries(0.05, tuple(times))).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / runs) ** 0.5)

"""Letters say exactly who differs; Friedman's test is scipy's."""

from itertools import combinations
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.figures.standings import friedman, letters

NAMES = ("bjoern", "cheroot", "gunicorn", "meinheld", "mod_wsgi", "uwsgi")
PAIRS = list(combinations(NAMES, 2))


@given(st.sets(st.sampled_from(PAIRS)))
def test_two_share_a_letter_exactly_if_they_are_not_different(different):
    found = letters(NAMES, different)
    for first, second in PAIRS:
        assert (not set(found[first]) & set(found[second])) is ((first, second) in different)


@given(st.sets(st.sampled_from(PAIRS)))
def test_no_letter_is_spare(different):
    found = letters(NAMES, different)
    groups = [{name for name in NAMES if letter in found[name]} for letter in set("".join(found.values()))]
    assert not any(one < other for one in groups for other in groups)


@given(st.sets(st.sampled_from(PAIRS)))
def test_letters_are_given_in_the_order_of_the_names(different):
    used = "".join(letters(NAMES, different).values())
    firsts = [letter for k, letter in enumerate(used) if letter not in used[:k]]
    assert firsts == list(ascii_lowercase[: len(firsts)])


def test_when_all_differ_each_has_its_own_and_when_none_does_all_share_one():
    assert list(letters(NAMES, PAIRS).values()) == list("abcdef")
    assert set(letters(NAMES, ()).values()) == {"a"}


def test_more_groups_than_the_alphabet_has_letters():
    names = [str(k) for k in range(30)]
    found = letters(names, list(combinations(names, 2)))
    assert len(set(found.values())) == 30
    assert found["26"] == "a'"


def table(rows):
    return [{str(k): float(value) for k, value in enumerate(row)} for row in rows]


@pytest.mark.parametrize("seed", range(20))
def test_friedmans_p_value_is_scipys_with_ties_too(seed):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(rng.integers(3, 12), rng.integers(3, 7))) * 2).round(seed % 3)
    oracle = stats.friedmanchisquare(*rows.T).pvalue
    assert friedman(table(rows)) == pytest.approx(oracle, abs=1e-9)


def test_blocks_that_all_agree_show_that_the_subjects_are_not_alike():
    assert friedman(table([[1, 2, 3, 4]] * 10)) == pytest.approx(stats.chi2.sf(30, 3), abs=1e-12)


def test_blocks_without_any_difference_show_none():
    assert friedman(table([[1, 1, 1]] * 4)) == 1


@pytest.mark.parametrize("rows", [[], [[1, 2, 3]], [[1, 2], [2, 1], [1, 2]]])
def test_too_few_blocks_or_subjects_have_no_omnibus_test(rows):
    assert friedman(table(rows)) is None

"""Pairs of an archive: one subject under two names, or two subjects without their effect."""

from dataclasses import replace

import pytest

from cells import cell_of, measured
from prony.analysis.answer import log_ratios
from prony.analysis.noise_floor import self_test
from prony.analysis.self_tests import is_real, pairs, self_tests
from prony.analysis.versus import Match
from prony.model import ClosedLoop, OpenLoop

TEN = [1000.0 + step for step in (0, 3, -3, 2, -2, 1, -1, 4, -4, 0)]
LESS = [value * (1 + 0.001 * (k % 4)) for k, value in enumerate(TEN)]


def named(cell, name):
    return replace(cell, subject=replace(cell.subject, name=name))


def twins(loop=None, **kwargs):
    cell = cell_of("a+hello", loop)
    metrics = {"ok_per_s": (TEN, LESS)} | kwargs
    return [
        measured(named(cell, f"a+hello ({label})"), **{name: both[k] for name, both in metrics.items()})
        for k, label in enumerate("AB")
    ]


def test_two_are_one_subject_that_differ_in_nothing_but_the_name():
    one, other = twins()
    assert is_real(Match(one, other))
    assert not is_real(Match(one, measured(cell_of("b+hello"))))
    assert not is_real(Match(one, measured(named(cell_of("a+hello", path="/else"), "a+hello (B)"))))


def test_where_a_subject_runs_under_two_names_only_these_pairs_are_read():
    one, other = twins()
    third = measured(cell_of("b+hello"), ok_per_s=TEN)
    assert pairs([[one, third, other]]) == (Match(one, other),)


def test_without_such_a_pair_all_pairs_of_a_load_are_read():
    a, b, c = (measured(cell_of(name), ok_per_s=TEN) for name in ("a+hello", "b+hello", "c+hello"))
    assert pairs([[a, b], [c]]) == (Match(a, b),)
    assert pairs([[a, b, c]]) == (Match(a, b), Match(a, c), Match(b, c))


def test_what_pairs_show_is_told_for_each_number_of_blocks_that_they_are_enough_for():
    match = Match(*twins())
    found = self_tests([match])
    ratios = log_ratios(match.first, match.second, "ok_per_s")
    assert found == tuple(self_test("ok_per_s", "closed", [ratios], blocks) for blocks in (5, 10))
    assert [one.studies for one in found] == [2, 1]


def test_each_class_of_load_has_its_own():
    closed = [Match(*twins(ClosedLoop(n))) for n in (10, 100)]
    opened = Match(*twins(OpenLoop(100)))
    found = self_tests([closed[0], opened, closed[1]])
    studies = {(one.load, one.blocks): one.studies for one in found}
    assert studies == {("closed", 5): 4, ("closed", 10): 2, ("open", 5): 2, ("open", 10): 1}


def test_two_subjects_lose_their_effect_and_have_no_real_study():
    first = measured(cell_of("a+hello"), ok_per_s=TEN)
    second = measured(cell_of("b+hello"), ok_per_s=[3 * value for value in LESS])
    found = self_tests([Match(first, second)])
    assert [(one.studies, one.blocks) for one in found] == [(0, 5), (0, 10)]
    assert max(one.floor for one in found) < 0.003


@pytest.mark.parametrize("which", [0, 1])
def test_of_pairs_whose_requests_fail_speed_is_not_read_and_memory_is(which):
    both = [
        measured(one.cell, lost=200 if k == which else 0, ok_per_s=TEN, pss_end=TEN)
        for k, one in enumerate(twins())
    ]
    assert {one.metric for one in self_tests([Match(*both)])} == {"pss_end"}

"""Names of an archive: one subject under several names, or several subjects without their effects."""

from dataclasses import replace

import pytest

from cells import cell_of, measured
from prony.figures.noise_floor import Namesakes, namesakes, procedures, self_test, self_tests
from prony.figures.statistics.compare import Terms
from prony.model.workload import ClosedLoop, OpenLoop

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


def test_cells_are_one_subject_that_differ_in_nothing_but_the_name():
    one, other = twins()
    elsewhere = measured(named(cell_of("a+hello", path="/else"), "a+hello (C)"))
    assert namesakes([[one, measured(cell_of("b+hello")), other, elsewhere]]) == (
        Namesakes((one, other), True),
    )


def test_without_namesakes_all_subjects_of_a_load_are_read():
    a, b, c = (measured(cell_of(name), ok_per_s=TEN) for name in ("a+hello", "b+hello", "c+hello"))
    assert namesakes([[a, b], [c]]) == (Namesakes((a, b), False),)
    assert namesakes([[a, b, c]]) == (Namesakes((a, b, c), False),)


def test_names_are_tested_with_each_number_of_blocks_that_there_are_enough_of():
    sakes = Namesakes(tuple(twins()), True)
    found = self_tests([sakes])
    logs = sakes.logs("ok_per_s")
    assert found == tuple(self_test("ok_per_s", "closed", [logs], blocks) for blocks in (5, 10))
    assert [one.studies for one in found] == [2, 1]


def test_each_class_of_load_has_its_own():
    closed = [Namesakes(tuple(twins(ClosedLoop(n))), True) for n in (10, 100)]
    opened = Namesakes(tuple(twins(OpenLoop(100))), True)
    found = self_tests([closed[0], opened, closed[1]])
    studies = {(one.load, one.blocks): one.studies for one in found}
    assert studies == {("closed", 5): 4, ("closed", 10): 2, ("open", 5): 2, ("open", 10): 1}


def test_two_subjects_lose_their_effect_and_have_no_real_study():
    first = measured(cell_of("a+hello"), ok_per_s=TEN)
    second = measured(cell_of("b+hello"), ok_per_s=[3 * value for value in LESS])
    found = self_tests([Namesakes((first, second), False)])
    assert [(one.studies, one.blocks) for one in found] == [(0, 5), (0, 10)]
    assert max(one.floor for one in found) < 0.003


@pytest.mark.parametrize("which", [0, 1])
def test_of_names_whose_requests_fail_speed_is_not_read_and_memory_is(which):
    both = [
        measured(one.cell, lost=200 if k == which else 0, ok_per_s=TEN, pss_end=TEN)
        for k, one in enumerate(twins())
    ]
    assert {one.metric for one in self_tests([Namesakes(tuple(both), True)])} == {"pss_end"}


def test_the_procedure_is_tested_in_the_metric_that_decides():
    (found,) = procedures([Namesakes(tuple(twins(pss_end=(TEN, LESS))), True)], Terms())
    assert (found.metric, found.found.names, found.found.blocks) == ("ok_per_s", 2, 10)


def test_names_without_figures_that_qualify_test_no_procedure():
    spoilt = [measured(one.cell, lost=200, ok_per_s=TEN) for one in twins()]
    assert procedures([Namesakes(tuple(spoilt), True)], Terms()) == ()

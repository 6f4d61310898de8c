"""Two faults at once: planted together and apart, and judged by which hurts more."""

import pytest

from faults import test_judge
from lab import CAUSES, PLANTS
from lab.campaign import FOLDER
from lab.cause import PlanPart
from lab.dominance import judge_doubles, share_of
from lab.doubles import DOUBLES
from lab.judge import JudgedPlant, Named, judge_plants
from lab.matrix import matrix_of
from lab.planting import plan_of_plant
from lab.report import planted_faults
from prony.catalog.schema.loader import load_catalog
from prony.diagnosis.waiting import SLOTS_BUSY
from prony.model.sandbox import SandboxChoice

DOUBLE = DOUBLES[0]


def judged(plant, gain, *symptoms):
    faulty = tuple(Named(plant.name, False, k, one, True, ()) for k, one in enumerate(symptoms))
    return JudgedPlant(plant, True, (), faulty, 0, gain)


@pytest.mark.parametrize("double", DOUBLES, ids=lambda one: one.name)
def test_both_plants_have_the_same_two_faults_and_twins_that_lack_one_each(double):
    one, other = double.first.pair, double.second.pair
    assert one.faulty == other.faulty
    assert len({repr(side) for side in (one.faulty, one.healthy, other.healthy)}) == 3


@pytest.mark.parametrize("double", DOUBLES, ids=lambda one: one.name)
def test_a_double_is_made_of_settings_that_its_server_has(double):
    known = load_catalog((FOLDER,))
    for plant in (double.first, double.second):
        plan = plan_of_plant(plant, known, SandboxChoice(), blocks=3, seed=1)
        assert len(plan.cells) == 2
        assert plant in PLANTS


def test_the_fault_without_which_it_is_better_by_more_is_dominant():
    first, second = DOUBLE.first, DOUBLE.second
    (kind,), (other,) = first.cause.named, second.cause.named
    trials = [judged(first, 3.0, kind, kind, other), judged(second, 1.5, kind, None, kind)]
    (found,) = judge_doubles(DOUBLES, trials)
    assert found.dominant is first
    assert (found.right.count, found.right.total) == (4, 6)
    (found,) = judge_doubles(DOUBLES, [judged(first, 1.5, kind), judged(second, 3.0, kind)])
    assert (found.dominant, found.right.count) == (second, 0)


def test_two_faults_that_hurt_alike_have_no_dominant_one_and_count_for_nothing():
    (found,) = judge_doubles(DOUBLES, [judged(DOUBLE.first, 2.0, None), judged(DOUBLE.second, 1.9, None)])
    assert (found.dominant, found.right) == (None, None)
    assert share_of([found]).total == 0


def test_a_fault_that_does_not_hurt_is_not_dominant_beside_one_that_hurts_less():
    (found,) = judge_doubles(DOUBLES, [judged(DOUBLE.first, 1.05, None), judged(DOUBLE.second, 0.8, None)])
    assert found.dominant is None


def test_a_double_of_which_half_was_measured_is_left_out():
    assert judge_doubles(DOUBLES, [judged(DOUBLE.first, 2.0, None)]) == ()
    assert judge_doubles(DOUBLES, [judged(DOUBLE.first, 2.0), judged(DOUBLE.second, None)]) == ()


def test_doubles_are_no_part_of_the_matrix():
    trials = [judged(DOUBLE.first, 3.0, SLOTS_BUSY), judged(DOUBLE.second, 1.5, SLOTS_BUSY)]
    assert matrix_of(trials, CAUSES).rows == ()
    assert {plant.part for double in DOUBLES for plant in (double.first, double.second)} == {PlanPart.DOUBLE}


def test_the_report_says_how_often_the_dominant_one_was_named():
    (kind,) = DOUBLE.first.cause.named
    trials = [judged(DOUBLE.first, 3.0, kind), judged(DOUBLE.second, 1.5, kind)]
    said = planted_faults(trials)
    assert "The fault that hurts more is named first in 2 of 2 (16% to 100%) trials." in said
    assert f"| {DOUBLE.name} | 3.00 times | 1.50 times | 2 of 2 (16% to 100%) |" in said


def test_the_fault_that_a_twin_of_a_double_keeps_is_no_false_alarm():
    (kind,) = DOUBLE.second.cause.named
    twin = (Named(DOUBLE.first.name, True, 0, kind, True, (kind,)),)
    assert JudgedPlant(DOUBLE.first, True, twin, (), 0).false_alarms == ()
    plant = next(one for one in PLANTS if one.part is PlanPart.HELD_OUT)
    assert JudgedPlant(plant, True, twin, (), 0).false_alarms == twin


def test_the_gain_of_a_plant_is_measured_in_pairs():
    (found,) = judge_plants(PLANTS, test_judge.planted(test_judge.ASLEEP))
    assert found.gain == pytest.approx(4.8, abs=0.1)
    (found,) = judge_plants(PLANTS, test_judge.planted(test_judge.ASLEEP, slow=-20.0))
    assert found.gain is None

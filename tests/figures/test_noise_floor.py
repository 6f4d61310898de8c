"""A/A differences: false verdicts are counted with their bound, and the floor is what noise alone shows."""

import random
from math import expm1

import pytest

from cells import cell_of
from prony.figures.noise_floor import SelfTest, floors_by_metric, self_test
from prony.model.facts import Floor
from prony.model.workload import ClosedLoop, OpenLoop


def noise(blocks, spread=0.01, seed=1, shift=0.0):
    rng = random.Random(seed)
    return [rng.gauss(shift, spread) for _ in range(blocks)]


def twins(*args, **kwargs):
    """One subject under two names."""
    ratios = noise(*args, **kwargs)
    return {"A": dict.fromkeys(range(len(ratios)), 0.0), "B": dict(enumerate(ratios))}


def test_the_floor_is_what_95_of_100_effects_of_noise_do_not_exceed():
    found = self_test("ok_per_s", "closed", [twins(400)], 5)
    # 1.96 standard errors of the mean of five.
    assert found.floor == pytest.approx(expm1(1.96 * 0.01 / 5**0.5), rel=0.2)
    assert self_test("ok_per_s", "closed", [twins(400)], 20).floor < found.floor


def test_59_studies_without_a_false_verdict_show_that_few_are_false():
    found = self_test("ok_per_s", "closed", [twins(59 * 5)], 5)
    assert (found.false, found.studies, found.shown) == (0, 59, True)
    assert found.bound == pytest.approx(0.0495, abs=1e-4)


def test_fewer_studies_show_nothing():
    found = self_test("ok_per_s", "closed", [twins(58 * 5)], 5)
    assert (found.studies, found.shown) == (58, None)


def test_a_machine_that_favours_one_name_is_found_out():
    found = self_test("ok_per_s", "closed", [twins(60 * 5, shift=0.1)], 5)
    assert (found.false, found.shown) == (60, False)
    assert found.permuted_false < 60


def test_a_study_of_many_names_is_one_study():
    table = {name: dict(enumerate(noise(10, seed=seed))) for seed, name in enumerate("ABCD")}
    assert self_test("ok_per_s", "closed", [table], 5).studies == 2


def test_a_few_false_verdicts_show_neither_that_they_are_rare_nor_that_they_are_not():
    found = self_test("ok_per_s", "closed", [twins(59 * 5), twins(5, shift=0.1)], 5)
    assert (found.false, found.studies, found.shown) == (1, 60, None)


@pytest.mark.parametrize(
    ("false", "studies", "shown"), [(1, 92, None), (1, 93, True), (6, 60, None), (7, 60, False)]
)
def test_it_is_shown_at_a_one_sided_level_of_5_percent(false, studies, shown):
    # scipy.stats.beta: at most 5.05 % of 1 in 92, 4.997 % of 1 in 93; at least 4.45 % of 6 in 60, 5.6 % of 7.
    assert SelfTest("ok_per_s", "closed", 5, false, studies, 0.5, 0, 0, 0.01).shown is shown


def test_permutations_alone_have_no_real_study():
    found = self_test("ok_per_s", "closed", [twins(20)], 5, is_real=False)
    assert (found.studies, found.bound, found.shown) == (0, None, None)
    assert found.permuted_false <= 0.05 * found.permuted


@pytest.mark.parametrize("blocks", [4, 11])
def test_too_few_blocks_have_no_floor(blocks):
    assert self_test("ok_per_s", "closed", [twins(10)], blocks) is None


def test_the_floor_of_fewer_blocks_serves_for_more_and_not_the_other_way():
    floors = (Floor("ok_per_s", "closed", 10, 0.02), Floor("ok_per_s", "closed", 5, 0.03))
    found = [floors_by_metric(floors, cell_of("a+hello", ClosedLoop(10)), k) for k in (4, 5, 9, 10, 30)]
    assert found == [{}, *({"ok_per_s": floor} for floor in (0.03, 0.03, 0.02, 0.02))]


@pytest.mark.parametrize(
    ("loop", "floors"),
    [(ClosedLoop(10), {"ok_per_s": 0.03}), (OpenLoop(10), {"ok_per_s": 0.05})],
)
def test_a_cell_has_the_floors_of_its_class_of_load(loop, floors):
    known = (
        Floor("ok_per_s", "closed", 5, 0.03),
        Floor("ok_per_s", "open", 5, 0.05),
        Floor("ok_per_s", "closed", 10, 0.02),
        Floor("pss_end", "closed", 10, 0.01),
    )
    assert floors_by_metric(known, cell_of("a+hello", loop), 7) == floors

"""The order of a study's trials, and what is randomised in them: the same from the same seed, always."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.model.plan import Cell, Plan
from prony.model.subject import App, Interface, Subject
from prony.model.trial import TrialRole
from prony.model.workload import ClosedLoop, CountStop, MixPath, OpenLoop, Workload
from prony.plan.order import (
    MAX_PADDING_BYTES,
    Position,
    Turn,
    again,
    balanced_orders,
    block_order,
    block_turns,
    nuisances,
    with_arrivals,
)

APP = App("hello", "Hello", "/apps/hello", {Interface.WSGI: "hello:app"})


def cell(number):
    return Cell(
        number, Subject(f"s{number}", "waitress", APP, Interface.WSGI), Workload(ClosedLoop(1), CountStop(1))
    )


def grid(cells, blocks=3, seed=1, calibrated=False):
    plan = Plan("grid", "Grid", "", "quick", tuple(map(cell, range(cells))), blocks, seed)
    return replace(plan, calibration=cell(1000)) if calibrated else plan


SEEDS = st.integers(0, 2**63)


# --- the order --------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 100), SEEDS)
def test_a_block_visits_every_cell_once(cells, block, seed):
    plan = grid(cells, seed=seed)
    assert sorted(cell.id for cell in block_order(plan, block)) == list(range(cells))


@given(st.integers(1, 40), st.integers(0, 100), SEEDS)
def test_the_same_seed_gives_the_same_order(cells, block, seed):
    assert block_order(grid(cells, seed=seed), block) == block_order(grid(cells, seed=seed), block)


@given(SEEDS)
def test_blocks_differ_in_their_order(seed):
    # 20 cells have 2.4e18 orders: two equal ones are no chance.
    plan = grid(20, seed=seed)
    orders = {tuple(cell.id for cell in block_order(plan, block)) for block in range(5)}
    assert len(orders) == 5


@given(SEEDS)
def test_another_seed_gives_another_order(seed):
    assert block_order(grid(20, seed=seed), 0) != block_order(grid(20, seed=seed + 1), 0)


def test_every_cell_comes_first_about_as_often():
    plan = grid(4)
    firsts = [block_order(plan, block)[0].id for block in range(4000)]
    # Binomial with p = 1/4: 1000 +- 27; five of these is beyond chance.
    assert all(abs(firsts.count(cell) - 1000) < 137 for cell in range(4))


# --- turns ------------------------------------------------------------------------------------------------


@given(st.integers(2, 40), st.integers(0, 100), SEEDS)
def test_calibration_is_first_last_and_once_between_two_cells(cells, block, seed):
    turns = block_turns(grid(cells, seed=seed, calibrated=True), block)
    roles = [turn.position.role for turn in turns]
    places = [place for place, role in enumerate(roles) if role is TrialRole.CALIBRATION]
    assert len(places) == 3
    assert (places[0], places[-1]) == (0, len(turns) - 1)
    assert 2 <= places[1] <= len(turns) - 3
    assert [turn.position.position for turn in turns] == list(range(cells + 3))


def test_calibration_around_a_single_cell_is_first_and_last():
    roles = [turn.position.role for turn in block_turns(grid(1, calibrated=True), 0)]
    assert roles == [TrialRole.CALIBRATION, TrialRole.SUBJECT, TrialRole.CALIBRATION]


def test_calibration_inside_a_block_moves_about():
    plan = grid(5, calibrated=True)
    inside = [
        next(t.position.position for t in block_turns(plan, block)[1:] if t.cell.id == 1000)
        for block in range(4000)
    ]
    # Four gaps, binomial with p = 1/4: 1000 +- 27; five of these is beyond chance.
    assert all(abs(inside.count(place) - 1000) < 137 for place in range(2, 6))


@given(st.integers(1, 20), st.integers(0, 100), SEEDS)
def test_calibration_leaves_the_order_of_the_cells_as_it_is(cells, block, seed):
    plan = grid(cells, seed=seed, calibrated=True)
    measured = [turn.cell for turn in block_turns(plan, block) if turn.position.role is TrialRole.SUBJECT]
    assert tuple(measured) == block_order(plan, block)


def test_cross_checks_are_mixed_among_the_cells_of_every_block():
    checks = [cell(50), cell(51)]
    for block in range(20):
        turns = block_turns(grid(3), block, checks)
        roles = {turn.cell.id: turn.position.role for turn in turns}
        assert roles == {
            **dict.fromkeys(range(3), TrialRole.SUBJECT),
            **dict.fromkeys((50, 51), TrialRole.CROSS_CHECK),
        }
    firsts = {block_turns(grid(3), block, checks)[0].cell.id for block in range(100)}
    assert firsts == {0, 1, 2, 50, 51}


@given(st.integers(1, 10), SEEDS)
def test_no_two_turns_of_a_study_have_the_same_key(cells, seed):
    plan = grid(cells, seed=seed, calibrated=True)
    turns = [turn for block in range(3) for turn in block_turns(plan, block, [cell(50)])]
    turns += [again(turn, 100 + place) for place, turn in enumerate(turns)]
    assert len({turn.key for turn in turns}) == len(turns)


def test_another_attempt_is_the_same_cell_elsewhere_in_its_block():
    turn = Turn(cell(3), Position(2, 1, role=TrialRole.CROSS_CHECK))
    assert again(again(turn, 7), 9) == Turn(cell(3), Position(2, 9, 2, TrialRole.CROSS_CHECK))


# --- nuisances --------------------------------------------------------------------------------------------


def turns_of(plan, blocks=3, attempts=3):
    for block in range(blocks):
        for turn in block_turns(plan, block):
            for attempt in range(attempts):
                yield replace(turn, position=replace(turn.position, attempt=attempt))


@given(st.integers(0, 50), st.integers(0, 5), SEEDS)
def test_nuisances_repeat_by_seed_and_stay_in_their_range(block, attempt, seed):
    plan = grid(3, seed=seed)
    turn = Turn(plan.cells[0], Position(block, 0, attempt))
    drawn = nuisances(plan, turn)
    assert drawn == nuisances(plan, turn)
    assert 0 <= drawn.padding_bytes < MAX_PADDING_BYTES
    assert 0 <= drawn.hash_seed < 2**32


def test_nuisances_differ_by_block_cell_attempt_and_place():
    plan = grid(2, calibrated=True)
    drawn = {nuisances(plan, turn) for turn in turns_of(plan)}
    assert len(drawn) == 3 * 5 * 3


def test_subjects_of_a_block_meet_the_same_arrivals():
    plan = grid(4)
    seeds = [{nuisances(plan, turn).arrival_seed for turn in block_turns(plan, block)} for block in range(20)]
    assert [len(found) for found in seeds] == [1] * 20
    assert len(set.union(*seeds)) == 20


def test_nuisances_reach_a_subject_by_its_environment():
    drawn = nuisances(grid(1), Turn(grid(1).cells[0], Position(0, 0)))
    environment = drawn.as_environment()
    assert len(environment["PRONY_PADDING"]) == drawn.padding_bytes
    assert environment["PYTHONHASHSEED"] == str(drawn.hash_seed)


@pytest.mark.parametrize("loop", [OpenLoop(10.0), ClosedLoop(3)])
def test_only_an_open_loop_has_arrivals_to_draw(loop):
    load = with_arrivals(Workload(loop, CountStop(1)), 77)
    assert load.loop == (replace(loop, seed=77) if isinstance(loop, OpenLoop) else loop)
    assert load.mix is None


@pytest.mark.parametrize("loop", [OpenLoop(10.0), ClosedLoop(3)])
def test_the_order_of_a_mix_is_drawn_too(loop):
    load = Workload(loop, CountStop(1)).asking_for([MixPath("/"), MixPath("/cart")])
    assert with_arrivals(load, 77).mix == replace(load.mix, seed=77)


@pytest.mark.parametrize("count", range(1, 12))
def test_in_balanced_orders_each_is_at_each_place_and_after_each_other_equally_often(count):
    orders = balanced_orders(count, Random(count))
    places = Counter((place, number) for order in orders for place, number in enumerate(order))
    followed = Counter(pair for order in orders for pair in pairwise(order))
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert len(places) == count**2
    assert len(set(places.values())) == 1
    assert len(followed) == count * (count - 1)
    assert len(set(followed.values())) <= 1

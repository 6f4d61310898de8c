"""Cells that share a load are one group, compared by what was settled before the run."""

from dataclasses import replace

import pytest

from cells import UNKNOWN, cell_of
from golden import build
from prony.figures.answer import answer
from prony.figures.statistics.compare import Terms
from prony.figures.summary import figures
from prony.model.plan import Design, Plan, Precision
from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop
from prony.reading.groups import families, groups_of, load_size, terms
from prony.report.words import load_words, workload_words

TEN = [1000.0 + step for step in (0, 3, -3, 2, -2, 1, -1, 4, -4, 0)]
MEASURED = ("ok_per_s", "generator_ok_per_cpu_s")
ONE = figures(build.trial(cell_of("any+hello"), 0, 0, [1_000_000] * 2000))


def plan_of(*cells, **design):
    return Plan("shop", "Shop", "", "quick", cells, 10, 1, design=Design(**design))


def trials(speeds):
    """Trials with this throughput, block by block, of the cells by number."""
    return [
        replace(ONE, cell_id=number, block=block, metrics=UNKNOWN | {"ok_per_s": speed})
        for number, values in speeds.items()
        for block, speed in enumerate(values)
    ]


def pair(loop=None, first=1):
    return cell_of("a+hello", loop, number=first), cell_of("b+hello", loop, number=first + 1)


def grouped(**design):
    found = trials({1: TEN, 2: [1.05 * value for value in reversed(TEN)]})
    (group,) = groups_of(plan_of(*pair(), **design), found)
    return group


def test_a_study_that_looks_is_read_at_the_look_after_its_blocks():
    group = grouped(precision=Precision(0.02))
    (compared,) = group.answer.comparisons.values()
    (fixed,) = grouped().answer.comparisons.values()
    assert compared.level == fixed.level == 0.05
    assert compared.high - compared.low > 1.5 * (fixed.high - fixed.low)
    assert group.answer == answer(group.cells, terms(plan_of(precision=Precision(0.02)), 10))


def test_a_study_of_a_fixed_number_of_blocks_is_read_at_the_whole_level_and_with_its_margin():
    assert terms(plan_of(margin=0.1), 10) == Terms(margin=0.1)
    (compared,) = grouped(margin=0.1).answer.comparisons.values()
    assert (compared.level, grouped(margin=0.1).answer.ties) == (0.05, ("a+hello",))


@pytest.mark.parametrize(
    ("primary", "is_primary"), [({"connections": 10}, True), ({"connections": 9}, False)]
)
def test_loads_that_the_study_was_not_made_for_are_a_screening(primary, is_primary):
    assert grouped(primary=primary).primary is is_primary
    assert grouped().primary is True


def test_families_are_loads_that_differ_in_one_thing_the_lightest_first():
    loops = (ClosedLoop(100), ClosedLoop(10), OpenLoop(50.0))
    cells = [cell for k, loop in enumerate(loops) for cell in pair(loop, 2 * k)]
    found = families(groups_of(plan_of(*cells), trials({cell.id: TEN for cell in cells})))
    assert [[load_size(group) for group in linked] for linked in found] == [[10, 100], [50.0]]


def test_a_trial_that_stalls_is_named_and_not_averaged_away():
    found = trials({1: TEN, 2: [600.0, *TEN[1:]]})
    (group,) = groups_of(plan_of(*pair()), found)
    assert {name: (one.trials, one.of) for name, one in group.stalls.items()} == {"b+hello": (1, 10)}


def test_a_block_in_which_most_stall_is_the_machines_and_another_one_stays_the_subjects():
    slow = [600.0, *TEN[1:]]
    (group,) = groups_of(plan_of(*pair()), trials({1: slow, 2: slow}))
    assert group.stalls == {}
    (group,) = groups_of(plan_of(*pair()), trials({1: slow, 2: [600.0, 600.0, *TEN[2:]]}))
    assert {name: one.blocks for name, one in group.stalls.items()} == {"b+hello": (1,)}


def test_generators_are_compared_under_an_equal_load_by_what_they_do_for_their_cpu():
    def made(number, name, connections):
        cell = cell_of("reference+hello", ClosedLoop(connections), number=number)
        return replace(cell, engine=EngineChoice(name))

    loads = ((1, "wrk", 80), (2, "python-asyncio", 80), (3, "python-asyncio", 320))
    cells = [made(*load) for load in loads]
    # The one with more connections is the fastest, and the one with less CPU the best of its load.
    rates = {1: (100, 50), 2: (200, 20), 3: (900, 30)}
    found = [
        replace(ONE, cell_id=number, block=block, metrics=UNKNOWN | dict(zip(MEASURED, values, strict=True)))
        for number, values in rates.items()
        for block in range(5)
    ]
    few, many = groups_of(plan_of(*cells, primary={"connections": 80}), found)
    assert [cell.name for cell in few.cells] == ["wrk 1 × 80", "python-asyncio 1 × 80"]
    assert (few.answer.metric, few.answer.leader) == ("generator_ok_per_cpu_s", "wrk 1 × 80")
    assert (few.primary, many.primary) == (True, False)


def test_kept_connections_and_one_for_each_request_are_two_loads():
    kept = pair()
    load = replace(kept[0].workload, request=replace(kept[0].workload.request, keep_alive=False))
    new = [replace(cell, workload=load) for cell in pair(first=3)]
    groups = groups_of(plan_of(*kept, *new), [])
    assert [[cell.name for cell in group.cells] for group in groups] == [["a+hello", "b+hello"]] * 2
    assert "a connection for each request" in groups[1].workload.describe()


def test_streams_are_a_load_of_their_own_in_groups_and_families():
    one = pair()
    several = [replace(cell, workload=replace(cell.workload, streams=8)) for cell in pair(first=3)]
    more = [replace(cell, workload=replace(cell.workload, streams=8)) for cell in pair(ClosedLoop(20), 5)]
    groups = groups_of(plan_of(*one, *several, *more), trials(dict.fromkeys(range(1, 7), TEN)))
    assert [len(group.cells) for group in groups] == [2, 2, 2]
    words = [str(load_words(group.workload, "")) for group in groups]
    with_streams = [f"{count} connections with 8 streams each" for count in (10, 20)]
    assert words == ["10 connections", *with_streams]
    assert str(workload_words(groups[1].workload, "")) == f"Closed loop, {with_streams[0]}, 2 s"
    assert [[load_size(group) for group in linked] for linked in families(groups)] == [[10], [10, 20]]


def test_an_open_loop_says_how_many_streams_its_connections_have():
    load = replace(cell_of("a+hello", OpenLoop(50.0)).workload, streams=4)
    assert str(workload_words(load, "")) == "Open loop, 50/s constant, connections with 4 streams each, 2 s"

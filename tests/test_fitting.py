"""A length of time becomes blocks and rounds that fit into it."""

from dataclasses import replace

import pytest

from prony.model.plan import Cell, Plan
from prony.model.subject import App, Interface, Subject
from prony.model.workload import ClosedLoop, CountStop, DurationStop, EngineChoice, Workload
from prony.study.extent import extent_of, fitting, usual_noise, with_short_trials
from prony.units import SECOND_NS

APP = App("hello", "Hello", "/apps/hello", {Interface.WSGI: "hello:app"})
LOAD = Workload(ClosedLoop(4), DurationStop(3 * SECOND_NS), warmup_ns=SECOND_NS)


class NoneLeftOut:
    def __getattr__(self, name):
        raise AssertionError(f"nothing of the catalogue is asked for, such as `{name}`")


def plan_of(load=LOAD, engine=EngineChoice(), servers=4):
    cells = [Cell(n, Subject(f"s{n}", "waitress", APP, Interface.WSGI), load, engine) for n in range(servers)]
    return Plan("study", "A study", "", "quick", tuple(cells), 5, 1)


@pytest.fixture(autouse=True)
def nothing_is_left_out(monkeypatch):
    monkeypatch.setattr("prony.study.generators.to_leave_out", lambda _cells, _catalog: {})


@pytest.mark.parametrize("minutes", [4, 10, 60])
def test_what_is_chosen_fits_and_one_block_more_does_not(minutes):
    found = fitting(plan_of(), NoneLeftOut(), minutes * 60)
    more = replace(found, blocks=found.blocks + 1)
    assert (
        extent_of(found, NoneLeftOut()).seconds[1] <= minutes * 60 < extent_of(more, NoneLeftOut()).seconds[1]
    )
    assert found.blocks >= 5
    assert bool(found.design.rounds) == (minutes > 4)


def test_more_time_gives_more_blocks():
    blocks = [fitting(plan_of(), NoneLeftOut(), 60 * minutes).blocks for minutes in (5, 10, 30)]
    assert blocks == sorted(set(blocks))


def test_there_is_no_time_for_four_blocks_alone():
    assert fitting(plan_of(), NoneLeftOut(), 60) is None


@pytest.mark.parametrize(
    "plan",
    [plan_of(engine=EngineChoice("wrk")), plan_of(replace(LOAD, stop=CountStop(9))), plan_of(servers=17)],
)
def test_what_must_be_measured_in_turns_has_no_rounds(plan):
    assert fitting(plan, NoneLeftOut(), 7200).design.rounds == 0


def test_shorter_trials_have_three_seconds_and_no_more_than_was_planned():
    long = plan_of(replace(LOAD, stop=DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS))
    brief = plan_of(replace(LOAD, stop=DurationStop(SECOND_NS), warmup_ns=0))
    assert {cell.workload for cell in with_short_trials(long).cells} == {LOAD}
    assert with_short_trials(brief).cells == brief.cells


def test_trials_become_shorter_only_where_they_may_and_that_shows_much_more():
    long = plan_of(replace(LOAD, stop=DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS))
    assert fitting(long, NoneLeftOut(), 300) is None
    assert fitting(long, NoneLeftOut(), 300, may_shorten=True).cells == with_short_trials(long).cells
    assert fitting(long, NoneLeftOut(), 900).cells == long.cells
    assert fitting(long, NoneLeftOut(), 36_000, may_shorten=True).cells == long.cells


@pytest.mark.parametrize("window_s", [1, 3, 10])
def test_rounds_leave_what_differs_from_start_to_start(window_s):
    plan = plan_of(replace(LOAD, stop=DurationStop(window_s * SECOND_NS)))
    few, many, most = (
        usual_noise(replace(plan, design=replace(plan.design, rounds=rounds))) for rounds in (5, 30, 9999)
    )
    assert usual_noise(plan) > few > many > most == pytest.approx(0.02, rel=0.01)

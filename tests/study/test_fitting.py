"""A length of time becomes blocks and rounds that fit into it."""

from dataclasses import replace

import pytest

from prony.core.units import SECOND_NS
from prony.figures.statistics.power import foreseen
from prony.model.plan import Cell, Plan
from prony.model.sandbox import SandboxChoice
from prony.model.subject import App, Interface, Subject
from prony.model.workload import (
    ClosedLoop,
    ConnectionStage,
    CountStop,
    DurationStop,
    EngineChoice,
    Mix,
    MixPath,
    OpenLoop,
    RateStage,
    Request,
    RequestFile,
    RequestOrder,
    Workload,
)
from prony.plan.order import block_turns
from prony.study.extent import (
    MOST_BLOCKS,
    SHORT_TRIALS,
    Wishes,
    extent_of,
    fitting,
    levels_to_expect,
    rounds_seconds,
    seeing,
    usual_noise,
    with_short_trials,
)
from prony.study.rounds import side_by_side, unfit_cells, why_in_turns

APP = App("hello", "Hello", "/apps/hello", {Interface.WSGI: "hello:app"})
LOAD = Workload(ClosedLoop(4), DurationStop(3 * SECOND_NS), warmup_ns=SECOND_NS)
LONG = replace(LOAD, stop=DurationStop(15 * SECOND_NS))


class NoneLeftOut:
    def __getattr__(self, name):
        raise AssertionError(f"nothing of the catalogue is asked for, such as `{name}`")


def plan_of(load=LOAD, engine=EngineChoice(), servers=4):
    cells = [Cell(n, Subject(f"s{n}", "waitress", APP, Interface.WSGI), load, engine) for n in range(servers)]
    return Plan("study", "A study", "", "quick", tuple(cells), 5, 1)


@pytest.fixture(autouse=True)
def nothing_is_left_out(monkeypatch):
    monkeypatch.setattr("prony.study.admission.to_leave_out", lambda _cells, _catalog: {})


@pytest.mark.parametrize(("minutes", "whole"), [(4, 3), (10, 5), (60, 5)])
def test_what_is_chosen_fits_and_one_block_more_does_not(minutes, whole):
    found = fitting(plan_of(), NoneLeftOut(), minutes * 60)
    more = replace(found, blocks=found.blocks + 1)
    assert (
        extent_of(found, NoneLeftOut()).seconds[1] <= minutes * 60 < extent_of(more, NoneLeftOut()).seconds[1]
    )
    assert found.blocks >= 5
    assert (found.design.rounds > 0, found.whole_blocks) == (True, whole)


def test_more_time_gives_more_blocks():
    blocks = [fitting(plan_of(), NoneLeftOut(), 60 * minutes).blocks for minutes in (5, 10, 30)]
    assert blocks == sorted(set(blocks))


def test_there_is_no_time_for_four_blocks_alone():
    assert fitting(plan_of(), NoneLeftOut(), 60) is None


FILE = RequestFile("urls.csv", "0" * 64, 9, RequestOrder.IN_ORDER)
KEPT, ENDED = Request(), Request(keep_alive=False)


def with_cells(plan, **changes):
    return replace(plan, cells=tuple(replace(cell, **changes) for cell in plan.cells))


def with_tls(plan):
    subjects = (replace(cell.subject, settings={"tls": "rsa-2048"}) for cell in plan.cells)
    return replace(
        plan, cells=tuple(map(lambda cell, subject: replace(cell, subject=subject), plan.cells, subjects))
    )


IN_TURNS = [
    (plan_of(engine=EngineChoice("wrk")), "the generator wrk is started again"),
    (plan_of(engine=EngineChoice("k6")), "the generator k6 is started again"),
    (plan_of(engine=EngineChoice().named("./my_load.py {url}")), "the generator my-load is started again"),
    (plan_of(engine=EngineChoice("local:4")), "the generator local:4 is started again"),
    (plan_of(engine=EngineChoice("fleet")), "the generator fleet is started again"),
    (plan_of(replace(LOAD, stop=CountStop(9))), "a number of requests"),
    (plan_of(replace(LOAD, loop=ClosedLoop(9, (ConnectionStage(SECOND_NS, 1, 9),)))), "stages"),
    (plan_of(replace(LOAD, loop=OpenLoop(9.0, stages=(RateStage(SECOND_NS, 1, 9),)))), "stages"),
    (plan_of(replace(LOAD, loop=ClosedLoop(1001))), "to open 1001 connections takes longer"),
    (with_tls(plan_of(replace(LOAD, loop=ClosedLoop(51)))), "to open 51 connections with TLS takes longer"),
    (with_tls(plan_of(replace(LOAD, request=ENDED))), "a handshake for each request"),
    (plan_of(replace(LOAD, connection_requests=100)), "do not reach their limit"),
    (plan_of(replace(LOAD, connection_age_ns=SECOND_NS)), "do not reach their limit"),
    (plan_of(replace(LOAD, mix=Mix((MixPath("/"),), file=FILE))), "the first requests of urls.csv"),
    (replace(plan_of(), source="wrk for 30 s", profile="original"), "it repeats an experiment"),
    (replace(plan_of(LONG), source="wrk for 30 s"), "it repeats an experiment"),
    (replace(plan_of(), design=replace(plan_of().design, find_rate="p99 < 50ms")), "a search for rates"),
    (plan_of(servers=1), "a server alone"),
]


@pytest.mark.parametrize(("plan", "reason"), IN_TURNS, ids=[reason for _, reason in IN_TURNS])
def test_what_must_be_measured_in_turns_has_no_rounds_and_says_why(plan, reason):
    assert reason in why_in_turns(plan)
    if not plan.design.find_rate:
        assert fitting(plan, NoneLeftOut(), 7200).design.rounds == 0


@pytest.mark.parametrize(
    "plan",
    [
        with_tls(plan_of()),
        plan_of(replace(LOAD, loop=ClosedLoop(1000), request=ENDED)),
        plan_of(replace(LOAD, loop=OpenLoop(900.0))),
        plan_of(LONG),
        replace(plan_of(), source="wrk for 30 s"),
        with_cells(plan_of(), sandbox=SandboxChoice(cpu_quota=0.5)),
        replace(
            plan_of(),
            cells=tuple(
                Cell(16 * k + one.id, one.subject, replace(LOAD, loop=ClosedLoop(k + 1)))
                for k in range(4)
                for one in plan_of(servers=16).cells
            ),
        ),
    ],
    ids=[
        *("tls", "many connections", "open loop", "long windows", "an experiment in short windows"),
        *("a quota of periods of 0.1 s", "64 cells of four loads"),
    ],
)
def test_rounds_fit_what_a_short_window_shows_as_a_long_one_does(plan):
    assert why_in_turns(plan) is None


def sweep_of(*connections):
    cells = (
        Cell(4 * k + one.id, one.subject, replace(LOAD, loop=ClosedLoop(many)))
        for k, many in enumerate(connections)
        for one in plan_of().cells
    )
    return replace(plan_of(), cells=tuple(cells))


def test_a_load_that_short_windows_do_not_fit_leaves_the_others_their_rounds():
    plan = sweep_of(10, 2000)
    assert why_in_turns(plan) is None
    assert sorted(unfit_cells(plan)) == [4, 5, 6, 7]
    assert "2000 connections" in why_in_turns(sweep_of(2000, 4000))
    # Every block has trials, and rounds take time for the four alone.
    found = fitting(plan, NoneLeftOut(), 3600)
    assert (found.design.rounds > 0, found.whole_blocks) == (True, found.blocks)
    rounds = [replace(one, design=replace(one.design, rounds=5)) for one in (plan, sweep_of(10))]
    assert rounds_seconds(rounds[0]) == rounds_seconds(rounds[1])


@pytest.mark.parametrize(("servers", "sizes"), [(2, [2]), (16, [16]), (17, [9, 8]), (64, [16] * 4)])
def test_at_most_sixteen_of_one_load_are_side_by_side_and_others_in_each_block(servers, sizes):
    loads = (LOAD, replace(LOAD, loop=ClosedLoop(9)))
    cells = (
        Cell(servers * k + one.id, one.subject, load)
        for k, load in enumerate(loads)
        for one in plan_of(servers=servers).cells
    )
    plan = replace(plan_of(), cells=tuple(cells))
    blocks = [side_by_side(block_turns(plan, block)) for block in range(2)]
    for groups in blocks:
        assert sorted(map(len, groups), reverse=True) == sorted(sizes * 2, reverse=True)
        assert all(len({turn.cell.workload for turn in group}) == 1 for group in groups)
        assert sorted(turn.cell.id for group in groups for turn in group) == list(range(2 * servers))
    if len(sizes) > 1:
        assert len({frozenset(turn.cell.id for turn in group) for groups in blocks for group in groups}) > 4


@pytest.mark.parametrize(("difference", "servers"), [(0.05, 4), (0.1, 4), (0.1, 8), (0.3, 2)])
def test_a_difference_is_found_by_the_blocks_that_simulation_asks_for(difference, servers):
    plan = seeing(plan_of(servers=servers), NoneLeftOut(), difference)
    finds = foreseen(usual_noise(plan), servers, plan.blocks, plan.design.margin)[0]
    assert finds <= difference
    fewer = max(5, round(0.85 * plan.blocks))
    assert fewer == 5 or foreseen(usual_noise(plan), servers, fewer, plan.design.margin)[0] > difference


@pytest.mark.parametrize("servers", [2, 4, 8])
def test_blocks_of_rounds_alone_find_a_difference_sooner(servers, monkeypatch):
    def takes_s():
        plan = seeing(plan_of(servers=servers), NoneLeftOut(), 0.05)
        return extent_of(plan, NoneLeftOut()).seconds[1], plan.whole_blocks < plan.blocks

    sooner = takes_s()
    monkeypatch.setattr("prony.study.extent.rounds_decide", lambda _plan: False)
    later = takes_s()
    assert (sooner[1], later[1]) == (True, False)
    assert sooner[0] < 0.75 * later[0]


def test_where_latencies_decide_or_a_load_has_one_server_every_block_has_trials():
    plan = plan_of()
    other = Cell(9, plan.cells[0].subject, replace(LOAD, loop=ClosedLoop(9)))
    several = replace(plan, cells=(*plan.cells, other))
    for plan in (plan_of(replace(LOAD, loop=OpenLoop(900.0))), several):
        assert why_in_turns(plan) is None
        found = fitting(plan, NoneLeftOut(), 3600)
        assert found.whole_blocks == found.blocks
        assert (found.design.rounds > 0) is (plan is several)


def test_rounds_promise_nothing_of_latencies_which_they_have_not():
    paced, plain = plan_of(replace(LOAD, loop=OpenLoop(900.0))), plan_of()
    for plan, is_less in ((paced, False), (plain, True)):
        with_rounds = replace(plan, design=replace(plan.design, rounds=30))
        assert (usual_noise(with_rounds) < usual_noise(plan)) is is_less


def test_more_is_expected_of_servers_whose_starts_differ_more_than_is_usual():
    plan = replace(plan_of(), design=replace(plan_of().design, rounds=12))
    (usual, within), (large, same) = levels_to_expect(plan)
    assert (within, large) == (same, 3 * usual)
    noisy = 2 * usual_noise(plan_of())
    assert levels_to_expect(plan, noisy) == ((usual, 2 * within), (large, 2 * within))
    assert levels_to_expect(plan, 0.01) == levels_to_expect(plan)


def test_shorter_trials_say_what_they_may_hide():
    long = plan_of(replace(LOAD, stop=DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS))
    assert with_short_trials(long).notes == (SHORT_TRIALS,)
    piloted = replace(plan_of(), design=replace(plan_of().design, pilot_ns=30 * SECOND_NS))
    assert with_short_trials(piloted).notes == (SHORT_TRIALS,)
    assert with_short_trials(plan_of()).notes == ()


def test_who_wants_turns_has_no_rounds():
    assert fitting(plan_of(), NoneLeftOut(), 3600, wishes=Wishes(in_turns=True)).design.rounds == 0


def test_no_number_of_blocks_finds_what_is_hardly_of_interest():
    assert seeing(plan_of(), NoneLeftOut(), 0.0201) is None
    assert MOST_BLOCKS < 10_000


def test_shorter_trials_have_three_seconds_and_no_more_than_was_planned():
    long = plan_of(replace(LOAD, stop=DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS))
    brief = plan_of(replace(LOAD, stop=DurationStop(SECOND_NS), warmup_ns=0))
    assert {cell.workload for cell in with_short_trials(long).cells} == {LOAD}
    assert with_short_trials(brief).cells == brief.cells


def test_trials_become_shorter_only_where_they_may_and_that_shows_much_more():
    long = plan_of(replace(LOAD, stop=DurationStop(10 * SECOND_NS), warmup_ns=3 * SECOND_NS))
    assert fitting(long, NoneLeftOut(), 300) is None
    assert (
        fitting(long, NoneLeftOut(), 300, wishes=Wishes(may_shorten=True)).cells
        == with_short_trials(long).cells
    )
    assert fitting(long, NoneLeftOut(), 900).cells == long.cells
    assert fitting(long, NoneLeftOut(), 36_000, wishes=Wishes(may_shorten=True)).cells == long.cells


@pytest.mark.parametrize("window_s", [1, 3, 10])
def test_rounds_leave_what_differs_from_start_to_start(window_s):
    plan = plan_of(replace(LOAD, stop=DurationStop(window_s * SECOND_NS)))
    few, many, most = (
        usual_noise(replace(plan, design=replace(plan.design, rounds=rounds))) for rounds in (5, 30, 9999)
    )
    assert usual_noise(plan) > few > many > most == pytest.approx(0.02, rel=0.01)

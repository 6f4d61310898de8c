"""When rounds may stand for the trials of a block: each server has a figure, and few of its requests fail."""

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from golden import build
from prony.figures.rounds import slice_metrics
from prony.model.observation import Slice
from prony.model.plan import Cell
from prony.model.recording import CarriedIn
from prony.model.workload import ClosedLoop, DurationStop, Mix, MixPath, OpenLoop, Workload
from prony.plan.order import Position, Turn
from prony.sandbox.watch.processes import Clocks
from prony.study import rounds, run
from prony.study.ledger import length_of
from prony.study.rounds import (
    _end_unfit,
    _keep,
    _living,
    _measure,
    _run_group,
    _Seat,
    _unsound,
    alike,
    arrival_seed,
    is_still_open,
    keeps_its_processes,
)

HALF_NS, SECOND_NS = 500_000_000, 1_000_000_000
LOAD = Workload(ClosedLoop(2), DurationStop(SECOND_NS))


@dataclass
class Seat:
    cell_id: int
    slices: list
    ended: str | None = None
    idle_ns: int = 0
    set_up_ns: int = 0


def slices(count, **changes):
    times = [(n * SECOND_NS,) * 2 + (n * SECOND_NS + HALF_NS,) * 2 for n in range(count)]
    found = [Slice(n, 0, *times[n], 1000, 1000, 0, HALF_NS, 0, 0, 0) for n in range(count)]
    return [replace(one, **changes) for one in found]


def found(each, servers=2):
    seats = [Seat(k, one) for k, one in enumerate(each)]
    return _unsound(seats, servers, dict(enumerate(each)))


def test_whole_rounds_without_failures_suffice():
    assert found([slices(3), slices(5)]) is None


def test_a_server_that_is_gone_leaves_no_pair():
    assert "side by side" in found([slices(5)]).reason


@pytest.mark.parametrize(
    ("failed", "allowed", "is_sound"),
    [(1, None, True), (2, None, False), (9, 0.01, True), (11, 0.05, False)],
)
def test_who_fails_more_requests_than_are_allowed_in_trials_has_no_rounds_and_others_have(
    failed, allowed, is_sound
):
    seats = [Seat(0, slices(5)), Seat(1, slices(5, failed=failed)), Seat(2, slices(5))]
    _end_unfit(seats, allowed)
    said = None if is_sound else f"{5 * failed} of 5000 requests failed"
    assert [seat.ended for seat in seats] == [None, said, None]


def test_who_is_not_idle_between_its_turns_is_named_where_too_few_rounds_count():
    beside = {"counts": False, "neighbours_ns": HALF_NS // 20}

    def ended(each):
        seats = [Seat(k, one, idle_ns=(1, 9, 2)[k]) for k, one in enumerate(each)]
        _end_unfit(seats, None)
        return [seat.ended and "not idle" in seat.ended for seat in seats]

    # In its own turns nobody takes anything.
    assert ended([slices(5, **beside), slices(5)]) == [None, True]
    assert ended([slices(5, **beside)] * 3) == [None, True, None]
    # Three rounds have figures, and what others took is no server's fault.
    assert ended([[*slices(3), *slices(2, **beside)]] * 3) == [None] * 3
    assert ended([slices(5, counts=False, others_ns=HALF_NS)] * 3) == [None] * 3


def test_two_rounds_are_too_few_and_who_took_the_others_is_said():
    taken = slices(3, counts=False, steal_ns=HALF_NS)
    each = [slices(5), [*slices(2), *taken]]
    assert found(each).reason == "too few rounds count: the hypervisor took the CPUs"
    # A disturbance may pass; a server that is not idle between its turns does not.
    beside = [slices(5), [*slices(2), *slices(3, counts=False, neighbours_ns=HALF_NS)]]
    assert [found(one).passes for one in (each, beside)] == [True, False]


@pytest.mark.parametrize(
    ("second", "metrics"),
    [
        (slices(5), {"ok_per_s", "duration_ns_per_request", "cpu_ns_per_request"}),
        ([*slices(4), replace(slices(5)[4], cpu_ns=None)], {"ok_per_s", "duration_ns_per_request"}),
        (slices(2), set()),
        ([*slices(4), replace(slices(5)[4], ok=0)], set()),
    ],
    ids=["all", "CPU time of one slice unknown", "too few", "a standstill"],
)
def test_what_one_server_of_a_block_has_not_by_rounds_the_others_have_not_either(second, metrics):
    kept = alike({0: slices(5), 1: second})
    assert [set(slice_metrics(one)) for one in kept.values()] == [metrics] * 2
    assert [len(one) for one in kept.values()] == [5, len(second)]


class Kept:
    """A ledger that says what it got."""

    def __init__(self):
        self.blocks = []

    def append_slices(self, block, slices):
        self.blocks.append((block, sorted(slices)))


def test_of_a_server_that_is_left_alone_nothing_is_kept():
    ledger = Kept()
    _keep(ledger, 3, 0, [Seat(0, slices(5)), Seat(1, slices(5), ended="the server exited")])
    _keep(ledger, 4, 0, [Seat(0, slices(5)), Seat(1, slices(5))])
    assert ledger.blocks == [(4, [0, 1])]


def bench_of(planned):
    design = SimpleNamespace(rounds=planned, allow_errors=None)
    study = SimpleNamespace(plan=SimpleNamespace(design=design, seed=1))
    return SimpleNamespace(study=study, known=SimpleNamespace(idle={}), placement=None, in_turns=set())


LISTENER = SimpleNamespace(round_started=lambda *_: None, notice=lambda _: None)


def rounds_of(monkeypatch, seats, planned, dies_after=99):
    """Run rounds in which the last server dies after so many turns; return the seeds of the turns."""
    seeds = []

    def turn(seat, at, seed, _watch):
        seeds.append((at[0], seed))
        seat.slices += [replace(slices(1)[0], round=at[0])]
        if seat is seats[-1] and len(seat.slices) >= dies_after:
            seat.ended = "the server exited"

    monkeypatch.setattr(rounds, "_turn", turn)
    monkeypatch.setattr(rounds, "_Watch", lambda *_: None)
    _measure(seats, bench_of(planned), 0, LISTENER)
    return seeds


def test_a_server_that_is_left_alone_has_no_more_turns(monkeypatch):
    seats = [Seat(0, []), Seat(1, [])]
    rounds_of(monkeypatch, seats, planned=8, dies_after=2)
    assert len(seats[0].slices) <= 2
    assert [seat.cell_id for seat in _living(seats)] == [0]
    three = [Seat(k, []) for k in range(3)]
    rounds_of(monkeypatch, three, planned=8, dies_after=2)
    assert [len(seat.slices) for seat in three] == [8, 8, 2]


def test_each_round_has_arrivals_and_an_order_of_its_mix_of_its_own_which_all_its_servers_have(monkeypatch):
    seeds = rounds_of(monkeypatch, [Seat(k, []) for k in range(3)], planned=4)
    each = {number: {seed for at, seed in seeds if at == number} for number in range(4)}
    assert [len(of) for of in each.values()] == [1] * 4
    assert len(set.union(*each.values())) == 4
    assert each[2] == {arrival_seed(1, 0, 2)}


@pytest.mark.parametrize("loop", [ClosedLoop(2), OpenLoop(9.0)])
def test_the_seed_of_a_round_is_that_of_its_load(loop):
    mixed = replace(LOAD, loop=loop, mix=Mix((MixPath("/"), MixPath("/cart"))))
    task = SimpleNamespace(cell=SimpleNamespace(workload=mixed, id=1))
    load = _Seat(task, None, None).load(77)
    assert (load.mix.seed, getattr(load.loop, "seed", 77)) == (77, 77)
    assert load.stop == DurationStop(HALF_NS)


@pytest.mark.parametrize(("whole", "is_kept"), [(1, False), (2, False), (3, True)])
def test_what_is_interrupted_keeps_rounds_that_have_a_figure_and_else_runs_them_again(
    monkeypatch, whole, is_kept
):
    kept = []

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "_seats", lambda *_: [Seat(0, slices(whole)), Seat(1, slices(whole))])
    monkeypatch.setattr(rounds, "_warm", lambda *_: None)
    monkeypatch.setattr(rounds, "_measure", interrupted)
    monkeypatch.setattr(rounds, "beside_the_generator", nullcontext)
    turn = SimpleNamespace(position=SimpleNamespace(block=0))
    with pytest.raises(KeyboardInterrupt):
        _run_group(bench_of(5), [turn], LISTENER, kept.append)
    assert bool(kept) is is_kept


# The clocks of two looks: of the server's processes, and what these have waited for.
def clocks(processes, waited=0):
    return Clocks({1: processes}, {}, {}, 0, 0, {1: waited})


@pytest.mark.parametrize(
    ("before", "after", "keeps"),
    [
        (clocks({7: 10}), clocks({7: 90}), True),
        (clocks({7: 10}), clocks({7: 90, 8: 5}), False),
        (clocks({7: 10, 8: 5}), clocks({7: 90}), False),
        (clocks({7: 10}), clocks({7: 90}, waited=80), False),
    ],
    ids=["same", "began", "ended", "began and ended"],
)
def test_a_process_that_began_and_ended_between_two_looks_is_noticed(before, after, keeps):
    assert keeps_its_processes(before, after, 1) is keeps


@pytest.mark.parametrize(
    ("carried", "is_open"),
    [
        (CarriedIn(2, 2, {}, {}), False),
        (CarriedIn(2, 0, {}, {"in_flight_at_end": 2}), True),
        (CarriedIn(2, 0, {"reset": 2}, {}), False),
    ],
    ids=["answered", "hangs since before the window", "fails"],
)
def test_what_hangs_since_before_the_window_is_still_open(carried, is_open):
    cell = Cell(1, build.subject("slow+shop"), LOAD)
    own = build.trial(cell, 0, 0, [1_000_000]).recording
    assert is_still_open(replace(own, account=replace(own.account, carried_in=carried))) is is_open


# --- blocks of rounds alone ---------------------------------------------------------------------------------


def alone(monkeypatch, bench, blocks, unsound):
    """Return in which blocks rounds alone were tried; ``unsound`` leaves servers out, and says why."""
    tried = []

    def run_alone(bench, block, *_):
        tried.append(block)
        return unsound(bench)

    monkeypatch.setattr(run, "run_rounds_alone", run_alone)
    for block in range(blocks):
        run._try_rounds_alone(bench, block, None, LISTENER)
    return tried


def plain_bench():
    cells = tuple(Cell(k, build.subject(f"s{k}+shop"), LOAD) for k in range(3))
    study = SimpleNamespace(plan=SimpleNamespace(cells=cells))
    return SimpleNamespace(study=study, in_turns=set(), disturbed=set())


def test_a_server_that_is_measured_in_turns_leaves_the_others_their_rounds(monkeypatch):
    def leaves(bench):
        bench.in_turns.add(1)
        return rounds.Unsound("not all servers can take turns side by side")

    bench = plain_bench()
    assert alone(monkeypatch, bench, 3, leaves) == [0]
    assert bench.in_turns == {1}
    known = plain_bench()
    known.in_turns.add(2)
    assert alone(monkeypatch, known, 3, leaves) == []
    assert known.in_turns == {2}


def test_a_disturbance_of_two_blocks_in_a_row_ends_all_rounds(monkeypatch):
    bench = plain_bench()
    taken = rounds.Unsound("too few rounds count: other programs took the CPUs", passes=True)
    assert alone(monkeypatch, bench, 4, lambda _: taken) == [0, 0, 1, 1]
    assert bench.in_turns == {0, 1, 2}


def test_what_servers_ask_is_unknown_until_a_trial_of_this_run_has_found_it():
    asks, none = (SimpleNamespace(facts=SimpleNamespace(asked=asked)) for asked in (("database",), ()))

    def unknown(entry, idle):
        bench = SimpleNamespace(known=SimpleNamespace(idle=idle))
        return rounds.asks_unknown(bench, SimpleNamespace(entries={1: entry}))

    assert [unknown(asks, {}), unknown(asks, {(7, 1): 0.1}), unknown(none, {})] == [True, False, False]


# --- what a server that stays is given, and what it took ----------------------------------------------------


@dataclass(frozen=True)
class Task:
    launch = SimpleNamespace(command=("serve",))
    cell: object
    placement: object = None
    nuisances: object = None


def test_a_server_has_the_ceilings_that_its_trials_have(monkeypatch):
    asked = []

    @contextmanager
    def sandbox(name, choice):
        yield asked.append((name, choice))

    cell = Cell(3, build.subject("slow+shop"), LOAD)
    bench = bench_of(5)
    bench.bench, bench.cpus = SimpleNamespace(sandbox=sandbox), ()
    bench.placement_of = lambda _: None
    monkeypatch.setattr(rounds, "task_of", lambda _bench, turn, _sandbox: Task(turn.cell))
    monkeypatch.setattr(rounds, "equivalent", lambda *_: None)
    with ExitStack() as alive:
        rounds._task(bench, Turn(cell, Position(7, 0)), 8, alive)
    assert asked == [("rounds-3-7", cell.sandbox)]


def test_to_start_together_is_a_part_of_the_time_of_each():
    cell = Cell(3, build.subject("slow+shop"), LOAD)
    seats = [_Seat(Task(replace(cell, id=k)), None, None, started_unix_ns=5) for k in range(3)]
    rounds._share_set_up(seats, 600)
    trials = [rounds._in_rounds(Turn(cell, Position(7, 0)), seat, slices(2)) for seat in seats]
    assert [length_of(one) for one in trials] == [200 + 2 * HALF_NS] * 3

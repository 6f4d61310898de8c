"""What is tried first, from what one request costs."""

from hypothesis import given
from hypothesis import strategies as st

from prony.tune.space import (
    Candidate,
    Cost,
    Knobs,
    Machine,
    documented,
    first_candidates,
    neighbours,
    slots_needed,
)

KNOBS = Knobs(Candidate("gunicorn", 1, 1), "workers", "threads")
TWO = Machine(cpus=2)


def tried(cost, machine=TWO, knobs=(KNOBS,), always=()):
    return first_candidates(knobs, {one.server: cost for one in knobs}, machine, always, most=12)


costs = st.builds(Cost, st.floats(1e-5, 1), st.floats(0, 1), st.floats(1e6, 1e9))
machines = st.builds(Machine, st.floats(0.1, 64), st.none() | st.floats(1e8, 1e10))


@given(costs, machines)
def test_the_incumbent_and_what_manuals_advise_are_tried_whatever_a_request_costs(cost, machine):
    yours = Candidate("gunicorn", 7, 3)
    found = tried(cost, machine, always=(yours,))
    fits = {
        one
        for one in documented(KNOBS, machine)
        if (one.workers * cost.worker_bytes) <= (machine.memory_bytes or 1e99)
    }
    assert {yours} | fits <= set(found)
    assert len(found) == len(set(found)) <= 14


@given(costs, machines)
def test_none_is_tried_that_memory_has_no_room_for(cost, machine):
    room = machine.memory_bytes or float("inf")
    assert all(one.workers * cost.worker_bytes <= room for one in tried(cost, machine))


def test_an_app_that_waits_is_tried_with_about_as_many_slots_as_fill_the_cpus():
    cost = Cost(cpu_s=0.0005, wait_s=0.0195, worker_bytes=3e7)
    assert slots_needed(cost, 2) == 80
    assert sum(40 <= one.slots <= 160 for one in tried(cost)) >= 3


def test_an_app_that_only_computes_is_not_tried_with_many_threads():
    assert max(one.threads for one in tried(Cost(0.002, 0.0, 3e7))) <= 4


def test_each_of_several_servers_is_tried_with_more_than_what_its_manual_says():
    servers = [Knobs(Candidate(name, 1, 1), "workers", "threads") for name in ("a", "b", "c", "d")]
    found = tried(Cost(0.001, 0.009, 3e7), knobs=servers)
    own = {one.server: [c for c in found if c.server == one.server] for one in servers}
    assert all(set(own[one.server]) - set(documented(one, TWO)) for one in servers)


def test_a_server_of_one_setting_is_varied_in_that_alone():
    waitress = Knobs(Candidate("waitress", None, 4), threads="threads")
    found = tried(Cost(0.001, 0.019, 3e7), knobs=(waitress,))
    assert {one.workers for one in found} == {None}
    assert len({one.threads for one in found}) > 2


@given(st.integers(1, 600), st.integers(1, 600))
def test_neighbours_are_one_step_away_and_within_what_the_server_takes(workers, threads):
    one = Candidate("gunicorn", workers, threads)
    for near in neighbours(one, KNOBS, None, TWO):
        assert near != one
        assert 1 <= near.workers <= 512
        assert 1 <= near.threads <= 512
        assert (near.workers == workers) != (near.threads == threads)


@given(costs, machines, st.integers(1, 64))
def test_a_number_that_is_held_is_in_all_candidates(cost, machine, workers):
    yours = Candidate("gunicorn", workers, 2)
    held = KNOBS.holding(("workers",), yours)
    found = (*tried(cost, machine, (held,), (yours,)), *neighbours(yours, held, cost, machine))
    assert {one.workers for one in found} == {workers}
    assert held.default == Candidate("gunicorn", workers, 1)


def test_an_app_of_one_process_is_held_at_one_on_all_servers():
    waitress = Candidate("waitress", None, 4)
    assert KNOBS.holding(("workers",), waitress).held_workers == 1
    assert KNOBS.holding(("threads",), waitress).default == Candidate("gunicorn", 1, 4)


def test_a_candidate_of_a_server_sets_only_what_the_server_has():
    assert KNOBS.settings(Candidate("gunicorn", 2, None)) == {"workers": 2}
    assert Knobs(Candidate("bjoern")).settings(Candidate("bjoern", 2, 2)) == {}

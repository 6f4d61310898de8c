"""When rounds may stand for the trials of a block: each server has a figure, and few of its requests fail."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from golden import build
from prony.model.observation import Slice
from prony.model.plan import Cell
from prony.model.recording import CarriedIn
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.study.rounds import _unsound, is_still_open

HALF_NS, SECOND_NS = 500_000_000, 1_000_000_000
TASK = SimpleNamespace(cell=SimpleNamespace(subject=SimpleNamespace(name="slow+shop")))


@dataclass
class Seat:
    cell_id: int
    slices: list
    ended: str | None = None
    task = TASK


def slices(count, **changes):
    times = [(n * SECOND_NS,) * 2 + (n * SECOND_NS + HALF_NS,) * 2 for n in range(count)]
    found = [Slice(n, 0, *times[n], 1000, 1000, 0, HALF_NS, 0, 0, 0) for n in range(count)]
    return [replace(one, **changes) for one in found]


def found(each, allowed=None, servers=2):
    seats = [Seat(k, one) for k, one in enumerate(each)]
    return _unsound(seats, servers, dict(enumerate(each)), allowed)


def why(each, allowed=None, servers=2):
    unsound = found(each, allowed, servers)
    return unsound and unsound.reason


def test_whole_rounds_without_failures_suffice():
    assert why([slices(3), slices(5)]) is None


def test_a_server_that_is_gone_leaves_no_pair():
    assert "side by side" in why([slices(5)])
    seats = [Seat(0, slices(5)), Seat(1, slices(5), ended="the server exited")]
    assert "side by side" in _unsound(seats, 2, {0: slices(5), 1: slices(5)}, None).reason


@pytest.mark.parametrize(
    ("failed", "allowed", "is_sound"), [(1, None, True), (2, None, False), (9, 0.01, True)]
)
def test_failures_are_allowed_as_in_trials(failed, allowed, is_sound):
    said = why([slices(5), slices(5, failed=failed)], allowed)
    assert said is None if is_sound else said == "10 of 5000 requests of slow+shop failed"


def test_two_rounds_are_too_few_and_who_took_the_others_is_said():
    taken = slices(3, counts=False, steal_ns=HALF_NS)
    each = [slices(5), [*slices(2), *taken]]
    assert why(each) == "too few rounds count: the hypervisor took the CPUs"
    # Others may pass; a server that fails, or is not idle between its turns, does not.
    beside = slices(3, counts=False, neighbours_ns=HALF_NS)
    lasting = [slices(5), slices(5, failed=9)], [slices(5), [*slices(2), *beside]]
    assert [one.passes for one in map(found, (each, *lasting))] == [True, False, False]


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
    cell = Cell(1, build.subject("slow+shop"), Workload(ClosedLoop(2), DurationStop(SECOND_NS)))
    own = build.trial(cell, 0, 0, [1_000_000]).recording
    assert is_still_open(replace(own, account=replace(own.account, carried_in=carried))) is is_open

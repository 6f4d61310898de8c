"""Figures of rounds: only whole and undisturbed ones, and the two levels of scatter as they were made."""

from dataclasses import replace
from math import log
from random import Random

import pytest

from golden import build
from prony.figures.rounds import (
    apart,
    has_busy_neighbours,
    is_disturbed,
    levels,
    paces_by_round,
    slice_metrics,
)
from prony.figures.trial_metrics import trial_metrics
from prony.model.observation import Slice
from prony.model.trial import Ok, Trial, TrialRole
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload

HALF_NS, SECOND_NS = 500_000_000, 1_000_000_000
TRIAL = Trial(0, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0)


def slice_of(number, ok, cpu_ns=HALF_NS, **others):
    start = number * SECOND_NS
    times = (start, start, start + HALF_NS, start + HALF_NS)
    return replace(Slice(number, 0, *times, ok, ok, 0, cpu_ns, 0, 0, 0), **others)


def test_figures_are_those_of_one_window_of_all_slices_that_count():
    slices = [*map(slice_of, range(4), (100, 200, 500, 200)), slice_of(4, 9, counts=False)]
    assert slice_metrics(slices) == pytest.approx(
        {"ok_per_s": 500, "duration_ns_per_request": 2_000_000, "cpu_ns_per_request": 2_000_000}
    )


def test_work_that_comes_in_bursts_is_not_lost():
    slices = [slice_of(n, 100, cpu_ns=100_000_000 if n == 3 else 1_000_000) for n in range(5)]
    assert slice_metrics(slices)["cpu_ns_per_request"] == pytest.approx(104_000_000 / 500)


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [slice_of(0, 5), slice_of(1, 5)],
        [slice_of(0, 5), slice_of(1, 5), slice_of(2, 0)],
        [slice_of(n, 100, failed=2) for n in range(5)],
    ],
)
def test_there_is_none_of_too_few_of_a_standstill_or_of_failures(slices):
    assert (slice_metrics(slices), paces_by_round(slices)) == ({}, {})


def test_a_process_that_ended_takes_the_cpu_time_alone():
    slices = [slice_of(n, 100, cpu_ns=None if n == 1 else 7) for n in range(4)]
    assert slice_metrics(slices).keys() == {"ok_per_s", "duration_ns_per_request"}


@pytest.mark.parametrize(
    ("name", "most_ns"),
    [("others_ns", HALF_NS // 5), ("steal_ns", HALF_NS // 5), ("neighbours_ns", HALF_NS // 100)],
)
def test_a_turn_is_disturbed_by_a_tenth_of_its_cpus_and_by_neighbours_that_are_not_idle(name, most_ns):
    assert is_disturbed(slice_of(0, 1, **{name: most_ns + 1}), cpus=2)
    assert not is_disturbed(slice_of(0, 1, **{name: most_ns}), cpus=2)


def test_an_open_loop_has_its_throughput_from_its_window_and_its_cpu_time_from_rounds():
    slices = tuple(slice_of(n, 100) for n in range(4))

    def changed(loop):
        load = Workload(loop, DurationStop(2 * SECOND_NS))
        trial = replace(TRIAL, recording=build.recording(load, [1_000_000] * 2000), slices=slices)
        both = trial_metrics(trial), trial_metrics(replace(trial, slices=()))
        return {name for name in both[0] if both[0][name] != both[1][name]}

    assert changed(ClosedLoop(2)) == {"ok_per_s", "duration_ns_per_request"}
    assert changed(OpenLoop(1000.0)) == set()


def test_a_server_whose_rounds_show_another_throughput_than_its_windows_is_named_with_the_ratio():
    random = Random(2)
    noise = [[random.gauss(0, 0.03) for _ in range(10)] for _ in range(4)]
    ratios = zip("abcd", noise, (1.0, 1.03, 1.3, 0.8), strict=True)
    each = {name: [log(ratio) + one for one in made] for name, made, ratio in ratios}
    named = {"c": pytest.approx(1.3, rel=0.03), "d": pytest.approx(0.8, rel=0.03)}
    assert apart(each)[0] == named
    # Three blocks of four servers are as much as five of one.
    assert set(apart({name: logs[:3] for name, logs in each.items()})[0]) == set(named)
    assert apart({"c": each["c"][:2]}) == ({}, None)


def test_by_how_much_rounds_and_windows_may_differ_at_most_is_said():
    random = Random(3)
    each = {name: [random.gauss(0, 0.03) for _ in range(5)] for name in "abcd"}
    named, most = apart(each)
    assert named == {}
    # t(0.99375, 16) = 2.8 of the error 0.03 / sqrt(5), and what the mean is off by itself.
    assert 0.03 < most < 0.09
    # A server that scatters more than the others is judged by its own scatter.
    wild = {**each, "d": [0.7, 0.0, 0.6, 0.0, 0.45]}
    assert "d" not in apart(wild)[0]


@pytest.mark.parametrize(("share", "is_busy"), [(0.011, True), (0.009, False)])
def test_neighbours_are_busy_from_a_hundredth_of_a_cpu_on(share, is_busy):
    assert has_busy_neighbours(slice_of(0, 1, neighbours_ns=round(share * HALF_NS))) is is_busy


def test_both_levels_are_found_as_they_were_made_whatever_the_machine_does():
    random, blocks = Random(1), []
    for _ in range(200):
        machine = [random.gauss(0, 0.3) for _ in range(8)]
        starts = [random.gauss(0, 0.04) for _ in range(4)]
        blocks.append([{n: start + machine[n] + random.gauss(0, 0.08) for n in range(8)} for start in starts])
    found = levels(blocks)
    assert found.rounds == 8
    assert found.within == pytest.approx(0.08 / 8**0.5, rel=0.05)
    assert found.between == pytest.approx(0.04, rel=0.1)


def test_rounds_that_a_server_lacks_are_left_out_for_all():
    full = {0: 1.0, 1: 2.0, 2: 3.0}
    assert levels([[full, {0: 1.0, 2: 3.0}]] * 2).rounds == 2
    assert levels([[full, {1: 2.0}]] * 2) is None
    assert levels([[full, full]]) is None

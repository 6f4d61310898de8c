"""The parts that need no server: the sampler on processes that do nothing, limits where there are none."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prony.study.calibration.overheads as sampling
from commands import eventually
from prony.core.errors import HostError
from prony.model.sandbox import Placement
from prony.study.calibration.bench import QUICK
from prony.study.calibration.overheads import sample_costs, time_sampler, with_interval
from prony.study.calibration.run import try_limits

EVERYWHERE = Placement(tuple(os.sched_getaffinity(0)), tuple(os.sched_getaffinity(0)), shared=True)


class Listener:
    def notice(self, text):
        pass


@pytest.fixture
def bench():
    return SimpleNamespace(
        placement=EVERYWHERE,
        effort=QUICK,
        bench=SimpleNamespace(groups=None),
        no_groups="no cgroups are mounted",
    )


def children():
    return {int(path.name) for path in Path("/proc").glob("[0-9]*") if parent(path) == os.getpid()}


def parent(path):
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_each_sample_has_its_own_cost_and_no_process_is_left(monkeypatch):
    monkeypatch.setattr(sampling, "_PAUSE_S", 0)
    before = children()
    costs_ns = sample_costs(7, 5, EVERYWHERE)
    assert len(costs_ns) == 5
    assert all(0 < cost_ns < 10**9 for cost_ns in costs_ns)
    assert eventually(lambda: children() == before)


def test_more_processes_cost_more(monkeypatch):
    monkeypatch.setattr(sampling, "_PAUSE_S", 0)
    few, many = (sorted(sample_costs(count, 9, EVERYWHERE))[4] for count in (2, 60))
    assert many > few


def test_the_sampler_tells_a_samples_cost_and_the_share_of_a_core_with_it(bench, monkeypatch):
    monkeypatch.setattr(sampling, "sample_costs", lambda *_: [1_000_000, 1_200_000, 800_000])
    each, share = time_sampler(bench, Listener(), 1).figures
    assert (each.unit, each.value, each.count) == ("duration", 1_000_000, 3)
    assert share.unit == "ratio"
    assert share.value == pytest.approx(0.002)
    assert share.low < share.value < share.high


# scipy is loaded in the first example.
@settings(deadline=None)
@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=50))
def test_an_interval_holds_its_mean_and_agrees_with_scipy(values):
    from numpy import array
    from scipy.stats import sem, t

    figure = with_interval("x", "ratio", values)
    half = t.ppf(0.975, len(values) - 1) * sem(array(values))
    assert figure.low <= figure.value <= figure.high
    assert figure.half_width == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_without_control_groups_every_limit_is_told_with_the_reason(bench):
    found = try_limits(bench, Listener(), 1).holdings
    assert {one.name for one in found} == {"cpus", "cpu_quota", "memory", "pids"}
    assert all(one.holding != "enforced" and one.reason == "no cgroups are mounted" for one in found)


def test_processes_that_cannot_be_had_are_told_and_the_other_parts_are_kept(bench, monkeypatch):
    from prony.study.calibration.run import _part

    def fail(*_):
        raise HostError("started 50 processes to sample, but the sampler saw 3")

    monkeypatch.setattr(sampling, "sample_costs", fail)
    found = _part("sampler", bench, Listener(), 1)
    assert found.missing == {"sampler": "started 50 processes to sample, but the sampler saw 3"}
    assert found.figures == ()

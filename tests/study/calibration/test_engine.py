"""The load engine's calibration: the truth that it is held against, its bounds, and a run of it all."""

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prony.model.facts import Fitness
from prony.model.sandbox import Placement
from prony.study.calibration.bench import QUICK
from prony.study.calibration.engine import (
    CONNECTIONS,
    Seen,
    delays_ns,
    engine_fitness,
    judge_engine,
    known_percentiles,
)

BRIEF = replace(QUICK, window_ns=200_000_000)
FINE = Seen(
    ceilings={1: 15e3, 10: 6e4},
    lags={(1e3, "50"): 400.0, (1e3, "99"): 2_000.0},
    off={"50": 0.4, "99": 0.9},
    noise=0.004,
)


def test_an_engine_within_all_bounds_is_fit():
    found = engine_fitness(FINE, 7)
    assert (found.level, found.reasons, found.ceilings) == (Fitness.FIT, (), {"1": 15e3, "10": 6e4})


@pytest.mark.parametrize(
    ("part", "value", "level", "reason"),
    [
        ("lags", {(1e3, "50"): 6_000.0}, Fitness.LIMITS, "the send lag at 1000/s: p50"),
        ("lags", {(1e4, "99"): 120_000.0}, Fitness.LIMITS, "the send lag at 10000/s: p99"),
        ("lags", {(1e3, "99"): 1_200_000.0}, Fitness.NOT_FIT, "the send lag at 1000/s: p99"),
        ("off", {"90": 1.1}, Fitness.LIMITS, "known delays: p90"),
        ("off", {"90": 5.1}, Fitness.NOT_FIT, "known delays: p90"),
        ("noise", 0.03, Fitness.LIMITS, "the noise between equal loads"),
        ("noise", 0.12, Fitness.NOT_FIT, "the noise between equal loads"),
    ],
)
def test_what_is_beyond_a_bound_is_named(part, value, level, reason):
    parts = {name: getattr(FINE, name) for name in ("ceilings", "lags", "off", "noise")}
    found = engine_fitness(Seen(**{**parts, part: value}), 7)
    assert (found.level, found.reasons) == (level, (reason,))


def test_a_ceiling_holds_for_one_thread_and_up_to_the_connections_that_were_measured():
    fitness = engine_fitness(FINE, 7)
    assert [fitness.ceiling(count, 1) for count in (1, 2, 10, 11)] == [15e3, 6e4, 6e4, None]
    assert fitness.ceiling(1, 2) is None


def test_the_truth_is_exponential_and_the_same_each_time():
    found = delays_ns(20_000_000, 1, 3000)
    assert found == delays_ns(20_000_000, 1, 3000)
    assert sum(found) / len(found) == pytest.approx(20_000_000, rel=0.08)
    assert known_percentiles(list(range(1, 101))) == {"50": 50.0, "90": 90.0, "99": 99.0}


def test_a_calibration_measures_every_figure_against_a_real_server(monkeypatch):
    monkeypatch.setattr("prony.study.calibration.engine._RATE_WINDOW_NS", 300_000_000)
    cpus = tuple(os.sched_getaffinity(0))
    bench = SimpleNamespace(placement=Placement(cpus, cpus, shared=True), effort=BRIEF)
    part = judge_engine(bench, SimpleNamespace(notice=lambda text: None), 1)
    names = [figure.name for figure in part.figures]
    assert part.fitness is not None
    assert list(part.fitness.ceilings) == [str(count) for count in CONNECTIONS]
    assert all(rate > 0 for rate in part.fitness.ceilings.values())
    for part_of_name in ("ceiling with 10 ", "send lag at 1000/s, p99", "known delays, p90", "equal loads"):
        assert any(part_of_name in name for name in names)

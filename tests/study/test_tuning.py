"""The stages of a search for settings: their load, and the figures of their trials."""

from types import SimpleNamespace

import pytest

from prony.core.errors import FailureStage
from prony.figures.objective import parse_objective
from prony.model.trial import Failed, Invalid
from prony.study.tuning import connections_for, figures_by_block
from prony.tune.space import Cost


def conditions(text):
    return parse_objective(text).conditions


@pytest.mark.parametrize(
    ("cost", "cpus", "slo", "expected"),
    [
        (Cost(0.002, 0.0, 0), 2, "errors < 0.1%", 64),
        # 200 ms of waiting in each of 2,000 requests/s are 404 at a time; twice that keeps all CPUs busy.
        (Cost(0.002, 0.2, 0), 4, "errors < 0.1%", 808),
        (Cost(0.0001, 5.0, 0), 8, "errors < 0.1%", 1024),
        # 200/s at most, so 64 would each wait for 320 ms; five meet 50 ms.
        (Cost(0.010, 0.0, 0), 2, "p99 < 50ms", 5),
        (Cost(0.010, 0.0, 0), 2, "p99 < 1s", 64),
        (Cost(0.0001, 0.0, 0), 2, "p99 < 50ms", 64),
        # What no setting can meet is asked of two a CPU.
        (Cost(0.100, 0.0, 0), 2, "p99 < 50ms", 4),
    ],
)
def test_a_closed_loop_has_as_many_connections_as_the_app_needs_and_a_limit_of_latency_allows(
    cost, cpus, slo, expected
):
    assert connections_for(cost, cpus, conditions(slo)) == expected


def test_a_trial_that_failed_lost_all_its_requests_and_one_that_was_disturbed_says_nothing():
    others = [
        SimpleNamespace(block=1, outcome=Failed(FailureStage.LOAD, "it was killed for its memory")),
        SimpleNamespace(block=2, outcome=Invalid("other programs used 40 %")),
    ]
    cell = SimpleNamespace(by_block={0: {"ok_per_s": 100.0}}, others=others)
    assert figures_by_block(cell) == {0: {"ok_per_s": 100.0}, 1: {"error_ratio": 1.0}}

"""Objectives say what they ask for, and a trial meets one, does not, or cannot tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from prony.analysis.missing import Missing
from prony.analysis.objective import ALIASES, parse_condition, parse_objective
from prony.analysis.trial_metrics import trial_metrics
from prony.metrics import METRICS
from prony.model.plan import Cell
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload

OPEN = Workload(OpenLoop(1000), DurationStop(2 * build.SECOND))
CLOSED = Workload(ClosedLoop(4), DurationStop(2 * build.SECOND))
FEW = Missing("fewer than 10 requests lie above it")
INFINITE = Missing("requests failed, which counts as infinite", infinite=True)


def measured(workload=OPEN, ms=1.0, **kwargs):
    cell = Cell(1, build.subject("s+hello"), workload)
    values = [int(ms * 1e6 * (0.5 + k / 2000)) for k in range(2000)]
    return trial_metrics(build.trial(cell, 0, 0, values, **kwargs))


@pytest.mark.parametrize(
    ("text", "metric", "operator", "limit"),
    [
        ("p99 < 50ms", "response_all_p99", "<", 50e6),
        ("p50<=1s", "response_all_p50", "<=", 1e9),
        ("p99.9 < 1.5s", "response_all_p999", "<", 1.5e9),
        ("mean < 250us", "response_all_mean", "<", 250e3),
        ("max < 2s", "response_all_max", "<", 2e9),
        ("errors < 0.1%", "error_ratio", "<", 0.001),
        ("success >= 99.9%", "success_ratio", ">=", 0.999),
        ("rps > 1000", "ok_per_s", ">", 1000),
        ("rps >= 90/m", "ok_per_s", ">=", 1.5),
        ("cpu < 150%", "cpu_percent", "<", 150),
        ("memory < 512M", "pss_end", "<", 512 * 2**20),
        ("service_ok_p99 < 5ms", "service_ok_p99", "<", 5e6),
        ("threads_max <= 8", "threads_max", "<=", 8),
    ],
)
def test_a_condition_is_a_metric_a_sign_and_a_quantity_with_its_unit(text, metric, operator, limit):
    found = parse_condition(text)
    assert (found.metrics[0], found.operator) == (metric, operator)
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`` is not a condition; expected one such as `p99 < 50ms`"),
        ("p99", "`p99` is not a condition"),
        ("p99 < 50ms,", "`` is not a condition"),
        ("p99 = 50ms", "`p99 = 50ms` is not a condition"),
        ("p98 < 50ms", "`p98` is not a metric; expected one of p50, "),
        ("p99 < 50", "`50` is not a duration"),
        ("errors < 1", "`1` is not a percentage"),
        ("rps > fast", "`fast` is not a rate"),
        ("threads_max < 1.5", "`1.5` is not a count"),
    ],
)
def test_what_is_no_objective_is_refused_with_the_part_and_what_was_expected(text, message):
    with pytest.raises(ValueError, match="expected") as error:
        parse_objective(text)
    assert message in str(error.value)


def test_every_short_name_means_metrics_of_one_unit():
    for names in ALIASES.values():
        assert len({METRICS[name].unit for name in names}) == 1


def test_all_conditions_must_be_met():
    objective = parse_objective("p99 < 2ms, errors < 0.1%")
    assert objective.met(measured()) is True
    assert objective.met(measured(ms=3.0)) is False
    assert objective.met(measured(errors={"reset": 10})) is False


@pytest.mark.parametrize(("operator", "met"), [("<", False), ("<=", True), (">", False), (">=", True)])
def test_each_sign_at_the_limit_itself(operator, met):
    assert parse_objective(f"p50 {operator} 1ms").met({"response_all_p50": 1e6}) is met


def test_in_a_closed_loop_latency_is_service_time():
    assert parse_objective("p99 < 2ms").met(measured(CLOSED)) is True
    assert parse_objective("p99 < 1ms").met(measured(CLOSED)) is False


def test_a_percentile_that_is_infinite_since_requests_failed_meets_no_upper_bound():
    assert parse_objective("p99 < 1h").met(measured(errors={"reset": 200})) is False
    assert parse_objective("max < 24h").met(measured(errors={"reset": 1})) is False


def test_a_trial_whose_requests_all_failed_meets_no_bound_of_latency():
    cell = Cell(1, build.subject("s+hello"), OPEN)
    found = trial_metrics(build.trial(cell, 0, 0, [], errors={"reset": 200}))
    assert parse_objective("p50 < 1h").met(found) is False


def test_what_was_not_measured_is_neither_met_nor_not():
    found = parse_objective("p99.99 < 2ms, errors < 0.1%").met(measured())
    assert found == FEW


def test_a_metric_that_a_trial_does_not_have_is_named():
    condition = parse_condition("p99 < 1s")
    assert condition.met({}) == Missing("no `response_all_p99` was measured")


def test_one_condition_that_is_not_met_decides_whatever_is_missing():
    assert parse_objective("p99.99 < 2ms, errors < 0.1%").met(measured(errors={"reset": 10})) is False


@given(st.lists(st.sampled_from([1e6, 3e6, FEW, INFINITE]), min_size=2, max_size=2))
def test_an_objective_is_met_only_if_each_of_its_conditions_is(values):
    metrics = dict(zip(("response_all_p50", "response_all_p99"), values, strict=True))
    found = parse_objective("p50 < 2ms, p99 < 2ms").met(metrics)
    assert (found is True) is (values == [1e6, 1e6])
    assert (found is False) is (3e6 in values or INFINITE in values)

"""Objectives say what they ask for, and a value keeps a bound or does not."""

from math import inf

import pytest

from prony.core.metrics import METRICS
from prony.figures.objective import ALIASES, parse_condition, parse_objective


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


@pytest.mark.parametrize(("operator", "holds"), [("<", False), ("<=", True), (">", False), (">=", True)])
def test_each_sign_at_the_limit_itself(operator, holds):
    assert parse_condition(f"p50 {operator} 1ms").holds(1e6) is holds


@pytest.mark.parametrize(("text", "holds"), [("p99 < 1h", False), ("p99 > 1h", True)])
def test_an_infinite_value_keeps_no_upper_bound(text, holds):
    assert parse_condition(text).holds(inf) is holds

"""METRICS: every quantity is defined, has a source, and can be written."""

import pytest

from prony.core.metrics import METRICS, PERCENTILES, Unit, format_metric


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_every_metric_is_defined_and_has_a_source(metric):
    assert metric.title
    assert len(metric.definition) > 20
    assert metric.source


def test_the_public_names_are_there():
    latency = {
        f"{kind}_{population}_{statistic}"
        for kind in ("response", "service")
        for population in ("ok", "all")
        for statistic in ("mean", *PERCENTILES, "max")
    }
    rates = {"ok_per_s", "attempted_per_s", "error_per_s", "success_ratio", "error_ratio"}
    resources = {"cpu_percent", "cpu_ns_per_request", "rss_peak", "pss_end", "vsz_peak", "processes_max"}
    machine = {"send_lag_p99", "machine_cpu_percent", "machine_steal_percent", "generator_cpu_percent"}
    assert latency | rates | resources | machine <= set(METRICS)


@pytest.mark.parametrize("unit", Unit)
def test_every_unit_can_be_written(unit):
    name = next(metric.name for metric in METRICS.values() if metric.unit is unit)
    assert format_metric(name, 1.0)


def test_cpu_is_written_in_per_cent_of_a_core():
    assert format_metric("cpu_percent", 153.0) == "153.00 %"

"""What a generator cost and reports: its own counts first, then what was sampled from outside."""

from dataclasses import replace

from golden import build
from golden.generators import external
from prony.figures.missing import Missing
from prony.figures.trial_metrics import trial_metrics
from prony.model.plan import Cell
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from recordings import with_parts

LOAD = Workload(ClosedLoop(4), DurationStop(2 * build.SECOND))
CELL = Cell(1, build.subject("reference+hello"), LOAD, EngineChoice("wrk"))


def metrics(name="wrk", **changes):
    trial = build.trial(CELL, 0, 0, [1_000_000] * 1000, errors=changes.pop("errors", {}))
    told = with_parts(external(trial.recording, name, 1000, 50.0, 0.01), **changes)
    return trial_metrics(replace(trial, recording=told))


def test_the_cpu_of_a_tool_is_that_of_its_processes():
    found = metrics()
    assert found["generator_cpu_percent"] == 50
    assert found["generator_cpu_ns_per_request"] == 0.5 * 2e9 / 1000
    assert found["generator_memory_ratio"] == 0.01


def test_an_engine_that_counts_its_own_cpu_is_believed():
    trial = build.trial(CELL, 0, 0, [1_000_000] * 1000)
    assert trial_metrics(trial)["generator_cpu_ns_per_request"] == 9000
    assert trial_metrics(trial)["generator_rss_mean"] == Missing("not recorded by this generator")


def test_replies_for_a_second_of_cpu_are_valid_ones():
    assert metrics()["generator_ok_per_cpu_s"] == 1000
    assert metrics(completed={"ok": 500, "failed": 500})["generator_ok_per_cpu_s"] == 500
    trial = build.trial(CELL, 0, 0, [1_000_000] * 1000)
    assert trial_metrics(trial)["generator_ok_per_cpu_s"] == 1e9 / 9000


def test_latencies_that_a_tool_reports_are_service_times_of_valid_replies_when_all_were_valid():
    found = metrics()
    assert (found["service_ok_p50"], found["service_ok_mean"]) == (30_900_000, 31_000_000)
    assert found["service_ok_p95"] == Missing(
        "wrk does not report it, or fewer than 10 requests lie above it"
    )
    assert found["service_all_p50"] == Missing("wrk gives no histogram of its latencies")


def test_latencies_that_mix_failures_in_are_no_service_times_of_valid_replies():
    found = metrics(errors={"bad_status": {"500": 3}})
    assert found["service_ok_p50"] == Missing("wrk mixes failed requests into its latencies")


def test_a_tool_without_latencies_says_so():
    assert metrics("python-threads")["service_ok_p99"] == Missing(
        "python-threads gives no histogram of its latencies"
    )

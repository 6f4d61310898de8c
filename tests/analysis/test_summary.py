"""Cells: what counts, what does not, and when speed may be compared. Answers: who leads, and how far that
can be said.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from golden import build
from prony.analysis.answer import answer, criterion, geometric_mean
from prony.analysis.displayed import cell_trimmed_mean
from prony.analysis.missing import Missing
from prony.analysis.summary import (
    Estimate,
    estimate_mean,
    estimate_skewed_mean,
    figures,
    judged_sessions,
    summarise_cell,
)
from prony.analysis.trial_metrics import trial_metrics
from prony.metrics import METRICS
from prony.model import Cell, ClosedLoop, DurationStop, Failed, Invalid, OpenLoop, Workload

OPEN = Workload(OpenLoop(100), DurationStop(2 * build.SECOND))
CLOSED = Workload(ClosedLoop(4), DurationStop(2 * build.SECOND))


def cell(number=1, workload=OPEN):
    return Cell(number, build.subject(f"s{number}+hello"), workload)


def trials(of, blocks, ms=1.0, **kwargs):
    return [
        figures(build.trial(of, block, 0, values(ms * (1 + 0.001 * block)), **kwargs))
        for block in range(blocks)
    ]


def values(ms, count=2000):
    return [int(ms * 1e6 * (0.5 + k / count)) for k in range(count)]


@given(st.lists(st.floats(0.1, 1e9), min_size=2, max_size=20, unique=True))
def test_the_interval_is_students(numbers):
    # The oracle warns where numbers differ by no more than rounding.
    assume(max(numbers) - min(numbers) > 1e-9 * max(numbers))
    found, oracle = estimate_mean(numbers), stats.ttest_1samp(numbers, 0).confidence_interval(0.95)
    assert found.low == pytest.approx(oracle.low, rel=1e-6, abs=1e-3)
    assert found.high == pytest.approx(oracle.high, rel=1e-6, abs=1e-3)
    assert found.min <= found.median <= found.max


@pytest.mark.parametrize("variation", [0.3, 0.6])
@pytest.mark.parametrize("trials", [5, 10])
def test_the_interval_of_a_skewed_latency_covers_its_mean(variation, trials):
    rng, runs = np.random.default_rng(trials), 4000
    spread = np.log1p(variation**2) ** 0.5
    found = [estimate_skewed_mean(row) for row in np.exp(spread * rng.normal(size=(runs, trials))).tolist()]
    covered = sum(one.low <= np.exp(spread**2 / 2) <= one.high for one in found)
    assert covered / runs >= 0.93


def test_below_five_trials_and_with_a_zero_a_skewed_interval_is_students():
    for few in ([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0]):
        assert estimate_skewed_mean(few) == estimate_mean(few)


def test_one_trial_has_no_interval():
    assert estimate_mean([3.0]) == Estimate(1, 3.0, None, None, 3.0, 3.0, 3.0)
    assert estimate_mean([3.0]).half_width is None


def test_every_metric_has_a_value_or_a_reason():
    for trial in (
        build.trial(cell(), 0, 0, values(1)),
        build.trial(cell(), 0, 0, [], outcome=Failed("start", "x")),
    ):
        found = trial_metrics(trial)
        assert list(found) == list(METRICS)
        assert all(isinstance(value, (float, int)) or value.reason for value in found.values())


def test_rates_divide_by_the_window():
    found = trial_metrics(build.trial(cell(), 0, 0, values(1), errors={"reset": 100}))
    assert (found["ok_per_s"], found["attempted_per_s"], found["error_per_s"]) == (1000, 1050, 50)
    assert found["error_ratio"] == pytest.approx(100 / 2100)


def test_time_per_request_is_the_window_over_all_that_ended_in_it():
    closed = build.trial(cell(workload=CLOSED), 0, 0, values(1), errors={"reset": 500})
    assert trial_metrics(closed)["duration_ns_per_request"] == 2e9 / 2500
    opened = trial_metrics(build.trial(cell(), 0, 0, values(1)))["duration_ns_per_request"]
    assert opened.reason == "in an open loop the generator sets the pace"


def test_cpu_per_request_is_cpu_over_complete_replies():
    trial = build.trial(cell(), 0, 0, values(1), errors={"bad_status": {"500": 500}, "reset": 9}, cores=0.5)
    assert trial_metrics(trial)["cpu_ns_per_request"] == pytest.approx(0.5 * 2e9 / 2500)


def test_trials_that_failed_are_counted_and_not_averaged():
    bad = figures(build.trial(cell(), 4, 0, [], outcome=Failed("load", "died")))
    found = summarise_cell(cell(), [*trials(cell(), 4), bad])
    assert (found.ok, found.total) == (4, 5)
    assert found.metrics["ok_per_s"].count == 4
    assert found.unqualified is None
    assert found.others[0].outcome == Failed("load", "died")


def test_where_more_than_one_trial_in_five_fails_there_is_no_figure_of_speed():
    bad = figures(build.trial(cell(), 3, 0, [], outcome=Failed("load", "died")))
    found = summarise_cell(cell(), [*trials(cell(), 3), bad])
    assert found.unqualified == "1 of 4 trials did not count"
    for name in ("ok_per_s", "response_ok_p99", "response_all_mean", "cpu_ns_per_request"):
        assert found.metrics[name] == cell_trimmed_mean(found, name) == Missing(found.unqualified)
    # What the others took from the machine, and lost, is known.
    assert {found.metrics[name].count for name in ("cpu_percent", "rss_peak", "error_ratio")} == {3}


def test_an_invalid_trial_is_replaced_by_its_repeat():
    first = figures(build.trial(cell(), 0, 0, [], outcome=Invalid("steal"), attempt=1))
    again = figures(build.trial(cell(), 0, 0, values(1), attempt=2))
    found = summarise_cell(cell(), [first, again])
    assert (found.ok, found.total, found.unqualified) == (1, 1, None)


@pytest.mark.parametrize(("lost", "qualified"), [(0, True), (2, True), (3, False)])
def test_speed_is_qualified_up_to_one_error_in_a_thousand(lost, qualified):
    found = summarise_cell(cell(), trials(cell(), 2, errors={"reset": lost}))
    assert (found.unqualified is None) is qualified


@pytest.mark.parametrize(("lost", "qualified"), [(0, True), (105, True), (106, False)])
def test_speed_is_qualified_up_to_the_errors_that_are_allowed(lost, qualified):
    some = trials(cell(), 2, errors={"reset": lost})
    found = summarise_cell(cell(), some, allowed_errors=0.05)
    assert (found.unqualified is None) is qualified
    assert found.allowed_errors == 0.05


def test_percentiles_of_all_requests_are_missing_if_they_are_infinite_in_any_trial():
    some = [*trials(cell(), 2), figures(build.trial(cell(), 2, 0, values(1), errors={"reset": 200}))]
    missing = summarise_cell(cell(), some).metrics["response_all_p95"]
    assert isinstance(missing, Missing)
    assert "in 1 of 3 trials" in missing.reason


def test_an_open_loop_is_decided_by_the_tail_and_a_closed_one_by_throughput():
    assert criterion([summarise_cell(cell(), trials(cell(), 2))]) == "response_ok_p99"
    closed = cell(1, CLOSED)
    assert criterion([summarise_cell(closed, trials(closed, 2))]) == "ok_per_s"


def test_with_few_requests_the_largest_percentile_that_all_have_decides():
    few = [figures(build.trial(cell(), 0, 0, values(1, 300)))]
    assert criterion([summarise_cell(cell(), few)]) == "response_ok_p95"


def cells(blocks, *speeds):
    return [summarise_cell(cell(k + 1), trials(cell(k + 1), blocks, ms)) for k, ms in enumerate(speeds)]


def test_the_fastest_wins_with_five_blocks():
    found = answer(cells(5, 2.0, 1.0, 3.0))
    assert (found.leader, found.ties, found.decided) == ("s2+hello", (), True)


def test_fewer_than_five_blocks_decide_nothing():
    found = answer(cells(4, 2.0, 1.0))
    assert (found.leader, found.ties, found.decided, found.blocks) == ("s2+hello", (), False, 4)


def test_subjects_that_cannot_be_told_apart_share_the_lead():
    found = answer(cells(6, 1.0, 1.0005, 2.0))
    assert found.ties == ("s2+hello",)


def test_a_subject_that_loses_requests_cannot_win():
    fast = summarise_cell(cell(1), trials(cell(1), 5, 0.1, errors={"reset": 100}))
    assert answer([fast, *cells(5, 9, 1.0)[1:]]).leader == "s2+hello"
    assert answer([fast]).reason == "no subject qualifies"


def test_a_lone_subject_leads():
    assert answer(cells(6, 1.0)).leader == "s1+hello"


def by_block(number, *means):
    """A cell whose latencies are given by block, in ms."""
    of = cell(number)
    own = [figures(build.trial(of, block, 0, values(ms))) for block, ms in enumerate(means)]
    return summarise_cell(of, own)


def test_one_bad_block_does_not_put_a_subject_after_one_that_is_worse_in_all_others():
    spiked, slow = by_block(1, 1, 1, 1, 1, 60), by_block(2, 4, 4, 4, 4, 4)
    assert spiked.metrics["response_ok_p99"].mean > slow.metrics["response_ok_p99"].mean
    assert geometric_mean(spiked, "response_ok_p99") < geometric_mean(slow, "response_ok_p99")
    assert answer([slow, spiked]).leader == "s1+hello"


def test_a_subject_that_is_shown_to_be_worse_than_another_does_not_lead():
    steps = [1 + 0.01 * (k % 4) for k in range(9)]
    spiked, slow = by_block(1, *steps, 1e6), by_block(2, *(2 * step for step in steps[::-1]), 2)
    found = answer([slow, spiked])
    assert geometric_mean(spiked, "response_ok_p99") > geometric_mean(slow, "response_ok_p99")
    assert (found.leader, found.ties) == ("s1+hello", ())


def test_subjects_whose_trials_all_failed_ran_but_do_not_count():
    of = cell()
    found = summarise_cell(of, [figures(build.trial(of, 0, 0, [], outcome=Failed("start", "x")))])
    assert found.unqualified == found.metrics["pss_end"].reason == "no trial counts"
    assert summarise_cell(of, []).unqualified == "no trial ran"


def test_all_requests_are_infinite_when_all_failed():
    found = trial_metrics(build.trial(cell(), 0, 0, [], errors={"connect_refused": 50}))
    assert found["response_all_p50"].reason == "all requests failed, which counts as infinite"
    assert found["response_ok_p50"].reason == "no request was answered as expected"
    assert found["service_all_p50"].reason == "all requests failed before they were sent"


def test_the_percentile_from_which_requests_failed_has_itself_a_value():
    found = trial_metrics(build.trial(cell(), 0, 0, values(1, 180), errors={"reset": 20}))
    assert found["response_all_p90"] > 0
    assert found["response_all_p95"].reason == "requests failed above p90, which counts as infinite"


def test_a_session_whose_only_trial_was_repeated_or_says_nothing_is_none():
    again, late = trials(cell(), 2)
    first = replace(again, attempt=0, outcome=Invalid("steal was 4 %"))
    of_day_two = [replace(one, session=1) for one in (again, late)]
    assert judged_sessions([first, *of_day_two]) == {1}
    assert judged_sessions([replace(late, session=0, outcome=Invalid("steal was 4 %")), of_day_two[0]]) == {1}
    assert judged_sessions([replace(late, session=0), of_day_two[0]]) == {0, 1}

"""Cells: what counts, what does not, and when speed may be compared. Answers: who leads, and how far that
can be said.
"""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from golden import build
from prony.core.metrics import METRICS
from prony.figures.answer import answer, criterion, mean_of, ranked_cells
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Terms, Verdict
from prony.figures.summary import (
    Estimate,
    cell_trimmed_mean,
    estimate_geometric,
    estimate_mean,
    estimate_over,
    figures,
    judged_sessions,
    summarise_cell,
)
from prony.figures.trial_metrics import trial_metrics
from prony.model.plan import Cell
from prony.model.trial import Failed, Invalid
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload

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


@pytest.mark.parametrize("level", [0.05, 0.005])
@given(st.lists(st.floats(0.1, 1e9), min_size=5, max_size=20, unique=True))
def test_the_interval_is_students(level, numbers):
    # The oracle warns where numbers differ by no more than rounding.
    assume(max(numbers) - min(numbers) > 1e-9 * max(numbers))
    found, oracle = (
        estimate_mean(numbers, level),
        stats.ttest_1samp(numbers, 0).confidence_interval(1 - level),
    )
    assert found.mean == pytest.approx(np.mean(numbers))
    assert found.low == pytest.approx(oracle.low, rel=1e-6, abs=1e-3)
    assert found.high == pytest.approx(oracle.high, rel=1e-6, abs=1e-3)
    assert found.min <= found.median <= found.max


@pytest.mark.parametrize("level", [0.05, 0.005])
@given(st.lists(st.floats(0.1, 1e9), min_size=5, max_size=20))
def test_the_geometric_interval_is_that_of_the_logarithms(level, numbers):
    found, logs = estimate_geometric(numbers, level), estimate_mean([log(one) for one in numbers], level)
    assert found.mean == pytest.approx(stats.gmean(numbers))
    assert (log(found.low), log(found.high)) == pytest.approx((logs.low, logs.high), abs=1e-9)
    middle = (float(np.median(numbers)), min(numbers), max(numbers))
    assert (found.count, found.median, found.min, found.max) == (len(numbers), *middle)


@pytest.mark.parametrize("variation", [0.3, 0.6])
@pytest.mark.parametrize("trials", [5, 10])
def test_the_interval_of_a_skewed_latency_covers_its_mean(variation, trials):
    rng, runs = np.random.default_rng(trials), 4000
    spread = np.log1p(variation**2) ** 0.5
    found = [estimate_geometric(row) for row in np.exp(spread * rng.normal(size=(runs, trials))).tolist()]
    assert all(one.low > 0 for one in found)
    covered = sum(one.low <= 1 <= one.high for one in found)
    assert covered / runs == pytest.approx(0.95, abs=3 * (0.05 * 0.95 / runs) ** 0.5)


@pytest.mark.parametrize(
    "name", ["ok_per_s", "response_ok_p99", "cpu_ns_per_request", "pss_end", "any other"]
)
def test_the_mean_of_what_is_never_nothing_is_geometric(name):
    numbers = [1.0, 2.0, 3.0, 4.0, 500.0]
    assert estimate_over(numbers, name, 0.01) == estimate_geometric(numbers, 0.01)


@pytest.mark.parametrize("name", ["error_ratio", "error_per_s", "cpu_percent"])
def test_the_mean_of_what_may_well_be_nothing_is_arithmetic(name):
    numbers = [1.0, 2.0, 3.0, 4.0, 500.0]
    assert estimate_over(numbers, name, 0.01) == estimate_mean(numbers, 0.01)


def test_the_mean_of_values_of_which_one_is_0_is_arithmetic():
    numbers = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert estimate_over(numbers, "ok_per_s") == estimate_mean(numbers)


@pytest.mark.parametrize("estimate", [estimate_mean, estimate_geometric])
def test_below_five_trials_there_is_no_interval(estimate):
    for few in ([3.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]):
        found = estimate(few)
        assert (found.count, found.low, found.high, found.half_width) == (len(few), None, None, None)
    assert estimate([1.0, 2.0, 3.0, 4.0, 5.0]).half_width > 0
    assert estimate([3.0]) == Estimate(1, pytest.approx(3.0), None, None, 3.0, 3.0, 3.0)


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


def test_where_more_than_one_trial_in_five_fails_figures_of_speed_are_void():
    bad = figures(build.trial(cell(), 3, 0, [], outcome=Failed("load", "died")))
    found = summarise_cell(cell(), [*trials(cell(), 3), bad])
    assert found.unqualified == "1 of 4 trials did not count"
    for name in ("ok_per_s", "response_ok_p99", "response_all_mean", "cpu_ns_per_request"):
        assert found.metrics[name] == cell_trimmed_mean(found, name) == Missing(found.unqualified)
    # What the others took from the machine, and lost, is known.
    kept = {"cpu_percent", "rss_peak", "error_ratio"}
    assert {found.metrics[name].count for name in kept} == {3}
    assert (found.void.reason, found.void.trials) == (found.unqualified, 3)
    assert found.void.metrics["ok_per_s"].count == 3
    assert not kept & found.void.metrics.keys()


def test_where_all_that_counts_is_enough_nothing_is_void():
    bad = figures(build.trial(cell(), 5, 0, [], outcome=Failed("load", "died")))
    assert summarise_cell(cell(), [*trials(cell(), 5), bad]).void is None


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
    """A cell whose latencies are given by block, in ms; none of a block that it did not run in."""
    of = cell(number)
    own = [figures(build.trial(of, block, 0, values(ms))) for block, ms in enumerate(means) if ms is not None]
    return summarise_cell(of, own)


def test_one_bad_block_does_not_put_a_subject_after_one_that_is_worse_in_all_others():
    spiked, slow = by_block(1, 1, 1, 1, 1, 60), by_block(2, 4, 4, 4, 4, 4)
    found = [cell.metrics["response_ok_p99"] for cell in (spiked, slow)]
    assert found[0].mean == mean_of(spiked, "response_ok_p99") < found[1].mean
    assert answer([slow, spiked]).leader == "s1+hello"


def lacking(number, missing, *means):
    """A cell as ``by_block``, without a figure in the blocks ``missing``: it was disturbed there."""
    of = cell(number)
    made = [figures(build.trial(of, block, 0, values(ms))) for block, ms in enumerate(means)]
    lost = [replace(made[block], outcome=Invalid("steal")) for block in missing]
    return summarise_cell(of, [*(one for one in made if one.block not in missing), *lost])


def test_who_lost_a_trial_in_a_slow_block_is_no_better_for_it():
    drift = (1, 1.01, 1.02, 1.01, 1.02, 9)
    faster, luckier = by_block(1, *drift), lacking(2, [5], *(1.1 * one for one in drift))
    assert luckier.metrics["response_ok_p99"].mean < faster.metrics["response_ok_p99"].mean
    assert answer([luckier, faster]).leader == "s1+hello"


def frail(number, *means, outcome):
    """A cell as ``by_block``, of which one trial more came to nothing; not so many that its speed is lost."""
    of = cell(number)
    made = [figures(build.trial(of, block, 0, values(ms))) for block, ms in enumerate(means)]
    return summarise_cell(of, [*made, figures(build.trial(of, len(made), 0, [], outcome=outcome))])


TEN = [1 + 0.01 * (block % 4) for block in range(10)]


def test_a_subject_whose_server_failed_trials_is_not_shown_to_be_better_and_comes_last():
    fast = frail(1, *TEN, outcome=Failed("load", "died"))
    found = answer([fast, by_block(2, *(2 * one for one in TEN))])
    assert found.leader == "s2+hello"
    assert found.comparisons["s1+hello"].verdict is Verdict.SURVIVORS
    # As an interval it is told all the same, and it is not said to be worse.
    assert found.comparisons["s1+hello"].high < 0
    assert found.ties == ("s1+hello",)


def test_a_subject_whose_server_failed_trials_is_equivalent_to_none_and_may_be_worse():
    same, slow = (frail(1, *(by * one for one in TEN), outcome=Failed("load", "died")) for by in (1, 2))
    steady = by_block(2, *TEN)
    assert answer([same, steady]).comparisons["s1+hello"].verdict is Verdict.SURVIVORS
    found = answer([slow, steady])
    assert (found.comparisons["s1+hello"].verdict, found.ties) == (Verdict.HIGHER, ())


def test_a_trial_that_the_machine_spoiled_takes_nothing_from_a_subject():
    fast = frail(1, *TEN, outcome=Invalid("steal"))
    found = answer([fast, by_block(2, *(2 * one for one in TEN))])
    assert (found.leader, found.comparisons["s2+hello"].verdict) == ("s1+hello", Verdict.HIGHER)


def test_the_leaders_figure_has_an_interval_that_holds_whoever_leads():
    many = [by_block(number, *((1 + 0.1 * number) * one for one in TEN)) for number in (1, 2, 3)]
    found = answer(many)
    own = many[0].metrics["response_ok_p99"]
    assert (found.leader, found.figure.mean) == ("s1+hello", own.mean)
    numbers = [metrics["response_ok_p99"] for metrics in many[0].units.values()]
    wide = estimate_over(numbers, "response_ok_p99", 0.05 / 3)
    assert (found.figure.low, found.figure.high) == (wide.low, wide.high)
    assert found.figure.low < own.low < own.high < found.figure.high


def test_without_a_leader_there_is_no_figure_and_below_five_blocks_no_interval():
    assert answer([by_block(1, *TEN), by_block(2, *TEN)]).figure is None
    few = answer([by_block(1, 1, 1.1, 1), by_block(2, 2, 2.1, 2)])
    assert (few.leader, few.figure.count, few.figure.low) == ("s1+hello", 3, None)


def test_a_subject_that_is_shown_to_be_worse_than_another_does_not_lead():
    # In every other block the third is so slow that whoever ran then has the better mean.
    steps = [1 + 0.01 * (block * 7 % 5) for block in range(20)]
    often = by_block(1, *(1.8 * one for one in steps))
    seldom = by_block(2, *(None if block % 2 else one for block, one in enumerate(steps[::-1])))
    uneven = by_block(3, *((54 if block % 2 else 1.0) * one for block, one in enumerate(steps)))
    found = answer([often, seldom, uneven])
    assert ranked_cells([often, uneven], "response_ok_p99", Terms()).names[0] == "s1+hello"
    assert (found.leader, found.comparisons["s1+hello"].verdict) == ("s2+hello", Verdict.HIGHER)


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

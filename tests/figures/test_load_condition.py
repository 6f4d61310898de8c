"""Conditions that fail a load: what holds, what does not, and what cannot be decided, with its reason."""

import re
from math import inf

import pytest

from golden import build
from prony.figures.objective import Condition, judge_condition, parse_load_condition
from recordings import with_parts

MS = 1_000_000
OPEN = build.Workload(build.OpenLoop(1000.0), build.DurationStop(2 * build.SECOND))
CLOSED = build.Workload(build.ClosedLoop(10), build.DurationStop(2 * build.SECOND))
# 1,980 fast ones and 20 slow ones: p99 is fast, p99.9 has too few above it.
MOST_FAST = [10 * MS] * 1980 + [500 * MS] * 20


def judged(text, ok=MOST_FAST, workload=OPEN, limited=False, sent=None, **account):
    """``sent``: so many of the requests went out within the window; null: that is not recorded."""
    recording = build.recording(workload, ok, account.get("errors"), account.get("censored", ()))
    recording = with_parts(recording, generator={"sent_in_window": sent})
    return judge_condition(parse_load_condition(text), recording, is_limited=limited)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p50 > 50ms", False),
        ("p99 > 5ms", True),
        ("p99 < 5ms", False),
        ("p99 <= 11ms", True),
        ("max >= 490ms", True),
        ("mean > 1s", False),
        ("rate < 900", False),
        ("rate < 2k", True),
        ("rate >= 500", True),
        ("errors > 0.1%", False),
        ("errors >= 0%", True),
    ],
)
def test_a_condition_holds_or_does_not(text, holds):
    assert judged(text).holds is holds


def test_a_percentile_with_too_few_requests_above_it_decides_nothing_and_says_so():
    found = judged("p99.9 > 50ms")
    assert (found.holds, found.value) == (None, None)
    assert found.reason == "fewer than 10 requests lie above it"


def test_t30_failed_requests_are_infinite_and_fail_a_limit_of_latency():
    errors = {"connect_refused": 1980}
    assert judged("p99 > 50ms", [10 * MS] * 1980, errors=errors).holds is True
    assert judged("p99 < 1h", [10 * MS] * 1980, errors=errors).holds is False
    assert judged("p99 of ok > 50ms", [10 * MS] * 1980, errors=errors).holds is False
    assert judged("errors > 49%", [10 * MS] * 1980, errors=errors).holds is True


def test_t05_what_was_given_up_is_a_lower_bound():
    given_up = [200 * MS] * 40
    found = judged("p99 > 100ms", [10 * MS] * 1960, censored=given_up, errors={"timed_out": 40})
    assert found.holds is True
    found = judged("p99 > 1s", [10 * MS] * 1960, censored=given_up, errors={"timed_out": 40})
    assert found.holds is None
    assert found.reason == "requests were given up, so it is a lower bound"


def test_t30_refused_connections_are_infinite_in_a_closed_loop_too():
    errors = {"connect_refused": 1980}
    assert judged("p99 > 50ms", [10 * MS] * 1980, workload=CLOSED, errors=errors).holds is True


@pytest.mark.parametrize("workload", [OPEN, CLOSED])
def test_t41_what_this_machine_could_not_send_makes_no_latency_infinite(workload):
    own = {"client_no_descriptor": 100}
    found = judged("p99 > 50ms", [10 * MS] * 1980, workload=workload, errors=own)
    assert (found.holds, found.reason) == (None, "the generator itself could not send some of the requests")
    assert judged("p99 > 5ms", [10 * MS] * 1980, workload=workload, errors=own).holds is True
    others = {**own, "reset": 100}
    assert judged("p99 > 50ms", [10 * MS] * 1980, workload=workload, errors=others).holds is True


def test_t42_a_limited_generator_may_have_made_the_latency_but_not_hidden_one_of_an_open_loop():
    assert judged("p99 > 5ms", limited=True).holds is None
    assert judged("p99 > 5ms", limited=True).reason == "the generator may have been the limit"
    assert judged("p99 > 50ms", limited=True).holds is False


def test_t42_in_a_closed_loop_a_limited_generator_sets_the_load_so_no_latency_is_decided():
    assert judged("p99 > 50ms", workload=CLOSED, limited=True).holds is None


def test_t42_a_limited_generator_may_have_made_the_rate_too_low_but_not_too_high():
    assert judged("rate < 1100", limited=True).holds is None
    assert judged("rate < 500", limited=True).holds is False


@pytest.mark.parametrize(
    ("workload", "sent", "holds"), [(OPEN, 1200, None), (OPEN, 1990, False), (CLOSED, None, None)]
)
def test_errors_of_less_load_than_was_asked_for_are_a_lower_bound(workload, sent, holds):
    # 20 of 2,000 fail: more may have, of the requests that a limited generator did not send in time.
    errors = {"reset": 20}
    found = judged("errors > 2%", [10 * MS] * 1980, workload, limited=True, sent=sent, errors=errors)
    assert found.holds is holds
    assert found.reason == (None if holds is False else "the generator may have been the limit")
    assert judged("errors > 0.5%", [10 * MS] * 1980, workload, limited=True, sent=sent, errors=errors).holds
    assert judged("errors > 2%", [10 * MS] * 1980, workload, sent=sent, errors=errors).holds is False


def held(metric, operator, limit, value, *, limited, sent=1200, workload=OPEN):
    """Whether a condition on any metric holds, by the value that was measured of it."""
    recording = with_parts(build.recording(workload, MOST_FAST), generator={"sent_in_window": sent})
    asked = Condition("it", (metric,), operator, limit)
    return judge_condition(asked, recording, {metric: value}, is_limited=limited).holds


@pytest.mark.parametrize("metric", ["cpu_percent", "busiest_thread_percent", "error_per_s"])
def test_cpu_and_errors_of_a_load_that_a_limited_generator_withheld_may_be_more(metric):
    assert held(metric, "<", 80, 60, limited=True) is None
    assert held(metric, "<", 80, 90, limited=True) is False
    assert held(metric, ">", 50, 60, limited=True) is True
    assert held(metric, "<", 80, 60, limited=False) is True
    assert held(metric, "<", 80, 60, limited=True, sent=2000) is True


def test_success_of_a_load_that_a_limited_generator_withheld_may_be_less():
    assert held("success_ratio", ">", 0.9, 0.99, limited=True) is None
    assert held("success_ratio", "<", 0.999, 0.99, limited=True) is True
    assert held("success_ratio", ">", 0.9, 0.99, limited=True, sent=2000) is True


@pytest.mark.parametrize("metric", ["send_lag_p99", "handshake_full_p99", "cpu_ns_per_request"])
def test_any_other_time_is_at_most_what_a_limited_generator_shows(metric):
    assert held(metric, "<", MS, 2 * MS, limited=True) is None
    assert held(metric, "<", 3 * MS, 2 * MS, limited=True) is True
    assert held(metric, "<", MS, 2 * MS, limited=False) is False
    assert held(metric, "<", 3 * MS, 2 * MS, limited=True, workload=CLOSED) is None


def test_memory_is_as_it_was_measured_whatever_the_generator():
    assert held("pss_end", "<", 80, 60, limited=True) is True


def test_what_the_generator_could_not_send_may_or_may_not_be_errors():
    errors = {"client_no_address": 20}
    assert judged("errors > 0.1%", [10 * MS] * 1980, errors=errors).holds is None
    assert judged("errors > 5%", [10 * MS] * 1980, errors=errors).holds is False
    assert judged("errors > 0.1%", [10 * MS] * 1960, errors={**errors, "reset": 20}).holds is True


def test_nothing_answered_has_an_infinite_latency_and_only_errors():
    errors = {"connect_refused": 100}
    assert judged("p50 > 1s", [], errors=errors).holds is True
    assert judged("errors > 1%", [], errors=errors).holds is True


def test_the_latency_of_a_closed_loop_is_the_service_time():
    assert judged("p50 > 1s", workload=CLOSED).metric == "service_all_p50"
    assert judged("p50 > 1s", workload=OPEN).metric == "response_all_p50"


def test_a_range_decides_only_when_it_lies_on_one_side():
    condition = parse_load_condition("p50 > 1ms")
    assert [condition.shown(*each) for each in ((0, inf), (0, MS), (2 * MS, inf))] == [None, False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p42 > 1s", "`p42` is not a figure of a load; expected one of p50"),
        ("cpu > 1%", "`cpu` is not a figure of a load"),
        ("p99", "`p99` is not a condition"),
        ("p99 > 5", "`5` is not a duration"),
        ("errors > 1", "`1` is not a percentage"),
        ("errors of ok > 1%", "`errors of ok` is not a figure of a load"),
        ("p99 of sent > 1s", "`p99 of sent` is not a figure of a load"),
        ("", "is not a condition; expected one such as"),
    ],
)
def test_what_is_no_condition_is_refused_with_what_was_expected(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_load_condition(text)

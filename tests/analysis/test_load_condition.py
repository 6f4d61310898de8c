"""Conditions that fail a load: what holds, what does not, and what cannot be decided, with its reason."""

import re
from math import inf

import pytest

from golden import build
from prony.analysis.load_condition import judge_condition, parse_load_condition

MS = 1_000_000
OPEN = build.Workload(build.OpenLoop(1000.0), build.DurationStop(2 * build.SECOND))
CLOSED = build.Workload(build.ClosedLoop(10), build.DurationStop(2 * build.SECOND))
# 1,980 fast ones and 20 slow ones: p99 is fast, p99.9 has too few above it.
MOST_FAST = [10 * MS] * 1980 + [500 * MS] * 20


def judged(text, ok=MOST_FAST, workload=OPEN, limited=False, **account):
    recording = build.recording(workload, ok, account.get("errors"), account.get("censored", ()))
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

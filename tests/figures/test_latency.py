"""Latency over both populations: what is exact, what is a lower bound, and what is infinite."""

from fractions import Fraction
from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histograms import distribution
from prony.core.metrics import PERCENTILES
from prony.figures.latency import (
    EMPTY,
    read_distribution,
    summarise,
)
from prony.model.json_codec import decode
from prony.model.recording import Distribution
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json

TIMES = st.integers(1, 3_600_000_000_000)


def read(values):
    return read_distribution(decode(Distribution, distribution(values), "times")) or EMPTY


def exact(values, percentile):
    """The definition, on the values themselves."""
    share = Fraction(percentile) / 100
    if len(values) * (1 - share) < 10:
        return None
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


@given(st.lists(TIMES, min_size=1, max_size=300), st.lists(TIMES, max_size=60), st.integers(0, 60))
def test_percentiles_follow_the_definition_to_the_precision_of_the_histogram(ok, censored, failed):
    summary = summarise(read(ok), read(censored), failed)
    for percentile in PERCENTILES.values():
        expected = exact([*ok, *censored, *[inf] * failed], percentile)
        got = summary.percentiles[percentile]
        if expected is None or expected == inf:
            assert got is None
        else:
            assert got == pytest.approx(expected, rel=1e-3)


@given(st.lists(TIMES, min_size=1, max_size=300), st.lists(TIMES, max_size=60), st.integers(0, 60))
def test_percentiles_ascend_within_the_exact_range(ok, censored, failed):
    summary = summarise(read(ok), read(censored), failed)
    values = [value for value in summary.percentiles.values() if value is not None]
    assert values == sorted(values)
    assert all(min(ok + censored) <= value <= max(ok + censored) for value in values)


@given(st.lists(TIMES, min_size=20, max_size=300), st.lists(TIMES, max_size=60))
def test_failures_never_make_a_percentile_smaller(ok, censored):
    without, with_failures = (summarise(read(ok), read(censored), failed) for failed in (0, 7))
    for percentile, value in with_failures.percentiles.items():
        if value is not None and without.percentiles[percentile] is not None:
            assert value >= without.percentiles[percentile]


def test_a_percentile_needs_ten_values_above_it():
    assert summarise(read(range(1, 1000))).percentiles["99"] is None
    assert summarise(read(range(1, 1001))).percentiles["99"] == 990


def test_a_failed_request_makes_mean_and_max_infinite_but_not_the_median():
    summary = summarise(read([1000] * 99), EMPTY, 1)
    assert (summary.mean_ns, summary.max_ns, summary.min_ns) == (None, None, 1000)
    assert summary.percentiles["50"] == 1000
    assert (summary.infinite_from, summary.censored_from) == (99.0, None)


def test_unanswered_requests_count_at_their_age_and_values_from_there_on_are_lower_bounds():
    summary = summarise(read([1000] * 900), read([50_000] * 100))
    assert summary.percentiles["95"] == pytest.approx(50_000, rel=1e-3)
    assert summary.censored_from == 90.0
    assert summary.max_ns == 50_000
    assert summary.mean_ns == (900 * 1000 + 100 * 50_000) / 1000


def test_a_request_that_is_given_up_before_the_fastest_reply_makes_all_values_lower_bounds():
    assert summarise(read([1000] * 90), read([10] * 10)).censored_from == 0.0


def test_nothing_answered_has_no_values_and_is_not_zero():
    summary = summarise(EMPTY, EMPTY, 40)
    assert summary.count == 40
    assert (summary.min_ns, summary.mean_ns, summary.max_ns) == (None, None, None)
    assert set(summary.percentiles.values()) == {None}
    assert summary.infinite_from == 0.0


def test_the_exact_max_limits_a_percentile_of_the_histogram():
    # 1,000,001 shares its class with values up to 1,000,447.
    assert summarise(read([1_000_001] * 100)).percentiles["90"] == 1_000_001


def recording(account, closed=False):
    from golden import build

    loop = build.ClosedLoop(1) if closed else build.OpenLoop(10)
    return build.recording(
        build.Workload(loop, build.DurationStop(build.SECOND)), [1000_000] * 200, errors=account
    )


def latency_of(recording):
    return document_json(read_load(recording))["latency"]


def test_the_service_time_of_an_open_loop_leaves_out_what_was_never_sent():
    found = latency_of(recording({"connect_refused": 3, "reset": 2, "bad_status": {"500": 4, "503": 1}}))
    assert found["all"]["response_ns"]["count"] == 200 + 10
    assert found["all"]["service_ns"]["count"] == 200 + 7
    assert found["ok"]["response_ns"]["count"] == 200


def test_in_a_closed_loop_every_request_is_among_all_whether_it_was_sent_or_not():
    found = latency_of(recording({"connect_refused": 300, "reset": 2}, closed=True))["all"]["service_ns"]
    assert (found["count"], found["infinite_from"]) == (502, pytest.approx(100 * 200 / 502))
    assert found["percentiles"]["50"] is None


def test_a_closed_loop_has_no_response_time_and_no_send_lag():
    data = document_json(read_load(recording({}, closed=True)))
    found = data["latency"]
    assert found["ok"]["response_ns"] is found["all"]["response_ns"] is None
    assert data["distributions"]["send_lag"] is None
    assert found["ok"]["service_ns"]["percentiles"]["90"] is not None


def test_the_keys_are_stable():
    found = latency_of(recording({}))
    assert list(found) == ["ok", "all"]
    assert list(found["ok"]["response_ns"]) == [
        "count",
        "min",
        "mean",
        "max",
        "percentiles",
        "censored_from",
        "infinite_from",
    ]
    assert list(found["ok"]["response_ns"]["percentiles"]) == ["50", "90", "95", "99", "99.9", "99.99"]

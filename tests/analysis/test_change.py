"""Limits of a change say what they forbid, and an interval shows it, shows it not, or neither."""

import pytest

from prony.analysis.change import parse_limit


@pytest.mark.parametrize(
    ("text", "metric", "below", "bound"),
    [
        ("rps < -5%", "ok_per_s", True, -0.05),
        ("p99 > +10%", "response_ok_p99", False, 0.10),
        ("p95>10%", "response_ok_p95", False, 0.10),
        ("memory > 2.5 %", "pss_end", False, 0.025),
        ("rss_peak > 5%", "rss_peak", False, 0.05),
    ],
)
def test_a_limit_is_a_metric_a_sign_and_a_change(text, metric, below, bound):
    found = parse_limit(text)
    assert (found.metrics[0], found.below, found.bound) == (metric, below, pytest.approx(bound))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a limit of a change"),
        ("rps", "is not a limit of a change"),
        ("rps = -5%", "is not a limit of a change"),
        ("rps < -5", "is not a percentage"),
        ("speed < -5%", "`speed` is not a compared metric"),
        ("errors > 5%", "`errors` is not a compared metric"),
    ],
)
def test_what_is_no_limit_is_refused_with_what_was_expected(text, message):
    with pytest.raises(ValueError, match="expected") as error:
        parse_limit(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "interval", "shown"),
    [
        ("rps < -5%", (-0.10, -0.06), True),
        ("rps < -5%", (-0.06, -0.04), None),
        ("rps < -5%", (-0.05, 0.04), False),
        ("p99 > 10%", (0.11, 0.2), True),
        ("p99 > 10%", (0.05, 0.2), None),
        ("p99 > 10%", (-0.5, 0.10), False),
    ],
)
def test_the_whole_interval_must_lie_on_one_side(text, interval, shown):
    assert parse_limit(text).shown(interval) is shown

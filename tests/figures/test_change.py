"""Limits of a change say what they forbid, and an interval shows it, shows it not, or neither."""

import pytest

from cells import cell_of, measured
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Terms
from prony.figures.versus import Match, compared_loads, held, parse_limit


@pytest.mark.parametrize(
    ("text", "metric", "below", "bound"),
    [
        ("rps < -5%", "ok_per_s", True, -0.05),
        ("p99 > +10%", "response_ok_p99", False, 0.10),
        ("p95>10%", "response_ok_p95", False, 0.10),
        ("memory > 2.5 %", "pss_end", False, 0.025),
        ("rss_peak > 5%", "rss_peak", False, 0.05),
        ("cpu > 5%", "cpu_ns_per_request", False, 0.05),
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
        ("speed < -5%", "`speed` is not a compared metric; expected one of p50"),
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
        ("rps < -5%", (-0.10, -0.05), None),
        ("p99 > 10%", (0.10, 0.2), None),
        ("p99 > 10%", (0.11, 0.2), True),
        ("p99 > 10%", (0.05, 0.2), None),
        ("p99 > 10%", (-0.5, 0.10), False),
    ],
)
def test_the_whole_interval_must_lie_on_one_side(text, interval, shown):
    assert parse_limit(text).shown(interval) is shown


TEN = [1000.0 + step for step in (0, 3, -3, 2, -2, 1, -1, 4, -4, 0)]


def result(text, change, blocks=6, **others):
    """What is held of a limit when all of the second subject's metrics are so many times the first's."""
    values = dict.fromkeys(("ok_per_s", "service_ok_p99"), TEN[:blocks])
    changed = {name: [change * value for value in TEN[1 : blocks + 1]] for name in values} | others
    match = Match(measured(cell_of("a+hello"), **values), measured(cell_of("b+hello"), **changed))
    limit = parse_limit(text)
    (load,) = compared_loads([match], True, Terms())
    found = held(limit, load)
    assert (found.limit, found.load) == (text, load.load)
    return found


@pytest.mark.parametrize(
    ("change", "shown", "reason"),
    [
        (0.9, True, "shown to be beyond it"),
        (1.0, False, "shown to be within it"),
        (0.95, None, "not shown either way"),
    ],
)
def test_a_limit_is_held_against_the_interval_of_its_metric(change, shown, reason):
    found = result("rps < -5%", change)
    assert (found.metric, found.shown, found.reason) == ("ok_per_s", shown, reason)


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_below_five_blocks_a_limit_is_not_shown_either_way(blocks):
    found = result("rps < -5%", 0.5, blocks)
    words = f"{blocks} blocks are too few" if blocks > 1 else "1 common blocks: no interval"
    assert (found.metric, found.shown, found.reason) == ("ok_per_s", None, words)


def test_of_the_metrics_that_a_limit_means_the_first_that_there_is_counts():
    assert result("p99 > 10%", 1.5).metric == "service_ok_p99"
    assert result("p99 > 10%", 1.5).shown is True


def test_what_one_side_lacks_is_not_shown():
    found = result("rps < -5%", 0.5, ok_per_s=[Missing("x")] * 6)
    assert (found.metric, found.shown, found.reason) == ("ok_per_s", None, "x")

"""Trials that fail are tested against the subject that fails least, and failed requests told by class."""

from dataclasses import replace
from random import Random

import pytest

from cells import cell_of, measured
from prony.figures.account import Carried, Tally, ending_named
from prony.figures.statistics.failure_rates import Failures, compare_failures
from prony.reading.failures import failed_by_class, failure_tests

TEN = [1000.0] * 10


def cell(name, failed=0, ok=10):
    return measured(cell_of(f"{name}+hello"), failed, ok_per_s=TEN[:ok])


def test_each_that_fails_more_often_is_tested_against_the_one_that_fails_least():
    found = failure_tests([cell("a", 1, 9), cell("b", 0), cell("c", 9, 1), cell("d", 0)])
    assert [(one.name, one.against) for one in found] == [("a+hello", "b+hello"), ("c+hello", "b+hello")]
    few, many = found
    assert (few.count, many.count, many.least) == (Failures(1, 10), Failures(9, 10), Failures(0, 10))
    # Of two it is Fisher's, and more where others fail as well.
    assert compare_failures(Failures(9, 10), Failures(0, 10)).p_value < many.p_value < 0.0002
    assert (few.level, many.level, few.shown, many.shown) == (0.05, 0.05, False, True)


def test_of_eight_equal_ones_none_is_shown_to_fail_more_often_in_19_of_20_studies():
    # The one that fails least is chosen from the data: seven tests against it found one in 10 of 100.
    random, studies, shown = Random(1), 300, 0
    summaries = [measured(cell_of("any+hello"), k, ok_per_s=[1000.0] * (40 - k)) for k in range(41)]
    for _ in range(studies):
        failed = [sum(random.random() < 0.5 for _ in range(40)) for _ in range(8)]
        found = failure_tests([replace(summaries[one], name=str(k)) for k, one in enumerate(failed)])
        shown += any(one.shown for one in found)
    assert shown / studies <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_where_none_fails_or_none_ran_nothing_is_tested():
    assert failure_tests([cell("a"), cell("b")]) == ()
    assert failure_tests([measured(cell_of("a+hello"))]) == ()


@pytest.mark.parametrize(
    ("account", "told"),
    [
        ({}, []),
        ({"bad_status 503": 5}, [(("bad_status 503",), 5)]),
        (
            {"eof": 1, "reset": 5, "dns": 5, "tls": 2, "short_body": 3},
            [(("dns",), 5), (("reset",), 5), (("short_body",), 3), (("tls", "eof"), 3)],
        ),
        (
            {"eof": 1, "reset": 5, "tls": 2, "short_body": 3},
            [(("reset",), 5), (("short_body",), 3), (("tls",), 2), (("eof",), 1)],
        ),
    ],
)
def test_failed_requests_are_told_by_class_the_most_first_and_the_rarest_together(account, told):
    failed = {ending_named(key): count for key, count in account.items()}
    counted = replace(cell("a"), account=Tally(100, 90, failed))
    found = failed_by_class(counted)
    assert [(one.requests, one.share) for one in found] == [(count, count / 100) for _, count in told]
    assert [tuple(ending.key for ending in one.endings) for one in found] == [keys for keys, _ in told]


@pytest.mark.parametrize(("carried", "expected"), [(None, None), (Carried(), 0)])
def test_what_was_carried_in_is_unknown_where_the_generator_does_not_report_it(carried, expected):
    counted = replace(cell("a"), account=Tally(100, 95, {ending_named("eof"): 5}, carried))
    (found,) = failed_by_class(counted)
    assert found.carried_in == expected

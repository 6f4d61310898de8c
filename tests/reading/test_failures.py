"""Trials that fail are tested against the subject that fails least, and failed requests told by class."""

from dataclasses import replace

import pytest

from cells import cell_of, measured
from prony.analysis.account import Carried, Tally, ending_named
from prony.analysis.failure_rates import Failures, compare_failures
from prony.reading.failures import failed_by_class, failure_tests

TEN = [1000.0] * 10


def cell(name, failed=0, ok=10):
    return measured(cell_of(f"{name}+hello"), failed, ok_per_s=TEN[:ok])


def test_each_that_fails_more_often_is_tested_against_the_one_that_fails_least():
    found = failure_tests([cell("a", 1, 9), cell("b", 0), cell("c", 9, 1), cell("d", 0)])
    assert [(one.name, one.against) for one in found] == [("a+hello", "b+hello"), ("c+hello", "b+hello")]
    few, many = found
    assert (few.count, many.count, many.least) == (Failures(1, 10), Failures(9, 10), Failures(0, 10))
    assert many.p_value == compare_failures(Failures(9, 10), Failures(0, 10)).p_value
    # Holm: the smaller of two p-values is held to half of the level.
    assert (few.level, many.level, few.shown, many.shown) == (0.05, 0.025, False, True)


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

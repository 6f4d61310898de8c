"""Who is best: in which metric, by which ratios, and what is said where nobody is."""

from math import log

import pytest

from cells import cell_of, measured
from prony.figures.answer import Answer, answer, criterion, log_ratios, mean_of
from prony.figures.missing import Missing
from prony.model.workload import ClosedLoop, OpenLoop

SIX = [1000.0, 1003.0, 997.0, 1002.0, 998.0, 1001.0]


def cell(name, loop=None, failed=0, **metrics):
    return measured(cell_of(f"{name}+hello", loop), failed, **metrics)


def test_log_ratios_are_of_the_blocks_in_which_both_have_a_figure_above_zero():
    first = cell("a", ok_per_s=[2.0, 2.0, Missing("x"), 0.0, 4.0, 0.5])
    second = cell("b", ok_per_s=[1.0, Missing("x"), 3.0, 2.0, 0.0, 0.25, 9.0])
    assert log_ratios(first, second, "ok_per_s") == (log(0.5), log(0.5))


@pytest.mark.parametrize(("values", "mean"), [([2.0, 8.0, Missing("x")], 4.0), ([2.0, 0.0], 0.0), ([], None)])
def test_the_geometric_mean_is_of_the_values_that_there_are(values, mean):
    assert mean_of(cell("a", ok_per_s=values), "ok_per_s") == (mean and pytest.approx(mean))


def test_throughput_decides_in_a_closed_loop_and_in_an_open_one_the_tail_that_all_have():
    both = {"ok_per_s": SIX, "response_ok_p95": SIX}
    assert criterion([cell("a", ClosedLoop(1), **both)]) == "ok_per_s"
    assert criterion([cell("a", OpenLoop(1), response_ok_p99=SIX, **both)]) == "response_ok_p99"
    tails = [cell("a", OpenLoop(1), response_ok_p99=SIX, **both), cell("b", OpenLoop(1), **both)]
    assert criterion(tails) == "response_ok_p95"
    assert criterion([]) is None


def test_the_best_leads_and_those_that_cannot_be_told_apart_tie_with_it():
    speeds = (("a", 1), ("b", 2.0001), ("c", 2))
    cells = [cell(name, ok_per_s=[k * value for value in SIX]) for name, k in speeds]
    found = answer(cells)
    assert (found.metric, found.leader, found.ties) == ("ok_per_s", "b+hello", ("c+hello",))
    assert (found.blocks, found.decided, found.reason) == (6, True, None)
    assert set(found.comparisons) == {"a+hello", "c+hello"}


def test_where_the_first_are_exactly_equal_nobody_leads():
    found = answer([cell(name, ok_per_s=[k * value for value in SIX]) for name, k in (("a", 1), ("b", 1))])
    assert (found.leader, found.ties) == (None, ("a+hello", "b+hello"))
    assert found.reason == "the first are exactly equal"


def test_in_an_open_loop_the_lowest_leads():
    cells = [
        cell(name, OpenLoop(1), response_ok_p99=[k * value for value in SIX])
        for name, k in (("a", 2), ("b", 1))
    ]
    found = answer(cells)
    assert (found.metric, found.leader, found.ties) == ("response_ok_p99", "b+hello", ())


def test_below_five_common_blocks_one_only_leads():
    found = answer([cell("a", ok_per_s=SIX[:4]), cell("b", ok_per_s=[2 * value for value in SIX[:4]])])
    assert (found.leader, found.ties, found.blocks, found.decided) == ("b+hello", (), 4, False)


def test_one_alone_leads_by_all_its_blocks_and_is_said_to_be_alone():
    found = answer([cell("a", ok_per_s=SIX)])
    assert found.alone
    assert (found.leader, found.ties, found.blocks, found.decided) == ("a+hello", (), 6, True)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((), "no subject qualifies"),
        ((cell("a", failed=3, ok_per_s=SIX),), "no subject qualifies"),
        ((cell("a", failed=3),), "no trial counts"),
        ((cell("a", OpenLoop(1), ok_per_s=SIX),), "no latency that all qualified subjects have"),
    ],
)
def test_where_nobody_is_best_it_says_why(cells, reason):
    found = answer(cells)
    assert found == Answer(None, None, reason=reason)
    assert (found.ties, found.blocks, found.decided, found.comparisons) == ((), 0, False, {})

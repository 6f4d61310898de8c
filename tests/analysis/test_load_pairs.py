"""Two loads in alternating windows: what is told apart, and what is not."""

from random import Random

import pytest

from golden import build
from prony.analysis.compare import Verdict
from prony.analysis.load_pairs import LoadPair, compare_load_pairs

MS = 1_000_000
CLOSED = build.Workload(build.ClosedLoop(10), build.DurationStop(2 * build.SECOND))
OPEN = build.Workload(build.OpenLoop(1000.0), build.DurationStop(2 * build.SECOND))


def window(workload, count, latency_ns, errors=None):
    # Some are slower, so that there is a distribution.
    times = [round(latency_ns * (1 + k % 7 / 10)) for k in range(count)]
    return build.recording(workload, times, errors)


def pairs(workload, ratio, drift=0.2, noise=0.01, number=10, errors=None):
    """Pairs on a machine that drifts: the second side has ``ratio`` times the requests, or the latency."""
    random = Random(3)
    found = []
    for _ in range(number):
        speed = 1 + drift * random.random()
        first, second = (side * speed * (1 + noise * random.gauss(0, 1)) for side in (1.0, ratio))
        if workload is CLOSED:
            both = (window(CLOSED, round(2000 * one), 5 * MS, errors) for one in (first, second))
        else:
            both = (window(OPEN, 2000, 5 * MS * one, errors) for one in (first, second))
        found.append(LoadPair(*both, second_began=random.random() < 0.5))
    return found


def verdicts(found):
    return {one.metric: one.comparison.verdict for one in found.figures}


def test_a_difference_smaller_than_the_drift_is_told_apart():
    found = compare_load_pairs(pairs(CLOSED, 1.1))
    assert found.figures[0].metric == "ok_per_s"
    assert found.figures[0].comparison.verdict is Verdict.HIGHER
    low, high = found.figures[0].comparison.low, found.figures[0].comparison.high
    assert low < 0.1 < high
    assert high - low < 0.1


def test_two_that_are_alike_are_not_told_apart():
    assert verdicts(compare_load_pairs(pairs(CLOSED, 1.0, noise=0.005)))["ok_per_s"] is Verdict.EQUIVALENT
    assert verdicts(compare_load_pairs(pairs(CLOSED, 1.0, noise=0.2)))["ok_per_s"] is Verdict.NOT_SHOWN


def test_in_an_open_loop_the_tail_comes_first_and_the_rate_is_not_compared():
    found = compare_load_pairs(pairs(OPEN, 1.3))
    assert [one.metric for one in found.figures] == ["response_ok_p99", "response_ok_p50", "response_ok_mean"]
    assert set(verdicts(found).values()) == {Verdict.HIGHER}


def test_a_figure_that_is_missing_says_why():
    few = [LoadPair(window(OPEN, 100, MS), window(OPEN, 100, MS), second_began=False) for _ in range(6)]
    tail = compare_load_pairs(few).figures[0]
    assert (tail.pairs, tail.first, tail.comparison.verdict) == (0, None, Verdict.TOO_FEW)
    assert tail.reason == "fewer than 10 requests lie above it"


def test_the_errors_of_all_windows_are_added_and_disqualify():
    found = compare_load_pairs(pairs(CLOSED, 1.0, errors={"reset": 30}))
    assert found.first.errors == found.second.errors == 300
    assert not found.first.is_qualified
    assert compare_load_pairs(pairs(CLOSED, 1.0)).first.is_qualified


def test_no_pair_at_all_is_no_verdict():
    found = compare_load_pairs([])
    assert (found.pairs, found.first.requests) == (0, 0)
    assert set(verdicts(found).values()) == {Verdict.TOO_FEW}


@pytest.mark.parametrize("number", [1, 4])
def test_with_fewer_than_five_pairs_there_is_no_verdict(number):
    found = compare_load_pairs(pairs(CLOSED, 2.0, number=number))
    assert verdicts(found)["ok_per_s"] is Verdict.TOO_FEW

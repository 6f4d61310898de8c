"""Two loads in alternating windows: what is told apart, and what is not."""

from dataclasses import replace
from random import Random

import pytest

from golden import build
from prony.figures.load_pairs import LoadPair, LoadSide, PairedLoads, compare_load_pairs, resemblance
from prony.figures.statistics.compare import Verdict
from prony.figures.statistics.effects import paired
from prony.figures.versus import Family
from recordings import with_parts

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


def compare(pairs, workload=CLOSED, dropped=0):
    sides = (LoadSide(f"http://{name}/", workload, None) for name in "ab")
    return compare_load_pairs(PairedLoads(*sides, pairs=20, seed=7), pairs, dropped)


def figures(found):
    return found.loads[0].metrics


def verdicts(found):
    return {name: one.comparison.verdict for name, one in figures(found).items() if one.comparison}


def test_a_difference_smaller_than_the_drift_is_told_apart():
    found = compare(pairs(CLOSED, 1.1, number=20))
    rate = figures(found)["ok_per_s"].comparison
    assert (found.loads[0].deciding[0], rate.verdict) == ("ok_per_s", Verdict.HIGHER)
    low, high = rate.low, rate.high
    assert low < 0.1 < high
    assert high - low < 0.1


def test_two_that_are_alike_are_not_told_apart():
    assert verdicts(compare(pairs(CLOSED, 1.0, number=30)))["ok_per_s"] is Verdict.EQUIVALENT
    assert verdicts(compare(pairs(CLOSED, 1.0, noise=0.2)))["ok_per_s"] is Verdict.NOT_SHOWN


def test_in_an_open_loop_the_tail_decides():
    found = compare(pairs(OPEN, 1.3), OPEN)
    assert found.loads[0].deciding[0] == "response_ok_p99"
    times = ("response_ok_p50", "response_ok_p99", "response_ok_mean")
    assert {verdicts(found)[name] for name in times} == {Verdict.HIGHER}


def test_a_figure_that_is_missing_says_why():
    few = [LoadPair(window(OPEN, 100, MS), window(OPEN, 100, MS), second_began=False) for _ in range(6)]
    found = compare(few, OPEN)
    tail = figures(found)["response_ok_p99"]
    assert (tail.family, tail.first, tail.comparison) == (Family.PRIMARY, None, None)
    assert tail.reason == "fewer than 10 requests lie above it"
    assert found.loads[0].deciding[0] == "response_ok_p50"


def test_the_errors_of_all_windows_are_added_and_disqualify():
    found = compare(pairs(CLOSED, 1.0, errors={"reset": 30}))
    assert [side.errors for side in found.sides] == [300, 300]
    rate = figures(found)["ok_per_s"]
    assert (rate.comparison, rate.reason) == (None, "speed does not qualify: its requests fail")
    assert figures(compare(pairs(CLOSED, 1.0)))["ok_per_s"].reason is None


def test_the_windows_in_which_the_generator_may_have_been_the_limit_are_counted_for_each_side():
    found = pairs(CLOSED, 1.0)
    busy = with_parts(found[3].second, generator=build.told_limit(build.BUSY))
    found[3] = replace(found[3], second=busy)
    assert [side.limited for side in compare(found).sides] == [0, 1]


def test_no_pair_at_all_is_no_verdict():
    found = compare([])
    assert (found.windows.pairs, [side.requests for side in found.sides]) == (0, [0, 0])
    assert verdicts(found) == {}
    assert figures(found)["ok_per_s"].reason == "speed does not qualify: no trial ran"


@pytest.mark.parametrize("number", [2, 4])
def test_with_fewer_than_five_pairs_there_is_no_verdict(number):
    found = compare(pairs(CLOSED, 2.0, number=number))
    assert verdicts(found)["ok_per_s"] is Verdict.TOO_FEW


# --- pairs that resemble their neighbours -----------------------------------------------------------------


def lasting(random, count, correlation):
    """The state of one side, window by window."""
    values = [random.gauss(0, 1)]
    for _ in range(count - 1):
        values.append(correlation * values[-1] + (1 - correlation**2) ** 0.5 * random.gauss(0, 1))
    return values


def misses(number, correlation, studies=1000):
    """Of comparisons of equal loads whose states last, the share whose interval does not hold 0."""
    random, found = Random(f"{number} {correlation}"), 0
    for _ in range(studies):
        both = (lasting(random, number, correlation) for _ in range(2))
        logs = [0.05 * (one - other) for one, other in zip(*both, strict=True)]
        low, high = paired(logs, resemblance(logs).widening).interval(0.05)
        found += not low <= 0 <= high
    return found / studies


@pytest.mark.parametrize(
    ("number", "correlation", "most"),
    [(10, 0.0, 0.05), (10, 0.5, 0.05), (10, 0.8, 0.10), (30, 0.5, 0.05), (30, 0.8, 0.10), (6, 0.5, 0.05)],
)
def test_states_that_last_for_several_windows_are_no_difference(number, correlation, most):
    # As if pairs were independent, 20 of 100 intervals missed at 0.5, and 47 at 0.8.
    assert misses(number, correlation) <= most + 3 * (most * (1 - most) / 1000) ** 0.5


def test_the_resemblance_of_pairs_is_as_defined():
    found = resemblance([0.0, 1.0] * 5)
    assert (found.correlation, found.most, found.widening) == (-1.0, 0.0, 1.0)
    # r = 0.05 of twenty, for of 19 neighbours 10 are alike: (0.05 + 0.05) / (1 - 0.15), and 0.2 more.
    found = resemblance([0.0, 0.0, 1.0, 1.0] * 5)
    assert (found.correlation, found.most) == (pytest.approx(0.1 / 0.85), pytest.approx(0.1 / 0.85 + 0.2))
    inflation = 1 + 2 * sum((1 - j / 20) * found.most**j for j in range(1, 20))
    assert found.widening == pytest.approx((inflation / (1 - (inflation - 1) / 19)) ** 0.5)
    assert resemblance([0.0] * 10 + [1.0] * 10).most == 0.9
    assert resemblance([0.0] * 4) is None
    assert resemblance([0.0] * 5).correlation == 0.0


def test_the_interval_of_figures_is_as_wide_as_said():
    found = compare(pairs(CLOSED, 1.0, number=30))
    assert found.windows.resemblance["ok_per_s"].widening == pytest.approx(1.5, abs=0.1)
    assert compare(pairs(CLOSED, 1.0, number=4)).windows.resemblance == {}


@pytest.mark.parametrize(("noise", "then"), [(0.01, None), (0.2, "the same command with `--pairs 40`")])
def test_what_is_open_names_what_may_decide_it(noise, then):
    assert compare(pairs(CLOSED, 1.1, noise=noise, number=20)).then == then

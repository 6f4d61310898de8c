"""The best in each measure: who counts, who ties, and what letters say."""

from dataclasses import replace

import pytest

from golden import build
from prony.figures.missing import Missing
from prony.figures.standings import MEASURES, standing, standings
from prony.figures.statistics.compare import Terms
from prony.figures.summary import cell_trimmed_mean, figures, summarise_cell, trimmed_mean
from prony.model.plan import Cell
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop, DurationStop, Workload

LOAD = Workload(ClosedLoop(4), DurationStop(2 * build.SECOND))
THROUGHPUT, LATENCY, MEAN, ERRORS, CPU, MEMORY = MEASURES


def cell(number, speed, blocks=6, mib=50, lost=0):
    own = Cell(number, build.subject(f"s{number}+hello"), LOAD)
    trials = [
        figures(
            build.trial(
                *(own, block, 0),
                [1_000_000] * int(speed * (1 + 0.001 * (block + number) % 3)),
                rss_mib=mib,
                errors={"reset": lost} if lost else {},
            )
        )
        for block in range(blocks)
    ]
    return summarise_cell(own, trials)


def mixed(number, lost_by_block):
    """A cell of which each trial loses so many of some 1000 requests."""
    own = Cell(number, build.subject(f"s{number}+hello"), LOAD)
    trials = [
        figures(build.trial(own, block, 0, [1_000_000] * 1000, errors={"reset": lost} if lost else {}))
        for block, lost in enumerate(lost_by_block)
    ]
    return summarise_cell(own, trials)


def test_two_that_are_alike_share_a_letter_and_the_slower_one_has_its_own():
    found = standing([cell(1, 1000), cell(2, 1001), cell(3, 500)], THROUGHPUT, Terms())
    assert set(found.best) == {"s1+hello", "s2+hello"}
    assert found.letters == {"s1+hello": "a", "s2+hello": "a", "s3+hello": "b"}
    assert found.decided


def test_those_behind_the_first_are_told_apart_beyond_the_margin_only():
    cells = [cell(1, 1000), cell(2, 550), cell(3, 500)]
    told = {margin: standing(cells, THROUGHPUT, Terms(margin=margin)).letters for margin in (0.02, 0.2)}
    assert told[0.02] == {"s1+hello": "a", "s2+hello": "b", "s3+hello": "c"}
    assert told[0.2] == {"s1+hello": "a", "s2+hello": "b", "s3+hello": "b"}


def test_few_blocks_have_a_first_and_no_letters():
    found = standing([cell(1, 1000, 3), cell(2, 500, 3)], THROUGHPUT, Terms())
    assert (found.best, found.letters, found.blocks) == (("s1+hello",), None, 3)


def test_one_with_too_few_blocks_does_not_hold_up_the_others():
    found = standing([cell(1, 1000), cell(2, 500), cell(3, 2000, 3)], THROUGHPUT, Terms())
    assert (found.best, found.left_out) == (("s1+hello",), ("s3+hello",))


def test_who_loses_requests_is_best_in_nothing():
    cells = [cell(1, 1000, lost=200, mib=10), cell(2, 500, mib=50), cell(3, 400, mib=60)]
    for measure in (THROUGHPUT, ERRORS, MEMORY):
        assert "s1+hello" not in standing(cells, measure, Terms()).best
        assert "s2+hello" in standing(cells, measure, Terms()).best


@pytest.mark.parametrize("measure", [THROUGHPUT, CPU, MEMORY])
def test_the_only_one_that_qualifies_is_best_of_nothing(measure):
    found = standing([cell(1, 1000, lost=200), cell(2, 500)], measure, Terms())
    assert (found.best, found.letters) == ((), None)
    assert found.reason == "nobody else to compare with"


def test_where_all_lose_requests_nobody_has_the_fewest_errors():
    found = standing([cell(1, 10, lost=1000), cell(2, 10, lost=900)], ERRORS, Terms())
    assert (found.best, found.reason) == ((), "all lose more than 0.1 %")


def test_a_closed_loop_has_no_best_latency():
    found = standing([cell(1, 1000), cell(2, 500)], LATENCY, Terms())
    assert (found.metric, found.best) == (None, ())
    assert "open loop" in found.reason


def test_all_without_errors_are_best_together():
    found = standing([cell(1, 1000), cell(2, 500), cell(3, 500, lost=100)], ERRORS, Terms())
    assert set(found.best) == {"s1+hello", "s2+hello"}
    assert found.letters["s3+hello"] not in found.letters["s1+hello"]


def test_a_little_more_and_a_little_less_than_what_is_allowed_are_not_separated():
    # 0.1 % of all requests: more in two trials of six, and none in the others.
    few = mixed(2, lost_by_block=(3, 3, 0, 0, 0, 0))
    found = standing([cell(1, 1000), few], ERRORS, Terms())
    assert few.error_ratio > 0.0009
    assert found.letters == {"s1+hello": "a", "s2+hello": "a"}


def test_where_the_first_is_not_separated_from_one_that_loses_too_many_nobody_is_best():
    bad = mixed(2, lost_by_block=(100, 100, 0, 0, 0, 0))
    found = standing([cell(1, 1000), bad], ERRORS, Terms())
    assert (bad.unqualified, found.best) == ("its requests fail", ())
    assert found.reason == "not separated by the number of trials that lose requests"
    assert found.letters == {"s1+hello": "a", "s2+hello": "a"}


def test_five_trials_of_each_of_eight_separate_the_one_that_loses_requests():
    clean = [cell(k, 1000, blocks=5) for k in range(1, 8)]
    found = standing([*clean, cell(8, 1000, blocks=5, lost=100)], ERRORS, Terms())
    assert set(found.best) == {one.name for one in clean}
    assert found.letters["s8+hello"] == "b"


def test_a_server_that_dies_is_not_best_in_errors():
    dead = summarise_cell(
        cell(2, 1000).cell,
        [
            figures(build.trial(cell(2, 1000).cell, block, 0, [], outcome=Failed("load", "died")))
            for block in range(4)
        ]
        + [figures(build.trial(cell(2, 1000).cell, block, 0, [1_000_000] * 2000)) for block in range(4, 10)],
    )
    found = standing([cell(1, 1000, blocks=10), dead, cell(3, 1000, blocks=10)], ERRORS, Terms())
    assert (found.ranked[-1], found.best) == ("s2+hello", ())


def test_a_measure_that_one_of_them_has_not_has_no_best_and_a_reason():
    lacking = replace(
        cell(2, 500), metrics={**cell(2, 500).metrics, "pss_end": Missing("x"), "rss_peak": Missing("x")}
    )
    found = standing([cell(1, 1000), lacking], MEMORY, Terms())
    assert (found.measure, found.metric, found.reason) == ("memory", None, "not all subjects have it")
    assert (found.ranked, found.best, found.left_out) == ((), (), ())
    assert (found.letters, found.blocks, found.omnibus_p) == (None, 0, None)


def test_where_nobody_qualifies_there_is_no_best_and_a_reason():
    found = standing([cell(1, 1000, lost=500)], LATENCY, Terms())
    assert (found.metric, found.best, found.reason) == (None, (), "no subject qualifies")
    own = Cell(9, build.subject("s9+hello"), LOAD)
    failed = figures(build.trial(own, 0, 0, [], outcome=Failed("start", "x")))
    none = summarise_cell(own, [failed])
    assert all(one.metric is None for one in standings([none], Terms()))


def test_the_trimmed_mean_drops_one_trial_on_each_side():
    assert trimmed_mean([0.0, 126_813.0, 122_952.0, 1.0]) == (122_952.0 + 1.0) / 2
    assert isinstance(trimmed_mean([1.0, 2.0]), Missing)
    assert cell_trimmed_mean(cell(1, 1000, 1), "ok_per_s") == Missing(
        "1 trials; none is left without the highest and the lowest"
    )


def test_whoever_is_alone_has_the_fewest_errors_of_nobody():
    found = standing([cell(1, 1000)], ERRORS, Terms())
    assert (found.metric, found.best, found.reason) == ("error_ratio", (), "nobody else to compare with")

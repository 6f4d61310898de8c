"""Two subjects are compared at each load and in each metric that both have, or it is told why not."""

from dataclasses import replace
from math import log

import pytest

from cells import cell_of, measured
from prony.figures.missing import Missing
from prony.figures.statistics.compare import Terms, Verdict, compare
from prony.figures.statistics.failure_rates import Failures
from prony.figures.versus import Family, Match, compared_loads, differing_parts, matches
from prony.model.sandbox import SandboxChoice
from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop

SIX = [1000.0, 1003.0, 997.0, 1002.0, 998.0, 1001.0]


def times(factor, values=SIX):
    """Values of a second subject: so many times those of the first, block by block, within 0.2 %."""
    return [factor * value * (1 + 0.001 * (k % 3 - 1)) for k, value in enumerate(values)]


def ratios(second, first=SIX):
    return [log(above / below) for below, above in zip(first, second, strict=True)]


def compared(first, second, is_paired=True, terms=None, primary=()):
    (found,) = compared_loads([Match(first, second)], is_paired, terms or Terms(), primary)
    return found


# --- which cells ------------------------------------------------------------------------------------------


def test_cells_match_that_have_the_same_load_and_generator():
    first = [measured(cell_of("a+hello", ClosedLoop(n)), ok_per_s=SIX) for n in (10, 100)]
    second = [measured(cell_of("b+hello", ClosedLoop(n)), ok_per_s=SIX) for n in (100, 10)]
    other = measured(cell_of("b+hello", engine=EngineChoice("wrk")), ok_per_s=SIX)
    found = matches(first, [*second, other], alike=False)
    assert found == (Match(first[0], second[1]), Match(first[1], second[0]))


def test_of_two_archives_those_of_one_subject_match():
    first = [measured(cell_of(name), ok_per_s=SIX) for name in ("a+hello", "b+hello")]
    second = [measured(cell_of(name), ok_per_s=times(2)) for name in ("b+hello", "a+hello")]
    found = matches(first, second, alike=True)
    assert found == (Match(first[0], second[1]), Match(first[1], second[0]))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({}, ()),
        ({"sandbox": SandboxChoice(cpu_quota=1.5)}, ("sandbox",)),
        ({"seconds": 4}, ("window",)),
        ({"path": "/else"}, ("request",)),
    ],
)
def test_what_differs_beside_the_subjects_is_named(other, told):
    match = Match(measured(cell_of("a+hello")), measured(cell_of("b+hello", **other)))
    assert differing_parts(match) == told


def test_figures_of_rounds_and_of_own_windows_are_of_two_methods():
    cell = measured(cell_of("a+hello"), ok_per_s=SIX)
    in_rounds = replace(cell, counted=tuple(replace(one, by_round={0: 1.0}) for one in cell.counted))
    assert differing_parts(Match(cell, in_rounds)) == ("rounds of short windows",)
    assert differing_parts(Match(in_rounds, in_rounds)) == ()


# --- what is said of them ---------------------------------------------------------------------------------


def test_within_an_archive_a_comparison_is_that_of_the_log_ratios_by_block():
    first = measured(cell_of("a+hello"), ok_per_s=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=times(1.5))
    found = compared(first, second)
    (row,) = found.metrics.values()
    assert (list(found.metrics), row.family, row.reason) == (["ok_per_s"], Family.PRIMARY, None)
    assert row.comparison == compare(ratios(times(1.5)))
    assert row.comparison.verdict is Verdict.HIGHER
    assert (found.first, found.second) == ("a+hello", "b+hello")


def test_between_archives_it_is_welchs_of_the_logarithms():
    first, second = (measured(cell_of("a+hello"), ok_per_s=values) for values in (SIX, times(1.5)[:5]))
    found = compared(first, second, is_paired=False)
    row = found.metrics["ok_per_s"]
    assert row.comparison.method == "Welch on logarithms, unpaired"
    assert (row.comparison.blocks, row.comparison.effect) == (5, pytest.approx(0.5, rel=2e-3))


@pytest.mark.parametrize(
    ("loop", "metric"), [(ClosedLoop(10), "ok_per_s"), (OpenLoop(100), "response_ok_p99")]
)
def test_what_decides_is_primary_and_all_else_a_screening(loop, metric):
    names = ("ok_per_s", "response_ok_p99", "pss_end")
    first, second = (
        measured(cell_of(name, loop), **dict.fromkeys(names, values))
        for name, values in (("a+hello", SIX), ("b+hello", times(1.5)))
    )
    rows = compared(first, second).metrics
    assert [name for name, row in rows.items() if row.family is Family.PRIMARY] == [metric]


def test_metrics_that_the_comparison_is_made_for_are_one_family_over_all_loads():
    found = [
        Match(*(measured(cell_of(name, ClosedLoop(n)), ok_per_s=values) for name, values in sides.items()))
        for n, sides in (
            (10, {"a+hello": SIX, "b+hello": times(1.5)}),
            (100, {"a+hello": SIX, "b+hello": times(1)}),
        )
    ]
    loads = compared_loads(found, True, Terms())
    rows = [load.metrics["ok_per_s"] for load in loads]
    # Holm: the smaller of two p-values is held to half of the level.
    assert [row.comparison.level for row in rows] == [0.025, 0.05]
    assert [row.comparison.verdict for row in rows] == [Verdict.HIGHER, Verdict.EQUIVALENT]
    assert [load.load["connections"] for load in loads] == [10, 100]


def test_screenings_do_not_take_from_the_level_of_what_was_asked():
    first = measured(cell_of("a+hello"), ok_per_s=SIX, pss_end=SIX, rss_peak=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=times(1.5), pss_end=times(1.5), rss_peak=times(1.0))
    rows = compared(first, second).metrics
    assert rows["ok_per_s"].comparison.level == 0.05
    # Benjamini and Hochberg: one of two is found.
    assert {rows[name].comparison.level for name in ("pss_end", "rss_peak")} == {0.025}


def test_metrics_that_are_asked_for_take_the_place_of_the_one_that_decides():
    first = measured(cell_of("a+hello"), ok_per_s=SIX, pss_end=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=times(1.5), pss_end=times(1.5))
    rows = compared(first, second, primary=["pss_end"]).metrics
    assert (rows["ok_per_s"].family, rows["pss_end"].family) == (Family.SCREENING, Family.PRIMARY)


def test_the_terms_are_those_of_all_loads_and_metrics():
    first = measured(cell_of("a+hello"), ok_per_s=SIX, pss_end=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=times(1.05), pss_end=times(1.05))
    for margin, verdict in ((0.02, Verdict.HIGHER), (0.2, Verdict.EQUIVALENT)):
        rows = compared(first, second, terms=Terms(margin=margin)).metrics
        assert {row.comparison.verdict for row in rows.values()} == {verdict}
    assert [row.comparison.level for row in rows.values()] == [0.05, 0.05]


# --- what cannot be said ----------------------------------------------------------------------------------


def test_a_metric_that_one_has_not_is_not_compared():
    first = measured(cell_of("a+hello"), ok_per_s=SIX, pss_end=SIX, rss_peak=[0.0] * 6)
    second = measured(cell_of("b+hello"), ok_per_s=SIX, rss_peak=SIX)
    assert list(compared(first, second).metrics) == ["ok_per_s"]


def test_a_speed_that_does_not_qualify_is_not_compared_and_says_why():
    first = measured(cell_of("a+hello"), ok_per_s=SIX, pss_end=SIX)
    second = measured(cell_of("b+hello"), lost=200, ok_per_s=SIX, pss_end=SIX)
    for sides in ((first, second), (second, first)):
        rows = compared(*sides).metrics
        assert rows["ok_per_s"].comparison is None
        assert rows["ok_per_s"].reason == "speed does not qualify: its requests fail"
        assert (rows["pss_end"].comparison.blocks, rows["pss_end"].reason) == (6, None)


@pytest.mark.parametrize(
    ("blocks", "is_paired", "reason"),
    [
        (1, True, "1 common blocks: no interval"),
        (1, False, "6 and 1 trials: no interval"),
        (2, True, None),
        (2, False, None),
    ],
)
def test_one_block_has_no_interval_and_two_have(blocks, is_paired, reason):
    first = measured(cell_of("a+hello"), ok_per_s=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=times(1.5)[:blocks])
    row = compared(first, second, is_paired).metrics["ok_per_s"]
    assert (row.reason, row.comparison is None) == (reason, reason is not None)


def test_a_value_that_is_missing_in_one_block_leaves_the_others():
    first = measured(cell_of("a+hello"), ok_per_s=SIX)
    second = measured(cell_of("b+hello"), ok_per_s=[*times(1.5)[:5], Missing("no request")])
    for is_paired in (True, False):
        row = compared(first, second, is_paired).metrics["ok_per_s"]
        assert row.comparison.blocks == 5


def test_trials_that_failed_are_counted_on_both_sides():
    first = measured(cell_of("a+hello"), failed=1, ok_per_s=SIX)
    second = measured(cell_of("b+hello"), failed=4, ok_per_s=SIX)
    found = compared(first, second, False).failed_trials
    assert (found.first, found.second) == (Failures(1, 7), Failures(4, 10))


@pytest.mark.parametrize(
    ("failed", "verdict"), [((0, 1), Verdict.SURVIVORS), ((1, 0), Verdict.HIGHER), ((0, 0), Verdict.HIGHER)]
)
def test_a_server_is_not_faster_by_the_trials_that_it_did_not_fail(failed, verdict):
    first = measured(cell_of("a+hello"), failed=failed[0], ok_per_s=[1000.0, 1001.0, 1002.0] * 3)
    second = measured(cell_of("b+hello"), failed=failed[1], ok_per_s=[1200.0, 1202.0, 1201.0] * 3)
    row = compared(first, second).metrics["ok_per_s"]
    assert row.comparison.verdict is verdict


def test_within_one_archive_failures_are_counted_in_the_blocks_that_both_have():
    # A bad hour, in which the first alone ran: both never fail in the ten blocks before it.
    first = measured(cell_of("a+hello"), failed=10, ok_per_s=[1000.0] * 10)
    second = measured(cell_of("b+hello"), ok_per_s=[1000.0] * 10)
    found = compared(first, second).failed_trials
    assert (found.first, found.second, found.differs) == (Failures(0, 10), Failures(0, 10), False)
    found = compared(first, second, False).failed_trials
    assert found.differs

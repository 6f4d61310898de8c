"""Planted effects: what is expected of them is told, verdicts are held against it, and power is counted."""

import pytest

from cells import cell_of, measured
from prony.figures.answer import log_ratios
from prony.figures.missing import Missing
from prony.figures.planted import (
    METRICS_PLANTED,
    Planted,
    Power,
    expected_effect,
    is_right,
    planted,
    work_path,
    work_us,
)
from prony.figures.statistics.compare import Comparison, Terms, Verdict, compare
from prony.model.exchange import Request
from prony.model.plan import Cell
from prony.model.workload import ClosedLoop, DurationStop, Workload

MARGIN = 0.02


def verdict(said, effect=0.05):
    return Comparison(10, effect, effect - 0.01, effect + 0.01, 0.05, 0.001, "paired t", said)


@pytest.mark.parametrize(
    ("said", "effect", "expected", "right"),
    [
        (Verdict.HIGHER, 0.05, 0.05, True),
        (Verdict.HIGHER, 0.05, 0.019, False),
        (Verdict.HIGHER, 0.05, -0.05, False),
        (Verdict.LOWER, -0.05, -0.05, True),
        (Verdict.LOWER, -0.05, 0.05, False),
        (Verdict.EQUIVALENT, 0.0, 0.019, True),
        (Verdict.EQUIVALENT, 0.0, 0.021, False),
        (Verdict.EQUIVALENT, 0.0, -0.021, False),
        (Verdict.TRIVIAL, 0.03, 0.05, True),
        (Verdict.TRIVIAL, -0.03, 0.05, False),
        (Verdict.NOT_SHOWN, 0.0, 0.05, None),
        (Verdict.TOO_FEW, 0.0, 0.05, None),
    ],
)
def test_a_verdict_is_right_wrong_or_says_nothing(said, effect, expected, right):
    assert is_right(verdict(said, effect), expected, MARGIN) is right


def test_the_margin_is_as_wide_for_less_as_for_more():
    # As verdicts have it: on the scale of logarithms 2 % more is 1.96 % less.
    assert is_right(verdict(Verdict.LOWER, -0.05), -0.0197, MARGIN)
    assert not is_right(verdict(Verdict.LOWER, -0.05), -0.0195, MARGIN)


def test_work_adds_to_the_time_that_a_request_takes_anyway():
    assert expected_effect("cpu_ns_per_request", 2_000_000, 500_000) == pytest.approx(0.25)
    assert expected_effect("ok_per_s", 500, 500_000) == pytest.approx(-0.2)
    with pytest.raises(ValueError, match="response_ok_p99"):
        expected_effect("response_ok_p99", 1.0, 1.0)
    assert len(METRICS_PLANTED) == 2


def cell(path):
    return Cell(0, None, Workload(ClosedLoop(1), DurationStop(1), Request(path=path)))


def test_the_request_says_how_much_work_it_asks_for():
    assert work_us(cell(work_path(1050))) == 1050
    assert [work_us(cell(path)) for path in ("/", "/cpu", "/cpu?us=x", "/cpu?us=5&more=1")] == [None] * 4


def test_ten_of_ten_studies_show_a_power_of_at_least_74_percent():
    # 0.05^(1/10)
    assert Power(5, found=10, wrong=0, studies=10).least == pytest.approx(0.741, abs=1e-3)
    assert Power(5, found=0, wrong=0, studies=10).least == 0


# --- what becomes of the plants ---------------------------------------------------------------------------

NOISE = [1 + 0.001 * step for step in (0, 3, -3, 2, -2, 1, -1, 4, -4, 0)]


def cell_with(work, cpu_us, name="a+hello", lost=0, shift=0):
    """A cell that asks for so much work; each request takes so much CPU time, and no more time than that."""
    noise = NOISE[shift:] + NOISE[:shift]
    cpu_ns = [1000 * cpu_us * one for one in noise]
    speed = [1e9 / one for one in cpu_ns]
    return measured(cell_of(name, path=work_path(work)), lost=lost, cpu_ns_per_request=cpu_ns, ok_per_s=speed)


def of(cells, terms=lambda _: Terms()):
    return {(one.metric, one.extra_us): one for one in planted(cells, terms)}


def test_a_plant_is_compared_with_the_cell_that_asks_for_the_least():
    base, more = cell_with(1000, 1250), cell_with(1100, 1350, shift=1)
    found = of([more, base])
    assert list(found) == [("cpu_ns_per_request", 100), ("ok_per_s", 100)]
    cpu, speed = found.values()
    assert (cpu.work_us, cpu.margin, cpu.reason) == (1000, 0.02, None)
    assert (cpu.expected, speed.expected) == (
        pytest.approx(0.08, rel=1e-4),
        pytest.approx(-0.08 / 1.08, rel=1e-4),
    )
    assert cpu.comparison == compare(log_ratios(base, more, "cpu_ns_per_request"))
    assert (cpu.comparison.verdict, speed.comparison.verdict) == (Verdict.HIGHER, Verdict.LOWER)
    assert (cpu.is_right, cpu.covers, abs(cpu.bias) < 1e-3) == (True, True, True)


def test_power_is_counted_in_studies_of_consecutive_blocks():
    found = of([cell_with(1000, 1250), cell_with(1100, 1350, shift=1)])["ok_per_s", 100]
    assert found.powers == (Power(5, 2, 0, 2), Power(10, 1, 0, 1))


@pytest.mark.parametrize(("cpu_us", "said"), [(1250, Verdict.EQUIVALENT), (1150, Verdict.LOWER)])
def test_studies_that_say_what_is_not_so_are_counted_as_wrong(cpu_us, said):
    found = of([cell_with(1000, 1250), cell_with(1100, cpu_us, shift=1)])["cpu_ns_per_request", 100]
    assert found.powers == (Power(5, 0, 2, 2), Power(10, 0, 1, 1))
    assert (found.comparison.verdict, found.is_right, found.covers) == (said, False, False)


def test_the_plants_of_a_metric_are_one_family():
    cells = [cell_with(1000, 1250), cell_with(1050, 1300, shift=1), cell_with(1100, 1350, shift=2)]
    levels = sorted(one.comparison.level for key, one in of(cells).items() if key[0] == "ok_per_s")
    assert levels == [0.025, 0.05]


def test_terms_are_those_of_the_number_of_blocks():
    margins = {5: 0.01, 10: 0.2}
    found = of(
        [cell_with(1000, 1250), cell_with(1100, 1350, shift=1)], lambda n: Terms(margin=margins.get(n, 0.5))
    )
    assert found["cpu_ns_per_request", 100].margin == 0.2
    assert [one.found for one in found["cpu_ns_per_request", 100].powers] == [2, 0]


@pytest.mark.parametrize("lost", [(200, 0), (0, 200)])
def test_a_cell_whose_requests_fail_is_not_compared_and_says_so(lost):
    found = of([cell_with(1000, 1250, lost=lost[0]), cell_with(1100, 1350, lost=lost[1])])
    for one in found.values():
        assert (one.comparison.blocks, one.reason, one.powers) == (0, "its requests fail", ())


def test_a_cell_whose_requests_fail_leaves_the_others_compared():
    found = of([cell_with(1000, 1250), cell_with(1050, 1300), cell_with(1100, 1350, lost=200)])
    assert {key: one.comparison.blocks for key, one in found.items()} == {
        (metric, extra): blocks for metric in METRICS_PLANTED for extra, blocks in ((50, 10), (100, 0))
    }


def test_cells_of_another_subject_and_those_without_work_are_left_out():
    base = cell_with(1000, 1250)
    other, idle = cell_with(1100, 1350, "b+hello"), measured(cell_of("a+hello"), ok_per_s=NOISE)
    assert of([base, other, idle]) == of([base]) == {}


def test_of_a_base_without_a_figure_nothing_is_expected():
    base = measured(cell_of("a+hello", path=work_path(1000)), ok_per_s=[Missing("x")] * 10)
    (speed,) = [
        one for one in planted([base, cell_with(1100, 1350)], lambda _: Terms()) if one.metric == "ok_per_s"
    ]
    assert (speed.expected, speed.bias, speed.covers, speed.is_right) == (None, None, None, None)
    known = Planted("ok_per_s", 1000, 100, None, verdict(Verdict.HIGHER), MARGIN)
    assert (known.bias, known.covers, known.is_right) == (None, None, None)


@pytest.mark.parametrize(("expected", "covers"), [(0.039, False), (0.045, True), (0.061, False)])
def test_an_interval_covers_what_lies_within_it(expected, covers):
    found = Planted("ok_per_s", 1000, 100, expected, verdict(Verdict.HIGHER, 0.05), MARGIN)
    assert (found.covers, found.bias) == (covers, pytest.approx(0.05 - expected))

"""Planted effects: what is expected of them is told, verdicts are held against it, and power is counted."""

import pytest

from prony.analysis.compare import Comparison, Verdict
from prony.analysis.planted import METRICS_PLANTED, Power, expected_effect, is_right, work_path, work_us
from prony.model import Cell, ClosedLoop, DurationStop, Request, Workload

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

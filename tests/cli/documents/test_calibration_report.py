"""What the report of a calibration says, and what `prony host` says of one."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from prony.cli.documents.calibration import calibration_document, change_words, host_document, summary
from prony.model.facts import Fingerprint
from prony.report.formats.terminal import TerminalReporter
from prony.study.calibration import Calibration, Change, Holding, PartFigure, PartResult

MONITORS = Change(
    *("the monitors", "not watched", "ok_per_s", 10, -0.004, -0.011, 0.003, 0.0125, "paired", "not shown")
)
TAIL = replace(MONITORS, metric="service_ok_p99", effect=None, low=None, high=None)
LIMITS = tuple(Holding(name, "absent", "not root") for name in ("memory", "pids"))
SAMPLING = (
    PartFigure("sampling 50 processes", "duration", 1_040_000, 1_000_000, 1_080_000, 40),
    PartFigure("sampling 50 at 2 Hz, of a core", "ratio", 0.00208, 0.002, 0.00216, 40),
)
CALIBRATION = Calibration(
    "abc",
    "AMD EPYC 7B13, 2 CPUs",
    "1.0",
    1_790_000_000,
    "10 blocks of 1.5 s windows",
    {
        "overheads": PartResult("What it costs", (MONITORS, TAIL), missing={"a control group": "not root"}),
        "sampler": PartResult("Sampling", figures=SAMPLING, notes=("2 of 40 trials were disturbed: cron",)),
        "limits": PartResult("Limits", holdings=(Holding("cpus", "enforced", "could not leave it"), *LIMITS)),
    },
)


def shown(document, width=80):
    out = io.StringIO()
    TerminalReporter(Console(file=out, width=width, highlight=False)).write(document)
    return out.getvalue()


@pytest.fixture(scope="module")
def text():
    return shown(calibration_document(CALIBRATION))


def test_a_cost_is_a_row_with_its_interval_and_verdict(text):
    row = next(line for line in text.splitlines() if "replies/s" in line)
    assert row.split("  ")[0] == "the monitors"
    assert "-0.4 %" in row
    assert "[-1.1 %, +0.3 %]" in row
    assert row.endswith("not shown")


def test_a_cost_that_was_not_measured_is_a_dash_and_never_nothing(text):
    row = next(line for line in text.splitlines() if "p99" in line)
    assert row.count("\u2014") == 2
    assert str(change_words(TAIL, "")) == "p99 not measured"


def test_each_reason_is_told_once(text):
    assert "memory, pids: absent: not root" in text
    assert "cpus: enforced: could not leave it" in text
    assert "a control group: not measured: not root" in text
    assert "2 of 40 trials were disturbed: cron" in text


def test_figures_have_their_units_and_intervals(text):
    assert "1.04 ms" in text
    assert "[0.20 %, 0.22 %]" in text


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (
            PartFigure("ceiling", "rate", 15_948.0, 10_193.0, 21_703.0, 3),
            ["15,948 /s", "[10,193 /s, 21,703 /s]"],
        ),
        (PartFigure("lag", "duration", 7_050.0, 7_050.0, 7_050.0, 1_000), ["7.05 µs", "—"]),
    ],
)
def test_rates_have_their_unit_and_what_was_measured_once_has_no_interval(figure, expected):
    parts = {"engine": PartResult("Is it fit", figures=(figure,))}
    row = next(
        one
        for one in shown(calibration_document(replace(CALIBRATION, parts=parts))).splitlines()
        if figure.name in one
    )
    assert row.split("  ")[0] == figure.name
    assert all(one in row for one in expected)


def test_the_machine_the_day_and_the_effort_come_first(text):
    assert text.splitlines()[2].startswith("AMD EPYC 7B13")
    assert "2026-09-21" in text.splitlines()[3]
    assert "10 blocks of 1.5 s windows" in text.splitlines()[3]


def test_nothing_is_wider_than_the_terminal(text):
    assert max(map(len, text.splitlines())) <= 80


def test_the_machines_report_has_the_costs_in_short():
    told = " ".join(shown(host_document(Fingerprint(), (), CALIBRATION)).split())
    assert "the monitors: replies/s -0.4 % [-1.1 %, +0.3 %], not shown" in told
    assert "sampling 50 at 2 Hz, of a core: 0.21 %" in told
    assert len(summary(CALIBRATION, "")) == 2


def test_a_machine_without_a_calibration_is_told_how_to_get_one():
    assert "run `prony calibrate`" in shown(host_document(Fingerprint(), ()))

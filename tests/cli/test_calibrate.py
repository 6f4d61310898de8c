"""`prony calibrate`: what it keeps, what it says, and how it ends. What is measured is paper here."""

import pytest

from prony.cli.talk import Terminated
from prony.core.errors import HostError
from prony.study.calibration import Calibration, Change, Holding, PartFigure, PartResult
from prony.study.calibration.bench import QUICK, USUAL


def found(key="abc"):
    change = Change(
        "the monitors", "not watched", "ok_per_s", 10, -0.004, -0.011, 0.003, 0.05, "paired", "equivalent"
    )
    return Calibration(
        key,
        "a machine",
        "1.0",
        1_790_000_000,
        "10 blocks of 1.5 s windows",
        {
            "overheads": PartResult(
                "What Prony's own parts cost", (change,), missing={"a control group": "no root"}
            ),
            "sampler": PartResult(
                "Sampler", figures=(PartFigure("looking", "ratio", 0.002, 0.001, 0.003, 40),)
            ),
            "limits": PartResult("Limits", holdings=(Holding("memory", "enforced", "a hog was killed"),)),
        },
    )


@pytest.fixture
def calibrated(said, folder, monkeypatch):
    """Run the command with a measurement that does what the test says, and a cache of its own."""

    def run(measure, *arguments):
        orders = []
        monkeypatch.setattr(
            "prony.study.calibration.run.run_calibration", lambda order, _: orders.append(order) or measure()
        )
        monkeypatch.setattr("commands.Prony.environment", lambda self: {"PRONY_CACHE": str(folder / "own")})
        monkeypatch.setenv("PRONY_CACHE", str(folder / "own"))
        return said("calibrate", *arguments), orders

    return run


def kept(folder):
    return [str(path.relative_to(folder / "own")) for path in (folder / "own").rglob("*.json")]


def test_what_was_found_is_shown_and_kept(calibrated, folder):
    done, orders = calibrated(found)
    assert done.status == 0
    assert [order.effort for order in orders] == [USUAL]
    assert "the monitors" in done.out
    assert "-0.4 %" in done.out
    assert "a control group: not measured: no root" in done.out
    assert "memory: enforced: a hog was killed" in done.out
    assert kept(folder) == ["calibration/abc/calibration.json"]


def test_quick_measures_less_and_json_is_what_is_kept(calibrated, folder):
    done, orders = calibrated(found, "--quick", "--json", "--seed", "7")
    assert (orders[0].effort, orders[0].seed) == (QUICK, 7)
    assert done.json["parts"]["overheads"]["changes"][0]["effect"] == -0.004
    assert (folder / "own/calibration/abc/calibration.json").is_file()


@pytest.mark.parametrize(("interrupt", "status"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_an_interruption_keeps_nothing(calibrated, folder, interrupt, status):
    def measure():
        raise interrupt

    done, _ = calibrated(measure)
    assert (done.status, done.out) == (status, "")
    assert "interrupted: no result is kept" in done.err
    assert kept(folder) == []


def test_a_machine_that_cannot_be_calibrated_is_told(calibrated, folder):
    def measure():
        raise HostError("Prony may use 1 CPU", hint="give Prony two")

    done, _ = calibrated(measure)
    assert (done.status, done.out) == (3, "")
    assert "error: Prony may use 1 CPU" in done.err
    assert kept(folder) == []


def test_the_host_shows_the_calibration_of_the_machine_as_it_is_now(calibrated, said, monkeypatch):
    from prony.figures.drift import machine_key
    from prony.machine.fingerprint import fingerprint

    key = machine_key(fingerprint())
    calibrated(lambda: found(key))
    shown = " ".join(said("host").out.split())
    assert "the monitors: replies/s -0.4 % [-1.1 %, +0.3 %], equivalent" in shown
    assert "looking: 0.20 %" in shown
    assert said("host", "--json").json["calibration"]["key"] == key


def test_the_calibration_of_another_machine_is_not_shown(calibrated, said):
    calibrated(lambda: found("another"))
    assert "run `prony calibrate`" in " ".join(said("host").out.split())
    assert said("host", "--json").json["calibration"] is None

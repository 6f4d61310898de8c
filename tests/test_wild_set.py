"""The wild set stays as it was frozen, and each case is whole."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

WILD = Path(__file__).resolve().parent.parent / "bench" / "wild"
CASES = {file.parent.name: tomllib.loads(file.read_text()) for file in WILD.glob("cases/*/case.toml")}


def test_the_cases_are_those_that_were_frozen() -> None:
    checked = subprocess.run(
        [sys.executable, WILD / "digest", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_half_of_the_first_cases_is_sealed_and_later_sets_are_as_large() -> None:
    parts = sorted(case["half"] for case in CASES.values())
    assert parts == sorted(["open", "sealed", "second", "third", "fourth", "fifth", "sixth"] * 30)


@pytest.mark.parametrize(
    ("half", "without_fault"), [("second", 5), ("third", 6), ("fourth", 6), ("fifth", 6), ("sixth", 6)]
)
def test_a_later_set_has_cases_without_a_fault_and_counter_tests(half: str, without_fault: int) -> None:
    cases = [case for case in CASES.values() if case["half"] == half]
    assert sum("cure" not in case for case in cases) == without_fault
    tempted = [case["truth"] for case in cases if "tempts" in case["truth"]]
    assert len(tempted) >= 8
    assert all({*truth["tempts"]}.isdisjoint(truth["accept"]) for truth in tempted)


def test_each_case_accepts_its_own_cause_and_names_its_report() -> None:
    for name, case in CASES.items():
        assert case["truth"]["key"] in case["truth"]["accept"], name
        assert all("#" in report for report in case["report"]["where"]), name


def test_kept_evidence_is_read_as_published() -> None:
    judged = subprocess.run(
        [sys.executable, WILD / "judge", "--kept", "--check"], capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr

"""Studies that are killed at random moments lose at most the running trial, and leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "bench" / "kill9"


def kill9(cache, *arguments):
    return subprocess.run(
        [sys.executable, PROGRAM, "--seed", "1", "--cache", cache, *arguments],
        env=os.environ | {"PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_four_studies_that_are_killed_lose_and_leave_nothing(cache):
    done = kill9(cache, "--rounds", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert "continued to the end of the same plan: 1\n" in done.stdout
    assert done.stdout.endswith("rounds: 4; breaches: 0\n")


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["process", "container"])
def test_in_each_sandbox_studies_that_are_killed_lose_and_leave_nothing(cache, sandbox):
    done = kill9(cache, "--rounds", "20", "--sandbox", sandbox)
    assert (done.returncode, done.stderr) == (0, "")

"""Studies that are killed at random moments lose at most the running trial, and leave nothing behind."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import prony

PROGRAM = Path(__file__).parents[2] / "bench" / "kill9"
PACKAGES = f"{Path(prony.__file__).parent.parent}:{sysconfig.get_path('purelib')}"


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


@pytest.mark.slow
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_studies_that_are_stopped_doubled_and_starved_end_well_and_leave_nothing(user):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    # The tests' own interpreter may lie in root's home.
    python, places = (
        (sys.executable, {}) if user == "root" else ("/usr/bin/python3", {"PYTHONPATH": PACKAGES})
    )
    command = [python, "-B", PROGRAM.with_name("attacks"), *(() if user == "root" else ("--user", user))]
    done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True, check=False)
    if "No module named" in done.stderr + done.stdout:
        pytest.skip(f"`{python}` has not what Prony needs: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout

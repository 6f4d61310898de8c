"""Fleets on machines of their own: networks joined by a bridge, a tenth of a CPU each, clocks that differ.

`bench/machines` makes them, and `bench/fleet_losses` and `bench/fleet_clocks` say what has to hold.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quiet

BENCH = Path(__file__).parents[2] / "bench"
EIGHT = ("--workers", "8", "--share", "0.1")


@pytest.fixture(autouse=True)
def none_left():
    """Checks, after the test, that no network and no control group stands."""
    yield
    networks = [*Path("/run/netns").glob("prony-machine-*"), *Path("/run/netns").glob("prony-bridge-*")]
    assert networks == []
    assert list(Path("/sys/fs/cgroup").glob("**/prony-machine-*")) == []


def bench(name, *words):
    done = subprocess.run(
        [sys.executable, BENCH / name, *words], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    return done


def test_a_cut_link_is_noticed_in_time_and_the_others_account_is_exact():
    done = bench("fleet_losses", "--workers", "3", "--share", "0.3", "--rate", "60", "--kinds", "cut")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worker-2 was noticed after" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "killed", "stopped", "cut", "starved"])
def test_one_of_eight_generators_with_a_tenth_of_a_cpu_is_taken_away(kind):
    done = bench("fleet_losses", *EIGHT, "--kinds", kind)
    assert done.returncode == 0, done.stdout + done.stderr


def test_planted_offsets_drifts_and_ways_are_within_the_bounds():
    done = bench("fleet_clocks", "--workers", "2", "--probes", "40", "--share", "0.5", "--every-ms", "50")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("40 probes of 2 workers")


@pytest.mark.parametrize(("ppm", "status", "words"), [(50, 0, "kept"), (20_000, 1, "BROKEN")])
def test_bounds_hold_where_a_clock_drifts_and_break_where_by_more_than_is_allowed_for(ppm, status, words):
    planted = f"--drift-ppm={ppm}"
    done = bench("fleet_clocks", "--workers", "1", "--probes", "20", "--every-ms", "50", planted)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, words), done.stdout + done.stderr


@pytest.mark.slow
def test_the_bounds_of_500_probes_of_eight_workers_hold():
    done = bench("fleet_clocks", *EIGHT, "--probes", "500")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_nobody_is_lost_in_minutes_of_saturation():
    done = bench("fleet_hour", "--minutes", "3")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_fleet_opens_more_connections_than_one_address_has_ports():
    done = bench("fleet_connections", "--connections", "60000", "--workers", "3", "--seconds", "15")
    assert done.returncode == 0, done.stdout + done.stderr

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.sandbox.watch import machine
from prony.sandbox.watch.machine import EnvironmentCounters, parse_cpu_times, parse_pressure
from prony.sandbox.watch.native import tree_cpu

CPUS = os.sched_getaffinity(0)
BURN = "import time\nwhile time.process_time() < {}: pass"


def burn(seconds: float) -> None:
    subprocess.run([sys.executable, "-c", BURN.format(seconds)], check=True)


def window(subject_pid: int, seconds: float) -> tuple[dict[str, int], dict[str, str]]:
    counters = EnvironmentCounters(CPUS, os.getpid(), subject_pid)
    counters.open_window()
    burn(seconds)
    counters.close_window()
    return counters.deltas()


def test_the_time_of_the_trials_cpus_is_all_accounted_for() -> None:
    began_ns = time.monotonic_ns()
    counted, _ = window(os.getpid(), 0.5)
    elapsed_ns = (time.monotonic_ns() - began_ns) * len(CPUS)
    names = ("busy", "interrupts", "idle", "steal")
    assert sum(counted[f"cpus.{name}_ns"] for name in names) == pytest.approx(elapsed_ns, rel=0.2)
    assert counted["cpus.busy_ns"] > 0.3e9


def test_the_time_of_the_generators_cpus_is_a_part_of_that_where_it_has_some_alone() -> None:
    first = min(CPUS)
    counters = EnvironmentCounters(CPUS, os.getpid(), os.getpid(), {first})
    counters.open_window()
    subprocess.run(["taskset", "-c", str(first), sys.executable, "-c", BURN.format(0.3)], check=True)
    counters.close_window()
    counted, _ = counters.deltas()
    assert 0.2e9 < counted["generator_cpus.busy_ns"] <= counted["cpus.busy_ns"]
    assert "generator_cpus.busy_ns" not in window(os.getpid(), 0.05)[0]


def test_a_child_that_ended_within_the_window_counts_with_its_tree() -> None:
    counted, _ = window(os.getpid(), 0.5)
    assert counted["subject.cpu_ns"] > 0.3e9
    # All of Prony is below the subject's root here.
    assert counted["prony.cpu_ns"] == 0


def test_a_part_counts_with_its_children_that_ended_within_the_window() -> None:
    one = f"subprocess.run([sys.executable, '-c', {BURN.format(0.05)!r}])"
    forking = f"import subprocess, sys\nfor _ in range(40):\n {one}"
    with (
        subprocess.Popen([sys.executable, "-c", forking]) as part,
        subprocess.Popen(["sleep", "60"]) as still,
    ):
        try:
            parts = {"database": part.pid, "server": still.pid}
            counters = EnvironmentCounters(CPUS, os.getpid(), os.getpid(), parts=parts)
            counters.open_window()
            deadline_s = time.monotonic() + 20
            while sum(tree_cpu(part.pid).values()) < 0.5e9 and time.monotonic() < deadline_s:
                time.sleep(0.05)
            counters.close_window()
        finally:
            part.kill()
            still.kill()
    counted, _ = counters.deltas()
    assert counted["subject.database.cpu_ns"] > 0.3e9
    assert counted["subject.server.cpu_ns"] == 0


def test_what_the_subject_uses_is_not_pronys() -> None:
    with subprocess.Popen([sys.executable, "-c", BURN.format(30)]) as subject:
        try:
            counters = EnvironmentCounters(CPUS, os.getpid(), subject.pid)
            counters.open_window()
            deadline_s = time.monotonic() + 20
            while sum(tree_cpu(subject.pid).values()) < 0.5e9 and time.monotonic() < deadline_s:
                time.sleep(0.05)
            counters.close_window()
        finally:
            subject.kill()
    counted, _ = counters.deltas()
    assert counted["subject.cpu_ns"] > 0.2e9
    assert counted["prony.cpu_ns"] < counted["subject.cpu_ns"]


def test_a_machine_that_is_awake_did_not_sleep() -> None:
    counted, _ = window(os.getpid(), 0.01)
    assert abs(counted["machine.suspended_ns"]) < 50_000_000


def test_what_cannot_be_read_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    monkeypatch.setattr(machine, "_CPUS", tmp_path)
    counted, missing = window(os.getpid(), 0.01)
    assert {"subject.cpu_ns", "prony.cpu_ns", "machine.suspended_ns"} == set(counted)
    assert missing["cpus.busy_ns"] == f"cannot read `{tmp_path}/stat`: No such file or directory"
    assert f"{tmp_path}/pressure/io" in missing["pressure.io_full_ns"]
    assert "thermal_throttle" in missing["machine.throttles"]


@pytest.mark.parametrize("alone", [set(), {min(CPUS)}], ids=["shared", "alone"])
def test_the_generators_cpus_have_a_reason_where_there_are_some(
    alone: set[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counters = EnvironmentCounters(CPUS, os.getpid(), os.getpid(), alone)
    _, never = counters.deltas()
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    counters.open_window()
    counters.close_window()
    _, unread = counters.deltas()
    assert {"generator_cpus.busy_ns" in one for one in (never, unread)} == {bool(alone)}


def test_a_window_that_never_closed_counts_nothing_and_says_so() -> None:
    counters = EnvironmentCounters(CPUS, os.getpid(), os.getpid())
    counters.open_window()
    counted, missing = counters.deltas()
    assert counted == {}
    assert missing["cpus.steal_ns"] == "the window did not open and close"


def test_only_the_cpus_that_were_asked_for_are_read() -> None:
    text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\ncpu11 2 2 2 2 2 2 2 2 0 0\nintr 5\n"
    assert set(parse_cpu_times(text, {11, 12}, 100)) == {11}


def test_pressure_of_kernels_without_a_full_line_is_read() -> None:
    assert parse_pressure("some avg10=1.00 avg60=0.00 avg300=0.00 total=2\n") == {"some": 2000}


def test_a_process_that_is_gone_has_no_time() -> None:
    assert tree_cpu(2**22) == {}


def test_memory_that_changes_its_form_is_counted_where_the_kernel_has_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stat", "pressure/cpu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    counters = EnvironmentCounters(CPUS, os.getpid(), os.getpid())
    for collapsed in (5, 25):
        (tmp_path / "vmstat").write_text(f"nr 9\nthp_collapse_alloc {collapsed}\nthp_split_page 1\n")
        (counters.open_window if collapsed == 5 else counters.close_window)()
    counted, _ = counters.deltas()
    assert counted["machine.huge_pages"] == 20
    assert "machine.migrated_pages" not in counted

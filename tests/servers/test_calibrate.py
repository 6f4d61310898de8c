"""A calibration of this machine, small: by the path of a study, and interrupted in the middle."""

import os
import signal
from pathlib import Path

import pytest

from commands import Prony, ended
from prony.core.users import resolve_user
from prony.study.calibration.bench import Effort
from prony.study.calibration.overheads import METRICS
from prony.study.calibration.run import Commission, run_calibration

pytestmark = pytest.mark.servers

SMALL = Effort(blocks=2, window_ns=300_000_000, warmup_ns=100_000_000, samples=3, connections=2)


class Listener:
    def __init__(self):
        self.trials = []

    def notice(self, text):
        pass

    def environment(self, progress):
        pass

    def planned(self, trials):
        pass

    def trial_started(self, cell, block, blocks):
        pass

    def trial_event(self, cell, event):
        pass

    def trial_ended(self, cell, trial):
        self.trials.append((cell.subject.name, trial))


@pytest.mark.quiet  # in so short a window too few are answered beside others
def test_every_setup_is_measured_in_every_block_and_each_part_finds_something(cache, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(cache))
    listener = Listener()
    found = run_calibration(Commission(resolve_user(), SMALL), listener)
    overheads = found.parts["overheads"]
    setups = {name for name, _ in listener.trials}
    assert len(listener.trials) == 2 * len(setups)
    unwatched = [trial for name, trial in listener.trials if name.endswith("not watched")]
    assert all(trial.samples == () and trial.recording.account.ok > 0 for trial in unwatched)
    assert all(trial.samples for name, trial in listener.trials if not name.endswith("not watched"))
    assert len(overheads.changes) == len(METRICS) * (len(setups) - 1)
    assert all(one.blocks == 2 for one in overheads.changes), overheads.notes
    assert set(overheads.missing) == {"a network namespace", "a control group"} - {
        one.name for one in overheads.changes
    }
    assert 0 < found.parts["sampler"].figures[0].value < 1e8
    assert {one.name for one in found.parts["limits"].holdings} == {"cpus", "cpu_quota", "memory", "pids"}
    assert not list((cache / "run").glob(f"{os.getpid()}-*"))


def test_an_interrupted_calibration_ends_with_130_and_leaves_nothing(prony: Prony, cache: Path):
    process = prony.start("calibrate")
    with ended(process):
        seen = []
        while "answered" not in (line := process.stderr.readline()):
            seen.append(line)
            assert line, f"it ended early: {seen}"
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted: no result is kept" in said
    assert not list((cache / "run").glob(f"{process.pid}-*"))

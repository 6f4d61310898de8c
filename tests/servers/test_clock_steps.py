"""A wall clock that is set in the middle of a study: durations, figures and the archive's order hold."""

import mmap
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from prony.archive import open_archive
from prony.core.units import HOUR_NS, SECOND_NS

SHIM = Path(__file__).parent / "clock.c"
HOUR_S = 3600
RUN = (
    *("run", "--app", "hello", "--servers", "wsgiref,waitress", "-c", "2", "--duration", "1s"),
    *("--warmup", "200ms", "--repeats", "2", "--no-calibration", "--force", "--out", "a.prony"),
)


@contextmanager
def stepping(clock: Path) -> Iterator[None]:
    """Set the clock back and on, by more hours each time, as long as the block runs: a step that came back
    could meet all trials.
    """
    done = threading.Event()

    def step():
        with clock.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            for number in count():
                shared[:] = struct.pack("q", (-1) ** number * number * 2 * HOUR_S)
                if done.wait(0.35):
                    return

    thread = threading.Thread(target=step)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def stepped(unlucky, folder):
    """Run a command in which every process, also servers and generators, has a clock that is set about."""
    if shutil.which("cc") is None:
        pytest.skip("`cc` is not installed")
    # In a mount namespace of its own this is /etc, so that all programs load the shim.
    etc = folder / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    shared = ["-shared", "-fPIC", "-O2", '-DOFFSET="/etc/prony-clock"']
    subprocess.run(["cc", *shared, SHIM, "-o", etc / "prony-clock.so"], check=True)
    (etc / "ld.so.preload").write_text("/etc/prony-clock.so\n")
    (etc / "prony-clock").write_bytes(bytes(8))

    def run(*arguments):
        with stepping(etc / "prony-clock"):
            return unlucky(f"mount --bind {etc} /etc", *arguments)

    return run


def trials_of(path):
    with open_archive(path) as archive:
        return [record.trial for record in archive.trials()]


def test_a_clock_that_is_set_in_the_middle_of_a_study_changes_no_figure(stepped, prony, folder):
    done = stepped(*RUN)
    assert done.status == 0, done.err
    trials = trials_of(folder / "a.prony")
    starts = [trial.started_unix_ns for trial in trials]
    assert max(starts) - min(starts) > HOUR_NS, "the clock was not set"
    order = [(trial.block, trial.position) for trial in trials]
    assert order == sorted(order)
    # Other work on the machine may have spoilt a trial: its times hold all the same.
    for trial in (one for one in trials if one.recording is not None):
        window, times = trial.recording.window, trial.recording.distributions
        assert window.length_ns == pytest.approx(SECOND_NS, rel=0.2)
        assert trial.recording.account.ok > 0
        assert 0 < times.ok_service.max_ns < 10 * SECOND_NS
        stamps = [sample.monotonic_ns for sample in trial.samples]
        assert stamps == sorted(stamps)
        assert stamps[-1] - stamps[0] < 60 * SECOND_NS
    assert prony("report", "a.prony").status == 0

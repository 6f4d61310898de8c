"""A supervisor that is killed while it starts its subject takes the subject with it."""

import os
import signal
import time
from pathlib import Path

import pytest

from commands import eventually
from prony.sandbox import linux
from prony.sandbox.spawn import Process, SpawnOrder
from prony.sandbox.start import start

DIE_WITH_PARENT = linux.die_with_parent


def order(folder: Path, in_namespace: bool) -> SpawnOrder:
    cpus = list(os.sched_getaffinity(0))
    script = f"echo > {folder}/ran; exec sleep 5"
    process = Process("server", ["/bin/sh", "-c", script], {}, str(folder))
    return SpawnOrder([process], None, None, None, cpus, cpus, False, in_namespace)


@pytest.mark.parametrize("in_namespace", [False, True])
def test_a_subject_that_was_not_tied_to_its_supervisor_in_time_does_not_run(
    tmp_path, monkeypatch, in_namespace
):
    if in_namespace and os.geteuid() != 0:
        pytest.skip("needs root: a PID namespace")

    def tie_late(*arguments):
        (tmp_path / "reached").touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        DIE_WITH_PARENT(*arguments)

    monkeypatch.setattr(linux, "die_with_parent", tie_late)
    supervisor = os.fork()
    if supervisor == 0:
        start(order(tmp_path, in_namespace), os.open(os.devnull, os.O_WRONLY))
        os._exit(0)
    assert eventually((tmp_path / "reached").exists)
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    (tmp_path / "go").touch()
    assert not eventually((tmp_path / "ran").exists, timeout_s=1.0)

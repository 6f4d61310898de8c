"""A machine that does not fit a study, for real: refused, forced and marked; and what its kernel wrote."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Prony
from prony.archive import open_archive
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import NoCgroups

pytestmark = pytest.mark.servers

LOAD = ("--servers", "wsgiref", "-c", "250", "--duration", "300ms", "--warmup", "100ms", "--repeats", "1")
HOG = """\
kept = []

def app(environ, start_response):
    kept.append(b"x" * 8_000_000)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"hi"]
"""


def run_with_few_files(prony: Prony, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Prony where a process may have 300 files open: too few for 250 connections and all else."""
    return subprocess.run(
        [
            "prlimit",
            "--nofile=300:300",
            sys.executable,
            "-m",
            "prony",
            "run",
            "--no-calibration",
            "--app",
            "hello",
            *LOAD,
            *arguments,
        ],
        cwd=prony.folder,
        env=prony.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit (util-linux) is not installed")
def test_a_study_that_does_not_fit_is_refused_and_runs_by_force_with_a_mark(prony: Prony):
    refused = run_with_few_files(prony, "--out", "refused.prony")
    assert refused.returncode == 3, refused.stderr
    assert (
        "error: this study cannot be valid on this machine:\n  open files: 300; needed: 350" in refused.stderr
    )
    assert not (prony.folder / "refused.prony").exists()
    forced = run_with_few_files(prony, "--out", "forced.prony", "--force")
    assert forced.returncode == 0, forced.stderr
    assert "Measured only because of --force: open files: 300" in " ".join(forced.stdout.split())
    with open_archive(prony.folder / "forced.prony") as archive:
        (run,) = archive.runs()
    assert [reason.partition(":")[0] for reason in run.fingerprint.forced] == [
        "open files",
        "open files of a server",
    ]


def has_groups() -> str | None:
    """Return why the kernel's word on a killed process cannot be had; null: it can."""
    if not os.access("/dev/kmsg", os.R_OK):
        return "the kernel's log cannot be read"
    tree = open_cgroups()
    if isinstance(tree, NoCgroups):
        return tree.reason
    tree.close()
    return "control groups have no limit of memory" if "memory" in tree.missing else None


def test_what_the_kernel_wrote_about_a_killed_server_is_in_the_archive(prony: Prony):
    if reason := has_groups():
        pytest.skip(reason)
    Path(prony.folder / "hog.py").write_text(HOG)
    done = prony(
        *(
            "run",
            "--no-calibration",
            "--app",
            "hog:app",
            "--servers",
            "waitress",
            "-c",
            "4",
            "--duration",
            "2s",
            "--warmup",
            "100ms",
        ),
        *("--repeats", "1", "--memory", "64M", "--full", "--out", "hog.prony"),
        timeout_s=180,
    )
    assert "out of memory" in done.out, done.err
    with open_archive(prony.folder / "hog.prony") as archive:
        log = archive.runs()[0].fingerprint.free["kernel_log"]
    assert any("Killed process" in message["text"] for message in log["messages"]), log

"""What a report says of the sandbox that a study ran in."""

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

from golden import build
from prony.archive import open_archive
from prony.archive.codec import dump
from prony.model.json_codec import encode
from prony.model.sandbox import SandboxChoice
from prony.reading.study import StudyResults, read_archive
from prony.report.sections.sandbox import sandbox_notes


def told(folder: Path, choice: SandboxChoice, **facts: object) -> str:
    """Return what is said of a study whose sandbox is this one."""
    path = build.study_two(folder / "two.prony")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE cell SET sandbox_json = ?", [dump(encode(choice))])
        database.execute("UPDATE subject SET sandbox_json = json_patch(sandbox_json, ?)", [dump(facts)])
    with open_archive(path) as archive:
        reading = read_archive(archive)
    assert isinstance(reading, StudyResults)
    return " ".join(map(str, sandbox_notes(reading)))


def test_the_reason_why_no_stronger_sandbox_was_taken_is_told(tmp_path: Path) -> None:
    text = told(tmp_path, SandboxChoice(), kind="process", reasons=["no control groups here: not root"])
    assert "Sandbox `process`: no control groups here: not root." in text


LIMITS = {
    "cpus": {"holding": "enforced", "reason": "seen"},
    "memory": {"holding": "enforced", "reason": "a hog was killed"},
    "pids": {"holding": "absent", "reason": "why"},
}


def test_limits_are_shown_with_how_far_they_hold(tmp_path: Path) -> None:
    choice = SandboxChoice("cgroup", memory_bytes=2**29, pids=9)
    text = told(tmp_path, choice, kind="cgroup", limits=LIMITS)
    assert (
        "A control group limited the server to its CPUs (enforced), 512 MiB of memory (enforced), "
        "9 processes and threads (absent)."
    ) in text


def test_what_a_server_could_exhaust_here_is_told(tmp_path: Path) -> None:
    holds = {"at": 4096, "holding": "enforced", "reason": "a bomb was held"}
    ceilings = {"pids": holds, "memory": {"at": 2**34, "holding": "absent", "reason": "no control groups"}}
    text = told(tmp_path, SandboxChoice(), kind="process", ceilings=ceilings, missing={"files": "Linux 5.10"})
    assert "Nothing limited the memory of a server: no control groups." in text
    assert "Servers could write all files that their user may write: Linux 5.10." in text
    assert "processes" not in text


def test_limits_of_a_study_are_told_without_control_groups_too(tmp_path: Path) -> None:
    choice = SandboxChoice(cpu_quota=1.0, memory_bytes=2**29)
    limits = {
        "cpu_quota": {"holding": "by affinity only", "reason": "none"},
        "memory": {"holding": "absent", "reason": "none"},
    }
    text = told(tmp_path, choice, kind="process", limits=limits)
    assert "Requested limits: 1 CPU (by affinity only), 512 MiB of memory (absent)." in text
    assert "were requested; the server" not in text


def test_more_cpus_than_the_server_has_are_told_as_scaled(tmp_path: Path) -> None:
    text = told(tmp_path, SandboxChoice("cgroup", cpu_quota=64.0), kind="cgroup", limits={})
    assert "64 CPUs were requested; the server has 1 on this machine" in text


def test_a_sandbox_without_limits_is_not_said_to_have_some(tmp_path: Path) -> None:
    text = told(tmp_path, dataclasses.replace(SandboxChoice(), pids=None))
    assert "limited the server" not in text

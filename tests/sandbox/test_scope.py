"""A scope of systemd's as it is asked for, against a `busctl` that answers, refuses or is silent."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.sandbox.cgroup.files import own_mark
from prony.sandbox.cgroup.scope import enter_scope, gain_cgroups, in_unit, scope_call
from prony.sandbox.cgroup.types import NoCgroups

# As systemd does: the unit is the one word that ends so.
MOVES = 'for word; do case $word in *.scope) echo "0::/app.slice/$word" > {groups};; esac; done'
Plant = Callable[[str], None]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc of a machine with systemd and v2, where no group can be made below Prony's."""
    mount = tmp_path / "cgroup"
    mount.mkdir()
    (mount / "cgroup.controllers").write_text("cpu memory pids\n")
    proc = tmp_path / "proc"
    (proc / "1").mkdir(parents=True)
    (proc / "1" / "comm").write_text("systemd\n")
    (proc / "self").mkdir()
    (proc / "self" / "mountinfo").write_text(f"41 31 0:38 / {mount} rw - cgroup2 cgroup2 rw\n")
    (proc / "self" / "cgroup").write_text("0::/session.scope\n")
    return proc


@pytest.fixture
def plant(tmp_path: Path, proc: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Return what puts a script in the place of `busctl`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def write(script: str) -> None:
        tool = folder / "busctl"
        tool.write_text(
            f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{script.format(groups=proc / "self/cgroup")}\n'
        )
        tool.chmod(0o755)

    return write


def asked(tmp_path: Path) -> list[str]:
    path = tmp_path / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_prony_is_in_the_scope_once_systemd_has_moved_it(tmp_path: Path, proc: Path, plant: Plant) -> None:
    plant(MOVES)
    assert enter_scope(proc) is None
    assert in_unit((proc / "self" / "cgroup").read_text(), f"{own_mark()}.scope")
    (order,) = asked(tmp_path)
    assert f"Delegate b true CollectMode s inactive-or-failed PIDs au 1 {os.getpid()} 0" in order


def test_a_scope_is_asked_for_once(tmp_path: Path, proc: Path, plant: Plant) -> None:
    plant(MOVES)
    assert enter_scope(proc) is None
    assert enter_scope(proc) == "Prony is in one already"
    assert len(asked(tmp_path)) == 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo noise >&2; echo 'Call failed: Access denied' >&2; exit 1", "Call failed: Access denied"),
        ("exec sleep 60", "no answer within 0.3 s"),
        ("true", "systemd accepted the request but did not move Prony within 0.3 s"),
    ],
)
def test_why_there_is_no_scope_is_told(proc: Path, plant: Plant, script: str, reason: str) -> None:
    plant(script)
    assert enter_scope(proc, timeout_s=0.3) == reason


def test_without_busctl_there_is_no_scope(
    proc: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert enter_scope(proc) == "`busctl` is not on PATH"


def test_the_reason_stands_beside_that_of_the_own_group(proc: Path, plant: Plant) -> None:
    plant("echo 'Failed to connect to bus: No medium found' >&2; exit 1")
    found = gain_cgroups(proc)
    assert isinstance(found, NoCgroups)
    own, _, scope = found.reason.partition("; a scope of systemd is not available either: ")
    assert own.startswith("cannot create the group")
    assert scope == "Failed to connect to bus: No medium found"
    assert "enable-linger" in str(found.hint)


@pytest.mark.parametrize("what", ["no systemd", "no controllers", "no v2"])
def test_where_systemd_has_nothing_to_hand_out_it_is_not_asked(
    tmp_path: Path, proc: Path, plant: Plant, what: str
) -> None:
    plant(MOVES)
    match what:
        case "no systemd":
            (proc / "1" / "comm").write_text("init\n")
        case "no controllers":
            (tmp_path / "cgroup" / "cgroup.controllers").write_text("\n")
        case _:
            shutil.rmtree(tmp_path / "cgroup")
    found = gain_cgroups(proc)
    assert isinstance(found, NoCgroups)
    assert "scope" not in found.reason.replace("session.scope", "")
    assert asked(tmp_path) == []


@given(st.integers(1, 2**31), st.integers(1, 2**22))
def test_root_asks_the_system_and_a_user_their_own_systemd(user: int, pid: int) -> None:
    ours, roots = scope_call(user, pid, "a.scope"), scope_call(0, pid, "a.scope")
    assert (ours[0], roots[0], ours[1:]) == ("--user", "--system", roots[1:])
    # `au 1 PID`, then no auxiliary units.
    assert ours[-4:] == ("au", "1", str(pid), "0")


@pytest.mark.parametrize(
    ("groups", "inside"),
    [
        ("0::/app.slice/a.scope\n", True),
        ("0::/app.slice/a.scope/prony\n", True),
        ("0::/app.slice/ba.scope\n", False),
        ("1:name=systemd:/a.scope\n0::/b.scope\n", False),
        ("", False),
    ],
)
def test_only_a_group_of_v2_tells_whether_prony_is_in_the_scope(groups: str, inside: bool) -> None:
    assert in_unit(groups, "a.scope") is inside

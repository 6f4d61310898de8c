"""Which interpreter environments are built on."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.catalog import interpreter as module
from prony.catalog.access import first_unreadable, may
from prony.catalog.child import Children
from prony.catalog.interpreter import candidates, choose_interpreter, probe
from prony.runas import RunAs, resolve_user

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs as another user")


@pytest.fixture
def me(tmp_path):
    return RunAs("me", os.geteuid(), os.getegid(), False, tmp_path)


def test_newest_first_and_none_that_is_too_old(tmp_path):
    names = [
        "python3.10",
        "python3.11",
        "python3.13",
        "python3.9",
        "python3",
        "python3.12-config",
        "python2.7",
    ]
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in candidates([tmp_path, tmp_path / "absent"])] == ["python3.13", "python3.11"]


def test_the_first_folder_wins_among_equals(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python3.12").touch()
    assert candidates([tmp_path / "one", tmp_path / "two"])[0] == tmp_path / "one" / "python3.12"


def test_an_interpreter_says_what_it_is(me):
    found = probe(Children(me), Path(sys.executable))
    assert found.version == sys.version_info[:2]
    assert found.name.endswith(".".join(str(part) for part in sys.version_info[:3]))


def test_what_does_not_run_is_no_interpreter(me, tmp_path):
    liar = tmp_path / "python3.99"
    liar.write_text("#!/bin/sh\necho hello\n")
    liar.chmod(0o755)
    assert probe(Children(me), liar) is None
    assert probe(Children(me), tmp_path / "absent") is None


def test_the_interpreter_that_runs_prony_is_taken_where_it_can_be_run(me):
    assert choose_interpreter(Children(me), me).version == sys.version_info[:2]


@needs_root
def test_without_another_the_own_interpreter_is_copied(monkeypatch):
    # pytest's own temporary folder is closed to other users.
    with TemporaryDirectory(prefix="prony-test-") as folder:
        Path(folder).chmod(0o755)
        user = RunAs("nobody", 65534, 65534, True, Path(folder) / "cache")
        monkeypatch.setattr(module, "candidates", lambda folders: ())
        assert choose_interpreter(Children(user), user).version == sys.version_info[:2]


def test_a_library_path_is_made_relative_in_a_copied_program():
    program = b"head\0/opt/python3.11/lib\0tail"
    relocated = module._relocated(program, Path("/opt/python3.11"))
    assert relocated.rstrip(b"tail").rstrip(b"\0") == b"head\0$ORIGIN/../lib"
    assert len(relocated) == len(program)
    assert module._relocated(program, Path("/other")) == program


def test_a_closed_folder_on_the_way_is_named(tmp_path):
    user = RunAs("nobody", 65534, 65534, True, tmp_path)
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    named = first_unreadable(closed / "inside", user)
    assert named is not None
    assert closed.is_relative_to(named)


def test_owner_group_and_others_have_bits_of_their_own(tmp_path):
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o640)
    owner = RunAs("owner", os.geteuid() or 12345, os.getegid(), False, tmp_path)
    os.chown(file, owner.uid, -1) if os.geteuid() == 0 else None
    assert may(file, owner, 6)
    assert not may(file, owner, 1)
    assert not may(file, RunAs("other", 54321, 54321, False, tmp_path), 4) or 54321 in os.getgroups()


def test_the_user_is_resolved_without_side_effects(tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    assert resolve_user().cache == tmp_path / "cache"
    assert not (tmp_path / "cache").exists()

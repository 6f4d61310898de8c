"""Prony's own compiled part, where servers can load it."""

import stat
import subprocess
import sys

import pytest

from prony.catalog.install import build as module
from prony.catalog.install.build import own_parts
from prony.core.users import RunAs


@pytest.fixture
def user(tmp_path):
    return RunAs("me", 1, 1, False, tmp_path)


def test_another_interpreter_serves_from_it_without_anything_else_of_prony(user):
    serve = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from prony._engine import ReferenceServer\n"
        "with ReferenceServer(json.dumps({'port': 0})) as server: print(server.port)"
    )
    command = [sys.executable, "-I", "-S", "-c", serve, str(own_parts(user))]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_everybody_may_read_it_and_nobody_may_write(user):
    folder = own_parts(user)
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o555 if path.is_dir() else 0o444)


def test_it_is_copied_once(user):
    first = own_parts(user)
    before = first.stat().st_mtime_ns
    assert own_parts(user) == first
    assert first.stat().st_mtime_ns == before
    assert [one for one in first.parent.iterdir() if one.is_dir()] == [first]


def test_another_build_has_another_folder(user, monkeypatch, tmp_path):
    first = own_parts(user)
    changed = tmp_path / "_engine.so"
    changed.write_bytes(b"another")
    monkeypatch.setattr(module, "_files", lambda: (first / "prony" / "__init__.py", changed))
    assert own_parts(user) != first

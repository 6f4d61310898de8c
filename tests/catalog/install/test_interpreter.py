"""Which interpreter environments are built on."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.catalog.install import interpreter as module
from prony.catalog.install.child import Children
from prony.catalog.install.interpreter import (
    candidates,
    choose_interpreter,
    find_interpreter,
    is_interpreter,
    is_there,
    located,
    try_interpreter,
)
from prony.core.users import RunAs, first_unreadable, may, resolve_user

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


def test_a_program_of_no_environment_is_an_interpreter(tmp_path):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    assert not is_interpreter(python)
    python.touch()
    assert is_interpreter(python)
    assert not is_interpreter(tmp_path)
    (tmp_path / "pyvenv.cfg").touch()
    assert not is_interpreter(python)


def test_an_interpreter_says_what_it_is(me):
    found = try_interpreter(Children(me), Path(sys.executable))
    assert found.version == sys.version_info[:2]
    assert found.name.endswith(".".join(str(part) for part in sys.version_info[:3]))


def test_what_does_not_run_is_no_interpreter(me, tmp_path):
    liar = tmp_path / "python3.99"
    liar.write_text("#!/bin/sh\necho hello\n")
    liar.chmod(0o755)
    assert try_interpreter(Children(me), liar) is None
    assert try_interpreter(Children(me), tmp_path / "absent") is None


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
    assert not may(file, RunAs("nobody", 54321, 54321, True, tmp_path), 4)


def test_the_user_is_resolved_without_side_effects(tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    assert resolve_user().cache == tmp_path / "cache"
    assert not (tmp_path / "cache").exists()


# --- an interpreter of a version that a server asks for ---------------------------------------------------

# No machine has it: what is found is the test's own.
VERSION = "3.99"


def installed(prefix, version=f"{VERSION}.1", implementation="CPython"):
    """Install what says that it is such an interpreter below ``prefix``; return its program."""
    for folder in ("bin", "lib/python3.99", "include/python3.99"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "lib/python3.99/os.py").touch()
    (prefix / "include/python3.99/Python.h").touch()
    program = prefix / "bin" / f"python{VERSION}"
    program.write_text(f"""#!/bin/sh\necho "[\\"$0\\", \\"{implementation}\\", \\"{version}\\"]"\n""")
    program.chmod(0o755)
    return program


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without such an interpreter: its folders for what is on the PATH and for a home."""
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.defpath}")
    (tmp_path / "path").mkdir()
    return tmp_path


def test_a_version_that_is_not_there_is_not_found(machine, me):
    assert located(VERSION, me) == ()
    assert find_interpreter(Children(me), me, VERSION) is None
    assert not is_there(Children(me), me, VERSION)


def test_the_path_comes_first_then_pyenv_then_uv_and_the_newest_of_each(machine, me):
    home = machine / "home"
    expected = [
        installed(machine / "opt"),
        installed(home / ".pyenv/versions/3.99.18"),
        installed(home / ".pyenv/versions/3.99.9"),
        installed(home / ".local/share/uv/python/cpython-3.99.2-linux-x86_64-gnu"),
    ]
    installed(home / ".local/share/uv/python/cpython-3.99.3+freethreaded-linux-x86_64-gnu")
    (machine / "path" / f"python{VERSION}").symlink_to(expected[0])
    assert located(VERSION, me) == tuple(expected)
    found = find_interpreter(Children(me), me, VERSION)
    assert (found.path, found.name, found.version) == (expected[0], "CPython 3.99.1", (3, 99))


@pytest.mark.parametrize(
    ("variable", "prefix"),
    [
        ("PYENV_ROOT", "versions/3.99.1"),
        ("UV_PYTHON_INSTALL_DIR", "cpython-3.99.1-linux"),
        ("XDG_DATA_HOME", "uv/python/cpython-3.99.1-linux"),
    ],
)
def test_other_places_of_pyenv_and_uv_are_looked_at(machine, me, monkeypatch, variable, prefix):
    program = installed(machine / "elsewhere" / prefix)
    monkeypatch.setenv(variable, str(machine / "elsewhere"))
    assert located(VERSION, me) == (program,)


def test_a_wrapper_script_is_no_interpreter(machine, me):
    shim = machine / "path" / f"python{VERSION}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert located(VERSION, me) == ()


@pytest.mark.parametrize(("version", "implementation"), [("3.9.1", "CPython"), ("3.99.1", "PyPy")])
def test_what_says_that_it_is_another_is_passed_over(machine, me, version, implementation):
    installed(machine / "home/.pyenv/versions/3.99.2", version, implementation)
    assert not is_there(Children(me), me, VERSION)
    right = installed(machine / "home/.pyenv/versions/3.99.1")
    assert find_interpreter(Children(me), me, VERSION).path == right


@needs_root
def test_one_that_is_closed_to_the_user_is_copied_with_its_headers(machine):
    with TemporaryDirectory(prefix="prony-test-") as folder:
        Path(folder).chmod(0o755)
        user = RunAs("nobody", 65534, 65534, True, Path(folder) / "cache")
        closed = installed(machine / "home/.pyenv/versions/3.99.1")
        assert is_there(Children(user), user, VERSION)
        assert not user.cache.exists()
        found = find_interpreter(Children(user), user, VERSION)
        assert found.path.is_relative_to(user.cache / "interpreters")
        assert (found.path.parent.parent / "include/python3.99/Python.h").is_file()
        assert find_interpreter(Children(user), user, VERSION) == found
        # One that is open needs no copy.
        with TemporaryDirectory(prefix="prony-test-") as other:
            Path(other).chmod(0o755)
            program = installed(Path(other) / "opt")
            (machine / "path" / f"python{VERSION}").symlink_to(program)
            assert find_interpreter(Children(user), user, VERSION).path == program
        assert closed.is_file()

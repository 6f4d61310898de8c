"""Environments for Pythons older than uv's oldest: their own pip, with hashes; and editions of servers."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from prony.catalog.install import build
from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.interpreter import Interpreter, find_interpreter
from prony.catalog.install.resolve import LOCKS, built_in_requirements, committed_lock, shared_requirements
from prony.catalog.install.uv import filled_by_pip
from prony.catalog.schema.loader import load_catalog
from prony.core.users import resolve_user
from prony.model.address import Wire

CATALOG = load_catalog()
EDITIONS = [name for name in CATALOG.servers if "-as-of-" in name]
OF_2016 = [
    f"{name}-as-of-2016"
    for name in ("bjoern", "cherrypy", "gunicorn", "meinheld", "mod-wsgi-express", "uwsgi")
]
OF_2018 = [f"{name}-as-of-2018" for name in ("gunicorn-embedded", "tornado", "twisted")]


@pytest.fixture
def children(tmp_path):
    return Children(resolve_user())


class Recorded:
    """Runs nothing; says what was asked, and fails at the command of this number."""

    def __init__(self, children, fails_at=None, log=""):
        self.builder, self.commands, self._fails_at, self._log = children.builder, [], fails_at, log

    def build(self, task, stdin=None):
        self.commands.append((task.command, task.environment, task.writable))
        failed = len(self.commands) - 1 == self._fails_at
        return FinishedCommand(int(failed), "", self._log if failed else "")


@pytest.fixture
def old(tmp_path):
    """An interpreter with a pip in its library."""
    bundled = tmp_path / "python" / "lib" / "python2.7" / "ensurepip" / "_bundled"
    bundled.mkdir(parents=True)
    (bundled / "pip-19.2.3-py2.py3-none-any.whl").touch()
    return Interpreter(tmp_path / "python" / "bin" / "python2.7", "CPython 2.7.18", (2, 7))


@pytest.fixture
def lock(tmp_path):
    file = tmp_path / "lock.txt"
    file.write_text(committed_lock(CATALOG.server("gunicorn-as-of-2016"), ()).text)
    return file


def test_its_own_pip_installs_with_hashes_and_nothing_that_the_lock_does_not_name(old, lock, children):
    recorded = Recorded(children)
    assert filled_by_pip(recorded, old, lock, lock.parent / "venv").ok
    first, second, _ = (command for command, _, _ in recorded.commands)
    for command in (first, second):
        assert command[:2] == [str(old.path), "-s"]
        assert command[2].endswith("pip-19.2.3-py2.py3-none-any.whl/pip")
        assert {"--require-hashes", "--no-deps", "--ignore-installed"} <= set(command)
    # What builds the others is there first: an isolated build would download it without a hash.
    assert re.findall(r"^[a-z]+", Path(first[-1]).read_text(), re.MULTILINE) == ["setuptools", "wheel"]
    assert "--no-build-isolation" in second
    assert {writable for *_, writable in recorded.commands} == {(lock.parent / "venv",)}


def test_builds_read_the_variables_that_the_entry_names(old, lock, children):
    recorded = Recorded(children)
    filled_by_pip(recorded, old, lock, lock.parent / "venv", {"CFLAGS": "-Wno-error", "PYTHONPATH": "/else"})
    for _, environment, _ in recorded.commands:
        assert environment["CFLAGS"] == "-Wno-error"
        assert environment["PYTHONPATH"].endswith("site-packages")


def test_what_failed_begins_with_the_error_and_not_with_what_pip_says_of_itself(old, lock, children):
    log = (
        "DEPRECATION: Python 2.7 will end\n  core/ssl.c:26:24: error: invalid use of `SSL`\nERROR: see above"
    )
    done = filled_by_pip(Recorded(children, 1, log), old, lock, lock.parent / "venv")
    assert done.log.startswith("error: core/ssl.c:26:24: error: invalid use")


def test_an_interpreter_without_a_pip_is_refused(old, lock, children):
    (old.path.parent.parent / "lib/python2.7/ensurepip/_bundled/pip-19.2.3-py2.py3-none-any.whl").unlink()
    done = filled_by_pip(Recorded(children), old, lock, lock.parent / "venv")
    assert (done.ok, done.log) == (False, f"`{old.path}` has no pip of its own (ensurepip)")


def test_the_starter_puts_the_packages_behind_what_a_caller_sets(old, lock, children, tmp_path):
    recorded = Recorded(children)
    filled_by_pip(recorded, old, lock, tmp_path / "venv")
    command, _, _ = recorded.commands[-1]
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "gunicorn").write_text(f"#!{old.path}\nprint()\n")
    subprocess.run(["python3", *command[1:]], check=True)
    assert (folder / "gunicorn").read_text() == f"#!{folder}/python\nprint()\n"
    old.path.parent.mkdir()
    old.path.write_text('#!/bin/sh\necho "$PYTHONPATH $1"\n')
    old.path.chmod(0o755)
    packages = tmp_path / "venv/lib/python2.7/site-packages"
    for given, expected in ((None, str(packages)), ("/app", f"/app:{packages}")):
        environment = {"PATH": os.defpath, **({"PYTHONPATH": given} if given else {})}
        done = subprocess.run(
            [folder / "python", "x"], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{expected} x\n"


# --- editions ---------------------------------------------------------------------------------------------


def test_there_is_the_software_of_2016_and_of_2018():
    assert sorted(EDITIONS) == sorted((*OF_2016, *OF_2018))
    assert {CATALOG.server(name).install.python for name in OF_2016} == {"2.7"}
    assert {CATALOG.server(name).install.python for name in OF_2018} == {"3.7"}


@pytest.mark.parametrize("name", EDITIONS)
def test_each_has_a_lock_with_hashes_that_names_all_of_it_and_no_index(name):
    entry = CATALOG.server(name)
    text = (LOCKS / f"{name}.txt").read_text()
    locked = re.findall(r"^([^\s#]+==[^\s]+) \\$", text, re.MULTILINE)
    wanted = {*entry.install.requirements, *shared_requirements(entry)}
    assert set(locked) == wanted
    assert text.count("==") == len(locked)
    assert text.count("--hash=sha256:") >= len(locked)
    assert "://" not in text and "--index" not in text


def test_an_app_of_2018_is_in_the_locks_of_its_python_and_in_no_other():
    of_2018 = built_in_requirements("3.7")
    assert {"flask==1.0.2", "falcon==1.4.1"} <= set(of_2018)
    assert set(of_2018).isdisjoint(built_in_requirements())
    assert shared_requirements(CATALOG.server("tornado-as-of-2018")) == of_2018
    assert shared_requirements(CATALOG.server("gunicorn-as-of-2016")) == ()


def test_an_edition_is_its_server_with_other_defaults():
    entry, edition = CATALOG.server("gunicorn"), CATALOG.server("gunicorn-as-of-2016")
    assert edition.settings["workers"].default == "2*{cpus}+1"
    assert edition.settings["backlog"] == entry.settings["backlog"]
    # What it agrees on with TLS is not what clients ask for today.
    of_today = [part for part in entry.command if isinstance(part, str) or part.setting != "tls"]
    assert (list(edition.command), edition.facts, edition.tls) == (of_today, entry.facts, None)
    assert (edition.variants, entry.remark) == ({}, None)
    apache, of_2016 = CATALOG.server("mod-wsgi-express"), CATALOG.server("mod-wsgi-express-as-of-2016")
    assert (apache.wires, of_2016.wires) == ((Wire.HTTP, Wire.HTTP2), (Wire.HTTP,))
    assert "http2" not in repr(of_2016.command)
    assert "CPython 2.7" in edition.remark


@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_an_old_interpreter_is_used_from_a_copy_without_packages(version, children):
    found = find_interpreter(children, children.user, version)
    if found is None:
        pytest.skip(f"no CPython {version} on this machine")
    if found.path.parent.parent in (Path("/usr"), Path("/usr/local")):
        pytest.skip("it is the system's")
    assert found.is_old
    assert found.path.is_relative_to(children.user.cache)
    assert not list((found.path.parent.parent / "lib").glob("python*/site-packages/*"))


def test_the_report_of_an_environment_can_be_read_by_python_2(children):
    found = find_interpreter(children, children.user, "2.7")
    if found is None:
        pytest.skip("no CPython 2.7 on this machine")
    compiled = ["-c", "import sys; compile(sys.argv[1], 'report', 'exec')", build._REPORT]
    assert children.run([str(found.path), *compiled], {"PATH": os.defpath}, Path("/")).ok

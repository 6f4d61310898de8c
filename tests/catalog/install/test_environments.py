"""Environments that are really built, with uv, from the package index that pip would use."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.catalog.install.child import Children
from prony.catalog.install.environment import Declared, Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.interpreter import try_interpreter
from prony.catalog.install.prepare import prepare
from prony.catalog.install.status import status
from prony.catalog.schema.loader import load_catalog
from prony.core.users import resolve_user
from prony.model.subject import INSTALLABLE, READY

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def user():
    # pytest's own temporary folder is closed to other users, as whom servers run when this runs as root.
    with TemporaryDirectory(prefix="prony-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield replace(resolve_user(), cache=folder / "prony")


class Progress:
    def __init__(self):
        self.states = []

    def __call__(self, progress):
        self.states.append((progress.key, progress.state))

    def of(self, key):
        return [state for name, state in self.states if name == key]


def prepared(user, *requests):
    progress = Progress()
    return prepare(requests, user, progress, jobs=2), progress


def test_environments_are_built_once_and_then_taken_from_the_cache(catalog, user):
    requests = [EnvironmentRequest(name, catalog.server(name)) for name in ("wsgiref", "waitress")]
    assert status(catalog.server("waitress"), user) == INSTALLABLE
    built, first = prepared(user, *requests)
    again, second = prepared(user, *requests)
    assert first.of("waitress") == ["queued", "building", "ready"]
    assert second.of("waitress") == ["queued", "ready"]
    assert built == again
    assert isinstance(built["waitress"], Environment)
    assert built["waitress"].packages["waitress"] == "3.0.2"
    assert built["waitress"].interpreter.startswith("CPython 3.")
    assert (built["waitress"].bin / "waitress-serve").is_file()
    assert status(catalog.server("waitress"), user) == READY


def test_a_build_that_was_cut_off_is_not_taken_for_whole(catalog, user):
    request = EnvironmentRequest("wsgiref", catalog.server("wsgiref"))
    environment = prepared(user, request)[0]["wsgiref"]
    (environment.bin.parent.parent / "complete.json").unlink()
    assert prepared(user, request)[1].of("wsgiref") == ["queued", "building", "ready"]


def test_an_impossible_requirement_is_unavailable_with_its_reason(catalog, user):
    request = EnvironmentRequest("x", catalog.server("waitress"), app_requirements=("waitress==0.0.0.1",))
    results, progress = prepared(user, request)
    assert isinstance(results["x"], Unavailable)
    assert "`waitress` and `waitress==0.0.0.1` cannot be installed together" in results["x"].reason
    assert progress.of("x") == ["queued", "failed"]


def test_the_apps_pins_win_over_the_servers(catalog, user):
    request = EnvironmentRequest("x", catalog.server("waitress"), app_requirements=("waitress==3.0.1",))
    environment = prepared(user, request)[0]["x"]
    assert isinstance(environment, Environment)
    assert environment.packages["waitress"] == "3.0.1"


def test_a_requirements_file_is_resolved_together_with_the_server(catalog, user):
    file = user.cache.parent / "requirements.txt"
    file.write_text("falcon==4.4.0\n")
    request = EnvironmentRequest("x", catalog.server("wsgiref"), declared=Declared(file))
    environment = prepared(user, request)[0]["x"]
    assert isinstance(environment, Environment)
    assert set(environment.packages) == {"falcon"}


def test_a_projects_file_is_resolved_too(catalog, user):
    file = user.cache.parent / "pyproject.toml"
    file.write_text('[project]\nname = "mine"\nversion = "1"\ndependencies = ["falcon==4.4.0"]\n')
    request = EnvironmentRequest("x", catalog.server("wsgiref"), declared=Declared(file))
    environment = prepared(user, request)[0]["x"]
    assert isinstance(environment, Environment)
    assert set(environment.packages) == {"falcon"}


def test_an_entrys_overrides_take_the_place_of_what_its_packages_ask_for(catalog, user):
    plain = catalog.server("wsgiref")
    install = plain.install.model_copy(
        update={"requirements": ("flask==3.1.3",), "overrides": ("click==8.0.4",)}
    )
    request = EnvironmentRequest("x", plain.model_copy(update={"name": "mine", "install": install}))
    environment = prepared(user, request)[0]["x"]
    assert isinstance(environment, Environment)
    assert (environment.packages["flask"], environment.packages["click"]) == ("3.1.3", "8.0.4")


def test_a_users_own_environment_is_taken_as_it_stands(catalog, user):
    built = prepared(user, EnvironmentRequest("waitress", catalog.server("waitress")))[0]["waitress"]
    request = EnvironmentRequest("x", catalog.server("waitress"), python=built.bin.parent)
    found = prepared(user, request)[0]["x"]
    assert isinstance(found, Environment)
    assert (found.python, found.lock_digest) == (built.python, "")


def test_for_a_users_own_interpreter_an_environment_is_built(catalog, user):
    python = Path("/usr/bin/python3")
    if not python.exists() or try_interpreter(Children(user), python) is None:
        pytest.skip("no Python for everybody here")
    request = EnvironmentRequest("x", catalog.server("waitress"), declared=Declared(), python=python)
    found = prepared(user, request)[0]["x"]
    assert isinstance(found, Environment)
    assert found.bin.is_relative_to(user.cache) and found.lock_digest
    assert found.python.resolve() == python.resolve()
    assert "waitress" in found.packages


def test_what_is_no_python_builds_nothing(catalog, user):
    found = prepared(user, EnvironmentRequest("x", catalog.server("waitress"), python=Path("/bin/true")))[0][
        "x"
    ]
    assert isinstance(found, Unavailable)
    assert found.reason == "the users who build and run servers cannot run `/bin/true` as Python"


def test_a_users_own_environment_without_the_server_says_how_to_install_it(catalog, user):
    built = prepared(user, EnvironmentRequest("wsgiref", catalog.server("wsgiref")))[0]["wsgiref"]
    request = EnvironmentRequest("x", catalog.server("tornado"), python=built.bin.parent)
    found = prepared(user, request)[0]["x"]
    assert isinstance(found, Unavailable)
    assert "No module named 'tornado'" in found.reason
    assert f"{built.python} -m pip install 'tornado==6.6.1'" in found.reason


def test_an_interruption_ends_what_is_being_built(catalog, user, monkeypatch):
    def interrupt(progress):
        if progress.state == "building":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([EnvironmentRequest("cherrypy", catalog.server("cherrypy"))], user, interrupt, jobs=1)
    assert not list((user.cache / "environments").glob("cherrypy-*/complete.json"))
    built = prepared(user, EnvironmentRequest("cherrypy", catalog.server("cherrypy")))
    assert built[1].of("cherrypy") == ["queued", "building", "ready"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs as another user")
def test_the_environment_belongs_to_root_and_who_runs_servers_can_use_it(catalog, user):
    environment = prepared(user, EnvironmentRequest("wsgiref", catalog.server("wsgiref")))[0]["wsgiref"]
    everything = list(user.cache.rglob("*"))
    assert len(everything) > 100
    assert [path for path in everything if path.lstat().st_uid == user.uid] == []
    closed = user.cache / "store"
    assert closed.stat().st_mode & 0o777 == 0o700
    open_to_all = [path for path in everything if path.lstat().st_mode & stat.S_IWOTH]
    assert [path for path in open_to_all if not path.is_symlink() and closed not in path.parents] == []
    within = [path for path in environment.bin.parent.rglob("*") if not path.is_symlink()]
    assert {(path.stat().st_uid, path.stat().st_mode & 0o222) for path in within} == {(0, 0)}
    done = subprocess.run(
        [environment.python, "-c", "import flask"], user=user.uid, group=user.gid, check=False, cwd="/"
    )
    assert done.returncode == 0


def test_a_pin_that_cannot_be_had_is_told_and_not_replaced(catalog, user):
    entry = catalog.server("waitress")
    install = entry.install.model_copy(update={"requirements": ("waitress==0.0.0.1",)})
    gone = entry.model_copy(update={"install": install})
    found, _ = prepared(user, EnvironmentRequest("gone", gone, app_requirements=("humanize==4.9.0",)))
    assert isinstance(found["gone"], Unavailable)
    assert "waitress==0.0.0.1" in found["gone"].reason
    assert found["gone"].reason.startswith("`waitress` cannot be installed")

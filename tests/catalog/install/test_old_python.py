"""A server that asks for a Python of its own: where that is not there, and which apps it can have."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prony.catalog.install.environment import EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.install.resolve import built_in_requirements, committed_lock, shared_requirements
from prony.catalog.install.status import status
from prony.catalog.install.system import advise, debian, wanted_python
from prony.catalog.schema.loader import load_catalog, load_server
from prony.cli.documents.servers import advice_document
from prony.core.users import RunAs, resolve_user
from prony.model.subject import Availability, Interface, Subject
from prony.report.document import Paragraph
from prony.study.assembly import needs_of

VALID = Path(__file__).parents[1] / "schema" / "hostile" / "valid.toml"
OLD = "meinheld-cpython38"


@pytest.fixture
def file(tmp_path):
    """An entry that asks for a version that no machine has."""
    file = tmp_path / "old.toml"
    text = VALID.read_text().replace('name = "valid"', 'name = "old"')
    file.write_text(text.replace("[install]", '[install]\npython = "3.99"', 1))
    return file


@pytest.fixture
def entry(file):
    return load_server(file)


@pytest.fixture
def me(tmp_path):
    user = resolve_user()
    return RunAs("me", 0, 0, False, tmp_path / "cache") if user.drop else replace(user, cache=tmp_path)


# --- where it is not there --------------------------------------------------------------------------------


def test_a_server_whose_python_is_not_there_says_what_it_needs(entry, me):
    assert status(entry, me) == Availability.lacking("CPython 3.99")


def test_it_is_not_built_and_says_why(entry, me):
    found = prepare([EnvironmentRequest("old", entry)], me, lambda progress: None)["old"]
    assert isinstance(found, Unavailable)
    assert found.reason == (
        "`old` needs CPython 3.99, which is not on this machine; "
        "`prony doctor old` shows where Prony looks for it"
    )


def test_a_users_own_environment_of_another_python_is_refused(entry, me):
    install = entry.install.model_copy(update={"imports": ()})
    plain = entry.model_copy(update={"install": install, "command": ("{python}",)})
    request = EnvironmentRequest("old", plain, python=Path(sys.executable))
    found = prepare([request], me, lambda progress: None)["old"]
    assert isinstance(found, Unavailable)
    assert found.reason.startswith("`old` needs CPython 3.99, and `")
    assert found.reason.endswith(f"is CPython {sys.version.split()[0]}")


def test_advice_names_it_without_inventing_a_package(entry, tmp_path):
    advice = advise([entry], debian(tmp_path), has_python=lambda _entry: False)
    assert (advice.missing, advice.pythons, advice.command) == (("CPython 3.99",), ("3.99",), None)
    assert (advice.servers[0].needs, advice.servers[0].missing) == (("CPython 3.99",), ("CPython 3.99",))
    (section,) = advice_document(advice).sections
    text = " ".join(str(one.text) for one in section.blocks if isinstance(one, Paragraph))
    assert "CPython 3.99 is not on this machine: there is no python3.99 on the PATH" in text
    assert "`uv python install 3.99`" in text
    assert "Nothing is missing." not in text


def test_one_that_is_there_is_a_need_and_not_missing(entry, tmp_path):
    advice = advise([entry], debian(tmp_path))
    assert (advice.missing, advice.servers[0].needs) == ((), ("CPython 3.99",))
    assert wanted_python(load_server(VALID)) == ()


def test_doctor_fails_and_tells(file, monkeypatch, capsys):
    from prony.cli import main as command_line

    monkeypatch.setattr("sys.argv", ["prony", "doctor", "--catalog", str(file), "old", "--json"])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 3
    assert json.loads(capsys.readouterr().out)["missing"] == ["CPython 3.99"]


# --- the apps that it can have ----------------------------------------------------------------------------


@pytest.fixture
def requested(monkeypatch, tmp_path):
    catalog = load_catalog()
    user = RunAs("me", 0, 0, False, tmp_path)

    def of(server, app):
        subject = Subject("s", server, catalog.app(app), Interface.WSGI)
        return needs_of(catalog, subject, user).server

    return of


def test_apps_without_requirements_share_its_committed_lock(requested):
    for app in ("hello", "page-64k"):
        request = requested(OLD, app)
        assert (request.key, request.app_requirements) == (OLD, ())
        assert committed_lock(request.server, request.app_requirements)


def test_an_app_with_requirements_is_resolved_with_it(requested):
    request = requested(OLD, "flask-hello")
    assert (request.key, request.app_requirements) == (f"{OLD} for flask-hello", ("flask==3.1.3",))
    assert committed_lock(request.server, request.app_requirements) is None


def test_with_any_other_server_all_built_in_apps_share_one_environment(requested):
    for app in ("hello", "flask-hello"):
        request = requested("meinheld", app)
        assert (request.key, request.app_requirements) == ("meinheld", built_in_requirements())
        assert shared_requirements(request.server) == built_in_requirements()
